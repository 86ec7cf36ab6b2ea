"""``Scientific.N``: NumPy under the names that Numeric, numarray and ``numpy.oldnumeric`` had for the same things.

All of NumPy is here, and for scripts from before it: type codes as names (``N.Float``, ``N.Int``), a type code as the
second argument of ``zeros`` and ``ones`` (which NumPy takes as well), ``NewAxis``, ``ArrayType`` and a few functions
under their names of then.
"""

from __future__ import annotations

from typing import Any

import numpy
from numpy import *  # noqa: F403

# As attributes; "from Scientific.N import *" leaves the built-ins alone.
from numpy import abs, all, any, max, min, round, sum  # noqa: F401

__all__ = list(numpy.__all__)

package = "NumPy"

# Type codes: letters, as a receive without a buffer needs them. "N.Float" was 64 bits wide.
Int, Int0, Int8, Int16, Int32, Int64 = "l", "b", "b", "h", "i", "l"
UnsignedInt, UnsignedInt8, UnsignedInt16, UnsignedInt32, UInt, UInt8, UInt16, UInt32 = (
    "L",
    "B",
    "H",
    "I",
    "L",
    "B",
    "H",
    "I",
)
Float, Float0, Float8, Float16, Float32, Float64 = "d", "f", "f", "f", "f", "d"
Complex, Complex0, Complex8, Complex16, Complex32, Complex64 = "D", "F", "F", "F", "F", "D"
Character, PyObject = "c", "O"

NewAxis = numpy.newaxis
ArrayType = arraytype = array_type = numpy.ndarray
Error = Exception

arrayrange, cumproduct, product, alltrue, sometrue = numpy.arange, numpy.cumprod, numpy.prod, numpy.all, numpy.any


def zeros_st(shape: Any, other: Any) -> numpy.ndarray[Any, Any]:
    """Zeros of the shape given and the type of another array."""
    return numpy.zeros(shape, other.dtype)


def array_constructor(*arguments: Any, **options: Any) -> numpy.ndarray[Any, Any]:
    """Array as ``array`` makes it."""
    return numpy.array(*arguments, **options)
