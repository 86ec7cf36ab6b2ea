"""Discrete Fourier transforms of distributed arrays, by NumPy along each axis, which is made whole for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limosa.arrays._along import along
from limosa.arrays._array import Array
from limosa.arrays._shaping import normalized

__all__ = ["fft", "fftn", "ifft", "ifftn", "irfft", "rfft"]


def _one(transform: Callable[..., Any], array: Array, n: int | None, axis: int, norm: Any) -> Array:
    (d,) = normalized(axis, array.ndim)
    return along(array, d, lambda lines: transform(lines, n, d, norm))


def _many(transform: Callable[..., Any], array: Array, s: Any, axes: Any, norm: Any) -> Array:
    if axes is None:
        axes = range(array.ndim) if s is None else range(array.ndim - len(s), array.ndim)
    made = array
    for k, axis in enumerate(normalized(tuple(axes), array.ndim)):
        made = _one(transform, made, None if s is None else s[k], axis, norm)
    return made


def fft(array: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Return the transform of the lines along an axis; arguments as of `numpy.fft.fft`."""
    return _one(np.fft.fft, array, n, axis, norm)


def ifft(array: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Return the inverse transform of the lines along an axis; arguments as of `numpy.fft.ifft`."""
    return _one(np.fft.ifft, array, n, axis, norm)


def rfft(array: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Return the transform of lines of real numbers along an axis; arguments as of `numpy.fft.rfft`."""
    return _one(np.fft.rfft, array, n, axis, norm)


def irfft(array: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Return the inverse of `rfft`; arguments as of `numpy.fft.irfft`."""
    return _one(np.fft.irfft, array, n, axis, norm)


def fftn(
    array: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Return the transform along several axes (without `axes`, all); arguments as of `numpy.fft.fftn`."""
    return _many(np.fft.fft, array, s, axes, norm)


def ifftn(
    array: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Return the inverse transform along several axes (without `axes`, all); arguments as of `numpy.fft.ifftn`."""
    return _many(np.fft.ifft, array, s, axes, norm)
