"""What needs an axis whole: transforms, sorting, running sums.

The array is moved so that the axis is not divided, each rank does its lines with NumPy, and the result is moved back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from limosa.arrays._array import Array
from limosa.arrays._shaping import normalized


def along(array: Array, axis: int, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Array:
    """Return what a function makes of the lines of an array along an axis.

    Parameters
    ----------
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
    map = array.map.without_overlap().undivided(axis)
    whole = array.remap(map)
    sample = function(np.ones([n if d == axis else 1 for d, n in enumerate(array.shape)], array.dtype))
    shape = [sample.shape[axis] if d == axis else n for d, n in enumerate(array.shape)]
    local = np.empty(map.local_shape(shape), sample.dtype) if map.cell() is None else function(whole.local)
    return Array(shape, map, local).remap(array.map)


def sort(array: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the array with its lines along an axis sorted (stable, NaN last)."""
    (d,) = normalized(axis, array.ndim)
    return along(array, d, lambda lines: _descending(np.sort(lines, axis=d, stable=stable), d, descending))


def argsort(array: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort the lines of the array along an axis."""
    (d,) = normalized(axis, array.ndim)

    def order(lines: NDArray[Any]) -> NDArray[Any]:
        if not descending:
            return np.argsort(lines, axis=d, stable=stable)
        # Equal elements keep their order: the reversed lines are sorted, and their result reversed.
        reverse = np.argsort(np.flip(lines, d), axis=d, stable=True)
        return np.flip(lines.shape[d] - 1 - reverse, d)

    return along(array, d, order)


def _descending(lines: NDArray[Any], axis: int, descending: bool) -> NDArray[Any]:
    return np.flip(lines, axis) if descending else lines


def cumulative_sum(
    array: Array, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Return the running sums along an axis, which a one-dimensional array need not name."""
    d = _only_axis(array, axis)
    return along(array, d, lambda lines: np.cumulative_sum(lines, axis=d, dtype=dtype, include_initial=include_initial))


def cumulative_prod(
    array: Array, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Return the running products along an axis, which a one-dimensional array need not name."""
    d = _only_axis(array, axis)
    return along(
        array, d, lambda lines: np.cumulative_prod(lines, axis=d, dtype=dtype, include_initial=include_initial)
    )


def diff(array: Array, /, *, axis: int = -1, n: int = 1) -> Array:
    """Return the differences of neighbours along an axis, taken `n` times."""
    (d,) = normalized(axis, array.ndim)
    return along(array, d, lambda lines: np.diff(lines, n, axis=d))


def _only_axis(array: Array, axis: int | None) -> int:
    if axis is None and array.ndim != 1:
        raise ValueError(f"axis= must be given: the array has {array.ndim} axes")
    return normalized(0 if axis is None else axis, array.ndim)[0]
