"""Distributed arrays: NumPy's functions and operators on arrays whose elements are dealt to the ranks.

::

    import limosa.arrays as la

    x = la.random.uniform((4000, 4000))              # rows in blocks, one block for each rank
    y = la.sqrt(x) + 2 * x.T                         # moved where the maps differ
    print(float(la.max(y)))                          # on every rank

    columns = la.Map((1, limosa.world.size))
    z = y.remap(columns)                             # one all-to-all
    z.local[...] *= 2                                # this rank's part, a NumPy array
    whole = z.agg()                                  # on rank 0

The functions are those of the Python array API standard, and what parallel programs need beside them: maps with blocks,
cycles and overlaps, `Array.local`, `Array.agg`, `Array.synch`. All ranks of the communicator call them together, but
for those whose description says *Local*. See docs/arrays.md.
"""

from __future__ import annotations

from typing import Any as _Any

import numpy as _np

from limosa.arrays import fft, linalg, random
from limosa.arrays._along import (
    argsort,
    cumulative_prod,
    cumulative_sum,
    diff,
    sort,
)
from limosa.arrays._array import (
    Array,
)
from limosa.arrays._creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_function,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    scatter,
    tril,
    triu,
    zeros,
    zeros_like,
)
from limosa.arrays._disks import (
    load_hdf5,
    memmap,
    save_hdf5,
)
from limosa.arrays._files import (
    load,
    save,
)
from limosa.arrays._functions import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    astype,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    broadcast_arrays,
    broadcast_shapes,
    can_cast,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    finfo,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    iinfo,
    imag,
    isdtype,
    isfinite,
    isin,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    meshgrid,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    repeat,
    result_type,
    round,
    searchsorted,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    take,
    take_along_axis,
    tan,
    tanh,
    tile,
    trunc,
)
from limosa.arrays._indexing import (
    broadcast_to,
)
from limosa.arrays._linalg import (
    matmul,
    tensordot,
    vecdot,
)
from limosa.arrays._map import (
    Map,
)
from limosa.arrays._namespace import Info
from limosa.arrays._namespace import missing as _missing
from limosa.arrays._plot import plot_map
from limosa.arrays._reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from limosa.arrays._searching import (
    nonzero,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from limosa.arrays._shaping import (
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    reshape,
    roll,
    squeeze,
    stack,
    unstack,
    where,
)

__array_api_version__ = "2024.12"
__array_namespace_info__ = Info

bool = _np.bool
complex64 = _np.complex64
complex128 = _np.complex128
float32 = _np.float32
float64 = _np.float64
int8 = _np.int8
int16 = _np.int16
int32 = _np.int32
int64 = _np.int64
uint8 = _np.uint8
uint16 = _np.uint16
uint32 = _np.uint32
uint64 = _np.uint64
e = _np.e
inf = _np.inf
nan = _np.nan
newaxis = _np.newaxis
pi = _np.pi

__all__ = [
    "Array",
    "Map",
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "complex64",
    "complex128",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "fft",
    "finfo",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_function",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "load",
    "load_hdf5",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "memmap",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "plot_map",
    "positive",
    "pow",
    "prod",
    "random",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "save",
    "save_hdf5",
    "scatter",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> _Any:
    return _missing(f"{__name__}.{name}")
