"""Collective calls that do not wait: they return a `Request`, and go on while the program does something else.

How they go on is in `limosa._background`. A reduction by a function of the program collects the operands first; the
function is called by `Request.wait`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, overload

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._agreement import Table, block_of, fitting
from limosa._background import Background, Plan, Turn, completed, finished, later_delivered, later_opened
from limosa._memory import Array, as_array, is_array_like
from limosa._names import refuse
from limosa._ops import Function, Op, OpName, op_of
from limosa._packet import ARRAY, HEAD, SLOT, Arrival, has_parts, into
from limosa._reductions import native_of, reducible
from limosa._request import Later, Request, Steps

T = TypeVar("T")
Out = TypeVar("Out")


class Nonblocking(Background):
    """The collective calls of `Comm` that do not wait."""

    # --- movement ----------------------------------------------------------------------------------------------------

    def ibarrier(self) -> Request[None]:
        """Start a barrier: the request is complete when all ranks have called this.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.ibarrier().wait()

        """

        def then(table: Table, turn: Turn) -> Steps:
            return None
            yield None

        return self._start("ibarrier", self._slots.object_head, None, then)

    @overload
    def ibcast(self, x: None = ..., root: int = ..., *, out: None = ...) -> Request[Any]: ...

    @overload
    def ibcast(self, x: T | None, root: int = ..., *, out: None = ...) -> Request[T]: ...

    @overload
    def ibcast(self, x: object = ..., root: int = ..., *, out: Any) -> Request[Any]: ...

    def ibcast(self, x: Any = None, root: int = 0, *, out: Any = None, **wrong: NoReturn) -> Request[Any]:
        """Start to give all ranks the value of one.

        Parameters
        ----------
        x, root, out
            As for `bcast`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `bcast` returns, and raises what that raises because of another rank.

        Raises
        ------
        limosa.errors.Error
            If an argument is not valid. The others raise `PeerError` when they wait.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.ibcast("text").wait()
        'text'

        """
        if wrong:
            refuse("ibcast", wrong)
        number, problem = self._root_or_problem(root)
        if self.rank == number:
            first, parts, misuse = self._encoded(x)

            def share(table: Table, turn: Turn) -> Steps:
                yield from turn.come()
                yield [self._started_part(part, lambda spec: self._parts.Ibcast(spec, number)) for part in parts]
                return x

            return self._start("ibcast", first, problem or misuse, share, number)
        target, misuse = self._target_or_problem(out)

        def receive(table: Table, turn: Turn) -> Steps:
            first = table.slot(number)
            if not has_parts(first):
                return later_opened(first, target, out)
            yield from turn.come()
            arrival = Arrival(first, SLOT - HEAD, target)
            for stage in arrival.stages():
                yield [self._parts.Ibcast(spec, number) for spec in stage]
            return finished(arrival, target, out)

        return self._start("ibcast", self._slots.object_head, problem or misuse, receive, number)

    @overload
    def igather(self, x: Array, root: int = ..., *, out: Any = ...) -> Request[Any]: ...

    @overload
    def igather(self, x: T, root: int = ..., *, out: None = ...) -> Request[list[T] | None]: ...

    @overload
    def igather(self, x: object, root: int = ..., *, out: Any) -> Request[Any]: ...

    def igather(self, x: Any, root: int = 0, *, out: Any = None, **wrong: NoReturn) -> Request[Any]:
        """Start to collect the values of all ranks on one.

        Parameters
        ----------
        x, root, out
            As for `gather`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `gather` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.igather("a").wait()
        ['a']

        """
        if wrong:
            refuse("igather", wrong)
        number, problem = self._root_or_problem(root)
        first, parts, misuse = self._encoded(x)
        target, unusable = self._target_or_problem(out if self.rank == number else None)

        def then(table: Table, turn: Turn) -> Steps:
            if table.arrays and table.any_parts:
                values = yield from self._gather_arrays(as_array(x), target, number, turn)
            else:
                sends = [] if self.rank == number else [(number, parts)]
                values = yield from self._collect(table, x, sends, turn, self.size if self.rank == number else 0)
            return later_delivered(self, values, target, out) if self.rank == number else None

        return self._start("igather", first, problem or misuse or unusable, then, number)

    @overload
    def iallgather(self, x: Array, *, out: None = ...) -> Request[Any]: ...

    @overload
    def iallgather(self, x: T, *, out: None = ...) -> Request[list[T]]: ...

    @overload
    def iallgather(self, x: object, *, out: Out) -> Request[Out]: ...

    def iallgather(self, x: Any, *, out: Any = None, **wrong: NoReturn) -> Request[Any]:
        """Start to collect the values of all ranks on all.

        Parameters
        ----------
        x, out
            As for `allgather`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `allgather` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.iallgather(limosa.world.rank).wait()
        [0]

        """
        if wrong:
            refuse("iallgather", wrong)
        first, parts, misuse = self._encoded(x)
        target, unusable = self._target_or_problem(out)

        def then(table: Table, turn: Turn) -> Steps:
            if table.arrays and table.any_parts:
                values = yield from self._gather_arrays(as_array(x), target, None, turn)
            else:
                sends = [(rank, parts) for rank in range(self.size) if rank != self.rank]
                values = yield from self._collect(table, x, sends, turn, self.size)
            return later_delivered(self, values, target, out)

        return self._start("iallgather", first, misuse or unusable, then)

    @overload
    def iscatter(self, values: Array | None = ..., root: int = ..., *, out: None = ...) -> Request[Any]: ...

    @overload
    def iscatter(self, values: Sequence[T] | None, root: int = ..., *, out: None = ...) -> Request[T]: ...

    @overload
    def iscatter(self, values: Sequence[object] | Array | None = ..., root: int = ..., *, out: Out) -> Request[Out]: ...

    def iscatter(self, values: Any = None, root: int = 0, *, out: Any = None, **wrong: NoReturn) -> Request[Any]:
        """Start to give each rank its item of a sequence.

        Parameters
        ----------
        values, root, out
            As for `scatter`. Large arrays must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `scatter` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.iscatter(["only item"]).wait()
        'only item'

        """
        if wrong:
            refuse("iscatter", wrong)
        number, problem = self._root_or_problem(root)
        target, unusable = self._target_or_problem(out)
        problem = problem or unusable
        if self.rank != number:

            def receive(table: Table, turn: Turn) -> Steps:
                return (yield from self._receive_item(table.slot(number), number, target, out, turn))

            return self._start("iscatter", self._slots.object_head, problem, receive, number)
        packets, misuse = self._encoded_items(values, lambda rank: values[rank])
        problem = problem or misuse
        block = block_of(values) if problem is None else None

        def send(table: Table, turn: Turn) -> Steps:
            if block is None:
                yield self._sent_packets(packets, turn.tag)
            elif table.slot(number)[0] != ARRAY:
                yield from turn.come()
                request = self._parts.Iscatter([block, MPI.BYTE], MPI.IN_PLACE, number)
                turn.over()
                yield [request]
            own = values[number]
            if target is None:
                return own.copy() if isinstance(own, np.ndarray) else own
            into(as_array(own) if is_array_like(own) else own, target)
            return out

        first = self._slots.encode(block)[0] if block is not None else self._slots.object_head
        return self._start("iscatter", first, problem, send, number)

    @overload
    def ialltoall(self, values: Array | Sequence[Array], *, out: None = ...) -> Request[Any]: ...

    @overload
    def ialltoall(self, values: Sequence[T], *, out: None = ...) -> Request[list[T]]: ...

    @overload
    def ialltoall(self, values: Sequence[object] | Array, *, out: Out) -> Request[Out]: ...

    def ialltoall(self, values: Any, *, out: Any = None, **wrong: NoReturn) -> Request[Any]:
        """Start to give each rank one item, and to get one from each.

        Parameters
        ----------
        values, out
            As for `alltoall`. Large arrays must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `alltoall` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.ialltoall(["to rank 0"]).wait()
        ['to rank 0']

        """
        if wrong:
            refuse("ialltoall", wrong)
        target, unusable = self._target_or_problem(out)
        first, problem, exchange = self._exchange_of(values, target)
        problem = unusable or problem

        def then(table: Table, turn: Turn) -> Steps:
            return later_delivered(self, (yield from exchange(table, turn)), target, out)

        return self._start("ialltoall", first, problem, then)

    # --- reductions --------------------------------------------------------------------------------------------------

    def ireduce(
        self, x: T, op: OpName | Op | Function = "sum", root: int = 0, *, out: Any = None, **wrong: NoReturn
    ) -> Request[T | None]:
        """Start to combine the values of all ranks on one.

        Parameters
        ----------
        x, op, root, out
            As for `reduce`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `reduce` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.ireduce(2, "prod").wait()
        2

        """
        if wrong:
            refuse("ireduce", wrong)
        number, problem = self._root_or_problem(root)
        target, unusable = self._target_or_problem(out if self.rank == number else None)

        def native(send: Any, receive: Any, op: MPI.Op) -> MPI.Request:
            return self._parts.Ireduce(send, receive if self.rank == number else None, op, number)

        return self._start_reduction(
            "ireduce", x, op, native, problem or unusable, target, out, self.size, number, wanted=self.rank == number
        )

    @overload
    def iallreduce(self, x: T, op: OpName | Op | Function = ..., *, out: None = ...) -> Request[T]: ...

    @overload
    def iallreduce(self, x: object, op: OpName | Op | Function = ..., *, out: Out) -> Request[Out]: ...

    def iallreduce(
        self, x: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn
    ) -> Request[Any]:
        """Start to combine the values of all ranks on all.

        Parameters
        ----------
        x, op, out
            As for `allreduce`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `allreduce` returns. A function of the program is called in there, on every rank.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> request = limosa.world.iallreduce(np.arange(3.0))
        >>> request.wait()
        array([0., 1., 2.])

        """
        if wrong:
            refuse("iallreduce", wrong)
        target, unusable = self._target_or_problem(out)
        return self._start_reduction("iallreduce", x, op, self._parts.Iallreduce, unusable, target, out, self.size)

    @overload
    def iscan(self, x: T, op: OpName | Op | Function = ..., *, out: None = ...) -> Request[T]: ...

    @overload
    def iscan(self, x: object, op: OpName | Op | Function = ..., *, out: Out) -> Request[Out]: ...

    def iscan(self, x: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn) -> Request[Any]:
        """Start to combine the values of the ranks up to this one.

        Parameters
        ----------
        x, op, out
            As for `scan`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `scan` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.iscan(5).wait()
        5

        """
        if wrong:
            refuse("iscan", wrong)
        target, unusable = self._target_or_problem(out)
        return self._start_reduction("iscan", x, op, self._parts.Iscan, unusable, target, out, self.rank + 1)

    @overload
    def iexscan(self, x: T, op: OpName | Op | Function = ..., *, out: None = ...) -> Request[T | None]: ...

    @overload
    def iexscan(self, x: object, op: OpName | Op | Function = ..., *, out: Out) -> Request[Out | None]: ...

    def iexscan(
        self, x: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn
    ) -> Request[Any]:
        """Start to combine the values of the ranks before this one.

        Parameters
        ----------
        x, op, out
            As for `exscan`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `exscan` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> print(limosa.world.iexscan(5).wait())
        None

        """
        if wrong:
            refuse("iexscan", wrong)
        target, unusable = self._target_or_problem(out)
        return self._start_reduction(
            "iexscan", x, op, self._parts.Iexscan, unusable, target, out, self.rank, wanted=self.rank > 0
        )

    @overload
    def ireduce_scatter(
        self, values: Array | Sequence[Array], op: OpName | Op | Function = ..., *, out: None = ...
    ) -> Request[Any]: ...

    @overload
    def ireduce_scatter(
        self, values: Sequence[T], op: OpName | Op | Function = ..., *, out: None = ...
    ) -> Request[T]: ...

    @overload
    def ireduce_scatter(
        self, values: Sequence[object] | Array, op: OpName | Op | Function = ..., *, out: Out
    ) -> Request[Out]: ...

    def ireduce_scatter(
        self, values: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn
    ) -> Request[Any]:
        """Start to combine the items of all ranks, each rank those for itself.

        Parameters
        ----------
        values, op, out
            As for `reduce_scatter`. Large arrays must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            Its `wait` returns what `reduce_scatter` returns.

        Raises
        ------
        limosa.errors.Error
            As `ibcast`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.ireduce_scatter([5]).wait()
        5

        """
        if wrong:
            refuse("ireduce_scatter", wrong)
        first, digest, problem, then = self._reduce_scatter(values, op, out)
        return self._start("ireduce_scatter", first, problem, then, digest=digest)

    @overload
    def reduce_scatter(
        self, values: Array | Sequence[Array], op: OpName | Op | Function = ..., *, out: None = ...
    ) -> Any: ...

    @overload
    def reduce_scatter(self, values: Sequence[T], op: OpName | Op | Function = ..., *, out: None = ...) -> T: ...

    @overload
    def reduce_scatter(
        self, values: Sequence[object] | Array, op: OpName | Op | Function = ..., *, out: Out
    ) -> Out: ...

    def reduce_scatter(
        self, values: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn
    ) -> Any:
        """Combine the items of all ranks, each rank those for itself.

        Parameters
        ----------
        values
            One item for each rank: a list or tuple, or an array whose first axis has the length ``size``. The items for
            one rank are combined; those for different ranks may have different shapes.
        op
            As for `reduce`.
        out
            An array to receive the result into.

        Returns
        -------
        object
            The combination of item number `rank` of all ranks.

        Raises
        ------
        limosa.errors.CountError
            If there are not `size` items. The others raise `PeerError`.
        limosa.errors.Error
            As `reduce`.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> limosa.world.reduce_scatter(np.ones((limosa.world.size, 3)), "sum")
        array([1., 1., 1.])

        """
        if wrong:
            refuse("reduce_scatter", wrong)
        try:
            if out is None:
                combined = self._channel.reduce_scatter(values, op)
                if combined is not NotImplemented:
                    return combined
            else:
                self._channel.announce()
            return self._long_reduce_scatter(values, op, out)
        except (MPI.Exception, errors.Error) as error:
            self._blame(error, "reduce_scatter")

    def _long_reduce_scatter(self, values: Any, op: OpName | Op | Function, out: Any = None) -> Any:
        first, digest, problem, then = self._reduce_scatter(values, op, out)
        table = self._agree(first, "reduce_scatter", problem, digest=digest)
        return completed(self._in_turn(table, self._next_turn(), then))

    def _reduce_scatter(
        self, values: Any, op: OpName | Op | Function, out: Any
    ) -> tuple[bytes, int, Exception | None, Plan]:
        """Give the slot, the digest, what is wrong, and the further steps of a reduction of items."""
        target, unusable = self._target_or_problem(out)
        reduction, problem = _reduction_or_problem(op)
        first, misuse, exchange = self._exchange_of(values, target)

        def then(table: Table, turn: Turn) -> Steps:
            native = reduction.native(values.dtype) if isinstance(values, np.ndarray) and table.arrays else None
            if native is not None and table.any_parts:
                block = np.ascontiguousarray(values)
                result = fitting(target, block.dtype, block.shape[1:])
                yield from turn.come()
                request = self._parts.Ireduce_scatter_block(reducible(block, result.size), reducible(result), native)
                turn.over()
                yield [request]
                return later_delivered(self, result, target, out)
            items = yield from exchange(table, turn)

            def fold() -> Any:
                made = items.make() if type(items) is Later else items
                return self._delivered(functools.reduce(reduction.function, list(made)), target, out)

            return Later(fold)

        return first, reduction.digest, unusable or problem or misuse, then

    def _start_reduction(
        self,
        call: str,
        x: Any,
        op: OpName | Op | Function,
        start: Callable[[Any, Any, MPI.Op], MPI.Request],
        problem: Exception | None,
        target: Array | None,
        out: Any,
        number: int,
        root: int | None = None,
        *,
        wanted: bool = True,
    ) -> Request[Any]:
        """Start a reduction of the values of the first `number` ranks; all ranks, or the root, have the result."""
        scanning = call in ("iscan", "iexscan")
        reduction, unknown = _reduction_or_problem(op)
        first, parts, misuse = self._encoded(x)

        def then(table: Table, turn: Turn) -> Steps:
            self._check_arrays(table)
            if table.all_in_slots:
                return Later(lambda: self._delivered(table.folded(reduction, number), target, out)) if wanted else None
            native, array = native_of(table, x, reduction)
            if native is not None:
                result = fitting(target if wanted else None, array.dtype, array.shape, apart_from=array)
                yield from turn.come()
                request = start(reducible(array), reducible(result), native)
                turn.over()
                yield [request]
                return later_delivered(self, result, target, out) if wanted else None
            readers = [root] if root is not None else range(self.rank if scanning else 0, self.size)
            sends = [(rank, parts) for rank in readers if rank != self.rank]
            collected = yield from self._collect(table, x, sends, turn, number if wanted else 0)

            def fold() -> Any:
                values = collected.make() if type(collected) is Later else collected
                return self._delivered(functools.reduce(reduction.function, list(values)), target, out)

            return Later(fold) if wanted else None

        return self._start(call, first, problem or unknown or misuse, then, root or 0, reduction.digest)


def _reduction_or_problem(op: OpName | Op | Function) -> tuple[Op, Exception | None]:
    try:
        return op_of(op), None
    except errors.Error as error:
        return op_of("sum"), error
