"""Memory that several ranks can reach: `Comm.shared_array` and `Comm.window`.

A `SharedArray` is mapped by all its ranks, which are on one host. It has two windows of MPI. The first has the memory,
in an epoch that never ends, so that a fence is a barrier between two memory barriers. The second has no memory: its
lock is that of the array.

A `Window` is memory of each rank that the others reach with calls of MPI, inside a block with a lock.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._agreement import agree
from limosa._memory import Array, array_over, as_target, pattern_of, place_in
from limosa._ops import Function, Op, OpName, op_of

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import ArrayLike, DTypeLike

    from limosa._comm import Comm

Self = TypeVar("Self", bound="_Freed")


class _Freed:
    """What is given back at the end of a ``with`` block, by all ranks together."""

    def free(self) -> None:
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Ranks that left the block by different ways could not free it together.
        if kind is None:
            self.free()


def _created(comm: Comm, call: str, make: Callable[[], MPI.Win]) -> MPI.Win:
    try:
        made = make()
        made.Set_errhandler(MPI.ERRORS_RETURN)
    except MPI.Exception as error:
        raise errors.from_mpi(error, call=call, rank=comm.rank) from None
    return made


# --- arrays that the ranks of a host share ---------------------------------------------------------------------------


class SharedArray(_Freed):
    """An array in memory that all ranks of a communicator share, as `Comm.shared_array` makes it.

    Indexing reads and writes it as an array of NumPy. What one rank writes, others may read after a `fence`.

    Attributes
    ----------
    array : numpy.ndarray
        The same as an array of NumPy. It is the same memory on all ranks.

    Examples
    --------
    >>> import limosa
    >>> world = limosa.world
    >>> with world.shared_array((world.size, 3)) as table:
    ...     table[world.rank] = world.rank
    ...     table.fence()
    ...     table.array.shape
    (1, 3)

    """

    def __init__(self, comm: Comm, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any) -> None:
        mpi = comm._envelopes
        length = max(dtype.itemsize * math.prod(shape), 1) if comm.rank == 0 else 0
        self._comm = comm
        self._window = _created(comm, "shared_array", lambda: MPI.Win.Allocate_shared(length, 1, MPI.INFO_NULL, mpi))
        self._mutex = _created(comm, "shared_array", lambda: MPI.Win.Create(None, 1, MPI.INFO_NULL, mpi))
        self._window.Lock_all()
        memory, _ = self._window.Shared_query(0)
        self._array: Array | None
        self._array, self._in_use = array_over(memory, dtype, shape)
        if comm.rank == 0:
            self._array[...] = np.zeros((), dtype) if fill is None else fill
        self.fence()

    def __repr__(self) -> str:
        if self._window == MPI.WIN_NULL or self._array is None:
            return "<limosa.SharedArray: freed>"
        return f"<limosa.SharedArray: shape {self._array.shape}, {self._array.dtype}, of {self._comm.size} ranks>"

    @property
    def array(self) -> Array:
        if self._array is None:
            raise errors.BY_CLASS["WIN"]("this array has been freed", call="shared_array", rank=self._comm.rank)
        return self._array

    def __getitem__(self, index: Any) -> Any:
        return self.array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype, copy=True) if copy else np.asarray(self.array, dtype)

    def fence(self) -> None:
        """Wait for all ranks: what each has written before, all may read afterwards.

        Raises
        ------
        limosa.errors.MismatchError
            On every rank, if another rank makes another call.

        """
        if self._array is None:
            self.array  # noqa: B018 - raises
        try:
            self._window.Sync()
            self._comm._begin("fence")
            self._window.Sync()
        except (MPI.Exception, errors.Error) as error:
            self._comm._blame(error, "fence")

    @contextlib.contextmanager
    def lock(self) -> Iterator[Array]:
        """Let one rank at a time be in this block.

        Examples
        --------
        >>> import limosa
        >>> counter = limosa.world.shared_array(1, int)
        >>> with counter.lock() as array:
        ...     array[0] += 1
        >>> int(counter[0])
        1
        >>> counter.free()

        """
        array = self.array
        try:
            self._mutex.Lock(0, MPI.LOCK_EXCLUSIVE)
            self._window.Sync()
        except MPI.Exception as error:
            self._comm._blame(error, "lock")
        try:
            yield array
        finally:
            self._window.Sync()
            self._mutex.Unlock(0)

    def free(self) -> None:
        """Give the memory back, which all ranks must do together; ``with`` does it at the end of its block.

        While a rank still has an array over this memory, such as a slice of it, the memory stays.
        """
        if self._array is None:
            return
        self.fence()
        self._array = None
        _unused.setdefault(self._comm, []).append((self._in_use, self._window))
        self._mutex.Free()
        _free_unused(self._comm)


_unused: dict[Comm, list[tuple[Callable[[], object], MPI.Win]]] = {}
"""Memory that was given back while an array over it was left, in the same order on all ranks of a communicator."""


def _free_unused(comm: Comm) -> None:
    """Free the memory that is in use on no rank any more."""
    waiting = _unused.pop(comm, [])
    if not waiting:
        return
    unused = comm.allreduce(np.array([in_use() is None for in_use, _ in waiting], np.int32), "min")
    for (_, window), free in zip(waiting, unused, strict=True):
        if free:
            window.Unlock_all()
            window.Free()
    left = [one for one, free in zip(waiting, unused, strict=True) if not free]
    if left:
        _unused[comm] = left


def shared_array(comm: Comm, shape: int | Sequence[int], dtype: DTypeLike, fill: Any) -> SharedArray:
    """Do what `Comm.shared_array` says."""
    problem: errors.Error | None = None
    dims: tuple[int, ...] = ()
    kind: np.dtype[Any] = np.dtype(float)
    try:
        dims = tuple(int(n.__index__()) for n in (shape if isinstance(shape, (list, tuple)) else (shape,)))
        kind = np.dtype(dtype)
    except (AttributeError, TypeError) as error:
        problem = errors.BY_CLASS["ARG"](f"shape={shape!r:.60}, dtype={dtype!r:.60} describe no array: {error}")
    if problem is None and any(n < 0 for n in dims):
        problem = errors.BY_CLASS["ARG"](f"shape={shape!r:.60} has a negative length")
    if problem is None and kind.hasobject:
        problem = errors.BY_CLASS["TYPE"](f"objects of Python cannot be shared: dtype={kind}")
    agree(comm, "shared_array", {"shape": dims, "dtype": kind}, problem)
    if not _one_host(comm):
        raise errors.BY_CLASS["RMA_SHARED"](
            "the ranks of this communicator are on several hosts; hint: world.split_by_host() has those of one host",
            call="shared_array",
            rank=comm.rank,
        )
    _free_unused(comm)
    return SharedArray(comm, dims, kind, fill)


def _one_host(comm: Comm) -> bool:
    """Tell whether all ranks are on one host."""
    local = comm._envelopes.Split_type(MPI.COMM_TYPE_SHARED)
    same = local.size == comm.size
    local.Free()
    return same


# --- windows to arrays of other ranks --------------------------------------------------------------------------------


class Window(_Freed):
    """Arrays of all ranks of a communicator that each of them can reach, as `Comm.window` makes it.

    Attributes
    ----------
    array : numpy.ndarray
        The array of this rank; an error if it has given none.

    Examples
    --------
    >>> import limosa, numpy as np
    >>> with limosa.world.window(np.zeros(5)) as window:
    ...     with window.lock(0) as there:
    ...         there[1:3] = 7
    ...     window.fence()
    ...     window.array
    array([0., 7., 7., 0., 0.])

    """

    def __init__(self, comm: Comm, array: Array | None, shapes: list[tuple[tuple[int, ...], str] | None]) -> None:
        self._comm = comm
        self._shapes = [None if one is None else (one[0], np.dtype(one[1])) for one in shapes]
        self._array = array
        memory = None if array is None or not array.size else array.reshape(-1).view(np.uint8)
        self._window = _created(comm, "window", lambda: MPI.Win.Create(memory, 1, MPI.INFO_NULL, comm._envelopes))

    def __repr__(self) -> str:
        if self._window == MPI.WIN_NULL:
            return "<limosa.Window: freed>"
        what = "no array" if self._array is None else f"shape {self._array.shape}, {self._array.dtype}"
        return f"<limosa.Window: {what}, rank {self._comm.rank} of {self._comm.size}>"

    @property
    def array(self) -> Array:
        if self._array is None:
            raise self._comm._error("WIN", f"rank {self._comm.rank} has given no array to this window", "window")
        return self._array

    @contextlib.contextmanager
    def lock(self, rank: int, *, shared: bool = False) -> Iterator[Remote]:
        """Reach the array of a rank within a block.

        Parameters
        ----------
        rank
            The rank.
        shared
            Whether other ranks may be in such a block for this rank at the same time. Then use `Remote.accumulate` and
            `Remote.get_accumulate` for elements that several of them change.

        Returns
        -------
        context manager
            It gives the `Remote` array. What was written is there at the end of the block.

        Raises
        ------
        limosa.errors.RankError
            If there is no such rank, or it gave no array.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> window = limosa.world.window(np.arange(3))
        >>> with window.lock(0, shared=True) as there:
        ...     there[:]
        array([0, 1, 2])
        >>> window.free()

        """
        comm = self._comm
        number = rank if type(rank) is int else -1 if rank is None else rank
        comm._check("lock", rank=number)
        described = self._shapes[number]
        if described is None:
            raise comm._error("RANK", f"rank {number} has given no array to this window", "lock")
        try:
            self._window.Lock(number, MPI.LOCK_SHARED if shared else MPI.LOCK_EXCLUSIVE)
        except MPI.Exception as error:
            comm._blame(error, "lock")
        there = Remote(comm, self._window, number, *described)
        try:
            yield there
        finally:
            there._ended = True
            try:
                self._window.Unlock(number)
            except MPI.Exception as error:
                comm._blame(error, "lock")

    def fence(self) -> None:
        """Wait for all ranks: what each has written to arrays before, their own ranks may read afterwards.

        No rank may be in a block of `lock`.
        """
        try:
            self._synchronise()
            self._comm._begin("fence")
            self._synchronise()
        except (MPI.Exception, errors.Error) as error:
            self._comm._blame(error, "fence")

    def _synchronise(self) -> None:
        """Make what other processes have written to the memory of this one the same as what it reads there."""
        self._window.Lock(self._comm.rank, MPI.LOCK_SHARED)
        self._window.Sync()
        self._window.Unlock(self._comm.rank)

    def free(self) -> None:
        """Let the others no longer reach the array; all ranks must call it together.

        ``with`` does it at the end of its block.
        """
        if self._window == MPI.WIN_NULL:
            return
        try:
            self._comm._begin("fence")
            self._window.Free()
        except (MPI.Exception, errors.Error) as error:
            self._comm._blame(error, "free")


class Remote:
    """The array of another rank, in the block of `Window.lock`.

    Numbers and slices select elements as in an array of NumPy: ``there[0]`` and ``there[1:3, ::2]`` get them,
    ``there[0] = x`` puts them. A value that was put may be changed again at once.

    Attributes
    ----------
    rank : int
        The rank whose array this is.
    shape : tuple of int
        The shape of the array.
    dtype : numpy.dtype
        The type of its elements.

    Examples
    --------
    >>> import limosa, numpy as np
    >>> window = limosa.world.window(np.arange(3))
    >>> with window.lock(0) as there:
    ...     there[2], there[:2]
    (np.int64(2), array([0, 1]))
    >>> window.free()

    """

    def __init__(self, comm: Comm, window: MPI.Win, rank: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.rank = rank
        self.shape = shape
        self.dtype = dtype
        self._comm = comm
        self._window = window
        self._ended = False

    def __repr__(self) -> str:
        return f"<limosa.Remote: of rank {self.rank}, shape {self.shape}, {self.dtype}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        result = np.empty(place_in(self.shape, self.dtype, index)[0].shape, self.dtype)
        self._transfer("get", index, result, None, lambda target: self._window.Get(_raw(result), self.rank, target))
        return result if result.ndim else result[()]

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        data = self._operand(index, value)
        self._transfer("put", index, data, None, lambda target: self._window.Put(_raw(data), self.rank, target))

    def accumulate(self, index: Any, value: ArrayLike, op: OpName | Op | Function = "sum") -> None:
        """Combine elements with a value: each element at once, so that ranks that do it together lose nothing.

        Parameters
        ----------
        index
            Which elements, as between brackets.
        value
            A number, or an array that fits to them.
        op
            A reduction, such as ``"sum"``, ``"max"`` or ``"band"``.

        Raises
        ------
        limosa.errors.OpError
            If the reduction is not one of MPI's for such elements.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> with limosa.world.window(np.zeros(3)) as window:
        ...     with window.lock(0, shared=True) as there:
        ...         there.accumulate(slice(0, 2), [1, 2])
        ...     window.fence()
        ...     window.array
        array([1., 2., 0.])

        """
        data = self._operand(index, value)
        native, element = self._native(op, "accumulate")
        self._transfer(
            "accumulate",
            index,
            data,
            element,
            lambda target: self._window.Accumulate([data, data.size, element], self.rank, target, native),
        )

    def get_accumulate(self, index: Any, value: ArrayLike, op: OpName | Op | Function = "sum") -> Any:
        """Do what `accumulate` does, and give what was there before.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> tickets = limosa.world.window(np.zeros(1, int))
        >>> with tickets.lock(0, shared=True) as there:
        ...     [int(there.get_accumulate(0, 1)) for _ in range(3)]
        [0, 1, 2]
        >>> tickets.free()

        """
        data = self._operand(index, value)
        result = np.empty(data.shape, self.dtype)
        native, element = self._native(op, "get_accumulate")
        spec, into = [data, data.size, element], [result, result.size, element]
        self._transfer(
            "get_accumulate",
            index,
            data,
            element,
            lambda target: self._window.Get_accumulate(spec, into, self.rank, target, native),
        )
        return result if result.ndim else result[()]

    def _operand(self, index: Any, value: ArrayLike) -> Array:
        """Give a value as a contiguous array that fits to the elements that an index selects."""
        shape = place_in(self.shape, self.dtype, index)[0].shape
        data = np.asarray(value, self.dtype)
        if data.shape == shape and data.flags.carray:
            return data
        return np.array(np.broadcast_to(data, shape), order="C")

    def _native(self, op: OpName | Op | Function, call: str) -> tuple[MPI.Op, MPI.Datatype]:
        try:
            reduction = op_of(op)
        except errors.Error as error:
            self._comm._blame(error, call)
        native = reduction.native(self.dtype)
        if native is None:
            raise self._comm._error("OP", f"MPI has no {reduction.name} for elements of type {self.dtype}", call)
        return native, MPI.Datatype.fromcode(self.dtype.char)

    def _transfer(
        self, call: str, index: Any, data: Array, element: MPI.Datatype | None, start: Callable[[Any], None]
    ) -> None:
        """Start a transfer and wait until the memory of this rank is free again, and for a get, filled."""
        if self._ended:
            raise self._comm._error("RMA_SYNC", "the block of lock() that this belongs to has ended", call)
        if not data.size:
            return
        selected, place = place_in(self.shape, self.dtype, index)
        made = pattern_of(selected, element)
        try:
            start([place, 1, made])
            self._window.Flush_local(self.rank)
        except MPI.Exception as error:
            self._comm._blame(error, call)
        finally:
            made.Free()


def _raw(array: Array) -> list[Any]:
    return [array, array.nbytes, MPI.BYTE]


def window(comm: Comm, array: Any) -> Window:
    """Do what `Comm.window` says."""
    target: Array | None = None
    problem: errors.Error | None = None
    if array is not None:
        try:
            target = as_target(array)
            if not target.flags.c_contiguous:
                raise errors.BY_CLASS["BUFFER"]("a window needs a contiguous array; hint: numpy.ascontiguousarray")
            if target.dtype.hasobject or (target.dtype.kind == "V" and target.dtype.names):
                raise errors.BY_CLASS["TYPE"](f"an array of numbers is needed, not of {target.dtype}")
        except errors.Error as error:
            problem = error
    agree(comm, "window", {}, problem)
    shapes = comm.allgather(None if target is None else (target.shape, target.dtype.str))
    return Window(comm, target, shapes)
