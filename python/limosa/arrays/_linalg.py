"""Products of distributed matrices and vectors. Each rank gets the rows and columns that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from limosa.arrays._array import Array, check_comm
from limosa.arrays._elementwise import elementwise, fetched
from limosa.arrays._indexing import with_axes
from limosa.arrays._map import Map
from limosa.arrays._move import Layout, Part, Wanted
from limosa.arrays._pieces import Piece, all_of
from limosa.arrays._reductions import sum as _sum


def matmul(x1: Any, x2: Any, /) -> Array:
    """Return the product of two matrices, a matrix and a vector, or two vectors, as `numpy.matmul` does.

    Parameters
    ----------
    x1, x2
        Distributed arrays, or one of them a NumPy array that is the same on all ranks. Of more than two axes, the last
        two are the matrices', and the others are broadcast.

    Returns
    -------
    Array
        Dealt as `x1` if that has as many axes, else the first axis in blocks.

    """
    comm = (x1 if isinstance(x1, Array) else x2).comm
    a, b = (each if isinstance(each, Array) else _replicated(np.asarray(each), comm) for each in (x1, x2))
    check_comm(b, a.map)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul does not take scalars; hint: x * y")
    vector = a.ndim == 1, b.ndim == 1
    if all(vector) and a.shape == b.shape:
        return _sum_of(elementwise(np.multiply, [a, b]))
    a = with_axes(a, [None, 0]) if vector[0] else a
    b = with_axes(b, [0, None]) if vector[1] else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matrices of the shapes {x1.shape} and {x2.shape} cannot be multiplied")
    made = _product(a, b)
    key: list[Any] = [slice(None)] * made.ndim
    for flag, axis in zip(vector, (-2, -1), strict=True):
        if flag:
            key[axis] = 0
    return made[tuple(key)] if any(vector) else made


def _replicated(values: Any, comm: Any) -> Array:
    return Array(values.shape, Map.replicated(values.ndim, comm), values)


def _product(a: Array, b: Array) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    if a.map.everywhere and b.map.everywhere:
        map = a.map if a.ndim == len(shape) else b.map
    elif a.ndim == len(shape) and not a.map.everywhere:
        map = a.map.without_overlap()
    else:
        map = Map.default(len(shape), a.comm)
    layout = Layout(map, shape)

    def wanted(lengths: tuple[int, ...], whole: int, rank: int) -> Part:
        part = layout.part(rank)
        if part is None:
            return None
        ndim = len(lengths)
        mine: Sequence[Sequence[Piece]] = part[len(part) - ndim :]
        return [
            all_of(n) if d == ndim + whole or (d < ndim - 2 and n != shape[d - ndim]) else pieces
            for d, (n, pieces) in enumerate(zip(lengths, mine, strict=True))
        ]

    what = f"matmul {a.shape} @ {b.shape}"
    left = fetched(what, a, Wanted(("left", layout.key), partial(wanted, a.shape, -1)))
    right = fetched(what, b, Wanted(("right", layout.key), partial(wanted, b.shape, -2)))
    if map.cell() is None:
        return Array(shape, map, np.empty([0] * len(shape), np.result_type(a.dtype, b.dtype)))
    return Array(shape, map, np.matmul(left, right))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the sums of products along an axis, the first factor conjugated."""
    return _sum_of(elementwise(lambda x, y: np.conj(x) * y, [x1, x2]), axis)


def _sum_of(products: Array, axis: int | None = None) -> Array:
    return _sum(products, axis=axis, dtype=products.dtype)


def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Return the sum of products over pairs of axes, as `numpy.tensordot` does."""
    from limosa.arrays._shaping import permute_dims, reshape

    if isinstance(axes, int):
        ours: list[int] = list(range(x1.ndim - axes, x1.ndim))
        theirs: list[int] = list(range(axes))
    else:
        ours, theirs = [d % x1.ndim for d in axes[0]], [d % x2.ndim for d in axes[1]]
    if [x1.shape[d] for d in ours] != [x2.shape[d] for d in theirs]:
        raise ValueError(f"the axes {ours} of {x1.shape} and {theirs} of {x2.shape} have different lengths")
    left = [d for d in range(x1.ndim) if d not in ours]
    right = [d for d in range(x2.ndim) if d not in theirs]
    inner = int(np.prod([x1.shape[d] for d in ours], dtype=np.intp))
    rows, columns = [x1.shape[d] for d in left], [x2.shape[d] for d in right]
    a = reshape(permute_dims(x1, [*left, *ours]), (int(np.prod(rows, dtype=np.intp)), inner))
    b = reshape(permute_dims(x2, [*theirs, *right]), (inner, int(np.prod(columns, dtype=np.intp))))
    return reshape(matmul(a, b), (*rows, *columns))
