"""The element-by-element functions of the array API standard, and what is small beside them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from limosa.arrays._along import along
from limosa.arrays._array import Array
from limosa.arrays._elementwise import common_map, elementwise
from limosa.arrays._indexing import broadcast_to
from limosa.arrays._shaping import concat, normalized, reshape


def _by(function: Callable[..., Any]) -> Callable[..., Array]:
    """Return a function of NumPy for distributed arrays."""

    def apply(*arrays: Any) -> Array:
        return elementwise(function, arrays)  # type: ignore[no-any-return]

    name = getattr(function, "__name__", "function")
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Return `numpy.{name}` of distributed arrays, element by element."
    return apply


abs = _by(np.abs)
acos = _by(np.arccos)
acosh = _by(np.arccosh)
add = _by(np.add)
asin = _by(np.arcsin)
asinh = _by(np.arcsinh)
atan = _by(np.arctan)
atan2 = _by(np.arctan2)
atanh = _by(np.arctanh)
bitwise_and = _by(np.bitwise_and)
bitwise_invert = _by(np.invert)
bitwise_left_shift = _by(np.left_shift)
bitwise_or = _by(np.bitwise_or)
bitwise_right_shift = _by(np.right_shift)
bitwise_xor = _by(np.bitwise_xor)
ceil = _by(np.ceil)
conj = _by(np.conj)
copysign = _by(np.copysign)
cos = _by(np.cos)
cosh = _by(np.cosh)
divide = _by(np.divide)
equal = _by(np.equal)
exp = _by(np.exp)
expm1 = _by(np.expm1)
floor = _by(np.floor)
floor_divide = _by(np.floor_divide)
greater = _by(np.greater)
greater_equal = _by(np.greater_equal)
hypot = _by(np.hypot)
imag = _by(np.imag)
isfinite = _by(np.isfinite)
isinf = _by(np.isinf)
isnan = _by(np.isnan)
less = _by(np.less)
less_equal = _by(np.less_equal)
log = _by(np.log)
log10 = _by(np.log10)
log1p = _by(np.log1p)
log2 = _by(np.log2)
logaddexp = _by(np.logaddexp)
logical_and = _by(np.logical_and)
logical_not = _by(np.logical_not)
logical_or = _by(np.logical_or)
logical_xor = _by(np.logical_xor)
maximum = _by(np.maximum)
minimum = _by(np.minimum)
multiply = _by(np.multiply)
negative = _by(np.negative)
nextafter = _by(np.nextafter)
not_equal = _by(np.not_equal)
positive = _by(np.positive)
pow = _by(np.power)
real = _by(np.real)
reciprocal = _by(np.reciprocal)
remainder = _by(np.remainder)
round = _by(np.round)
sign = _by(np.sign)
signbit = _by(np.signbit)
sin = _by(np.sin)
sinh = _by(np.sinh)
sqrt = _by(np.sqrt)
square = _by(np.square)
subtract = _by(np.subtract)
tan = _by(np.tan)
tanh = _by(np.tanh)
trunc = _by(np.trunc)


def clip(array: Array, /, min: Any = None, max: Any = None) -> Array:
    """Return the elements, none below `min` and none above `max`."""
    return elementwise(np.clip, [array, min, max])  # type: ignore[no-any-return]


def astype(array: Array, dtype: DTypeLike, /, *, copy: bool = True, device: Any = None) -> Array:
    """Return the array with elements of another type. Local."""
    return array.astype(dtype, copy=copy)


def result_type(*arrays: Any) -> np.dtype[Any]:
    """Return the type of the elements that an operation on these arrays, types and numbers gives. Local."""
    return np.result_type(*(np.empty(0, each.dtype) if isinstance(each, Array) else each for each in arrays))


def can_cast(source: Any, target: DTypeLike, /) -> bool:
    """Return whether elements of one type become another without loss. Local."""
    return np.can_cast(source.dtype if isinstance(source, Array) else source, target)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a type is of a kind, such as ``"real floating"``. Local."""
    return bool(np.isdtype(dtype, kind))


def finfo(dtype: Any, /) -> Any:
    """Return the limits of a type of floating-point numbers. Local."""
    return np.finfo(dtype.dtype if isinstance(dtype, Array) else dtype)


def iinfo(dtype: Any, /) -> Any:
    """Return the limits of a type of integers. Local."""
    return np.iinfo(dtype.dtype if isinstance(dtype, Array) else dtype)


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Return the arrays in their common shape."""
    shape, _ = common_map(arrays)
    return [broadcast_to(each, shape) for each in arrays]


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Return the coordinates of the points of a grid, from those along each axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}; hint: 'xy' or 'ij'")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[0], order[1] = 1, 0
    shape = [0] * len(arrays)
    for each, d in zip(arrays, order, strict=True):
        shape[d] = each.shape[0]
    lines = [
        each[tuple(slice(None) if k == d else None for k in range(len(arrays)))]
        for each, d in zip(arrays, order, strict=True)
    ]
    return [broadcast_to(each, shape).copy() for each in lines]


def take(array: Array, indices: ArrayLike | Array, /, *, axis: int | None = None) -> Array:
    """Return the parts of the array at a list of indices along an axis.

    Parameters
    ----------
    array
        The array.
    indices
        Integers, the same on all ranks, or a distributed array.
    axis
        The axis, which a one-dimensional array need not name.

    """
    if axis is None and array.ndim != 1:
        raise ValueError(f"axis= must be given: the array has {array.ndim} axes")
    (d,) = normalized(0 if axis is None else axis, array.ndim)
    if array.ndim == 1 and isinstance(indices, Array) and not indices.map.everywhere:
        return array[indices]
    chosen = indices.agg_all() if isinstance(indices, Array) else np.asarray(indices, np.intp)
    if chosen.ndim != 1:
        shape = (*array.shape[:d], *chosen.shape, *array.shape[d + 1 :])
        return reshape(take(array, chosen.reshape(-1), axis=d), shape)
    outside = chosen[(chosen < -array.shape[d]) | (chosen >= array.shape[d])]
    if outside.size:
        raise IndexError(f"index {outside.flat[0]} is out of range for axis {d} of length {array.shape[d]}")
    what = f"take of {chosen.size} indices ({zlib.crc32(np.ascontiguousarray(chosen).tobytes()):08x})"
    return along(what, array, d, lambda lines: np.take(lines, chosen, axis=d))


def take_along_axis(array: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Return, for each line along an axis, its elements at the indices that the same line of `indices` has."""
    (d,) = normalized(axis, array.ndim)
    if indices.ndim != array.ndim:
        raise ValueError(f"the indices have {indices.ndim} axes, but the array {array.ndim}")
    common = np.broadcast_shapes(*([n for k, n in enumerate(each.shape) if k != d] for each in (array, indices)))
    wide, places = (broadcast_to(each, (*common[:d], each.shape[d], *common[d:])) for each in (array, indices))
    map = wide.map.without_overlap().undivided(d)
    lines, at = wide.remap(map), places.remap(map)
    local = np.take_along_axis(lines.local, at.local, d) if map.cell() is not None else at.local.astype(array.dtype)
    return Array(places.shape, map, local)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Return whether elements of `x1` are among those of `x2`, which every rank gets whole."""
    among = x2.agg_all() if isinstance(x2, Array) else x2
    return elementwise(lambda x: np.isin(x, among, invert=invert), [x1])  # type: ignore[no-any-return]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape of arrays of these shapes. Local."""
    return np.broadcast_shapes(*shapes)


def repeat(array: Array, repeats: int, /, *, axis: int | None = None) -> Array:
    """Return the array with each element repeated along an axis."""
    if axis is None and array.ndim != 1:
        return repeat(reshape(array, (-1,)), repeats, axis=0)
    (d,) = normalized(0 if axis is None else axis, array.ndim)
    return along(f"repeat ({repeats=})", array, d, lambda lines: np.repeat(lines, repeats, axis=d))


def tile(array: Array, repetitions: Sequence[int], /) -> Array:
    """Return the array laid side by side, so many times along each axis."""
    ndim = max(array.ndim, len(repetitions))
    made = array[(*[None] * (ndim - array.ndim), ...)] if ndim > array.ndim else array
    for d, times in enumerate((*[1] * (ndim - len(repetitions)), *repetitions)):
        made = concat([made] * times, axis=d) if times else made[(*[slice(None)] * d, slice(0))]
    return made.copy() if made is array else made


def searchsorted(array: Array, values: Array, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    """Return where each of `values` would be put into a sorted array of one axis, which every rank gets whole."""
    order = None if sorter is None else sorter.agg_all()
    line = array.agg_all()
    return elementwise(lambda x: np.searchsorted(line, x, side, order), [values])  # type: ignore[no-any-return,call-overload]
