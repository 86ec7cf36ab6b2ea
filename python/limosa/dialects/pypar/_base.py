"""What all of pypar's functions stand on: the communicator, constants, argument checks, and the three kinds of data.

pypar sorts data into three *protocols*: ``array`` (NumPy arrays of numbers, sent as they lie in memory), ``string``
(text and bytes) and ``vanilla`` (everything else, pickled).
"""

import dis
import operator
import sys
import warnings

import numpy as np
from mpi4py import MPI

from limosa.dialects._wire import NUMBER_TYPES, Channel

__all__ = [
    "BAND",
    "BOR",
    "BXOR",
    "LAND",
    "LOR",
    "LXOR",
    "MAX",
    "MIN",
    "PROD",
    "SUM",
    "any_source",
    "any_tag",
    "control_data_max_size",
    "control_sep",
    "control_tag",
    "default_tag",
    "max_tag",
]

comm = MPI.COMM_WORLD
channel = Channel(comm)
number_of_ranks = comm.Get_size()  # kept, because scripts ask for them after finalize() too
own_rank = comm.Get_rank()

default_tag = 1
control_tag = 13849
control_sep = ":"
control_data_max_size = 64
max_tag = int(comm.Get_attr(MPI.TAG_UB) or 32767)
any_tag = MPI.ANY_TAG
any_source = MPI.ANY_SOURCE

MAX, MIN, SUM, PROD, LAND, BAND, LOR, BOR, LXOR, BXOR = range(1, 11)
OPERATIONS = {
    MAX: MPI.MAX,
    MIN: MPI.MIN,
    SUM: MPI.SUM,
    PROD: MPI.PROD,
    LAND: MPI.LAND,
    BAND: MPI.BAND,
    LOR: MPI.LOR,
    BOR: MPI.BOR,
    LXOR: MPI.LXOR,
    BXOR: MPI.BXOR,
}

TEXT_TYPES = (str, bytes, bytearray)


def is_array(x: object) -> bool:
    """Whether x travels by the array protocol: a NumPy array itself (not a subclass) of numbers."""
    return type(x) is np.ndarray and x.dtype in NUMBER_TYPES


def to_bytes(x: object) -> bytes | bytearray:
    """Text as UTF-8; bytes as they are."""
    if isinstance(x, str):
        return x.encode()
    if isinstance(x, bytes | bytearray):
        return x
    raise TypeError(f"pypar: a string is needed here (str, bytes or bytearray), not {type(x).__name__}")


def check_rank(value: object, what: str) -> None:
    """Refuse what is no integer (NumPy's integers are welcome)."""
    if type(value) is not int:
        try:
            operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise AssertionError(f"{what} id ({value!r}) must be an integer") from None


def check_tag(tag: object) -> None:
    """Refuse the tag that pypar keeps for itself, and what is no integer."""
    if tag == control_tag:
        raise AssertionError(f"tag {control_tag} is reserved by pypar - please use another")
    check_rank(tag, "Tag")


def check_operation(op: object) -> MPI.Op:
    """Give the MPI operation for one of pypar's numbers."""
    try:
        return OPERATIONS[op]  # type: ignore[index]
    except (KeyError, TypeError):
        raise RuntimeError(
            f"pypar: operation {op!r} is unknown or not implemented; there are MAX MIN SUM PROD LAND BAND LOR BOR LXOR "
            "BXOR"
        ) from None


def warn_of_string(function: str, buffer: object) -> None:
    """Warn the caller of a function that was to fill a string, if it makes no use of what the function gives.

    pypar wrote into the string; strings of Python 3 cannot be changed.
    """
    if type(buffer) not in {str, bytes}:
        return
    caller = sys._getframe(2)
    after = (one for one in dis.get_instructions(caller.f_code) if one.offset > caller.f_lasti)
    following = next((one.opname for one in after if one.opname not in {"CACHE", "PRECALL"}), "")
    if following == "POP_TOP":
        warnings.warn(
            f"pypar.{function}: the buffer is a string, which cannot be filled; use what is returned, or pass "
            "a bytearray",
            stacklevel=3,
        )
