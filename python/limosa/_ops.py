"""Reductions: their names, what MPI has for them, and how they act on arrays and on other values.

The operand of the lower rank is always the left one.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias
from zlib import crc32

import numpy as np
from mpi4py import MPI

from limosa import errors

Function: TypeAlias = Callable[[Any, Any], Any]
OpName: TypeAlias = Literal[
    "sum", "prod", "max", "min", "land", "lor", "lxor", "band", "bor", "bxor", "maxloc", "minloc"
]

_INTEGERS = "bhilqpBHILQP"
_FLOATS = "fdg"
_COMPLEX = "FDG"


class Op:
    """A reduction, for ``op=`` of `Comm.reduce`, `Comm.allreduce`, `Comm.scan` and `Comm.exscan`.

    The usual ones have names (``op="max"``) and constants (``op=limosa.MAX``). NumPy's functions such as
    `numpy.maximum` are recognised, and any other function of two values will do. It is wrapped in this class only to
    say that it is commutative.

    Parameters
    ----------
    function
        Gives ``a + b``, or what takes its place, for the values `a` of lower and `b` of higher ranks. It must be
        associative.
    commutative
        Whether ``function(a, b)`` equals ``function(b, a)``. Then large values are combined in the order that is
        fastest for the root.
    name
        What error messages call it.

    Examples
    --------
    >>> import limosa
    >>> longest = limosa.Op(lambda a, b: a if len(a) >= len(b) else b, commutative=True)
    >>> limosa.world.allreduce("word", op=longest)
    'word'

    """

    def __init__(self, function: Function, *, commutative: bool = False, name: str = "") -> None:
        if not callable(function):
            raise errors.BY_CLASS["OP"](f"{function!r} is not a function of two values")
        self.function = function
        self.commutative = commutative
        self.name = name or "a function"
        self.ufunc: Any = None
        """What it is for arrays, if it has a name; takes an array for the result."""
        self._native: MPI.Op | None = None
        self._types = ""
        self.digest = 0
        """Equal for equal reductions; 0 for functions, which cannot be compared."""

    def __repr__(self) -> str:
        return f"<limosa.Op {self.name}>"

    def __call__(self, a: Any, b: Any) -> Any:
        """Reduce two values."""
        return self.function(a, b)

    def native(self, dtype: np.dtype[Any]) -> MPI.Op | None:
        """Give MPI's reduction for arrays of a dtype, if it has one that does what NumPy would do."""
        return self._native if dtype.char in self._types and dtype.isnative else None


def _named(name: str, native: MPI.Op, types: str, arrays: Any, objects: Function) -> Op:
    def function(a: Any, b: Any) -> Any:
        if isinstance(a, (np.ndarray, np.generic)) or isinstance(b, (np.ndarray, np.generic)):
            result = arrays(a, b)
            kind = np.result_type(a, b)
            return result if result.dtype == kind else result.astype(kind)
        return objects(a, b)

    made = Op(function, commutative=True, name=name)
    made._native, made._types, made.digest, made.ufunc = native, types, crc32(name.encode()), arrays
    return made


def _located(better: Function) -> Function:
    """Give the reduction of pairs (value, location) to the better value, of equal ones to the lower location."""

    def function(a: Any, b: Any) -> Any:
        try:
            (x, i), (y, j) = a, b
        except (TypeError, ValueError):
            raise TypeError(f"maxloc and minloc reduce pairs (value, location), not {a!r} and {b!r}") from None
        if any(isinstance(part, np.ndarray) for part in (x, i, y, j)):
            first = better(x, y) | ((x == y) & (np.asarray(i) <= np.asarray(j)))
            return np.where(first, x, y), np.where(first, i, j)
        return (x, i) if better(x, y) or (x == y and i <= j) else (y, j)

    return function


_NUMBERS = _INTEGERS + _FLOATS + _COMPLEX

SUM: Final = _named("sum", MPI.SUM, _NUMBERS, np.add, operator.add)
PROD: Final = _named("prod", MPI.PROD, _NUMBERS, np.multiply, operator.mul)
MAX: Final = _named("max", MPI.MAX, _INTEGERS + _FLOATS, np.maximum, builtins.max)
MIN: Final = _named("min", MPI.MIN, _INTEGERS + _FLOATS, np.minimum, builtins.min)
LAND: Final = _named("land", MPI.LAND, _INTEGERS + "?", np.logical_and, lambda a, b: bool(a and b))
LOR: Final = _named("lor", MPI.LOR, _INTEGERS + "?", np.logical_or, lambda a, b: bool(a or b))
LXOR: Final = _named("lxor", MPI.LXOR, _INTEGERS + "?", np.logical_xor, lambda a, b: bool(a) != bool(b))
BAND: Final = _named("band", MPI.BAND, _INTEGERS, np.bitwise_and, operator.and_)
BOR: Final = _named("bor", MPI.BOR, _INTEGERS, np.bitwise_or, operator.or_)
BXOR: Final = _named("bxor", MPI.BXOR, _INTEGERS, np.bitwise_xor, operator.xor)
MAXLOC: Final = Op(_located(operator.gt), commutative=True, name="maxloc")
MINLOC: Final = Op(_located(operator.lt), commutative=True, name="minloc")

NAMES: Final[dict[str, Op]] = {
    op.name: op for op in (SUM, PROD, MAX, MIN, LAND, LOR, LXOR, BAND, BOR, BXOR, MAXLOC, MINLOC)
}
for _op in (MAXLOC, MINLOC):
    _op.digest = crc32(_op.name.encode())

KNOWN: dict[Any, Op] = {
    np.add: SUM,
    np.multiply: PROD,
    np.maximum: MAX,
    np.minimum: MIN,
    np.logical_and: LAND,
    np.logical_or: LOR,
    np.logical_xor: LXOR,
    np.bitwise_and: BAND,
    np.bitwise_or: BOR,
    np.bitwise_xor: BXOR,
    operator.add: SUM,
    operator.mul: PROD,
    builtins.max: MAX,
    builtins.min: MIN,
    builtins.sum: SUM,
    operator.and_: BAND,
    operator.or_: BOR,
    operator.xor: BXOR,
}


def op_of(op: str | Op | Function) -> Op:
    """Give the reduction that ``op=`` names.

    Raises
    ------
    limosa.errors.OpError
        If there is none of this name, or it is no function.

    """
    if type(op) is Op:
        return op
    if isinstance(op, str):
        try:
            return NAMES[op]
        except KeyError:
            raise errors.BY_CLASS["OP"](
                f"there is no reduction {op!r}; hint: {', '.join(NAMES)}, or a function of two values"
            ) from None
    if isinstance(op, MPI.Op):
        found = next((known for name, known in NAMES.items() if op == getattr(MPI, name.upper())), None)
    else:
        try:
            found = KNOWN.get(op)
        except TypeError:  # not hashable
            found = None
    return found or Op(op, name=getattr(op, "__name__", ""))
