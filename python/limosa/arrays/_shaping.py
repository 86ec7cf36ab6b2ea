"""Other shapes of distributed arrays: permuted, joined, reversed, reshaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from limosa.arrays._array import Array, check_comm
from limosa.arrays._elementwise import elementwise
from limosa.arrays._indexing import with_axes
from limosa.arrays._map import Map
from limosa.arrays._move import Layout, move


def permute_dims(array: Array, /, axes: Sequence[int]) -> Array:
    """Return the array with its axes in another order. No element moves to another rank. Local."""
    order = normalized(axes, array.ndim)
    if len(order) != array.ndim:
        raise ValueError(f"{len(order)} axes were given for an array with {array.ndim}")
    return Array([array.shape[d] for d in order], array.map.permuted(order), array.local.transpose(order))


def matrix_transpose(array: Array, /) -> Array:
    """Return the array with its last two axes exchanged. Local."""
    return array.mT


def moveaxis(array: Array, source: int | Sequence[int], destination: int | Sequence[int], /) -> Array:
    """Return the array with some axes at other places, the others in their order. Local."""
    sources, places = normalized(source, array.ndim), normalized(destination, array.ndim)
    if len(sources) != len(places):
        raise ValueError(f"{len(sources)} axes were given, and {len(places)} places for them")
    order = [d for d in range(array.ndim) if d not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return permute_dims(array, order)


def expand_dims(array: Array, /, *, axis: int = 0) -> Array:
    """Return the array with a new axis of length 1 at the place `axis`. Local."""
    if not -array.ndim - 1 <= axis <= array.ndim:
        raise IndexError(f"axis {axis} is out of range for an array with {array.ndim} axes")
    axes: list[int | None] = list(range(array.ndim))
    axes.insert(axis % (array.ndim + 1), None)
    return with_axes(array, axes)


def squeeze(array: Array, /, axis: int | Sequence[int]) -> Array:
    """Return the array without axes of length 1."""
    dropped = normalized(axis, array.ndim)
    for d in dropped:
        if array.shape[d] != 1:
            raise ValueError(f"axis {d} has the length {array.shape[d]}; only axes of length 1 can be left out")
    return array[tuple(0 if d in dropped else slice(None) for d in range(array.ndim))]


def normalized(axes: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return axes counted from 0; an error if there is no such axis, or one is there twice."""
    return tuple(np.lib.array_utils.normalize_axis_tuple(axes, ndim))


def reshape(array: Array, /, shape: Sequence[int], *, copy: bool | None = None) -> Array:
    """Return the elements, in C order, in another shape.

    Parameters
    ----------
    array
        The array.
    shape
        The new shape; one length may be -1, and is what remains.
    copy
        None or True; False is an error.

    Returns
    -------
    Array
        A copy, dealt with the first axis in blocks to all ranks.

    """
    lengths = _lengths(array, shape)
    if copy is False:
        raise ValueError("a new shape of a distributed array needs a copy; hint: leave out copy=False")
    if array.map.everywhere:
        return Array(lengths, Map.replicated(len(lengths), array.comm), array.local.reshape(lengths).copy())
    rows = array.remap(Map.default(array.ndim, array.comm))
    target = Map.default(len(lengths), array.comm)
    made = np.empty(math.prod(target.local_shape(lengths)), array.dtype)
    source = _runs(rows.map, array.shape)
    if target.everywhere:  # one element
        lines = Array((array.size,), Map(rows.map.grid[0], comm=array.comm), rows.local.reshape(-1))
        return Array(lengths, target, lines.agg_all().reshape(lengths))
    move(f"reshape to {lengths}", rows.local.reshape(-1), source, made, _runs(target, lengths), array.shape)
    return Array(lengths, target, made.reshape(target.local_shape(lengths)))


def _runs(map: Map, shape: Sequence[int]) -> Layout:
    """Return which elements, counted in C order, the ranks have of an array whose first axis is in blocks."""
    row = math.prod(shape[1:])
    block = map.axes(shape)[0].block * row
    return Layout(Map(map.grid[0], max(block, 1), comm=map.comm), (math.prod(shape),))


def _lengths(array: Array, shape: Sequence[int]) -> tuple[int, ...]:
    lengths = [int(length) for length in ((shape,) if isinstance(shape, int) else shape)]
    known = math.prod(length for length in lengths if length != -1)
    if lengths.count(-1) == 1 and known and array.size % known == 0:
        lengths[lengths.index(-1)] = array.size // known
    if -1 in lengths or math.prod(lengths) != array.size:
        raise ValueError(f"{array.size} elements of the shape {array.shape} do not fit into the shape {tuple(shape)}")
    return tuple(lengths)


def flip(array: Array, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """Return the array with axes (without `axis`, all) in reversed order."""
    axes = range(array.ndim) if axis is None else normalized(axis, array.ndim)
    return array[tuple(slice(None, None, -1) if d in axes else slice(None) for d in range(array.ndim))]


def roll(array: Array, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None) -> Array:
    """Return the array shifted along axes; what leaves at the end comes in at the start.

    Without `axis` the array is shifted as if it were flat (C order).
    """
    if axis is None:
        if array.ndim == 1:
            return roll(array, shift, axis=0)
        return reshape(roll(reshape(array, (-1,)), shift, axis=0), array.shape).remap(array.map)
    axes = normalized(axis, array.ndim)
    shifts = (shift,) * len(axes) if isinstance(shift, (int, np.integer)) else tuple(shift)
    made = array
    for d, count in zip(axes, shifts, strict=True):
        length = array.shape[d]
        turn = count % length if length else 0
        before, after = [slice(None)] * array.ndim, [slice(None)] * array.ndim
        if turn:
            rolled = made.copy()
            before[d], after[d] = slice(turn, None), slice(None, length - turn)
            rolled[tuple(before)] = made[tuple(after)]
            before[d], after[d] = slice(None, turn), slice(length - turn, None)
            rolled[tuple(before)] = made[tuple(after)]
            made = rolled
    return made.copy() if made is array else made


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Return the arrays one after the other along an axis, or, with None, flat; dealt as arrays made without a map."""
    if not arrays:
        raise ValueError("concat needs at least one array")
    if axis is None:
        return concat([reshape(each, (-1,)) for each in arrays])
    first = arrays[0]
    (d,) = normalized(axis, first.ndim)
    for each in arrays:
        check_comm(each, first.map)
        if each.ndim != first.ndim or any(each.shape[k] != first.shape[k] for k in range(first.ndim) if k != d):
            raise ValueError(f"arrays of the shapes {first.shape} and {each.shape} do not fit together along axis {d}")
    length = sum(each.shape[d] for each in arrays)
    shape = tuple(length if k == d else n for k, n in enumerate(first.shape))
    made = _empty(shape, np.result_type(*(each.dtype for each in arrays)), first)
    start = 0
    for each in arrays:
        made[tuple(slice(start, start + each.shape[d]) if k == d else slice(None) for k in range(first.ndim))] = each
        start += each.shape[d]
    return made


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Return the arrays one after the other along a new axis; dealt as arrays made without a map."""
    if not arrays:
        raise ValueError("stack needs at least one array")
    for each in arrays:
        if each.shape != arrays[0].shape:
            raise ValueError(f"arrays of the shapes {arrays[0].shape} and {each.shape} cannot be stacked")
    ndim = arrays[0].ndim + 1
    (d,) = normalized(axis, ndim)
    shape = list(arrays[0].shape)
    shape.insert(d, len(arrays))
    made = _empty(shape, np.result_type(*(each.dtype for each in arrays)), arrays[0])
    for k, each in enumerate(arrays):
        made[tuple(k if i == d else slice(None) for i in range(ndim))] = each
    return made


def unstack(array: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of the array at each index of an axis."""
    (d,) = normalized(axis, array.ndim)
    return tuple(array[(*[slice(None)] * d, k)] for k in range(array.shape[d]))


def _empty(shape: Sequence[int], dtype: np.dtype[Any], like: Array) -> Array:
    map = Map.default(len(shape), like.comm)
    return Array(shape, map, np.empty(map.local_shape(shape), dtype))


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """Return elements of `x1` where a condition is true, of `x2` elsewhere."""
    return elementwise(np.where, [condition, x1, x2])  # type: ignore[no-any-return]
