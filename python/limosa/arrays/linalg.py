"""Linear algebra of distributed arrays: products, norms, diagonals, and decompositions (`_decompositions`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from limosa.arrays._array import Array
from limosa.arrays._decompositions import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    matrix_power,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from limosa.arrays._elementwise import elementwise
from limosa.arrays._functions import broadcast_arrays
from limosa.arrays._linalg import matmul, tensordot, vecdot
from limosa.arrays._reductions import max as _max
from limosa.arrays._reductions import min as _min
from limosa.arrays._reductions import sum as _sum
from limosa.arrays._shaping import matrix_transpose, stack, unstack

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three elements, which lie along an axis."""
    x, y = broadcast_arrays(x1, x2)
    axis = axis % x.ndim if -x.ndim <= axis < x.ndim else axis
    if not 0 <= axis < x.ndim or x1.shape[axis - x.ndim] != 3 or x2.shape[axis - x.ndim] != 3:
        raise ValueError(f"cross takes vectors of 3 elements; axis {axis} of the shapes {x1.shape}, {x2.shape} is not")
    (a, b, c), (d, e, f) = unstack(x, axis=axis), unstack(y, axis=axis)
    return stack([b * f - c * e, c * d - a * f, a * e - b * d], axis=axis)


def outer(x1: Array, x2: Array, /) -> Array:
    """Return the matrix of the products of the elements of two arrays of one axis."""
    for each in (x1, x2):
        if each.ndim != 1:
            raise ValueError(f"outer takes arrays of one axis; one has the shape {each.shape}")
    return elementwise(np.multiply, [x1[:, None], x2[None, :]])  # type: ignore[no-any-return]


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return a diagonal of the last two axes, as the last axis; `offset` counts to the right."""
    rows, columns = _matrix(x)
    row, column = max(-offset, 0), max(offset, 0)
    length = max(min(rows - row, columns - column), 0)
    chosen = x[..., row : row + length, column : column + length]
    *_, i, j = chosen.global_index()
    local = np.where(i[:, None] == j[None, :], chosen.local, np.zeros((), x.dtype))
    return _sum(Array(chosen.shape, chosen.map, local), axis=-1, dtype=x.dtype)  # of one element that is not zero


def trace(x: Array, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the sum of a diagonal of the last two axes."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Array, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Return the norm of the elements, or along axes: the sum of their powers `ord`, to the power of 1 / `ord`."""
    size = elementwise(np.abs, [x])
    if ord == np.inf:
        return _max(size, axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return _min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return _sum(elementwise(lambda v: (v != 0).astype(v.dtype), [size]), axis=axis, keepdims=keepdims)
    power = _sum(elementwise(lambda v: v**ord, [size]), axis=axis, keepdims=keepdims)
    return elementwise(lambda v: np.asarray(v ** (1 / ord), v.dtype), [power])  # type: ignore[no-any-return]


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return the norm of the matrices in the last two axes: ``"fro"``, ``"nuc"``, 1, -1, 2, -2, inf or -inf."""
    _matrix(x)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        made = (_sum if ord == "nuc" else _max if ord == 2 else _min)(values, axis=-1)
        return made[..., None, None] if keepdims else made
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"{ord!r} is no norm of matrices; hint: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    along = -2 if abs(ord) == 1 else -1
    sums = _sum(elementwise(np.abs, [x]), axis=along, keepdims=True)
    empty = 0 in sums.shape[-2:] and ord > 0
    return (_sum if empty else _max if ord > 0 else _min)(sums, axis=(-2, -1), keepdims=keepdims)


def _matrix(x: Array) -> tuple[int, int]:
    if x.ndim < 2:
        raise ValueError(f"a matrix has two axes; this array has the shape {x.shape}")
    return x.shape[-2], x.shape[-1]
