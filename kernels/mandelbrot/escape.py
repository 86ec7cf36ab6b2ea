"""How fast the points of the plane escape: the Mandelbrot set by columns. Pure functions.

The picture has n x n points over [-2.25, 0.75] x [-1.5, 1.5]. A point's value is the number of steps of ``z = z^2 + c``
from z = 0 until ``|z| > 2``; the limit of steps if that does not happen, which makes it a point of the set.
"""

from __future__ import annotations

import numpy as np

LEFT, BOTTOM, WIDTH = -2.25, -1.5, 3.0


CHUNK = 1 << 15
"""Points that are computed together: their numbers fit the inner caches."""


def columns(n: int, first: int, last: int, limit: int) -> np.ndarray:
    """Give the values of the columns `first` to `last` as an array of int16 with a row for each column."""
    result = np.empty((last - first, n), np.int16)
    together = max(1, CHUNK // n)
    for start in range(first, last, together):
        end = min(start + together, last)
        result[start - first : end - first] = _values(n, start, end, limit).reshape(-1, n)
    return result


def _values(n: int, first: int, last: int, limit: int) -> np.ndarray:
    """Give the values of some columns, column by column. Points that have escaped are taken out of the work."""
    step = WIDTH / (n - 1)
    real = (LEFT + step * np.arange(first, last)).repeat(n)
    imaginary = np.tile(BOTTOM + step * np.arange(n), last - first)
    result = np.full(real.size, limit, np.int16)
    places = np.arange(real.size)
    x, y = real.copy(), imaginary.copy()  # z after the first step
    xx, yy = x * x, y * y
    for count in range(1, limit):
        escaped = xx + yy > 4
        if escaped.any():
            result[places[escaped]] = count
            places, real, imaginary, x, y, xx, yy = (
                values[~escaped] for values in (places, real, imaginary, x, y, xx, yy)
            )
        if not places.size:
            break
        y *= x
        y += y
        y += imaginary
        np.subtract(xx, yy, out=x)
        x += real
        np.multiply(x, x, out=xx)
        np.multiply(y, y, out=yy)
    return result
