"""Collective calls: all ranks of a communicator take part.

How they agree: each call begins with an exchange in the channel (`limosa._channel`), which does calls with short values
and without ``out=`` whole. Where it does not, on all ranks, an allgather of fixed length follows, in which every rank
gives a *slot*, the first message of its value (`limosa._packet`) marked with the call, its root and its reduction. So
ranks that make different calls meet all the same, and each of them sees which rank called what. From the slots the
ranks derive the same way to go on: MPI's own collective if all have arrays of the same dtype and shape, packets
otherwise. A rank that cannot take part, because its argument is wrong or cannot be pickled, fills its slot with that
fact, so that the others do not wait for it.

A slot costs each rank of an allgather `SLOT` bytes per rank: 64 KB at 256 ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar, overload

import numpy as np
from mpi4py import MPI

from limosa._agreement import FAULTS, Table, block_of, fitting, marked, scalar_or_array
from limosa._memory import Array, as_array, is_array_like, spec_of
from limosa._names import refuse
from limosa._packet import ARRAY, HEAD, OBJECT, SLOT, announced, has_parts, into, opened
from limosa._reductions import Reductions
from limosa._transfer import PART_TAG

T = TypeVar("T")
Out = TypeVar("Out")


class Collectives(Reductions):
    """The collective calls of `Comm`."""

    def barrier(self) -> None:
        """Wait until all ranks have called it.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.barrier()

        """
        try:
            if self._channel.barrier() is NotImplemented:
                self._long_barrier()
        except FAULTS as error:
            self._blame(error, "barrier")

    def _long_barrier(self) -> None:
        self._meet(self._bare_slot("barrier"))

    @overload
    def bcast(self, x: None = ..., root: int = ..., *, out: None = ...) -> Any: ...

    @overload
    def bcast(self, x: T | None, root: int = ..., *, out: None = ...) -> T: ...

    @overload
    def bcast(self, x: object = ..., root: int = ..., *, out: Any) -> Any: ...

    def bcast(self, x: Any = None, root: int = 0, *, out: Any = None, **wrong: NoReturn) -> Any:
        """Give all ranks the value of one.

        Parameters
        ----------
        x
            The value, on the root; ignored on the others.
        root
            The rank that has it.
        out
            An array to receive into, on the other ranks.

        Returns
        -------
        object
            The value: on the root `x` itself, on the others `out` if it was given.

        Raises
        ------
        limosa.errors.RootError
            If the root is not valid.
        limosa.errors.MismatchError
            On every rank, if the ranks named different roots or made different calls. So do all collective calls.
        limosa.errors.PeerError
            If the root could not send its value, or another rank could not receive it. That rank raises the reason.
        limosa.errors.Error
            If what arrives does not fit into `out`, as in `recv`, on the ranks where it does not.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.bcast({"steps": 100})
        {'steps': 100}

        """
        if wrong:
            refuse("bcast", wrong)
        try:
            if out is None:
                value = self._channel.bcast(x, root)
                if value is not NotImplemented:
                    return value
            else:
                self._channel.announce()
            return self._long_bcast(x, root, out)
        except FAULTS as error:
            self._blame(error, "bcast")

    def _long_bcast(self, x: Any, root: Any, out: Any = None) -> Any:
        number, problem = self._root_or_problem(root)
        if self.rank != number:
            return self._received(number, out, problem)
        plan = self._plan(x, "bcast", number) if problem is None else None
        if plan is not None:
            if plan.data is not None:
                plan.data[...] = x
            self._meet(plan.slot)
            self._share_parts((x,) if plan.data is None else (), number)
            return x
        first, parts, misuse = self._encoded(x)
        problem = problem or misuse
        self._meet(
            marked(first, SLOT, "bcast", number) if problem is None else self._refusal(problem, "bcast", number),
            problem,
        )
        self._share_parts(parts, number)
        return x

    def _received(self, root: int, out: Any, problem: Exception | None) -> Any:
        """Do the part of the ranks other than the root in `bcast`."""
        target, misuse = self._target_or_problem(out)
        problem = problem or misuse
        self._meet(
            self._bare_slot("bcast", root) if problem is None else self._refusal(problem, "bcast", root), problem
        )
        value = self._shared_parts(self._slot_seen(root), target, root)
        return value if target is None else out

    @overload
    def gather(self, x: Array, root: int = ..., *, out: Any = ...) -> Any: ...

    @overload
    def gather(self, x: T, root: int = ..., *, out: None = ...) -> list[T] | None: ...

    @overload
    def gather(self, x: object, root: int = ..., *, out: Any) -> Any: ...

    def gather(self, x: Any, root: int = 0, *, out: Any = None, **wrong: NoReturn) -> Any:
        """Collect the values of all ranks on one.

        Parameters
        ----------
        x
            The value of this rank.
        root
            The rank that gets them.
        out
            An array of shape ``(size, *shape)`` to receive arrays of the same shape into, on the root.

        Returns
        -------
        object
            On the root: if all values are arrays of one dtype and shape, a new array of shape ``(size, *shape)``;
            otherwise the list of the values. In both, item i is that of rank i. On the other ranks None.

        Raises
        ------
        limosa.errors.RootError
            If the root is not valid.
        limosa.errors.PeerError
            If another rank could not take part. That rank raises the reason.
        limosa.errors.Error
            On the root, if the values do not fit into `out`.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> limosa.world.gather("a")
        ['a']
        >>> limosa.world.gather(np.arange(3))
        array([[0, 1, 2]])

        """
        if wrong:
            refuse("gather", wrong)
        try:
            if out is None:
                gathered = self._channel.gather(x, root)
                if gathered is not NotImplemented:
                    return gathered
            else:
                self._channel.announce()
            return self._long_gather(x, root, out)
        except FAULTS as error:
            self._blame(error, "gather")

    def _long_gather(self, x: Any, root: Any, out: Any = None) -> Any:
        number, problem = self._root_or_problem(root)
        first, parts, misuse = self._encoded(x)
        target, unusable = self._target_or_problem(out if self.rank == number else None)
        table = self._agree(first, "gather", problem or misuse or unusable, number)
        if table.arrays and table.any_parts:
            return self._gathered_on(number, as_array(x), target, out)
        if self.rank != number:
            self._send_parts(parts, number, PART_TAG)
            return None
        return self._delivered(self._collected(table, x, target), target, out)

    def _gathered_on(self, root: int, array: Array, target: Array | None, out: Any) -> Any:
        """Collect the arrays of all ranks, which have the same dtype and shape, on the root."""
        spec, made = spec_of(array)
        try:
            if self.rank != root:
                self._envelopes.Gather(spec, None, root)
                return None
            result = self._rows(array, target)
            self._envelopes.Gather(spec, [result, MPI.BYTE], root)
        finally:
            if made:
                made.Free()
        return self._delivered(result, target, out)

    def _rows(self, array: Array, target: Array | None) -> Array:
        """Give the target if arrays like this one of all ranks can be received there at once, else a new array."""
        return fitting(target, array.dtype, (self.size, *array.shape))

    @overload
    def allgather(self, x: Array, *, out: None = ...) -> Any: ...

    @overload
    def allgather(self, x: T, *, out: None = ...) -> list[T]: ...

    @overload
    def allgather(self, x: object, *, out: Out) -> Out: ...

    def allgather(self, x: Any, *, out: Any = None, **wrong: NoReturn) -> Any:
        """Collect the values of all ranks on all.

        Parameters
        ----------
        x
            The value of this rank.
        out
            An array of shape ``(size, *shape)`` to receive arrays of the same shape into.

        Returns
        -------
        object
            If all values are arrays of one dtype and shape, an array of shape ``(size, *shape)``; otherwise the list of
            the values. In both, item i is that of rank i.

        Raises
        ------
        limosa.errors.PeerError
            If a rank could not send its value. That rank raises the reason.
        limosa.errors.Error
            If the values do not fit into `out`.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> limosa.world.allgather(limosa.world.rank)
        [0]
        >>> limosa.world.allgather(np.ones(2))
        array([[1., 1.]])

        """
        if wrong:
            refuse("allgather", wrong)
        try:
            if out is None:
                gathered = self._channel.allgather(x)
                if gathered is not NotImplemented:
                    return gathered
            else:
                self._channel.announce()
            return self._long_allgather(x, out)
        except FAULTS as error:
            self._blame(error, "allgather")

    def _long_allgather(self, x: Any, out: Any = None) -> Any:
        target, misuse = self._target_or_problem(out)
        plan = self._plan(x, "allgather") if misuse is None else None
        if plan is None:
            return self._gathered(x, target, misuse, out)
        table = self._agree_by_plan(plan, x)
        if table is not None:
            return self._gathered(x, target, misuse, out, table)
        stacked = self._stacked(x, target) if plan.stack is None else plan.stack.copy()
        return self._delivered(stacked, target, out)

    def _stacked(self, array: Array, target: Array | None) -> Array:
        """Collect the arrays of all ranks, which have the same dtype and shape, on all."""
        result = self._rows(array, target)
        spec, made = spec_of(array)
        try:
            self._envelopes.Allgather(spec, [result, MPI.BYTE])
        finally:
            if made:
                made.Free()
        return result

    def _gathered(
        self, x: Any, target: Array | None, misuse: Exception | None, out: Any, table: Table | None = None
    ) -> Any:
        """Do an `allgather` for which there is no shorter way.

        The table is there if the ranks have exchanged their slots already.
        """
        first, parts, problem = self._encoded(x)
        if table is None:
            table = self._agree(first, "allgather", problem or misuse)
        if table.arrays:
            return self._delivered(
                self._stacked(as_array(x), target) if table.any_parts else table.stacked(), target, out
            )
        if not table.any_parts:
            return self._delivered(table.values(self.size), target, out)
        values = []
        for rank in range(self.size):
            slot = table.slot(rank)
            if rank == self.rank and has_parts(slot):
                self._share_parts(parts, rank)
                values.append(x)
            else:
                values.append(self._shared_parts(slot, None, rank))
        return self._delivered(values, target, out)

    @overload
    def scatter(self, values: Array | None = ..., root: int = ..., *, out: None = ...) -> Any: ...

    @overload
    def scatter(self, values: Sequence[T] | None, root: int = ..., *, out: None = ...) -> T: ...

    @overload
    def scatter(self, values: Sequence[object] | Array | None = ..., root: int = ..., *, out: Out) -> Out: ...

    def scatter(self, values: Any = None, root: int = 0, *, out: Any = None, **wrong: NoReturn) -> Any:
        """Give each rank its item of a sequence.

        Parameters
        ----------
        values
            On the root, one item for each rank: a list or tuple, or an array whose first axis has the length ``size``.
            Ignored on the others.
        root
            The rank that has them.
        out
            An array to receive the item into.

        Returns
        -------
        object
            Item number `rank`, or `out` if it was given. Items of an array are new arrays.

        Raises
        ------
        limosa.errors.RootError
            If the root is not valid.
        limosa.errors.CountError
            On the root, if there are not `size` items. The others raise `PeerError`.
        limosa.errors.PeerError
            If the root could not send. The root raises the reason.
        limosa.errors.Error
            If the item does not fit into `out`, on the ranks where it does not.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> limosa.world.scatter(["only item"])
        'only item'
        >>> limosa.world.scatter(np.array_split(np.arange(4), limosa.world.size))
        array([0, 1, 2, 3])

        """
        if wrong:
            refuse("scatter", wrong)
        try:
            if out is None:
                item = self._channel.scatter(values, root)
                if item is not NotImplemented:
                    return item
            else:
                self._channel.announce()
            return self._long_scatter(values, root, out)
        except FAULTS as error:
            self._blame(error, "scatter")

    def _long_scatter(self, values: Any, root: Any, out: Any = None) -> Any:
        number, problem = self._root_or_problem(root)
        target, misuse = self._target_or_problem(out)
        problem = problem or misuse
        if self.rank != number:
            slot = self._bare_slot("scatter", number)
            self._meet(slot if problem is None else self._refusal(problem, "scatter", number), problem)
            value = self._item(self._slot_seen(number), number, target)
            return value if target is None else out
        packets, misuse = self._encoded_items(values, lambda rank: values[rank])
        problem = problem or misuse
        block = block_of(values) if problem is None else None
        first = self._slots.encode(block)[0] if block is not None else self._slots.object_head
        slot = marked(first, SLOT, "scatter", number)
        self._meet(slot if problem is None else self._refusal(problem, "scatter", number), problem)
        if block is None:
            self._scatter_packets(packets)
        elif slot[0] != ARRAY:
            self._envelopes.Scatter([block, MPI.BYTE], MPI.IN_PLACE, number)
        own = values[number]
        if target is None:
            return own.copy() if isinstance(own, np.ndarray) else own
        into(as_array(own) if is_array_like(own) else own, target)
        return out

    def _scatter_packets(self, packets: list[tuple[bytes, Sequence[Array]]]) -> None:
        """Send each rank its item; this is the root."""
        slots = b"".join(packet.ljust(SLOT, b"\0") for packet, _ in packets)
        self._envelopes.Scatter(slots, MPI.IN_PLACE, self.rank)
        MPI.Request.Waitall(
            [
                request
                for rank, (_, parts) in enumerate(packets)
                if rank != self.rank
                for request in self._start_parts(parts, rank, PART_TAG)
            ]
        )

    def _item(self, first: memoryview, root: int, target: Array | None) -> Any:
        """Receive the item of this rank; the first message of the root announces all items."""
        if first[0] == OBJECT:
            slot = memoryview(bytearray(SLOT))
            self._envelopes.Scatter(None, slot, root)
            return self._arrived(slot, target, root, PART_TAG, SLOT - HEAD)
        if first[0] == ARRAY:
            return scalar_or_array(opened(first, None)[self.rank, ...].copy(), target)
        dtype, (_, *shape) = announced(first)
        value = fitting(target, dtype, tuple(shape))
        self._envelopes.Scatter(None, [value, MPI.BYTE], root)
        return value if value is target else scalar_or_array(value, target)

    @overload
    def alltoall(self, values: Array | Sequence[Array], *, out: None = ...) -> Any: ...

    @overload
    def alltoall(self, values: Sequence[T], *, out: None = ...) -> list[T]: ...

    @overload
    def alltoall(self, values: Sequence[object] | Array, *, out: Out) -> Out: ...

    def alltoall(self, values: Any, *, out: Any = None, **wrong: NoReturn) -> Any:
        """Give each rank one item, and get one from each.

        Parameters
        ----------
        values
            One item for each rank: a list or tuple, or an array whose first axis has the length ``size``.
        out
            An array of shape ``(size, *shape)`` to receive arrays of the same shape into.

        Returns
        -------
        object
            If all items that arrive are arrays of one dtype and shape, an array of shape ``(size, *shape)``; otherwise
            a list. In both, item i is from rank i.

        Raises
        ------
        limosa.errors.CountError
            If there are not `size` items. The others raise `PeerError`.
        limosa.errors.PeerError
            If a rank could not send. That rank raises the reason.
        limosa.errors.Error
            If the items do not fit into `out`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.alltoall(["to rank 0"])
        ['to rank 0']

        """
        if wrong:
            refuse("alltoall", wrong)
        try:
            if out is None:
                exchanged = self._channel.alltoall(values)
                if exchanged is not NotImplemented:
                    return exchanged
            else:
                self._channel.announce()
            return self._long_alltoall(values, out)
        except FAULTS as error:
            self._blame(error, "alltoall")

    def _long_alltoall(self, values: Any, out: Any = None) -> Any:
        target, misuse = self._target_or_problem(out)
        packets, problem = self._encoded_items(
            values, lambda rank: values[rank, ...] if isinstance(values, np.ndarray) else values[rank]
        )
        problem = misuse or problem
        block = block_of(values) if problem is None else None
        first = self._slots.encode(block)[0] if block is not None else self._slots.object_head
        table = self._agree(first, "alltoall", problem)
        if block is not None and table.arrays:
            if not table.any_parts:
                return self._delivered(table.stacked()[:, self.rank].copy(), target, out)
            result = self._rows(block[0, ...], target)
            self._envelopes.Alltoall([block, MPI.BYTE], [result, MPI.BYTE])
            return self._delivered(result, target, out)
        if block is not None:
            packets = [self._slots.encode(row) for row in block]
        slots = b"".join(marked(packet, SLOT, "alltoall") for packet, _ in packets)
        self._envelopes.Alltoall(slots, self._memory)
        table = self._table()
        under_way = [
            request
            for rank, (_, parts) in enumerate(packets)
            if rank != self.rank
            for request in self._start_parts(parts, rank, PART_TAG)
        ]
        own = values[self.rank, ...] if isinstance(values, np.ndarray) else values[self.rank]
        result = self._collected(table, own, target)
        MPI.Request.Waitall(under_way)
        return self._delivered(result, target, out)
