"""Elements at places that only the program's data tell: fetched from, and sent to, the ranks that have them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from limosa.arrays._array import Array
from limosa.arrays._map import Map
from limosa.arrays._move import Layout, Runs, compared, move
from limosa.arrays._pieces import Indices

if TYPE_CHECKING:
    from limosa._comm import Comm


def pull(array: Array, index: Sequence[Indices]) -> NDArray[Any]:
    """Return the elements at the indices that this rank wants.

    Parameters
    ----------
    array
        The array.
    index
        For each axis, indices from 0 in an array of one axis, all of one length. Each rank gives its own.

    """
    if array.map.everywhere:
        found: NDArray[Any] = array.local[tuple(index)]
        return found
    _agree("elements by arrays of indices", array)
    post = Post(array.comm, _owners(array, index))
    wanted = post.deliver(_flat(index, array.shape))
    there = array.local[_places(array, wanted)]
    return post.answer(there)


def push(array: Array, index: Sequence[Indices], values: NDArray[Any], combine: np.ufunc | None = None) -> None:
    """Replace the elements at the indices that this rank gives; arguments as for `pull`.

    Where several are given for one element, the last one of the highest rank remains. With `combine`, elements become
    what this function makes of them and each of the values.
    """
    _agree("assignment by arrays of indices", array)
    if array.map.everywhere:
        for at, new in array.comm.allgather((tuple(index), values)):
            change(array.local, at, new, combine)
        return
    post = Post(array.comm, _owners(array, index))
    flat = post.deliver(_flat(index, array.shape))
    change(array.local, _places(array, flat), post.deliver(values), combine)
    array.synch()


def change(elements: NDArray[Any], places: tuple[Indices, ...], values: NDArray[Any], combine: np.ufunc | None) -> None:
    """Replace elements, or combine them with values."""
    if combine is None:
        elements[places] = values
    else:
        combine.at(elements, places, values)


def _agree(what: str, array: Array) -> None:
    call = f"{what}: an array of the shape {array.shape}, {array.dtype}, {array.map}"
    compared(array.comm, zlib.crc32(call.encode()), 0, lambda: (call, ""))


def _owners(array: Array, index: Sequence[Indices]) -> Indices:
    axes = array.map.axes(array.shape)
    cells = tuple(axis.owner(along) for axis, along in zip(axes, index, strict=True))
    owners: Indices = np.asarray(array.map.ranks[cells], np.intp)
    return owners


def _flat(index: Sequence[Indices], shape: Sequence[int]) -> Indices:
    flat = np.zeros(len(index[0]), np.intp)
    for along, length in zip(index, shape, strict=True):
        flat = flat * length + along
    return flat


def unraveled(flat: Indices, shape: Sequence[int]) -> tuple[Indices, ...]:
    """Return the indices along each axis of elements that are counted in C order."""
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    return tuple(flat // max(step, 1) % max(length, 1) for step, length in zip(steps, shape, strict=True))


def _places(array: Array, flat: Indices) -> tuple[Indices, ...]:
    axes = array.map.axes(array.shape)
    index = unraveled(flat, array.shape)
    return tuple(axis.places(along) for axis, along in zip(axes, index, strict=True))


class Post:
    """Values that go to ranks, one by one, and back.

    Parameters
    ----------
    comm
        The communicator; all its ranks make this together.
    ranks
        For each value of this rank, where it goes.

    """

    def __init__(self, comm: Comm, ranks: Indices) -> None:
        self._comm = comm.mpi
        self._order = np.argsort(ranks, kind="stable")
        self._sent = np.bincount(ranks, minlength=comm.size).astype(np.int64)
        self._received = np.empty_like(self._sent)
        self._comm.Alltoall(self._sent, self._received)

    def deliver(self, values: NDArray[Any]) -> NDArray[Any]:
        """Send the values, and return those that come, by rank and in the order in which they were given."""
        return self._exchange(values[self._order], self._sent, self._received)

    def answer(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values to where those came from that were delivered."""
        back = self._exchange(values, self._received, self._sent)
        made = np.empty_like(back)
        made[self._order] = back
        return made

    def _exchange(self, values: NDArray[Any], sent: NDArray[Any], received: NDArray[Any]) -> NDArray[Any]:
        made = np.empty(int(received.sum()), values.dtype)
        size = values.dtype.itemsize
        self._comm.Alltoallv([np.ascontiguousarray(values), *_counts(sent * size)], [made, *_counts(received * size)])
        return made


def _counts(counts: NDArray[Any]) -> list[Any]:
    return [counts.tolist(), [0, *np.cumsum(counts).tolist()][:-1], MPI.BYTE]


def joined(values: NDArray[Any], comm: Comm) -> Array:
    """Return the array of the rows of all ranks, in the order of ranks; dealt with the first axis in blocks."""
    rest = values.shape[1:]
    call = f"rows of the shape {rest}, {values.dtype}, that fulfil a condition"
    counts = compared(comm, zlib.crc32(call.encode()), len(values), lambda: (call, ""))
    shape = (sum(counts), *rest)
    map = Map.default(len(shape), comm)
    made = np.empty(map.local_shape(shape), values.dtype)
    move("elements that fulfil a condition", values, Runs(counts, rest, comm), made, Layout(map, shape), shape)
    return Array(shape, map, made)
