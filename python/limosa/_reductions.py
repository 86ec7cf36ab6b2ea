"""Collective calls that combine values; `limosa._collectives` says how collective calls agree."""

from __future__ import annotations

import functools
from typing import Any, NoReturn, TypeVar, cast, overload

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._agreement import FAULTS, Agreement, Failed, Plan, Table, described_error, fitting
from limosa._memory import Array, as_array
from limosa._names import refuse
from limosa._ops import NAMES, Function, Op, OpName, op_of

T = TypeVar("T")
Out = TypeVar("Out")


class Reductions(Agreement):
    """The collective calls of `Comm` that combine values."""

    def reduce(
        self, x: T, op: OpName | Op | Function = "sum", root: int = 0, *, out: Any = None, **wrong: NoReturn
    ) -> T | None:
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
        if wrong:
            refuse("reduce", wrong)
        try:
            if out is None:
                combined = self._channel.reduce(x, op, root)
                if combined is not NotImplemented:
                    return cast("T | None", combined)
            else:
                self._channel.announce()
            return cast("T | None", self._long_reduce(x, op, root, out))
        except FAULTS as error:
            self._blame(error, "reduce")

    def _long_reduce(self, x: Any, op: OpName | Op | Function, root: Any, out: Any = None) -> Any:
        number, problem = self._root_or_problem(root)
        return self._reduced(x, op, number, out, "reduce", problem)

    @overload
    def allreduce(self, x: T, op: OpName | Op | Function = ..., *, out: None = ...) -> T: ...

    @overload
    def allreduce(self, x: object, op: OpName | Op | Function = ..., *, out: Out) -> Out: ...

    def allreduce(self, x: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn) -> Any:
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
        if wrong:
            refuse("allreduce", wrong)
        try:
            if out is None:
                combined = self._channel.allreduce(x, op)
                if combined is not NotImplemented:
                    return combined
            else:
                self._channel.announce()
            return self._long_allreduce(x, op, out)
        except FAULTS as error:
            self._blame(error, "allreduce")

    def _long_allreduce(self, x: Any, op: OpName | Op | Function, out: Any = None) -> Any:
        return self._reduced(x, op, None, out, "allreduce")

    @overload
    def scan(self, x: T, op: OpName | Op | Function = ..., *, out: None = ...) -> T: ...

    @overload
    def scan(self, x: object, op: OpName | Op | Function = ..., *, out: Out) -> Out: ...

    def scan(self, x: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn) -> Any:
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
        if wrong:
            refuse("scan", wrong)
        try:
            if out is None:
                combined = self._channel.scan(x, op)
                if combined is not NotImplemented:
                    return combined
            else:
                self._channel.announce()
            return self._long_scan(x, op, out)
        except FAULTS as error:
            self._blame(error, "scan")

    def _long_scan(self, x: Any, op: OpName | Op | Function, out: Any = None) -> Any:
        return self._scanned(x, op, out, "scan")

    @overload
    def exscan(self, x: T, op: OpName | Op | Function = ..., *, out: None = ...) -> T | None: ...

    @overload
    def exscan(self, x: object, op: OpName | Op | Function = ..., *, out: Out) -> Out | None: ...

    def exscan(self, x: Any, op: OpName | Op | Function = "sum", *, out: Any = None, **wrong: NoReturn) -> Any:
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
        if wrong:
            refuse("exscan", wrong)
        try:
            if out is None:
                combined = self._channel.exscan(x, op)
                if combined is not NotImplemented:
                    return combined
            else:
                self._channel.announce()
            return self._long_exscan(x, op, out)
        except FAULTS as error:
            self._blame(error, "exscan")

    def _long_exscan(self, x: Any, op: OpName | Op | Function, out: Any = None) -> Any:
        return self._scanned(x, op, out, "exscan")

    def _reduced(
        self,
        x: Any,
        op: OpName | Op | Function,
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
        native, array = native_of(agreed, x, reduction)
        if native is not None:
            send: Any = reducible(array)
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

    def _scanned(self, x: Any, op: OpName | Op | Function, out: Any, call: str) -> Any:
        before = call == "exscan"
        target, misuse = self._target_or_problem(out)
        agreed, reduction = self._agree_on_reduction(x, op, 0, call, misuse)
        nothing = before and self.rank == 0
        if agreed.all_in_slots:
            return None if nothing else self._delivered(agreed.folded(reduction, self.rank + (not before)), target, out)
        native, array = native_of(agreed, x, reduction)
        if native is not None:
            result, receive = self._room(array, None if nothing else target)
            (self._envelopes.Exscan if before else self._envelopes.Scan)(reducible(array), receive, native)
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
        self, x: Any, op: OpName | Op | Function, root: int, call: str, problem: Exception | None
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
        self._check_arrays(table)
        return table, reduction

    def _check_arrays(self, table: Table) -> None:
        """Raise if the values of a reduction do not fit together."""
        if not table.uniform and any(table.is_array(rank) for rank in range(self.size)):
            shown = table.describe()
            raise errors.MismatchError(
                f"the ranks have different arrays: {shown}; hint: reductions combine element by element"
            )

    def _room(self, array: Array, target: Array | None, *, may_be_same: bool = False) -> tuple[Array, list[Any]]:
        """Give the array for the result of a native reduction, and what mpi4py takes for it."""
        if target is None:
            result = np.empty(array.shape, array.dtype)
            return result, reducible(result)
        if target is array and may_be_same:
            return target, reducible(target)
        result = fitting(target, array.dtype, array.shape, apart_from=array)
        return result, reducible(result)


_fromcode = functools.cache(MPI.Datatype.fromcode)


def reducible(array: Array, count: int | None = None) -> list[Any]:
    """Give what mpi4py takes for an array, or for items with `count` elements each, in a reduction."""
    return [array, array.size if count is None else count, _fromcode(array.dtype.char)]


def native_of(agreed: Plan | Table, x: Any, reduction: Op) -> tuple[MPI.Op | None, Array]:
    """Give MPI's own reduction if it serves for these values, and the contiguous array to be reduced."""
    if not agreed.arrays:
        return None, _NOTHING
    array = np.asarray(as_array(x), order="C")
    return reduction.native(array.dtype), array


_NOTHING = np.empty(0)
