"""Where elements are, and which different ones there are: results whose shape depends on the elements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from limosa.arrays._along import cumulative_sum, sorted_line
from limosa.arrays._anywhere import joined, unraveled
from limosa.arrays._array import Array
from limosa.arrays._elementwise import elementwise
from limosa.arrays._map import Map
from limosa.arrays._shaping import reshape


def nonzero(array: Array, /) -> tuple[Array, ...]:
    """Return the indices of the elements that are not zero, an array for each axis; dealt with the first in blocks."""
    if array.ndim == 0:
        raise ValueError("an array without axes has no indices; hint: bool(x)")
    line = reshape(array, (-1,)).remap(Map.default(1, array.comm))
    found = joined(line.global_index()[0][np.nonzero(line.local)[0]], array.comm)
    return tuple(elementwise(lambda flat, d=d: unraveled(flat, array.shape)[d], [found]) for d in range(array.ndim))


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def unique_values(array: Array, /) -> Array:
    """Return the different elements, in rising order; dealt in blocks. Each NaN is different from the others."""
    values, _ = _sorted(array)
    return values[_firsts(values)]


def unique_counts(array: Array, /) -> UniqueCounts:
    """Return the different elements, and how often each is there."""
    values, _ = _sorted(array)
    firsts = _firsts(values)
    return UniqueCounts(values[firsts], _counts(firsts))


def unique_inverse(array: Array, /) -> UniqueInverse:
    """Return the different elements, and for each element of the array which of them it is."""
    found = unique_all(array)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_all(array: Array, /) -> UniqueAll:
    """Return the different elements, where each is first (C order), which of them each element is, and their counts."""
    values, order = _sorted(array)
    firsts = _firsts(values)
    inverse = Array(values.shape, values.map, np.empty_like(order.local))
    inverse[order] = cumulative_sum(firsts, dtype=np.intp) - 1
    return UniqueAll(values[firsts], order[firsts], reshape(inverse, array.shape), _counts(firsts))


def _sorted(array: Array) -> tuple[Array, Array]:
    line = reshape(array, (-1,))
    return sorted_line(line.remap(Map.default(1, line.comm)))


def _firsts(values: Array) -> Array:
    """Return which of sorted elements differ from the one before."""
    firsts = Array(values.shape, values.map, np.ones(values.local.shape, bool))
    firsts[1:] = values[1:] != values[:-1]
    return firsts


def _counts(firsts: Array) -> Array:
    """Return how long the runs are, from where they begin."""
    (starts,) = nonzero(firsts)
    ends = Array(starts.shape, starts.map, np.full_like(starts.local, firsts.size))
    ends[:-1] = starts[1:]
    return elementwise(np.subtract, [ends, starts])  # type: ignore[no-any-return]
