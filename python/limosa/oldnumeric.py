"""What scripts written for Numeric expect, on NumPy: names that NumPy has dropped, typecodes, and defaults that differ.

``limosa modernize`` makes scripts import this module instead of Numeric, numarray and ``numpy.oldnumeric``. Everything
of NumPy is here too. One-letter typecodes of Numeric that NumPy does not know, or knows as something else, are
translated: ``'1'`` (8 bits), ``'s'`` (16 bits), ``'w'`` and ``'u'`` (16 and 32 bits without sign). ``'b'`` had no sign
in Numeric; here it means NumPy's ``int8``, as ``Int8`` does.
"""

from typing import Any

import numpy

np: Any = numpy  # without its annotations: arguments here are whatever it takes

globals().update({name: getattr(np, name) for name in np.__all__})  # what NumPy has; what differs follows

Character = "c"
Int8, Int16, Int32, Int64, Int = "b", "h", "i", "q", "l"
UnsignedInt8, UnsignedInt16, UnsignedInt32, UInt8, UInt16, UInt32 = "B", "H", "I", "B", "H", "I"
Float0 = Float8 = Float16 = Float32 = "f"
Float64 = Float = "d"
Complex0 = Complex8 = Complex16 = Complex32 = "F"
Complex64 = Complex = "D"
PyObject = "O"
typecodes = {"Character": "c", "Integer": "bhilq", "UnsignedInteger": "BHI", "Float": "fd", "Complex": "FD"}

ArrayType = np.ndarray
LinearAlgebra = np.linalg
NewAxis = np.newaxis
matrixmultiply = np.dot
innerproduct = np.inner
outerproduct = np.outer

_TRANSLATED = {"1": "b", "s": "h", "w": "H", "u": "I"}


def _dtype(typecode: Any) -> Any:
    return _TRANSLATED.get(typecode, typecode) if isinstance(typecode, str) else typecode


def array(sequence: Any, typecode: Any = None, copy: int = 1, savespace: int = 0, dtype: Any = None) -> Any:
    """As `numpy.array`, with Numeric's arguments."""
    return np.array(sequence, _dtype(typecode if dtype is None else dtype), copy=bool(copy) or None)


def asarray(sequence: Any, typecode: Any = None, savespace: int = 0, dtype: Any = None) -> Any:
    """As `numpy.asarray`, with Numeric's arguments."""
    return np.asarray(sequence, _dtype(typecode if dtype is None else dtype))


def zeros(shape: Any, typecode: Any = "l", savespace: int = 0, dtype: Any = None) -> Any:
    """As `numpy.zeros`; of integers unless another type is asked for."""
    return np.zeros(shape, _dtype(typecode if dtype is None else dtype))


def ones(shape: Any, typecode: Any = "l", savespace: int = 0, dtype: Any = None) -> Any:
    """As `numpy.ones`; of integers unless another type is asked for."""
    return np.ones(shape, _dtype(typecode if dtype is None else dtype))


def identity(n: int, typecode: Any = "l", dtype: Any = None) -> Any:
    """As `numpy.identity`; of integers unless another type is asked for."""
    return np.identity(n, _dtype(typecode if dtype is None else dtype))


def arange(start: Any, stop: Any = None, step: Any = 1, typecode: Any = None, dtype: Any = None) -> Any:
    """As `numpy.arange`, with Numeric's arguments."""
    start, stop = (0, start) if stop is None else (start, stop)
    return np.arange(start, stop, step, _dtype(typecode if dtype is None else dtype))


arrayrange = arange


def fromstring(text: Any, typecode: Any = "l", dtype: Any = None) -> Any:
    """Give the array whose memory a string (or bytes) is; a copy that can be written to."""
    raw = text.encode("latin-1") if isinstance(text, str) else text
    return np.frombuffer(raw, _dtype(typecode if dtype is None else dtype)).copy()


def sum(a: Any, axis: int | None = 0) -> Any:
    """As `numpy.sum`, along the first axis unless another is named."""
    return np.sum(a, axis)


def product(a: Any, axis: int | None = 0) -> Any:
    """As `numpy.prod`, along the first axis unless another is named."""
    return np.prod(a, axis)


def cumsum(a: Any, axis: int | None = 0) -> Any:
    """As `numpy.cumsum`, along the first axis unless another is named."""
    return np.cumsum(a, axis)


def average(a: Any, axis: int | None = 0, weights: Any = None, returned: int = 0) -> Any:
    """As `numpy.average`, along the first axis unless another is named."""
    return np.average(a, axis, weights, returned=bool(returned))


def alltrue(a: Any, axis: int | None = 0) -> Any:
    """As `numpy.all`, along the first axis unless another is named."""
    return np.all(a, axis)


def sometrue(a: Any, axis: int | None = 0) -> Any:
    """As `numpy.any`, along the first axis unless another is named."""
    return np.any(a, axis)


def take(a: Any, indices: Any, axis: int | None = 0) -> Any:
    """As `numpy.take`, along the first axis unless another is named."""
    return np.take(a, indices, axis)


def argmax(a: Any, axis: int | None = -1) -> Any:
    """As `numpy.argmax`, along the last axis unless another is named."""
    return np.argmax(a, axis)


def argmin(a: Any, axis: int | None = -1) -> Any:
    """As `numpy.argmin`, along the last axis unless another is named."""
    return np.argmin(a, axis)


__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in {"Any", "np", "numpy"})  # noqa: PLE0605
