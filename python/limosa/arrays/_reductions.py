"""Sums, extremes and other values of all elements, or along axes.

Each rank reduces its own elements. What remains, one value for each rank along the axes, goes to the ranks that have
the result. The values of ranks are combined in the order of the grid, so that results do not depend on timing.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from limosa.arrays._array import Array
from limosa.arrays._elementwise import elementwise, fetched
from limosa.arrays._indexing import map_of_part, with_axes
from limosa.arrays._move import Layout, Part, Wanted
from limosa.arrays._pieces import Indices, all_of


def sum(array: Array, /, axis: Any = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Array:
    """Return the sum of the elements.

    Parameters
    ----------
    array
        The array.
    axis
        An axis or several; without it all.
    dtype
        The type in which the sum is taken; without it, NumPy's.
    keepdims
        Whether the axes remain, with length 1.

    Returns
    -------
    Array
        Without `axis` one element, on every rank; otherwise dealt as `array` if none of the axes is divided, else the
        first axis in blocks.

    """
    return _reduced(array, np.sum, axis, keepdims, dtype=dtype)


def prod(array: Array, /, axis: Any = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Array:
    """Return the product of the elements. Arguments and result as for `sum`."""
    return _reduced(array, np.prod, axis, keepdims, dtype=dtype)


def max(array: Array, /, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the largest element (NaN if there is one). Arguments and result as for `sum`."""
    return _reduced(_some(array, axis, "max"), np.max, axis, keepdims)


def min(array: Array, /, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the smallest element (NaN if there is one). Arguments and result as for `sum`."""
    return _reduced(_some(array, axis, "min"), np.min, axis, keepdims)


def any(array: Array, /, axis: Any = None, keepdims: bool = False) -> Array:
    """Return whether an element is not zero. Arguments and result as for `sum`."""
    return _reduced(array, np.any, axis, keepdims)


def all(array: Array, /, axis: Any = None, keepdims: bool = False) -> Array:
    """Return whether no element is zero. Arguments and result as for `sum`."""
    return _reduced(array, np.all, axis, keepdims)


def count_nonzero(array: Array, /, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the number of elements that are not zero. Arguments and result as for `sum`."""
    return sum(elementwise(lambda x: x != 0, [array]), axis=axis, dtype=np.intp, keepdims=keepdims)


def mean(array: Array, /, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the mean of the elements. Arguments and result as for `sum`."""
    count = _count(array, axis)
    kind = array.dtype if np.issubdtype(array.dtype, np.inexact) else np.dtype(float)
    total = sum(array.astype(kind, copy=False), axis=axis, keepdims=keepdims)
    with np.errstate(divide="ignore", invalid="ignore"):
        return elementwise(lambda x: np.divide(x, count, dtype=kind), [total])  # type: ignore[no-any-return]


def var(array: Array, /, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the variance of the elements, the sum of squares divided by their number less `correction`.

    The other arguments and the result as for `sum`.
    """
    apart = elementwise(lambda x, y: abs(x - y) ** 2, [array, mean(array, axis=axis, keepdims=True)])
    count = np.maximum(_count(array, axis) - correction, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = sum(apart, axis=axis, keepdims=keepdims)
        return elementwise(lambda x: np.divide(x, count, dtype=x.dtype), [total])  # type: ignore[no-any-return]


def std(array: Array, /, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the square root of the variance. Arguments as for `var`."""
    return elementwise(np.sqrt, [var(array, axis=axis, correction=correction, keepdims=keepdims)])  # type: ignore[no-any-return]


def argmax(array: Array, /, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the largest element, the first if there are several.

    Parameters
    ----------
    array
        The array.
    axis
        An axis; without it the index is that in the flattened array (C order).
    keepdims
        Whether the axis remains, with length 1.

    """
    return _extreme(_some(array, axis, "argmax"), np.argmax, np.max, axis, keepdims)


def argmin(array: Array, /, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the smallest element, the first if there are several. Arguments as for `argmax`."""
    return _extreme(_some(array, axis, "argmin"), np.argmin, np.min, axis, keepdims)


def _count(array: Array, axis: Any) -> int:
    return math.prod(array.shape[d] for d in _axes(axis, array.ndim))


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, ndim)))


def _some(array: Array, axis: Any, call: str) -> Array:
    if _count(array, axis) == 0:
        raise ValueError(f"{call} of no elements: the array has the shape {array.shape}")
    return array


def _reduced(array: Array, reduce: Callable[..., Any], axis: Any, keepdims: bool, **options: Any) -> Array:
    """Return what a reduction of NumPy makes of an array, if it also combines the results of parts."""
    axes = _axes(axis, array.ndim)

    def apply(values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(reduce(values, axis=axes, keepdims=True, **options))

    return _combined(array, axes, keepdims, lambda part, _: (apply(part),), apply)


def _extreme(
    array: Array, first: Callable[..., Any], best: Callable[..., Any], axis: int | None, keepdims: bool
) -> Array:
    """Return the index of an extreme element."""
    axes = _axes(axis, array.ndim)

    def of_part(part: NDArray[Any], indices: Sequence[Indices]) -> tuple[NDArray[Any], ...]:
        if axis is not None:
            at = first(part, axis=axes[0], keepdims=True)
            return np.take_along_axis(part, at, axes[0]), indices[axes[0]][at]
        place = np.unravel_index(first(part), part.shape)
        index = [along[k] for along, k in zip(indices, place, strict=True)]
        flat = np.ravel_multi_index(index, array.shape) if index else 0
        return part[place].reshape([1] * part.ndim), np.full([1] * part.ndim, flat, np.intp)

    def combine(values: NDArray[Any], indices: NDArray[Any]) -> NDArray[Any]:
        found = best(values, axis=axes, keepdims=True)
        hits = np.equal(values, found) | (np.not_equal(values, values) & np.not_equal(found, found))  # NaN too
        kept: NDArray[Any] = np.where(hits, indices, np.iinfo(np.intp).max)
        return np.asarray(kept.min(axis=axes, keepdims=True))

    return _combined(array, axes, keepdims, of_part, combine)


def _combined(
    array: Array,
    axes: tuple[int, ...],
    keepdims: bool,
    of_part: Callable[[NDArray[Any], Sequence[Indices]], tuple[NDArray[Any], ...]],
    combine: Callable[..., NDArray[Any]],
) -> Array:
    """Reduce an array along axes.

    Parameters
    ----------
    array, keepdims
        As for `sum`.
    axes
        The axes, in rising order.
    of_part
        Reduces a rank's part, whose indices along each axis it is given, to one or several arrays in which the axes
        have length 1.
    combine
        Reduces such arrays of several ranks, stacked along the axes, to the result, in which the axes have length 1.

    """
    map = array.map.without_overlap()
    along = map.axes(array.shape)
    stack = [
        builtins.min(a.cells, math.ceil(n / a.block)) if d in axes else n
        for d, (n, a) in enumerate(zip(array.shape, along, strict=True))
    ]
    stacked = map.with_blocks(axes)
    room = stacked.local_shape(stack)
    sample = of_part(np.ones([1] * array.ndim, array.dtype), [np.zeros(1, np.intp)] * array.ndim)
    if 0 in room:
        locals = tuple(np.empty(room, each.dtype) for each in sample)
    else:
        locals = of_part(array.owned, map.global_index(array.shape))
    shape = tuple(1 if d in axes else n for d, n in enumerate(array.shape))
    target = map_of_part(map, axes)
    kept = Layout(target, shape)

    def wanted(rank: int) -> Part:
        part = kept.part(rank)
        return None if part is None else [all_of(stack[d]) if d in axes else each for d, each in enumerate(part)]

    what = f"reduction of {array.shape} along axes {axes}"
    targets = Wanted(("reduced", axes, kept.key), wanted)
    parts = [fetched(what, Array(stack, stacked, local), targets) for local in locals]
    has_result = target.cell() is not None
    local = combine(*parts) if has_result else np.empty(target.local_shape(shape), combine(*sample).dtype)
    made = Array(shape, target, local)
    return made if keepdims else with_axes(made, [d for d in range(array.ndim) if d not in axes])
