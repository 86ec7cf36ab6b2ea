"""Slices of distributed arrays, and assignment to them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from limosa.arrays._array import Array, check_comm
from limosa.arrays._elementwise import part_of
from limosa.arrays._map import Map
from limosa.arrays._move import Layout, move, regions
from limosa.arrays._pieces import Piece, through


class Key(NamedTuple):
    """What an index chooses of each axis of the array, and how the axes of the result come from them."""

    chosen: list[range]
    #: For each axis of the result the axis of the array that it is, or None for a new axis of length 1.
    axes: list[int | None]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(1 if axis is None else len(self.chosen[axis]) for axis in self.axes)

    @property
    def full_shape(self) -> tuple[int, ...]:
        """The shape of what is chosen, with all axes of the array."""
        return tuple(len(each) for each in self.chosen)


def parse(key: Any, shape: Sequence[int]) -> Key:
    """Return what an index means for an array of a shape.

    Raises
    ------
    IndexError
        An index is out of range, there are too many, or it is of a kind that distributed arrays do not take.

    """
    parts = list(key) if isinstance(key, tuple) else [key]
    given = sum(part is not None and part is not Ellipsis for part in parts)
    if given > len(shape):
        raise IndexError(f"{given} indices for an array with {len(shape)} axes")
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError("an index can have one ellipsis (...) only")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    chosen: list[range] = []
    axes: list[int | None] = []
    for part in parts:
        if part is None:
            axes.append(None)
        elif part is Ellipsis:
            for _ in range(len(shape) - given):
                axes.append(len(chosen))
                chosen.append(range(shape[len(chosen)]))
        elif isinstance(part, slice):
            axes.append(len(chosen))
            chosen.append(range(shape[len(chosen)])[part])
        else:
            chosen.append(_one(part, len(chosen), shape[len(chosen)]))
    return Key(chosen, axes)


def _one(part: Any, axis: int, length: int) -> range:
    try:
        index = operator.index(part)
    except TypeError:
        raise IndexError(
            f"{type(part).__name__} as index of a distributed array; hint: integers, slices, ... and None can be used; "
            "limosa.arrays.take chooses by a list, limosa.arrays.where by a mask"
        ) from None
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for axis {axis} of length {length}")
    return range(index % length, index % length + 1)


def get(array: Array, key: Any) -> Array:
    """Return a part of an array as an array of its own, dealt as this one where the axes remain."""
    wanted = parse(key, array.shape)
    shape = wanted.full_shape
    map = map_of_part(array.map, [d for d in range(array.ndim) if d not in wanted.axes])
    made = np.empty(map.local_shape(shape), array.dtype)
    array.fetch(made, Layout(map, shape, stored=True, chosen=wanted.chosen).part)
    part = Array(shape, map, made)
    return part if wanted.axes == list(range(array.ndim)) else with_axes(part, wanted.axes)


def map_of_part(map: Map, dropped: Sequence[int]) -> Map:
    """Return how a part is dealt of which some axes have length 1 and will be dropped."""
    kept = [d for d in range(map.ndim) if d not in dropped]
    if not kept:
        return Map.replicated(map.ndim, map.comm)
    if map.everywhere or all(map.grid[d] == 1 for d in dropped):
        return map
    return Map([map.comm.size if d == kept[0] else 1 for d in range(map.ndim)], comm=map.comm)


def with_axes(array: Array, axes: Sequence[int | None]) -> Array:
    """Return an array with these of its axes, in this order, and new ones of length 1 where None is. Local.

    The axes that are left out have length 1, and are not divided.
    """
    kept = [axis for axis in axes if axis is not None]
    dropped = [d for d in range(array.ndim) if d not in kept]
    map = array.map.without(dropped).with_new([i for i, axis in enumerate(axes) if axis is None])
    shape = tuple(1 if axis is None else array.shape[axis] for axis in axes)
    return Array(shape, map, array.local.reshape(map.local_shape(shape)))


def put(array: Array, key: Any, value: Any) -> None:
    """Assign to a part of an array."""
    if isinstance(key, Array) and key.dtype == bool:
        _put_where(array, key, value)
        return
    wanted = parse(key, array.shape)
    stored = Layout(array.map, array.shape, stored=True).part
    if isinstance(value, Array) and array.ndim and not value.map.everywhere:
        check_comm(value, array.map)
        _fit(value.shape, wanted.shape)
        new = [i for i, axis in enumerate(wanted.axes) if axis is None]
        axes: list[int | None] = [wanted.axes.index(d) if d in wanted.axes else None for d in range(array.ndim)]
        full = with_axes(_undivided(broadcast_to(value, wanted.shape), new), axes)
        sources = Layout(full.map, full.shape, chosen=wanted.chosen)
        move(full.local.astype(array.dtype, copy=False), sources, array.local, stored, array.comm.mpi)
        return
    values = value.agg_all() if isinstance(value, Array) else np.asarray(value)
    _fit(values.shape, wanted.shape)
    values = np.broadcast_to(values, wanted.shape).reshape(wanted.full_shape)
    chosen = [[Piece(range(n), range(n))] if n else [] for n in wanted.full_shape]
    for there, here, _ in regions(
        [through(c, p) for c, p in zip(wanted.chosen, chosen, strict=True)], stored(array.comm.rank)
    ):
        array.local[here] = values[there]


def _undivided(array: Array, axes: Sequence[int]) -> Array:
    for axis in axes:
        array = array.remap(array.map.undivided(axis))
    return array


def _fit(shape: tuple[int, ...], part: tuple[int, ...]) -> None:
    try:
        fits = np.broadcast_shapes(shape, part) == part
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"an array of the shape {shape} does not fit into a part of the shape {part}")


def _put_where(array: Array, mask: Array, value: Any) -> None:
    """Assign a number, or what stands beside the chosen elements, where a mask is true."""
    if mask.shape != array.shape:
        raise IndexError(f"the mask has the shape {mask.shape}, but the array the shape {array.shape}")
    where = part_of(mask, array.map, array.shape)
    beside = part_of(value, array.map, array.shape)
    np.copyto(array.local, beside, where=where, casting="unsafe")


def broadcast_to(array: Array, shape: Sequence[int]) -> Array:
    """Return an array repeated along new axes and along axes of length 1, as `numpy.broadcast_to` does."""
    wanted = tuple(shape)
    if wanted == array.shape:
        return array
    _fit(array.shape, wanted)
    map = Map.replicated(len(wanted), array.comm) if array.map.everywhere else Map.default(len(wanted), array.comm)
    local = part_of(array, map, wanted)
    return Array(wanted, map, np.broadcast_to(local, map.local_shape(wanted)).copy())
