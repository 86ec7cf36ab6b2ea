"""Files that all ranks of a communicator read and write together: `limosa.open`.

Every call is collective, and begins with an agreement of the ranks, so that a rank with a wrong argument does not leave
the others waiting. A file holds nothing but the elements, as `numpy.ndarray.tofile` writes them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._agreement import by_rank
from limosa._memory import Array, as_array, as_target, spec_of

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import DTypeLike

    from limosa._comm import Comm

_READ, _BOTH = MPI.MODE_RDONLY, MPI.MODE_RDWR
_MODES = {"r": _READ, "r+": _BOTH, "w": _BOTH | MPI.MODE_CREATE, "x": _BOTH | MPI.MODE_CREATE | MPI.MODE_EXCL}
_NUMBERS = {
    "NO_SUCH_FILE": errno.ENOENT,
    "FILE_EXISTS": errno.EEXIST,
    "ACCESS": errno.EACCES,
    "READ_ONLY": errno.EROFS,
    "NO_SPACE": errno.ENOSPC,
    "QUOTA": errno.EDQUOT,
    "BAD_FILE": errno.EINVAL,
    "FILE_IN_USE": errno.EBUSY,
    "IO": errno.EIO,
}


def open(path: str | os.PathLike[str], mode: str = "r", comm: Comm | None = None, *, collective: bool = True) -> File:
    """Open a file on all ranks of a communicator, which must call this together; or on this rank alone.

    Parameters
    ----------
    path
        Its name, the same on all ranks.
    mode
        ``"r"`` to read, ``"r+"`` to read and write a file that exists, ``"w"`` to write a new one or to empty an old
        one, ``"x"`` to write one that must not exist yet. The last two can also be read.
    comm
        The communicator; by default `limosa.world`.
    collective
        False for a file of this rank alone: nothing that is done with it concerns the other ranks, which may open files
        of their own, or the same one. What one of them writes there the others can read after its `close`.

    Returns
    -------
    File
        The file, to be used in a ``with`` block.

    Raises
    ------
    OSError
        On every rank, as that of limosa.errors which is also the built-in exception, such as `FileNotFoundError` or
        `PermissionError`, with ``errno`` and ``filename``.
    limosa.errors.MismatchError
        On every rank, if they name different files or modes.

    Examples
    --------
    >>> import limosa, numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "data")
    >>> with limosa.open(path, "w") as file:
    ...     file.write(np.arange(4.0), at=32 * limosa.world.rank)
    >>> with limosa.open(path) as file:
    ...     file.read(2, at=8)
    array([1., 2.])

    """
    if not collective:
        from limosa._comm import Comm as Alone

        if comm is not None:
            raise errors.BY_CLASS["ARG"]("comm= and collective=False exclude each other", call="open", rank=comm.rank)
        made = Alone(MPI.COMM_SELF)
        try:
            return File(made, path, mode, alone=True)
        except BaseException:
            made.free()
            raise
    if comm is None:
        import limosa

        comm = limosa.world
    return File(comm, path, mode)


class File:
    """A file that the ranks of a communicator have open, as `limosa.open` gives it.

    All methods are collective: every rank calls them, each for its own part of the file. What one has written the
    others read with their next call. A file that was opened with ``collective=False`` belongs to one rank, which alone
    calls them.

    Attributes
    ----------
    name : str
        As it was given.
    mode : str
        As it was given.
    size : int
        The length in bytes; after `sync`, with all that the other ranks have written. The only one that is not
        collective.

    Examples
    --------
    >>> import limosa, numpy as np, os, tempfile
    >>> file = limosa.open(os.path.join(tempfile.mkdtemp(), "data"), "x")
    >>> file.write(np.arange(3), at=24 * limosa.world.rank)
    >>> file.size
    24
    >>> file.close()

    """

    def __init__(self, comm: Comm, path: str | os.PathLike[str], mode: str, *, alone: bool = False) -> None:
        self._comm = comm
        self._alone = alone
        self._rank: int = MPI.COMM_WORLD.rank if alone else comm.rank
        self._file: MPI.File | None = None
        problem: Exception | None = None
        try:
            self.name = os.fspath(path)
            self.mode = mode
            if not isinstance(self.name, str):
                raise TypeError(f"a name is needed as str or path, not {self.name!r:.60}")
            if mode not in _MODES:
                raise ValueError(f"mode={mode!r} is not one of {', '.join(map(repr, _MODES))}")
        except (TypeError, ValueError) as error:
            problem = error
        shown = f"{Path(self.name).name!r:.80}, {mode!r:.10}" if problem is None else ""
        self._same("open", shown, problem)
        self._file = self._do("open", lambda: MPI.File.Open(comm._envelopes, self.name, _MODES[mode]))
        if mode == "w":
            self.resize(0)

    def __repr__(self) -> str:
        state = "" if self._file is not None else ", closed"
        return f"<limosa.File {self.name!r}, mode {self.mode!r}{state}>"

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Ranks that left the block by different ways could not close it together.
        if kind is None:
            self.close()

    def read(self, shape: int | Sequence[int], dtype: DTypeLike = float, *, at: int = 0, out: Any = None) -> Any:
        """Read an array that lies in the file in one piece.

        Parameters
        ----------
        shape, dtype
            Of the array. Ranks may read different ones, or nothing: the shape ``0``.
        at
            Where it begins, in bytes.
        out
            An array of this shape and dtype to read into.

        Returns
        -------
        numpy.ndarray
            The array, or `out` if it was given.

        Raises
        ------
        EOFError
            If the file ends before. The ranks for which it does not get what they read.
        OSError
            If the system cannot read.

        Examples
        --------
        >>> import limosa, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "data")
        >>> with limosa.open(path, "w") as file:
        ...     file.write(np.arange(3))
        ...     file.read((1, 2), int, at=8)
        array([[1, 2]])

        """
        return self._read("read", lambda: _shape_of(shape), dtype, out, lambda length: (_place(at), None))

    def write(self, array: Any, *, at: int = 0) -> None:
        """Write an array into the file in one piece.

        Parameters
        ----------
        array
            An array, which may be non-contiguous.
        at
            Where it begins, in bytes. What lies between is zero if it is not written.

        Raises
        ------
        OSError
            If the system cannot write, such as on a full disk.

        Examples
        --------
        >>> import limosa, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "data")
        >>> with limosa.open(path, "w") as file:
        ...     file.write(np.arange(6)[::2], at=24 * limosa.world.rank)
        >>> np.fromfile(path, int)
        array([0, 2, 4])

        """
        self._write("write", array, lambda _: (_place(at), None))

    def read_block(
        self,
        start: Sequence[int],
        shape: Sequence[int],
        whole: Sequence[int],
        dtype: DTypeLike = float,
        *,
        at: int = 0,
        out: Any = None,
    ) -> Any:
        """Read a block of an array that the file holds.

        Parameters
        ----------
        start
            The index of the first element of the block.
        shape
            The shape of the block.
        whole, dtype
            The shape and dtype of the array in the file, whose last axis varies fastest.
        at
            Where that array begins, in bytes.
        out
            An array to read into.

        Returns
        -------
        numpy.ndarray
            The block, or `out` if it was given.

        Raises
        ------
        EOFError, OSError
            As `read`.

        Examples
        --------
        >>> import limosa, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "data")
        >>> np.arange(12).reshape(3, 4).tofile(path)
        >>> with limosa.open(path) as file:
        ...     file.read_block((1, 2), (2, 2), (3, 4), int)
        array([[ 6,  7],
               [10, 11]])

        """

        def view(made: Array) -> tuple[int, MPI.Datatype | None]:
            return _place(at), _block(start, made.shape, whole, made.dtype)

        return self._read("read_block", lambda: _shape_of(shape), dtype, out, view)

    def write_block(self, array: Any, start: Sequence[int], whole: Sequence[int], *, at: int = 0) -> None:
        """Write a block of an array that the file is to hold.

        Parameters
        ----------
        array
            The block of this rank.
        start
            The index of its first element in the whole array.
        whole
            The shape of the whole array.
        at
            Where that begins, in bytes.

        Raises
        ------
        OSError
            As `write`.

        Examples
        --------
        >>> import limosa, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "matrix")
        >>> rank, size = limosa.world.rank, limosa.world.size
        >>> with limosa.open(path, "w") as file:
        ...     file.write_block(np.full((3, 2), rank), (0, 2 * rank), (3, 2 * size))
        ...     file.read_block((0, 0), (3, 1), (3, 2 * size), int).ravel()
        array([0, 0, 0])

        """
        self._write("write_block", array, lambda given: (_place(at), _block(start, given.shape, whole, given.dtype)))

    @property
    def size(self) -> int:
        if self._file is None:
            raise self._closed("size")
        return int(self._do("size", self._file.Get_size))

    def resize(self, size: int) -> None:
        """Cut the file off at this length in bytes, or lengthen it; all ranks must give the same.

        Raises
        ------
        limosa.errors.MismatchError
            On every rank, if they do not.

        Examples
        --------
        >>> import limosa, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "data")
        >>> with limosa.open(path, "w") as file:
        ...     file.resize(100)
        >>> os.path.getsize(path)
        100

        """
        problem = None
        try:
            size = _place(size)
        except ValueError as error:
            problem = error
        self._same("resize", f"{size!r:.40} bytes", problem)
        self._do("resize", lambda: self._file.Set_size(size) if self._file else None)

    def sync(self) -> None:
        """Wait until what all ranks have written has reached the disk.

        Examples
        --------
        >>> import limosa, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "data")
        >>> with limosa.open(path, "w") as file:
        ...     file.write(np.arange(2))
        ...     file.sync()

        """
        self._agree("sync", "")
        self._do("sync", lambda: self._file.Sync() if self._file else None)

    def close(self) -> None:
        """Close the file. Afterwards every call is an error, except this one.

        Examples
        --------
        >>> import limosa, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "data")
        >>> file = limosa.open(path, "w")
        >>> file.close()

        """
        if self._file is None:
            return
        self._agree("close", "")
        file, self._file = self._file, None
        self._do("close", file.Close)
        if self._alone:
            self._comm.free()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _agree(self, call: str, arguments: str, problem: Exception | None = None) -> list[Any]:
        """Give the arguments of all ranks; raise on all of them if one has a problem, or makes another call."""
        if self._file is None and call != "open":
            problem = problem or self._closed(call)
        if self._alone and problem is not None:
            if isinstance(problem, errors.Error) and not problem.call:
                problem.call, problem.rank = call, self._rank
            raise problem
        try:
            return self._comm._agree_on_arguments(call, arguments, problem)
        except (MPI.Exception, errors.Error) as error:
            self._comm._blame(error, call)

    def _same(self, call: str, arguments: str, problem: Exception | None) -> None:
        """As `_agree`, and raise on all ranks if their arguments are not the same."""
        texts = self._agree(call, arguments, problem)
        if len(set(texts)) > 1:
            different = by_rank([f"{call}({text})" for text in texts])
            raise errors.MismatchError(f"the ranks called different things: {different}", call=call, rank=self._rank)

    def _closed(self, call: str) -> errors.Error:
        return errors.BY_CLASS["FILE"](f"{self.name} has been closed", call=call, rank=self._rank)

    def _do(self, call: str, function: Callable[[], Any]) -> Any:
        """Call MPI; raise what is wrong as an exception that names the file."""
        try:
            return function()
        except MPI.Exception as error:
            made = errors.from_mpi(error, call=call, rank=self._rank, tried=self.name)
            if isinstance(made, OSError):
                made.errno = _NUMBERS.get(made.error_class.removeprefix("MPI_ERR_"), errno.EIO)
                made.filename = self.name
            raise made from None

    def _read(
        self,
        call: str,
        shape: Callable[[], tuple[int, ...]],
        dtype: DTypeLike,
        out: Any,
        view: Callable[[Array], tuple[int, MPI.Datatype | None]],
    ) -> Any:
        problem: Exception | None = None
        target, place, part = np.empty(0), 0, None
        try:
            kind = np.dtype(dtype)
            if kind.hasobject:
                raise TypeError("a file holds no Python objects; hint: pickle them")
            target = np.empty(shape(), kind) if out is None else as_target(out)
            if target.shape != shape() or target.dtype != kind:
                raise errors.BY_CLASS["ARG"](f"out is {target.dtype} {target.shape}, not {kind} {shape()}")
            place, part = view(target)
        except (TypeError, ValueError, errors.Error) as error:
            problem = error
        status = MPI.Status()
        self._transfer(call, problem, place, part, target, lambda file, at, spec: file.Read_at_all(at, spec, status))
        found = status.Get_elements(MPI.BYTE)
        if found < target.nbytes:
            raise EOFError(f"{call}: {self.name} ends after {found} of the {target.nbytes} bytes that were to be read")
        return target if out is None else out

    def _write(self, call: str, array: Any, view: Callable[[Array], tuple[int, MPI.Datatype | None]]) -> None:
        problem: Exception | None = None
        given, place, part = np.empty(0), 0, None
        try:
            given = as_array(array)
            if given.dtype.hasobject:
                raise TypeError(f"a file holds no Python objects such as this {type(array).__name__}")
            place, part = view(given)
        except (TypeError, ValueError, errors.Error) as error:
            problem = error
        self._transfer(call, problem, place, part, given, lambda file, at, spec: file.Write_at_all(at, spec))

    def _transfer(
        self,
        call: str,
        problem: Exception | None,
        place: int,
        part: MPI.Datatype | None,
        array: Array,
        move: Callable[[MPI.File, int, Any], None],
    ) -> None:
        """Read or write at a place of the file, or through the view of a part of it that begins there."""
        made = None
        try:
            self._agree(call, "", problem)
            assert self._file is not None
            file = self._file
            spec, made = spec_of(array)
            if call.endswith("_block"):
                self._do(call, lambda: file.Set_view(place, MPI.BYTE, part or MPI.BYTE))
                try:
                    self._do(call, lambda: move(file, 0, spec))
                finally:
                    self._do(call, lambda: file.Set_view(0, MPI.BYTE, MPI.BYTE))
            else:
                self._do(call, lambda: move(file, place, spec))
        finally:
            for datatype in (made, part):
                if datatype is not None:
                    datatype.Free()


def _place(at: int) -> int:
    if not hasattr(at, "__index__") or at < 0:
        raise ValueError(f"{at!r} is not a number of bytes")
    return int(at)


def _shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    lengths = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if not all(hasattr(length, "__index__") and length >= 0 for length in lengths):
        raise ValueError(f"{shape!r} is not the shape of an array")
    return tuple(int(length) for length in lengths)


def _block(
    start: Sequence[int], shape: tuple[int, ...], whole: Sequence[int], dtype: np.dtype[Any]
) -> MPI.Datatype | None:
    """Give the datatype of a block of an array in a file; None if it has no elements."""
    first, lengths = _shape_of(start), _shape_of(whole)
    if not (len(first) == len(lengths) == len(shape) > 0) or any(
        begin + length > most for begin, length, most in zip(first, shape, lengths, strict=True)
    ):
        raise ValueError(f"a block of shape {shape} at {tuple(first)} is not in an array of shape {lengths}")
    if 0 in shape:
        return None

    def in_bytes(numbers: Sequence[int]) -> list[int]:
        return [*numbers[:-1], numbers[-1] * dtype.itemsize]

    return MPI.BYTE.Create_subarray(in_bytes(lengths), in_bytes(shape), in_bytes(first)).Commit()
