"""What needs an axis whole: transforms, sorting, running sums.

The array is moved so that the axis is not divided, each rank does its lines with NumPy, and the result is moved back.
Sorting and running sums of an array of one axis are divided among all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from limosa.arrays._anywhere import Post, joined
from limosa.arrays._array import Array
from limosa.arrays._map import Map
from limosa.arrays._move import exchanged
from limosa.arrays._shaping import concat, flip, normalized


def along(what: str, array: Array, axis: int, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Array:
    """Return what a function makes of the lines of an array along an axis.

    Parameters
    ----------
    what
        What is done, for messages, with all that must be the same on all ranks.
    array
        The array.
    axis
        The axis, counted from 0.
    function
        Is given arrays in which the axis is whole, and returns such, perhaps with another length of the axis.

    Returns
    -------
    Array
        The results, dealt as `array`.

    """
    if not array.map.everywhere and array.comm.size > 1:
        call = f"{what} along axis {axis} of an array of the shape {array.shape}, {array.dtype}, {array.map}"
        exchanged(array.comm, call, None)
    map = array.map.without_overlap().undivided(axis)
    whole = array.remap(map)
    sample = function(np.ones([n if d == axis else 1 for d, n in enumerate(array.shape)], array.dtype))
    shape = [sample.shape[axis] if d == axis else n for d, n in enumerate(array.shape)]
    local = np.empty(map.local_shape(shape), sample.dtype) if map.cell() is None else function(whole.local)
    return Array(shape, map, local).remap(array.map)


def sort(array: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the array with its lines along an axis sorted (stable, NaN last)."""
    (d,) = normalized(axis, array.ndim)
    if _is_long_line(array):
        return flip(sorted_line(array)[0]) if descending else sorted_line(array)[0]

    def ordered(lines: NDArray[Any]) -> NDArray[Any]:
        rising = np.sort(lines, axis=d, stable=stable)
        return np.flip(rising, d) if descending else rising

    return along(f"sort ({descending=})", array, d, ordered)


def argsort(array: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort the lines of the array along an axis."""
    (d,) = normalized(axis, array.ndim)
    if _is_long_line(array):
        # Equal elements keep their order: the reversed line is sorted, and its result reversed.
        return flip(array.size - 1 - sorted_line(flip(array))[1]) if descending else sorted_line(array)[1]

    def order(lines: NDArray[Any]) -> NDArray[Any]:
        if not descending:
            return np.argsort(lines, axis=d, stable=stable)
        # Equal elements keep their order: the reversed lines are sorted, and their result reversed.
        reverse = np.argsort(np.flip(lines, d), axis=d, stable=True)
        return np.flip(lines.shape[d] - 1 - reverse, d)

    return along(f"argsort ({descending=})", array, d, order)


def _is_long_line(array: Array) -> bool:
    return array.ndim == 1 and array.comm.size > 1 and not array.map.everywhere


def sorted_line(array: Array) -> tuple[Array, Array]:
    """Return the elements of an array of one axis in rising order, and the indices where they were; by sample sort.

    Every rank sorts its block and offers a few of its elements. From all of these the ranks choose the same splitters,
    between which each rank then merges what it gets from the others. An element counts with its index, so that none is
    equal to another: many equal elements are divided too, and keep their order.
    """
    comm = array.comm
    line = array.remap(Map.default(1, comm))
    order = np.argsort(line.local, kind="stable")
    values, index = line.local[order], line.global_index()[0][order]
    at = np.linspace(0, max(len(values) - 1, 0), comm.size + 1, dtype=np.intp)[: len(values)]
    offered = exchanged(comm, f"sort of an array of the shape {array.shape}, {array.dtype}", (values[at], index[at]))
    samples, places = (np.concatenate(each) for each in zip(*offered, strict=True))
    ranking = np.lexsort((places, samples))
    splitters = [ranking[k * len(ranking) // comm.size] for k in range(1, comm.size)] if len(ranking) else []
    bounds = [_position(values, index, samples[k], places[k]) for k in splitters]
    post = Post(comm, np.searchsorted(np.array(bounds, np.intp), np.arange(len(values)), "right"))
    values, index = post.deliver(values), post.deliver(index)
    order = np.argsort(values, kind="stable")
    whole, places_of = joined(values[order], comm), joined(index[order], comm)
    return whole.remap(array.map), places_of.remap(array.map)


def _position(values: NDArray[Any], index: NDArray[Any], value: Any, place: Any) -> int:
    """Return how many of sorted elements, which have the indices `index`, come before one."""
    first, last = np.searchsorted(values, value, "left"), np.searchsorted(values, value, "right")
    return int(first + np.searchsorted(index[first:last], place))


def cumulative_sum(
    array: Array, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Return the running sums along an axis, which a one-dimensional array need not name."""
    return _cumulative(np.add, np.cumulative_sum, array, axis, dtype, include_initial)


def cumulative_prod(
    array: Array, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Return the running products along an axis, which a one-dimensional array need not name."""
    return _cumulative(np.multiply, np.cumulative_prod, array, axis, dtype, include_initial)


def _cumulative(
    combine: np.ufunc,
    accumulate: Callable[..., NDArray[Any]],
    array: Array,
    axis: int | None,
    dtype: DTypeLike | None,
    include_initial: bool,
) -> Array:
    d = _only_axis(array, axis)
    if not _is_long_line(array):
        what = f"{accumulate.__name__} ({include_initial=})"
        return along(
            what, array, d, lambda lines: accumulate(lines, axis=d, dtype=dtype, include_initial=include_initial)
        )
    what = f"{accumulate.__name__} of an array of the shape {array.shape}, {array.dtype}"
    line = array.remap(Map.default(1, array.comm))
    local = accumulate(line.local, dtype=dtype)
    before = combine.reduce(
        [total for last in exchanged(array.comm, what, local[-1:])[: array.comm.rank] for total in last],
        dtype=local.dtype,
    )
    made = Array(line.shape, line.map, combine(local, before, dtype=local.dtype))
    if include_initial:
        first = accumulate(np.empty(0, local.dtype), include_initial=True)
        made = concat([Array((1,), Map.replicated(1, array.comm), first), made])
    return made.remap(array.map)


def diff(
    array: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """Return the differences of neighbours along an axis, taken `n` times."""
    (d,) = normalized(axis, array.ndim)
    given = [each for each in (prepend, array, append) if each is not None]
    if len(given) > 1:
        array = concat(given, axis=d)
    return along(f"diff ({n=})", array, d, lambda lines: np.diff(lines, n, axis=d))


def _only_axis(array: Array, axis: int | None) -> int:
    if axis is None and array.ndim != 1:
        raise ValueError(f"axis= must be given: the array has {array.ndim} axes")
    return normalized(0 if axis is None else axis, array.ndim)[0]
