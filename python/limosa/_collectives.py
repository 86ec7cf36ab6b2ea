"""Collective calls: all ranks of a communicator take part.

How they agree: each call begins with the same MPI collective, an allgather of fixed length, in which every rank gives
a *slot*, the first message of its value (`limosa._packet`) marked with the call, its root and its reduction. So ranks
that make different calls meet all the same, and each of them sees who called what. Short values are done with that.
From the slots the ranks derive the same way to go on: MPI's own collective if all have arrays of the same dtype and
shape, packets otherwise. A rank that cannot take part, because its argument is wrong or cannot be pickled, fills its
slot with that fact, so that the others do not wait for it.

A slot costs each rank of an allgather `SLOT` bytes per rank: 64 KB at 256 ranks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._agreement import SLOT, Agreement, Failed, Plan, Table, block_of, described_error, marked
from limosa._memory import Array, as_array, is_array_like, spec_of
from limosa._ops import NAMES, Function, Op, op_of
from limosa._packet import ARRAY, HEAD, OBJECT, announced, has_parts, into, misfit, opened
from limosa._transfer import PART_TAG

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound="Collectives")


_ERRORS = (MPI.Exception, errors.Error)


def _collective(method: Callable[Concatenate[C, P], R]) -> Callable[Concatenate[C, P], R]:
    """Translate the exceptions of mpi4py that leave a method, and say in those of ours where they come from."""

    @functools.wraps(method)
    def call(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except _ERRORS as error:
            self._blame(error, method.__name__)

    return call


class Collectives(Agreement):
    """The collective calls of `Comm`."""

    # --- movement ----------------------------------------------------------------------------------------------------

    @_collective
    def barrier(self) -> None:
        """Wait until all ranks have called it.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.barrier()

        """
        self._meet(self._bare_slot("barrier"))

    def bcast(self, x: Any = None, root: int = 0, *, out: Any = None) -> Any:
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
        try:
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
        except _ERRORS as error:
            self._blame(error, "bcast")
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

    @_collective
    def gather(self, x: Any, root: int = 0, *, out: Any = None) -> Any:
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
        shape = (self.size, *array.shape)
        direct = target is not None and target.flags.c_contiguous and misfit(target, array.dtype, shape) is None
        return target if direct and target is not None else np.empty(shape, array.dtype)

    def allgather(self, x: Any, *, out: Any = None) -> Any:
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
        try:
            target, misuse = self._target_or_problem(out)
            plan = self._plan(x, "allgather") if misuse is None else None
            if plan is not None:
                table = self._agree_by_plan(plan, x)
                if table is None:
                    stacked = self._stacked(x, target) if plan.stack is None else plan.stack.copy()
                    return self._delivered(stacked, target, out)
            return self._gathered(x, target, misuse, out, table if plan is not None else None)
        except _ERRORS as error:
            self._blame(error, "allgather")

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

    def _gathered(self, x: Any, target: Array | None, misuse: Exception | None, out: Any, table: Table | None) -> Any:
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

    @_collective
    def scatter(self, values: Any = None, root: int = 0, *, out: Any = None) -> Any:
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
            return _scalar_or_array(opened(first, None)[self.rank, ...].copy(), target)
        dtype, (_, *shape) = announced(first)
        wrong = misfit(target, dtype, tuple(shape)) if target is not None else None
        direct = target is not None and target.flags.c_contiguous and wrong is None
        value = target if direct and target is not None else np.empty(shape, dtype)
        self._envelopes.Scatter(None, [value, MPI.BYTE], root)
        return value if direct else _scalar_or_array(value, target)

    @_collective
    def alltoall(self, values: Any, *, out: Any = None) -> Any:
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
        slots = b"".join(packet.ljust(SLOT, b"\0") for packet, _ in packets)
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

    # --- reductions --------------------------------------------------------------------------------------------------

    def reduce(self, x: Any, op: str | Op | Function = "sum", root: int = 0, *, out: Any = None) -> Any:
        """Combine the values of all ranks on one.

        Parameters
        ----------
        x
            The value of this rank. Arrays are combined element by element and must have the same dtype and shape on all
            ranks.
        op
            ``"sum"``, ``"prod"``, ``"max"``, ``"min"``, ``"land"``, ``"lor"``, ``"lxor"``, ``"band"``, ``"bor"``,
            ``"bxor"``; ``"maxloc"`` or ``"minloc"`` for pairs (value, location); or any associative function of two
            values. Values are combined in the order of the ranks.
        root
            The rank that gets the result.
        out
            An array to receive the result into, on the root. It may be `x`.

        Returns
        -------
        object
            The result on the root, None on the others. For arrays it has their dtype.

        Raises
        ------
        limosa.errors.RootError, limosa.errors.OpError
            If the root or the reduction is not valid.
        limosa.errors.MismatchError
            On every rank, if the arrays differ in dtype or shape, or the reductions differ.
        limosa.errors.PeerError
            If another rank could not take part. That rank raises the reason, such as what a function of the user
            raised.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.reduce(2, "prod")
        2

        """
        try:
            number, problem = self._root_or_problem(root)
            return self._reduced(x, op, number, out, "reduce", problem)
        except _ERRORS as error:
            self._blame(error, "reduce")

    def allreduce(self, x: Any, op: str | Op | Function = "sum", *, out: Any = None) -> Any:
        """Combine the values of all ranks on all.

        Parameters
        ----------
        x, op
            As for `reduce`.
        out
            An array to receive the result into. It may be `x`.

        Returns
        -------
        object
            The result. For arrays it has their dtype.

        Raises
        ------
        limosa.errors.Error
            As `reduce`.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> limosa.world.allreduce(np.arange(3.0), np.maximum)
        array([0., 1., 2.])
        >>> limosa.world.allreduce((0.5, limosa.world.rank), "minloc")
        (0.5, 0)

        """
        try:
            return self._reduced(x, op, None, out, "allreduce")
        except _ERRORS as error:
            self._blame(error, "allreduce")

    @_collective
    def scan(self, x: Any, op: str | Op | Function = "sum", *, out: Any = None) -> Any:
        """Combine the values of the ranks up to this one.

        Parameters
        ----------
        x, op
            As for `reduce`.
        out
            An array to receive the result into.

        Returns
        -------
        object
            The result for ranks 0 to `rank`, this one included.

        Raises
        ------
        limosa.errors.Error
            As `reduce`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.scan(5)
        5

        """
        return self._scanned(x, op, out, "scan")

    @_collective
    def exscan(self, x: Any, op: str | Op | Function = "sum", *, out: Any = None) -> Any:
        """Combine the values of the ranks before this one.

        Parameters
        ----------
        x, op
            As for `reduce`.
        out
            An array to receive the result into. It is left alone on rank 0.

        Returns
        -------
        object
            The result for ranks 0 to ``rank - 1``; None on rank 0.

        Raises
        ------
        limosa.errors.Error
            As `reduce`.

        Examples
        --------
        >>> import limosa
        >>> print(limosa.world.exscan(5))
        None

        """
        return self._scanned(x, op, out, "exscan")

    def _reduced(
        self,
        x: Any,
        op: str | Op | Function,
        root: int | None,
        out: Any,
        call: str,
        problem: Exception | None = None,
    ) -> Any:
        wanted = root is None or root == self.rank
        target, misuse = self._target_or_problem(out if wanted else None)
        agreed, reduction = self._agree_on_reduction(x, op, root or 0, call, problem or misuse)
        if agreed.all_in_slots:
            return self._delivered(agreed.folded(reduction, self.size), target, out) if wanted else None
        native, array = _native(agreed, x, reduction)
        if native is not None:
            send: Any = _reducible(array)
            result, receive = self._room(array, target, may_be_same=root is None) if wanted else (None, None)
            if root is None:
                if target is array:
                    send, receive = MPI.IN_PLACE, send
                self._envelopes.Allreduce(send, receive, native)
            else:
                self._envelopes.Reduce(send, receive, native, root)
            return self._delivered(result, target, out) if wanted else None
        if root is None:
            value, problem = self._combined(x, reduction, 0)
            try:
                if self.rank == 0:
                    self._share(value, 0, call)
                else:
                    value = self._shared(0)
            except errors.PeerError:
                if problem is not None:
                    raise problem from None
                raise
        else:
            value, problem = self._combined(x, reduction, root)
        if problem is not None:
            raise problem
        if not wanted:
            return None
        if isinstance(value, Failed):
            raise self._peer_error(value)
        return self._delivered(value, target, out)

    def _combined(self, x: Any, reduction: Op, root: int) -> tuple[Any, Exception | None]:
        """Combine large values along a binomial tree, in the order of the ranks.

        Gives the result (on the root), or a `Failed` from where the function raised; and what it raised on this rank.
        """
        top = root if reduction.commutative else 0
        place = (self.rank - top) % self.size
        problem: Exception | None = None
        distance = 1
        while distance < self.size:
            if place & distance:
                self._push(x, (place - distance + top) % self.size)
                break
            if place + distance < self.size:
                other = self._pull((place + distance + top) % self.size)
                x, problem = self._applied(reduction, x, other, problem)
            distance *= 2
        if top != root:
            if self.rank == top:
                self._push(x, root)
            elif self.rank == root:
                x = self._pull(top)
        return x, problem

    def _applied(self, reduction: Op, a: Any, b: Any, problem: Exception | None) -> tuple[Any, Exception | None]:
        """Combine two values, or pass on that something failed."""
        for one in (a, b):
            if isinstance(one, Failed):
                return one, problem
        try:
            return reduction.function(a, b), problem
        except Exception as error:
            return Failed(described_error(error), self.rank), error

    def _scanned(self, x: Any, op: str | Op | Function, out: Any, call: str) -> Any:
        before = call == "exscan"
        target, misuse = self._target_or_problem(out)
        agreed, reduction = self._agree_on_reduction(x, op, 0, call, misuse)
        nothing = before and self.rank == 0
        if agreed.all_in_slots:
            return None if nothing else self._delivered(agreed.folded(reduction, self.rank + (not before)), target, out)
        native, array = _native(agreed, x, reduction)
        if native is not None:
            result, receive = self._room(array, None if nothing else target)
            (self._envelopes.Exscan if before else self._envelopes.Scan)(_reducible(array), receive, native)
            return None if nothing else self._delivered(result, target, out)
        problem = None
        lower = self._pull(self.rank - 1) if self.rank else None
        own = x
        if self.rank:
            own, problem = self._applied(reduction, lower, x, None)
        if self.rank + 1 < self.size:
            self._push(own, self.rank + 1)
        value = lower if before else own
        if problem is not None:
            raise problem
        if isinstance(value, Failed):
            raise self._peer_error(value)
        return None if nothing else self._delivered(value, target, out)

    def _agree_on_reduction(
        self, x: Any, op: str | Op | Function, root: int, call: str, problem: Exception | None
    ) -> tuple[Plan | Table, Op]:
        """Exchange slots; raise on all ranks if the values cannot be reduced together."""
        reduction = NAMES["sum"]
        try:
            reduction = op_of(op)
        except errors.Error as error:
            problem = problem or error
        plan = self._plan(x, call, root, reduction) if problem is None else None
        if plan is not None:
            table = self._agree_by_plan(plan, x)
            if table is None:
                return plan, reduction
        else:
            first, _, misuse = self._encoded(x)
            table = self._agree(first, call, problem or misuse, root, reduction.digest)
        if not table.uniform and any(table.is_array(rank) for rank in range(self.size)):
            shown = table.describe()
            raise errors.MismatchError(
                f"the ranks have different arrays: {shown}; hint: reductions combine element by element"
            )
        return table, reduction

    def _room(self, array: Array, target: Array | None, *, may_be_same: bool = False) -> tuple[Array, list[Any]]:
        """Give the array for the result of a native reduction, and what mpi4py takes for it."""
        if target is None:
            result = np.empty(array.shape, array.dtype)
            return result, _reducible(result)
        if target is array and may_be_same:
            return target, _reducible(target)
        fits = target is not None and target.flags.carray and misfit(target, array.dtype, array.shape) is None
        apart = fits and target is not None and not np.may_share_memory(target, array)
        result = target if apart and target is not None else np.empty(array.shape, array.dtype)
        return result, _reducible(result)


def _scalar_or_array(row: Array, target: Array | None) -> Any:
    """Give the row of an array as indexing would, or copy it into the target."""
    return into(row, target) if target is not None or row.ndim else row[()]


_fromcode = functools.cache(MPI.Datatype.fromcode)


def _reducible(array: Array) -> list[Any]:
    """Give what mpi4py takes for an array in a reduction."""
    return [array, array.size, _fromcode(array.dtype.char)]


def _native(agreed: Plan | Table, x: Any, reduction: Op) -> tuple[MPI.Op | None, Array]:
    """Give MPI's own reduction if it serves for these values, and the contiguous array to be reduced."""
    if not agreed.arrays:
        return None, _NOTHING
    array = np.asarray(as_array(x), order="C")
    return reduction.native(array.dtype), array


_NOTHING = np.empty(0)
