"""Distributed arrays on disk without MPI-IO: each rank maps its part of a file into memory, or uses HDF5."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

import limosa
from limosa.arrays._array import Array
from limosa.arrays._map import Map
from limosa.arrays._move import Layout, exchanged

if TYPE_CHECKING:
    from limosa._comm import Comm

T = TypeVar("T")

#: Exceptions that the other ranks raise too; in place of all others they raise OSError.
_KINDS: dict[type[Exception], type[Exception]] = {
    each: each for each in (FileNotFoundError, PermissionError, IsADirectoryError, KeyError, ValueError)
}


def memmap(
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    offset: int | None = None,
    map: Map | None = None,
    comm: Comm | None = None,
) -> Array:
    """Return an array whose elements are in a file, of which each rank maps its part into memory.

    Nothing is read before it is used. What is written to `Array.local` is written to the file.

    Parameters
    ----------
    path
        The name of the file, the same on all ranks: of NumPy's format (``.npy``), or with raw elements.
    mode
        ``"r"``: the array cannot be changed; ``"r+"``: changes go to the file; ``"c"``: changes do not; ``"w+"``: the
        file is made, or made anew, with zeros.
    shape, dtype
        Those of the array: for ``"w+"`` and for raw elements.
    offset
        For raw elements: where they begin, in bytes. Without it the file is one of NumPy's format.
    map
        How the array is dealt, without overlap, in blocks or cyclically; without it the first axis in blocks.
    comm
        The communicator, if there is no map; without it `limosa.world`.

    Raises
    ------
    OSError
        On every rank: a rank cannot open the file.
    ValueError
        On every rank: it is not such a file, or too short; or the arguments do not fit together.

    """
    group = _group(map, comm)
    if mode not in ("r", "r+", "c", "w+"):
        raise ValueError(f"mode is {mode!r}; hint: 'r', 'r+', 'c' or 'w+'")
    if (offset is not None or mode == "w+") and (shape is None or dtype is None):
        raise ValueError("raw elements and new files need shape= and dtype=")
    if map is not None and (any(map.overlap) or any(isinstance(each, int) and each > 1 for each in map.dist)):
        raise ValueError(f"the parts of {map} are not slices of the array; hint: blocks without overlap, or cyclic")

    def opened(how: str) -> Any:
        if offset is None:
            return np.lib.format.open_memmap(path, how, dtype, None if shape is None else tuple(shape))
        return np.memmap(path, dtype, how, offset, tuple(shape or ()))  # type: ignore[call-overload]

    if mode == "w+":
        _together(group, path, lambda: opened("w+").flush() if group.rank == 0 else None)
    whole = _together(group, path, lambda: opened("r+" if mode == "w+" else mode))
    dealt = Map.default(whole.ndim, group) if map is None else map
    parts = list(_selections(dealt, whole.shape))
    local = whole[parts[0][0]] if parts else np.empty(dealt.local_shape(whole.shape), whole.dtype)
    return Array(whole.shape, dealt, local)


def load_hdf5(path: str | os.PathLike[str], name: str, *, map: Map | None = None, comm: Comm | None = None) -> Array:
    """Read an array from an HDF5 file. Needs h5py.

    Each rank reads its part: all together if h5py was built with MPI, each on its own otherwise.

    Parameters
    ----------
    path
        The name of the file, the same on all ranks.
    name
        The name of the data set.
    map
        How the array is dealt; without it the first axis in blocks.
    comm
        The communicator, if there is no map; without it `limosa.world`.

    Raises
    ------
    OSError
        On every rank: a rank cannot read the file.
    KeyError
        On every rank: there is no such data set.

    """
    group = _group(map, comm)

    def read() -> Array:
        with _hdf5(path, "r", group) as file:
            if name not in file:
                raise KeyError(f"{os.fspath(path)!r} has no data set {name!r}; it has {sorted(file)}")
            data = file[name]
            dealt = Map.default(data.ndim, group) if map is None else map
            local = np.empty(dealt.local_shape(data.shape), data.dtype)
            for there, here in _selections(dealt, data.shape):
                local[here] = data[there]
            return Array(data.shape, dealt, local)

    return _together(group, path, read)


def save_hdf5(path: str | os.PathLike[str], name: str, array: Array) -> None:
    """Write an array to a data set of an HDF5 file, which is made if it is not there. Needs h5py.

    Each rank writes what it owns: all together if h5py was built with MPI, one after the other otherwise.

    Parameters
    ----------
    path
        The name of the file, the same on all ranks.
    name
        The name of the data set. One that exists is replaced.
    array
        The array.

    Raises
    ------
    OSError
        On every rank: a rank cannot write the file.

    """
    group, map = array.comm, array.map.without_overlap()
    parallel = _is_parallel()

    def make(file: Any) -> None:
        if name in file:
            del file[name]
        file.create_dataset(name, array.shape, array.dtype)

    def fill(file: Any) -> None:
        if not map.everywhere or group.rank == 0:
            for there, here in _selections(map, array.shape):
                file[name][there] = array.local[here]

    def write(*steps: Callable[[Any], None]) -> None:
        with _hdf5(path, "a", group) as file:
            for step in steps:
                step(file)

    if parallel:
        _together(group, path, lambda: write(make, fill))
        return

    def in_turn(rank: int) -> None:
        if rank == group.rank:
            write(*([make, fill] if rank == 0 else [fill]))

    for rank in range(group.size):
        _together(group, path, partial(in_turn, rank))


def _group(map: Map | None, comm: Comm | None) -> Comm:
    return map.comm if map is not None else limosa.world if comm is None else comm


def _is_parallel() -> bool:
    import h5py

    return bool(h5py.get_config().mpi)


def _hdf5(path: str | os.PathLike[str], mode: str, group: Comm) -> Any:
    import h5py

    if _is_parallel():
        return h5py.File(path, mode, driver="mpio", comm=group.mpi)
    return h5py.File(path, mode)


def _selections(map: Map, shape: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """Give the slices of the array that this rank stores, and where they are in its local array."""
    part = Layout(map, shape, stored=True).part(map.comm.rank)
    for pieces in itertools.product(*part) if part is not None else ():
        yield (
            (*(slice(piece.whole.start, piece.whole.stop, piece.whole.step) for piece in pieces), ...),
            (*(slice(piece.places.start, piece.places.stop, piece.places.step) for piece in pieces), ...),
        )


def _together(group: Comm, path: str | os.PathLike[str], call: Callable[[], T]) -> T:
    """Return what a call returns, or raise its error on all ranks, with the name of the file."""
    made: T | None = None
    problem: Exception | None = None
    try:
        made = call()
    except (OSError, ValueError, KeyError) as error:
        problem = error
    own = None if problem is None else (_KINDS.get(type(problem), OSError), str(problem))
    seen: list[tuple[type[Exception], str] | None] = exchanged(group, f"file {os.fspath(path)!r}", own)
    for rank, told in enumerate(seen):
        if told is not None:
            kind, text = told
            raise kind(f"{os.fspath(path)!r} on rank {rank}: {text}") from problem
    return made  # type: ignore[return-value]
