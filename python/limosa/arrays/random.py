"""Random distributed arrays whose elements do not depend on the number of ranks or the map.

Element number k, in C order, comes from output number k of a counter-based generator (Philox; J. K. Salmon and others,
"Parallel random numbers: as easy as 1, 2, 3", SC'11), so each rank makes its own elements and no others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limosa.arrays._array import Array
from limosa.arrays._map import Map

__all__ = ["integers", "normal", "uniform"]

#: Numbers of 64 bits that the generator makes at each step of its counter.
_WORDS = 4


def uniform(
    shape: int | Sequence[int], low: float = 0.0, high: float = 1.0, *, seed: int = 0, map: Map | None = None
) -> Array:
    """Return numbers that are equally likely in ``[low, high)``. Local.

    Parameters
    ----------
    shape
        The shape of the whole array.
    low, high
        The bounds.
    seed
        A non-negative integer; the same gives the same numbers, whatever the number of ranks and the map.
    map
        How the array is dealt; without it the first axis in blocks.

    """
    return _dealt(shape, map, seed, lambda words: low + (high - low) * _fraction(words))


def normal(
    shape: int | Sequence[int], mean: float = 0.0, deviation: float = 1.0, *, seed: int = 0, map: Map | None = None
) -> Array:
    """Return normally distributed numbers, by the inverse of their distribution. Needs SciPy. Local.

    Parameters
    ----------
    shape, seed, map
        As for `uniform`.
    mean, deviation
        Of the distribution.

    """
    from scipy.special import ndtri  # type: ignore[import-untyped]

    half = 0.5 / 2**53
    return _dealt(shape, map, seed, lambda words: mean + deviation * ndtri(_fraction(words) + half))


def integers(shape: int | Sequence[int], low: int, high: int, *, seed: int = 0, map: Map | None = None) -> Array:
    """Return integers from `low` up to, and without, `high`. Local.

    They are equally likely but for an error of ``(high - low) / 2**53``. The other arguments as for `uniform`.
    """
    if not low < high <= low + 2**53:
        raise ValueError(f"there are no integers from {low} up to {high}, or more than 2**53")
    return _dealt(shape, map, seed, lambda words: low + np.floor(_fraction(words) * (high - low)).astype(np.int64))


def _fraction(words: NDArray[np.uint64]) -> NDArray[Any]:
    return (words >> np.uint64(11)) * 2.0**-53


def _dealt(
    shape: int | Sequence[int], map: Map | None, seed: int, make: Callable[[NDArray[np.uint64]], NDArray[Any]]
) -> Array:
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    dealt = Map.default(len(lengths)) if map is None else map
    words = np.empty(dealt.local_shape(lengths), np.uint64)
    if words.size:
        _fill(words, lengths, dealt.global_index(lengths), seed)
    return Array(lengths, dealt, make(words))


def _fill(words: NDArray[np.uint64], shape: Sequence[int], indices: Sequence[NDArray[np.intp]], seed: int) -> None:
    """Write the outputs that belong to elements, in runs of elements that follow each other in C order."""
    # The last axes of which a rank has everything make one run together with the axis before them.
    axis = len(shape) - 1
    while axis > 0 and len(indices[axis]) == shape[axis]:
        axis -= 1
    row = math.prod(shape[axis + 1 :])
    lines = words.reshape(*words.shape[:axis], -1)
    runs = _runs(indices[axis]) if len(shape) else [(0, 0, 1)]
    for at in np.ndindex(lines.shape[:-1]):
        first = 0
        for d, k in enumerate(at):
            first = first * shape[d] + int(indices[d][k])
        for place, index, count in runs:
            number = (first * shape[axis] + index) * row if len(shape) else 0
            lines[at][place * row : (place + count) * row] = _words(seed, number, count * row)


def _runs(indices: NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Return the runs of consecutive indices: place, first index, count."""
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    starts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [len(indices)]])
    return [(int(a), int(indices[a]), int(b - a)) for a, b in zip(starts, ends, strict=True)]


def _words(seed: int, first: int, count: int) -> NDArray[np.uint64]:
    """Return outputs of the generator from number `first`."""
    skipped = first % _WORDS
    generator = np.random.Philox(key=seed).advance(first // _WORDS)
    return generator.random_raw(skipped + count)[skipped:]
