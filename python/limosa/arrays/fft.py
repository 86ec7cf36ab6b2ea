"""Discrete Fourier transforms of distributed arrays, by NumPy along each axis, which is made whole for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from limosa.arrays._along import along
from limosa.arrays._array import Array
from limosa.arrays._creation import from_function
from limosa.arrays._map import Map
from limosa.arrays._shaping import normalized, roll

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _one(transform: Callable[..., Any], array: Array, n: int | None, axis: int, norm: Any) -> Array:
    (d,) = normalized(axis, array.ndim)
    return along(f"{transform.__name__} ({n=}, {norm=})", array, d, lambda lines: transform(lines, n, d, norm))


def _lengths(array: Array, s: Sequence[int] | None, axes: Sequence[int] | None) -> list[tuple[int, int | None]]:
    """Return the axes of a transform, and their lengths."""
    if axes is None:
        axes = range(array.ndim) if s is None else range(array.ndim - len(s), array.ndim)
    along = normalized(tuple(axes), array.ndim)
    return list(zip(along, [None] * len(along) if s is None else s, strict=True))


def _many(transform: Callable[..., Any], array: Array, lengths: Sequence[tuple[int, int | None]], norm: Any) -> Array:
    made = array
    for axis, n in lengths:
        made = _one(transform, made, n, axis, norm)
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
    return _many(np.fft.fft, array, _lengths(array, s, axes), norm)


def ifftn(
    array: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Return the inverse transform along several axes (without `axes`, all); arguments as of `numpy.fft.ifftn`."""
    return _many(np.fft.ifft, array, _lengths(array, s, axes), norm)


def rfftn(
    array: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Return the transform of real numbers along several axes; arguments as of `numpy.fft.rfftn`."""
    *others, (last, n) = _lengths(array, s, axes)
    return _many(np.fft.fft, _one(np.fft.rfft, array, n, last, norm), others, norm)


def irfftn(
    array: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Return the inverse of `rfftn`; arguments as of `numpy.fft.irfftn`."""
    *others, (last, n) = _lengths(array, s, axes)
    return _one(np.fft.irfft, _many(np.fft.ifft, array, others, norm), n, last, norm)


def hfft(array: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Return the real transform of Hermitian lines along an axis; arguments as of `numpy.fft.hfft`."""
    return _one(np.fft.hfft, array, n, axis, norm)


def ihfft(array: Array, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Return the inverse of `hfft`; arguments as of `numpy.fft.ihfft`."""
    return _one(np.fft.ihfft, array, n, axis, norm)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, map: Map | None = None, device: Any = None
) -> Array:
    """Return the frequencies of the elements of a transform of length `n` and sample spacing `d`. Local."""
    return from_function(lambda k: (k - n * (k >= (n + 1) // 2)) / (n * d), n, dtype or float, map=map)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, map: Map | None = None, device: Any = None
) -> Array:
    """Return the frequencies of the elements of `rfft` of length `n` and sample spacing `d`. Local."""
    return from_function(lambda k: k / (n * d), n // 2 + 1, dtype or float, map=map)


def fftshift(array: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return the array with the frequency 0 in the middle of axes (without `axes`, of all)."""
    return _shifted(array, axes, 1)


def ifftshift(array: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Return the inverse of `fftshift`."""
    return _shifted(array, axes, -1)


def _shifted(array: Array, axes: int | Sequence[int] | None, sign: int) -> Array:
    along = normalized(tuple(range(array.ndim)) if axes is None else axes, array.ndim)
    return roll(array, [sign * (array.shape[d] // 2) for d in along], axis=along)
