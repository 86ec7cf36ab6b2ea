"""Slices of distributed arrays, and assignment to them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from limosa.arrays._array import Array, check_comm
from limosa.arrays._elementwise import common_map, part_of
from limosa.arrays._map import Map
from limosa.arrays._move import Layout, exchanged, move, regions
from limosa.arrays._pieces import Piece, through


class Key(NamedTuple):
    """What an index chooses of each axis of the array, and how the axes of the result come from them."""

    chosen: list[range]
    #: For each axis of the result the axis of the array that it is, or None for a new axis of length 1.
    axes: list[int | None]

    def __str__(self) -> str:
        parts = [
            f"{each.start}:{each.stop}:{each.step}" if d in self.axes else str(each.start)
            for d, each in enumerate(self.chosen)
        ]
        return ", ".join(parts) or "..."

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
            f"{type(part).__name__} as index of a distributed array; hint: integers, slices, ..., None, and arrays of "
            "integers or bool can be used"
        ) from None
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for axis {axis} of length {length}")
    return range(index % length, index % length + 1)


def get(array: Array, key: Any) -> Array:
    """Return a part of an array as an array of its own, dealt as this one where the axes remain."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(_is_mask(part) for part in parts):
        if len(parts) > 1:
            raise IndexError(
                "a mask can be the only index; hint: x[mask], and the other indices in a step of their own"
            )
        return _get_where(array, as_array(key, array))
    if any(_is_list(part) for part in parts):
        return _get_listed(array, parts)
    wanted = parse(key, array.shape)
    shape = wanted.full_shape
    map = map_of_part(array.map, [d for d in range(array.ndim) if d not in wanted.axes])
    made = np.empty(map.local_shape(shape), array.dtype)
    array.fetch(f"x[{wanted}]", made, Layout(map, shape, stored=True, chosen=wanted.chosen))
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
    parts = key if isinstance(key, tuple) else (key,)
    if any(_is_mask(part) for part in parts):
        if len(parts) > 1:
            raise IndexError("a mask can be the only index; hint: x[mask] = value")
        _put_where(array, as_array(key, array), value)
        return
    if any(_is_list(part) for part in parts):
        _put_listed(array, parts, value)
        return
    wanted = parse(key, array.shape)
    stored = Layout(array.map, array.shape, stored=True)
    if isinstance(value, Array) and array.ndim and not value.map.everywhere:
        check_comm(value, array.map)
        _fit(value.shape, wanted.shape)
        new = [i for i, axis in enumerate(wanted.axes) if axis is None]
        axes: list[int | None] = [wanted.axes.index(d) if d in wanted.axes else None for d in range(array.ndim)]
        full = with_axes(_undivided(broadcast_to(value, wanted.shape), new), axes)
        sources = Layout(full.map, full.shape, chosen=wanted.chosen)
        values = full.local.astype(array.dtype, copy=np.may_share_memory(full.local, array.local))
        move(f"x[{wanted}] = y", values, sources, array.local, stored, full.shape)
        return
    whole = value.agg_all() if isinstance(value, Array) else np.asarray(value)
    _fit(whole.shape, wanted.shape)
    values = np.broadcast_to(whole, wanted.shape).reshape(wanted.full_shape)
    chosen = [[Piece(range(n), range(n))] if n else [] for n in wanted.full_shape]
    for there, here, _ in regions(
        [through(c, p) for c, p in zip(wanted.chosen, chosen, strict=True)], stored.part(array.comm.rank)
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


def _is_mask(part: Any) -> bool:
    if isinstance(part, list):
        part = np.asarray(part)
    return isinstance(part, (bool, np.bool)) or (isinstance(part, (Array, np.ndarray)) and part.dtype == bool)


def _is_list(part: Any) -> bool:
    return isinstance(part, (list, np.ndarray)) or (isinstance(part, Array) and part.ndim > 0)


def as_array(values: Any, like: Array) -> Array:
    """Return an array of indices or a mask, which is the same on all ranks if it is not distributed."""
    if isinstance(values, Array):
        check_comm(values, like.map)
        return values
    whole = np.asarray(values)
    return Array(whole.shape, Map.replicated(whole.ndim, like.comm), whole)


def _get_where(array: Array, mask: Array) -> Array:
    """Return the elements, or the rows, where a mask is true."""
    from limosa.arrays._anywhere import joined
    from limosa.arrays._shaping import reshape

    _check_mask(array, mask)
    if array.map.everywhere and mask.map.everywhere:
        chosen = array.local[mask.local]
        return Array(chosen.shape, Map.replicated(chosen.ndim, array.comm), chosen)
    shape = (mask.size, *array.shape[mask.ndim :])
    rows = reshape(array, shape).remap(Map.default(len(shape), array.comm))
    return joined(rows.local[reshape(mask, (-1,)).remap(Map.default(1, array.comm)).local], array.comm)


def _check_mask(array: Array, mask: Array) -> None:
    if mask.shape != array.shape[: mask.ndim]:
        raise IndexError(f"the mask has the shape {mask.shape}, but the array the shape {array.shape}")


_MIXED = (
    "arrays of indices together with slices and integers are not there; "
    "hint: the slices first, then the arrays of indices: x[1:3][:, [0, 2]]"
)


def _get_listed(array: Array, parts: Sequence[Any]) -> Array:
    """Return the elements at lists of indices."""
    from limosa.arrays._anywhere import pull
    from limosa.arrays._functions import take

    place = next(k for k, part in enumerate(parts) if _is_list(part))
    others = [*parts[:place], *parts[place + 1 :]]
    if array.ndim > 1 and all(isinstance(part, slice) or part is Ellipsis for part in others):
        axis = array.ndim - (len(parts) - place) if Ellipsis in parts[:place] else place
        sliced = array[tuple(slice(None) if k == place else part for k, part in enumerate(parts))]
        return take(sliced, as_array(parts[place], array), axis=axis)
    indices, map, shape = _listed(array, parts)
    return Array(shape, map, pull(array, indices).reshape(map.local_shape(shape)))


def _listed(array: Array, parts: Sequence[Any]) -> tuple[list[Any], Map, tuple[int, ...]]:
    """Return the indices along all axes beside this rank's part of the result, its map and its shape."""
    if len(parts) != array.ndim or any(part is None or part is Ellipsis or isinstance(part, slice) for part in parts):
        raise NotImplementedError(_MIXED)
    lists = [as_array(part, array) for part in parts]
    shape, map = common_map(lists)
    if map.everywhere and not array.map.everywhere:
        map = Map.default(len(shape), array.comm)
    indices = []
    for d, (each, length) in enumerate(zip(lists, array.shape, strict=True)):
        if each.dtype.kind not in "iu" and each.size:
            raise IndexError(f"an array of {each.dtype} as index; hint: integers or bool")
        here = np.broadcast_to(part_of(each, map, shape), map.local_shape(shape)).reshape(-1)
        here = here.astype(np.intp)
        outside = here[(here < -length) | (here >= length)]
        what = f"arrays of indices of the shape {shape}, {map}, in an array of the shape {array.shape}"
        wrong = [each for each in exchanged(array.comm, what, outside[:1].tolist()) if each]
        if wrong:
            raise IndexError(f"index {wrong[0][0]} is out of range for axis {d} of length {length}")
        indices.append(np.where(here < 0, here + length, here))
    return indices, map, shape


def combine_at(ufunc: np.ufunc, array: Array, key: Any, value: Any) -> None:
    """Do what `numpy.ufunc.at` does: elements that are given several times change several times."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(_is_list(part) for part in parts) or any(_is_mask(part) for part in parts):
        raise NotImplementedError(f"numpy.{ufunc.__name__}.at takes arrays of integers as indices; hint: x[i] += y")
    _put_listed(array, parts, value, ufunc)


def _put_listed(array: Array, parts: Sequence[Any], value: Any, combine: np.ufunc | None = None) -> None:
    """Assign to the elements at lists of indices."""
    from limosa.arrays._anywhere import change, push

    rest = array.shape[1:]
    if len(parts) == 1 and rest:  # whole rows
        rows = as_array(parts[0], array)
        parts = [rows[(..., *[None] * len(rest))], *np.ix_(*map(np.arange, rest))]
    indices, dealt, shape = _listed(array, parts)
    values = value if isinstance(value, Array) else np.asarray(value)
    _fit(values.shape, shape)
    beside = np.broadcast_to(part_of(values, dealt, shape), dealt.local_shape(shape)).reshape(-1)
    if dealt.everywhere:  # so is the array
        change(array.local, tuple(indices), beside.astype(array.dtype), combine)
    else:
        push(array, indices, beside.astype(array.dtype), combine)


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
