"""Distributed arrays in files of NumPy's format (``.npy``), by MPI-IO."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import numpy as np

import limosa
from limosa.arrays._array import Array
from limosa.arrays._map import Map

if TYPE_CHECKING:
    from limosa._comm import Comm


def save(path: str | os.PathLike[str], array: Array) -> None:
    """Write an array to a file that `numpy.load` reads.

    Parameters
    ----------
    path
        Its name, the same on all ranks. A file that exists is replaced.
    array
        The array. Each rank writes its rows.

    Raises
    ------
    OSError
        On every rank: the file cannot be written.

    """
    rows = array.remap(Map.default(array.ndim, array.comm))
    header = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(header, described)
    head = np.frombuffer(header.getvalue(), np.uint8)
    with limosa.open(path, "w", array.comm) as file:
        file.write(head if array.comm.rank == 0 else head[:0])
        if array.ndim and array.size:
            start = [int(index[0]) if index.size else 0 for index in rows.global_index()]
            file.write_block(np.ascontiguousarray(rows.local), start, array.shape, at=head.size)
        elif array.size:
            file.write(rows.local.reshape(1)[: 1 if array.comm.rank == 0 else 0], at=head.size)


def load(path: str | os.PathLike[str], *, map: Map | None = None, comm: Comm | None = None) -> Array:
    """Read an array from a file that `save` or `numpy.save` has written.

    Parameters
    ----------
    path
        Its name, the same on all ranks.
    map
        How the array is dealt; without it the first axis in blocks.
    comm
        The communicator, if there is no map; without it `limosa.world`.

    Raises
    ------
    OSError
        On every rank: the file cannot be read.
    ValueError
        On every rank: it is not such a file, or its elements are Python objects.

    """
    group = map.comm if map is not None else limosa.world if comm is None else comm
    with limosa.open(path, "r", group) as file:
        head = io.BytesIO(file.read(min(file.size, 1 << 16), np.uint8).tobytes())
        shape, fortran, dtype = _header(head, path)
        rows = Map.default(len(shape), group)
        if not shape:
            return Array(shape, rows, file.read(1, dtype, at=head.tell()).reshape(()))
        stored = shape[::-1] if fortran else shape
        part = rows.local_shape(stored)
        start = [int(index[0]) if index.size else 0 for index in rows.global_index(stored)]
        local = (
            file.read_block(start, part, stored, dtype, at=head.tell()) if np.prod(stored) else np.empty(part, dtype)
        )
    made = Array(stored, rows, local)
    made = made.T if fortran else made
    return made.remap(rows if map is None else map)


def _header(head: io.BytesIO, path: str | os.PathLike[str]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(head)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(head)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{os.fspath(path)!r} is not a file of numpy.save: {error}") from None
    if dtype.hasobject:
        raise ValueError(
            f"{os.fspath(path)!r} has Python objects as elements; hint: numpy.load on one rank, then scatter"
        )
    return shape, fortran, dtype
