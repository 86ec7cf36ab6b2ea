"""Operations of all ranks: broadcast, scatter, gather, reduce, each for arrays as they lie in memory and for text."""

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy import ndarray

from limosa.dialects._wire import NUMBER_TYPES, Array, contiguous
from limosa.dialects.pypar._base import (
    OPERATIONS,
    TEXT_TYPES,
    channel,
    check_operation,
    check_rank,
    comm,
    is_array,
    number_of_ranks,
    own_rank,
    to_bytes,
    warn_of_string,
)

__all__ = [
    "bcast",
    "broadcast",
    "broadcast_array",
    "broadcast_string",
    "gather",
    "gather_array",
    "gather_string",
    "raw_gather",
    "raw_reduce",
    "raw_scatter",
    "reduce",
    "reduce_array",
    "scatter",
    "scatter_array",
    "scatter_string",
]

# --- pypar's functions in C
# --------------------------------------------------------------------------------------------


def broadcast_array(buffer: Array, root: int) -> None:
    """Broadcast the elements of an array in place; it has the same type and size on every rank."""
    if buffer.flags.c_contiguous:
        comm.Bcast(buffer, root)
    else:
        copy = np.ascontiguousarray(buffer)
        comm.Bcast(copy, root)
        buffer[...] = copy


def broadcast_string(buffer: bytearray, root: int) -> None:
    """Broadcast bytes in place; the bytearray is equally long on every rank."""
    if not isinstance(buffer, bytearray):
        raise TypeError(
            f"pypar: broadcast_string fills its buffer, so it must be a bytearray, not {type(buffer).__name__}; use "
            "broadcast()"
        )
    comm.Bcast(buffer, root)


def scatter_array(x: Array | None, buffer: Array, root: int) -> None:
    """Put the part of each rank in the root's `x` at the start of its array `buffer`.

    A part has ``x.size // size()`` elements, or as many as `buffer` on ranks that have no `x`.
    """
    count = buffer.size if x is None else x.size // number_of_ranks
    if count > buffer.size or (x is None and own_rank == root):
        raise RuntimeError(f"pypar: scatter of {count} elements to each rank does not fit a buffer of {buffer.size}")
    parts = contiguous(x).reshape(-1)[: count * number_of_ranks] if x is not None and own_rank == root else None
    into = contiguous(buffer)
    comm.Scatter(parts, into.reshape(-1)[:count], root)
    if into is not buffer:
        buffer[...] = into


def gather_array(x: Array, buffer: Array, root: int) -> None:
    """Put the arrays of all ranks into the root's `buffer`, in the order of ranks."""
    if own_rank != root:
        comm.Gather(contiguous(x), None, root)
        return
    if buffer.size != x.size * number_of_ranks:
        raise RuntimeError(
            f"pypar: gather of {x.size} elements from {number_of_ranks} ranks does not fill a buffer of {buffer.size}"
        )
    into = contiguous(buffer)
    comm.Gather(contiguous(x), into, root)
    if into is not buffer:
        buffer[...] = into


def reduce_array(x: Any, buffer: Array, op: int, root: int) -> None:
    """Combine the arrays of all ranks, element by element, into the root's `buffer`."""
    operation = check_operation(op)
    x = np.asarray(x)
    if own_rank != root:
        comm.Reduce(contiguous(x), None, operation, root)
        return
    if buffer.size != x.size:
        raise RuntimeError(
            f"pypar: reduce of {x.size} elements into a buffer of {buffer.size}; they must be equally long"
        )
    into = contiguous(buffer)
    comm.Reduce(MPI.IN_PLACE if x is buffer else contiguous(x), into, operation, root)
    if into is not buffer:
        buffer[...] = into


def scatter_string(x: str | bytes | bytearray, buffer: bytearray, root: int) -> None:
    """Fill the bytearray `buffer` of each rank with its part of the root's `x`."""
    buffer[:] = to_bytes(scatter(x, root))


def gather_string(x: str | bytes | bytearray, buffer: bytearray, root: int) -> None:
    """Put the strings of all ranks into the root's bytearray `buffer`, in the order of ranks."""
    joined = gather(x, root)
    if own_rank == root:
        buffer[:] = to_bytes(joined)


# --- the functions that scripts call
# -----------------------------------------------------------------------------------


def broadcast(buffer: Any, root: int = 0, vanilla: object = False, bypass: bool = False) -> Any:
    """Give what one rank has to all.

    Parameters
    ----------
    buffer
        On the root what is sent. An array must be an array of the same type and size on every rank, and is filled in
        place; otherwise what the other ranks pass does not matter.
    root
        Rank that has it.
    vanilla
        Pickle whatever it is; on all ranks or none.
    bypass
        Broadcast an array in place without any checks; gives None.

    Returns
    -------
    object
        For an array `buffer` itself, otherwise what the root passed.
    """
    if bypass:
        broadcast_array(buffer, root)
        return None
    if type(root) is not int:
        check_rank(root, "Root")
    if type(buffer) is ndarray and not vanilla and buffer.dtype in NUMBER_TYPES:
        if buffer.flags.c_contiguous:
            comm.Bcast(buffer, root)
        else:
            broadcast_array(buffer, root)
        return buffer
    if own_rank != root:
        warn_of_string("broadcast", buffer)
    value = channel.broadcast(buffer, root, vanilla)
    if type(buffer) is bytearray and type(value) is bytearray and own_rank != root:
        buffer[:] = value
        return buffer
    return value


def scatter(x: Any, root: int = 0, buffer: Any = None, vanilla: object = False) -> Any:
    """Cut what one rank has into equal parts, one for each rank; what is left over at the end is dropped.

    Parameters
    ----------
    x
        On the root, an array (cut along its first axis) or a string. Without `buffer`, an array of the same shape
        and type is needed on every rank; its values matter on the root only.
    root
        Rank that has it.
    buffer
        Array that is filled with the part.
    vanilla
        Without meaning, as in pypar.

    Returns
    -------
    array or string
        The part of this rank: `buffer` if that is given.

    Raises
    ------
    TypeError
        `x` is neither an array of numbers nor a string.
    """
    check_rank(root, "Root")
    warn_of_string("scatter", buffer)
    if type(x) in TEXT_TYPES:
        part = len(x) // number_of_ranks
        parts = [x[i * part : (i + 1) * part] for i in range(number_of_ranks)] if own_rank == root else None
        value = comm.scatter(parts, root)
        if type(buffer) is bytearray:
            buffer[:] = to_bytes(value)
            return buffer
        return value
    if not is_array(x) and (own_rank == root or not is_array(buffer)):
        raise _unsupported("scatter", x)
    if is_array(x):
        if x.ndim == 0:
            raise TypeError("pypar: scatter needs an array with at least one axis")
        rows = x.shape[0] // number_of_ranks
        if buffer is None:
            buffer = np.zeros((rows, *x.shape[1:]), x.dtype)
        x = x[: rows * number_of_ranks]
        _check_same_type("scatter", x, buffer)
    scatter_array(x if is_array(x) else None, buffer, root)
    return buffer


def gather(x: Any, root: int = 0, buffer: Any = None, vanilla: object = 0) -> Any:
    """Put what all ranks have behind each other, in the order of ranks, on one of them.

    Parameters
    ----------
    x
        An array, of the same shape and type on every rank, or a string.
    root
        Rank that gets it.
    buffer
        Array (or bytearray) that is filled, on the root.
    vanilla
        Without meaning, as in pypar.

    Returns
    -------
    array or string
        On the root, `buffer` or a new array whose first axis is that of `x` times the number of ranks; on the other
        ranks something of that form without meaning.

    Raises
    ------
    TypeError
        `x` is neither an array of numbers nor a string.
    """
    check_rank(root, "Root")
    if own_rank == root:
        warn_of_string("gather", buffer)
    if type(x) in TEXT_TYPES:
        parts = comm.gather(x, root)
        blank = " " if type(x) is str else b" "
        value = type(x)().join(parts) if parts is not None else type(x)(blank * (len(x) * number_of_ranks))
        if type(buffer) is bytearray and own_rank == root:
            buffer[:] = to_bytes(value)
        return value if buffer is None or (own_rank == root and type(buffer) is not bytearray) else buffer
    if not is_array(x):
        raise _unsupported("gather", x)
    if buffer is None:
        first, rest = (x.shape[0], x.shape[1:]) if x.ndim else (1, ())
        buffer = np.zeros((first * number_of_ranks, *rest), x.dtype)
    elif own_rank == root:
        _check_same_type("gather", x, buffer)
    gather_array(x, buffer, root)
    return buffer


def reduce(x: Any, op: int, root: int = 0, buffer: Any = None, vanilla: object = 0, bypass: bool = False) -> Any:
    """Combine arrays of all ranks, element by element, on one of them.

    Parameters
    ----------
    x
        An array, of the same shape and type on every rank.
    op
        `MAX`, `MIN`, `SUM`, `PROD`, `LAND`, `BAND`, `LOR`, `BOR`, `LXOR` or `BXOR`.
    root
        Rank that gets the result.
    buffer
        Array like `x` for the result, on the root.
    vanilla
        Without meaning, as in pypar.
    bypass
        Work without checks: `x` may be a list of numbers, `buffer` must be given; gives None.

    Returns
    -------
    array
        On the root, `buffer` or a new array; on the other ranks `buffer` unchanged, or a new array of zeros.

    Raises
    ------
    TypeError
        `x` is no array of numbers.
    AssertionError
        `x` and `buffer` have different types.
    RuntimeError
        They have different lengths, or `op` is unknown.
    """
    if bypass:
        reduce_array(x, buffer, op, root)
        return None
    if (  # the common case, without a detour
        type(x) is ndarray is type(buffer)
        and type(root) is int
        and op in OPERATIONS
        and x.dtype == buffer.dtype
        and x.size == buffer.size
        and x is not buffer
        and x.flags.c_contiguous
        and buffer.flags.c_contiguous
        and x.dtype in NUMBER_TYPES
    ):
        comm.Reduce(x, buffer, OPERATIONS[op], root)
        return buffer
    check_rank(root, "Root")
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if not is_array(x):
        raise _unsupported("reduce", x)
    if buffer is None:
        buffer = np.zeros(x.shape, x.dtype)
    _check_same_type("reduce", x, buffer)
    reduce_array(x, buffer, op, root)
    return buffer


def _unsupported(call: str, x: object) -> TypeError:
    kinds = "arrays of numbers" if call == "reduce" else "arrays of numbers and strings"
    what = f"an array of {x.dtype}" if isinstance(x, np.ndarray) and x.dtype not in NUMBER_TYPES else type(x).__name__
    return TypeError(
        f"pypar: {call} works with {kinds} only, not with {what}; make it a numpy.array, or use send, receive and "
        "broadcast"
    )


def _check_same_type(call: str, x: Array, buffer: Any) -> None:
    if not isinstance(buffer, np.ndarray):
        raise AssertionError(f"pypar: the buffer of {call} must be an array, not {type(buffer).__name__}")
    if x.dtype != buffer.dtype:
        raise AssertionError(
            f"pypar: the array and the buffer of {call} must have the same type; they have {x.dtype} and {buffer.dtype}"
        )


# --- names of pypar 1.9
# ----------------------------------------------------------------------------------------------------


def bcast(buffer: Any, root: int = 0, vanilla: object = False) -> Any:
    """As in pypar 1.9: `broadcast`."""
    return broadcast(buffer, root, vanilla)


def raw_scatter(x: Any, buffer: Any, source: int, vanilla: object = 0) -> Any:
    """As in pypar 1.9: `scatter` into a buffer."""
    return scatter(x, source, buffer, vanilla)


def raw_gather(x: Any, buffer: Any, source: int, vanilla: object = 0) -> Any:
    """As in pypar 1.9: `gather` into a buffer."""
    return gather(x, source, buffer, vanilla)


def raw_reduce(x: Any, buffer: Any, op: int, source: int, vanilla: object = 0, bypass: bool = False) -> Any:
    """As in pypar 1.9: `reduce` into a buffer."""
    return reduce(x, op, source, buffer, vanilla, bypass)
