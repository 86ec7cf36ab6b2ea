"""Reductions of any objects, with MPI's operations or any function of two arguments.

Ranks first tell each other what they have in one small collective of `wire.BLOCK` bytes per rank; what fits travels in
it. Then every rank knows what all will do:

- small objects and one of MPI's operations: each rank folds the values by itself, from rank 0 upwards;
- large arrays of one form, and an operation that MPI has for their elements: MPI reduces them;
- anything else: the values are collected whole, and folded.

A function of the script is called on the root only, as pyMPI did, and what it raises is raised on every rank that waits
for a result.
"""

from __future__ import annotations

import operator as operators
import pickle
from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import Any

import numpy as np
from mpi4py import MPI

from limosa.dialects.pympi import wire

__all__ = ["OPERATIONS", "allreduce", "reduce", "scan"]

Function = Callable[[Any, Any], Any]


def _whole_or_each(of_arrays: Function, of_values: Function) -> Function:
    def combine(left: Any, right: Any) -> Any:
        if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
            return of_arrays(left, right)
        return of_values(left, right)

    return combine


# Elements, as NumPy's type characters, whose arrays MPI reduces itself.
_WHOLE = "bBhHiIlLqQ"
_REAL = _WHOLE + "fd"

# Of equal values the first stays, so that the lower rank is the one found.
_FUNCTIONS: list[tuple[MPI.Op, Function, str]] = [
    (MPI.MAX, _whole_or_each(np.maximum, lambda left, right: right if right > left else left), _REAL),
    (MPI.MIN, _whole_or_each(np.minimum, lambda left, right: right if right < left else left), _REAL),
    (MPI.SUM, operators.add, _REAL + "FD"),
    (MPI.PROD, operators.mul, _REAL + "FD"),
    (MPI.LAND, _whole_or_each(np.logical_and, lambda left, right: bool(left and right)), ""),
    (MPI.BAND, operators.and_, _WHOLE),
    (MPI.LOR, _whole_or_each(np.logical_or, lambda left, right: bool(left or right)), ""),
    (MPI.BOR, operators.or_, _WHOLE),
    (MPI.LXOR, _whole_or_each(np.logical_xor, lambda left, right: bool(left) != bool(right)), ""),
    (MPI.BXOR, operators.xor, _WHOLE),
    (MPI.MAXLOC, lambda left, right: right if right[0] > left[0] else left, ""),
    (MPI.MINLOC, lambda left, right: right if right[0] < left[0] else left, ""),
]

#: From the number a script uses for an operation to the operation, its function, and the array elements for which MPI
#: does it.
OPERATIONS = {op.handle: (op, function, elements) for op, function, elements in _FUNCTIONS}

_PAIRS = {
    float: (MPI.DOUBLE_INT, np.dtype([("value", "f8"), ("rank", "i4")], align=True)),
    int: (MPI.LONG_INT, np.dtype([("value", "i8"), ("rank", "i4")], align=True)),
}
_OF_PAIRS = (OPERATIONS[MPI.MINLOC.handle][1], OPERATIONS[MPI.MAXLOC.handle][1])
_LOCATED = (MPI.MINLOC, MPI.MAXLOC)
_NUMBERS = {float: np.dtype("f8"), int: np.dtype("i8")}


def _looked_up(operation: Any) -> tuple[MPI.Op | None, Function, str]:
    """MPI's operation or None, its function, and the array elements for which MPI does it."""
    if type(operation) is int and operation in OPERATIONS:
        return OPERATIONS[operation]
    if isinstance(operation, MPI.Op):
        operation = operation.handle
    if isinstance(operation, int):
        if operation not in OPERATIONS:
            raise ValueError(
                f"invalid or unsupported operation {operation}; use mpi.SUM, mpi.MAX ... or a function of two arguments"
            )
        return OPERATIONS[operation]
    if not callable(operation):
        raise TypeError("invalid reduction operator: use mpi.SUM, mpi.MAX ... or a function of two arguments")
    return None, operation, ""


def _native(comm: MPI.Intracomm, message: Any, op: MPI.Op, root: int, kind: type, how: str) -> Any:
    """Reduction of one machine number per rank, as ``type=float`` and ``type=int`` ask for."""
    if op in _LOCATED:
        datatype, element = _PAIRS[kind]
        mine = np.array((kind(message), comm.rank), element)
        result = np.empty((), element)
        pair = True
    else:
        datatype, pair = (MPI.DOUBLE if kind is float else MPI.INT64_T), False
        mine = np.array(kind(message), _NUMBERS[kind])
        result = np.empty((), _NUMBERS[kind])
    send, receive = (mine, 1, datatype), (result, 1, datatype)
    if how == "reduce":
        comm.Reduce(send, receive, op, root)
        if comm.rank != root:
            return None
    elif how == "allreduce":
        comm.Allreduce(send, receive, op)
    else:
        comm.Scan(send, receive, op)
    return result.item() if not pair else (kind(result["value"]), int(result["rank"]))


def _folded(function: Function, values: Sequence[Any], ground: Any) -> Any:
    return fold(function, values) if ground is None else fold(function, values, ground)


def _reduced(
    comm: MPI.Intracomm, rank: int, message: Any, operation: Any, root: int, ground: Any, kind: type | None, how: str
) -> Any:
    op, function, elements = _looked_up(operation)
    if op is None:
        return _by_function(comm, message, function, root, ground, how)
    if ground is None and (kind is float or kind is int):
        return _native(comm, message, op, root, kind, how)
    if function in _OF_PAIRS:
        message = (message, rank)

    first, rest, _ = wire.pack(message, wire.BLOCK)
    blocks = bytearray(wire.BLOCK * comm.size)
    comm.Allgather((first.ljust(wire.BLOCK), MPI.BYTE), (blocks, MPI.BYTE))
    if wire.are_whole(blocks):
        if how == "reduce" and rank != root:
            return None
        values = wire.unpack_whole(blocks)
        return _folded(function, values if how != "scan" else values[: rank + 1], ground)

    forms = {wire.form_of(blocks[start:]) for start in range(0, len(blocks), wire.BLOCK)}
    if len(forms) == 1 and ground is None and None not in forms and message.dtype.char in elements:
        send = message if message.flags.c_contiguous else message.copy()
        result = np.empty(send.shape, send.dtype) if how != "reduce" or rank == root else None
        if how == "reduce":
            comm.Reduce(send, result, op, root)
        elif how == "allreduce":
            comm.Allreduce(send, result, op)
        else:
            comm.Scan(send, result, op)
        return result
    pickled = rest if isinstance(rest, bytes) else pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    parcels = comm.gather(pickled, root) if how == "reduce" else comm.allgather(pickled)
    if parcels is None:
        return None
    if how == "scan":
        parcels = parcels[: rank + 1]
    return _folded(function, [pickle.loads(parcel) for parcel in parcels], ground)  # noqa: S301 - our own pickles


def _by_function(comm: MPI.Intracomm, message: Any, function: Function, root: int, ground: Any, how: str) -> Any:
    """Reduce with a function of the script, called on the root only."""
    values = comm.gather(message, root)
    if how == "reduce":
        return None if values is None else _folded(function, values, ground)
    outcomes: list[Any] = [None] * comm.size  # per rank: an exception or None, and the result
    if values is not None:
        try:
            if how == "allreduce":
                outcomes = [(None, _folded(function, values, ground))]
            else:
                outcomes = [(None, _folded(function, values[: rank + 1], ground)) for rank in range(comm.size)]
        except Exception as error:
            outcomes = [(error, None)] * comm.size
    failure, result = comm.bcast(outcomes[0], root) if how == "allreduce" else comm.scatter(outcomes, root)
    if failure is not None:
        raise failure
    return result


def reduce(
    comm: MPI.Intracomm, rank: int, message: Any, operation: Any, root: int, ground: Any, kind: type | None
) -> Any:
    """Result on the root, None elsewhere."""
    return _reduced(comm, rank, message, operation, root, ground, kind, "reduce")


def allreduce(
    comm: MPI.Intracomm, rank: int, message: Any, operation: Any, root: int, ground: Any, kind: type | None
) -> Any:
    """Result everywhere."""
    return _reduced(comm, rank, message, operation, root, ground, kind, "allreduce")


def scan(
    comm: MPI.Intracomm, rank: int, message: Any, operation: Any, root: int, ground: Any, kind: type | None
) -> Any:
    """Result of the ranks up to one's own."""
    return _reduced(comm, rank, message, operation, root, ground, kind, "scan")
