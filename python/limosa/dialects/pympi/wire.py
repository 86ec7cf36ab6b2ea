"""How a Python object travels: what pyMPI's messages look like on this side.

- Every message of the script is one MPI message of at most `LIMIT` bytes on the script's own communicator and tag. A
  receive needs no probe and can be posted ahead whatever comes.
- What does not fit is announced there and follows on a communicator of its own, under a number that the announcement
  gives. A receive with wildcards can never catch it, and receives may finish in any order.
- Plain numeric arrays travel as their bytes, everything else pickled.

========  =================================================================================
byte 0    what follows
========  =================================================================================
``0x80``  a pickle (each begins with this byte)
``A``     length of the form (1 byte), form of the array, its bytes
``L``     number (4 bytes), length of the form (2 bytes), form of an array that follows separately
``P``     number (4 bytes), length (8 bytes) of a pickle that follows separately
========  =================================================================================
"""

from __future__ import annotations

import itertools
import math
import pickle
import struct
from collections.abc import Callable
from functools import lru_cache, partial
from pickle import loads
from typing import Any

import numpy as np
from mpi4py import MPI

__all__ = [
    "BLOCK",
    "LIMIT",
    "PICKLE",
    "Form",
    "are_whole",
    "borrow",
    "form_of",
    "give_back",
    "later",
    "loads",
    "pack",
    "unpack",
    "unpack_later",
    "unpack_whole",
]

LIMIT = 16 * 1024  # Beyond this length copying into and out of the message costs more than a second message.
BLOCK = 256  # Length of the first step of a collective: a small message whole, or an announcement.
PICKLE = 0x80
ARRAY = ord("A")
LARGE_ARRAY = ord("L")
LARGE_PICKLE = ord("P")

_ANNOUNCED_ARRAY = struct.Struct("<BIH")
_ANNOUNCED_PICKLE = struct.Struct("<BIQ")

Form = tuple[np.dtype[Any], tuple[int, ...]]

#: Carries what was announced. Ranks are those of the world, whatever communicator the script uses.
later = MPI.COMM_WORLD.Dup()
later.Set_name("pyMPI, large messages")

_numbers = itertools.count()
_last_number = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) or 32767
_spare: list[bytearray] = []


def borrow() -> bytearray:
    """Room for one message as it is received."""
    return _spare.pop() if _spare else bytearray(LIMIT)


def give_back(room: bytearray) -> None:
    """Let the next receive use this room."""
    if len(_spare) < 64:
        _spare.append(room)


@lru_cache(maxsize=256)
def _describe(kind: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return pickle.dumps((kind.str, shape), 4)


@lru_cache(maxsize=256)
def _form(description: bytes) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    kind, shape = pickle.loads(description)  # noqa: S301 - pyMPI's messages are pickles
    return np.dtype(kind), shape, math.prod(shape)


def _is_plain(array: np.ndarray[Any, Any]) -> bool:
    """Whether the elements are machine numbers."""
    return array.dtype.isbuiltin == 1 and array.dtype.kind in "biufc" and array.ndim < 32


def pack(message: Any, limit: int = LIMIT) -> tuple[bytes, Any, int]:
    """Make the message for an object.

    Parameters
    ----------
    message
        Any object that can be pickled.
    limit
        Longest message, at least 256 bytes.

    Returns
    -------
    first : bytes
        What goes on the script's communicator.
    rest : buffer or None
        What follows on `later`.
    number : int
        The tag under which it follows.
    """
    if type(message) is np.ndarray and _is_plain(message):
        array = message if message.flags.c_contiguous else message.copy()
        form = _describe(array.dtype, array.shape)
        if array.nbytes + len(form) + 2 <= limit and len(form) < 256:
            return bytes((ARRAY, len(form))) + form + array.tobytes(), None, 0
        if len(form) + _ANNOUNCED_ARRAY.size <= limit:
            number = next(_numbers) % _last_number
            return _ANNOUNCED_ARRAY.pack(LARGE_ARRAY, number, len(form)) + form, array, number
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    if len(data) <= limit:
        return data, None, 0
    number = next(_numbers) % _last_number
    return _ANNOUNCED_PICKLE.pack(LARGE_PICKLE, number, len(data)), data, number


def form_of(first: bytes | bytearray | memoryview) -> Form | None:
    """Element type and shape of the array that a message announces; None if it is anything else."""
    if first[0] != LARGE_ARRAY:
        return None
    return _announced_array(first)[1:]


def _announced_array(first: bytes | bytearray | memoryview) -> tuple[int, np.dtype[Any], tuple[int, ...]]:
    _, number, length = _ANNOUNCED_ARRAY.unpack_from(first)
    begin = _ANNOUNCED_ARRAY.size
    kind, shape, _ = _form(bytes(first[begin : begin + length]))
    return number, kind, shape


def are_whole(blocks: bytearray) -> bool:
    """Whether nothing follows separately on any of the messages in consecutive blocks."""
    kinds = blocks[::BLOCK]
    return LARGE_ARRAY not in kinds and LARGE_PICKLE not in kinds


def unpack_whole(blocks: bytearray) -> list[Any]:
    """Make the objects from messages in consecutive blocks, on none of which something follows."""
    view = memoryview(blocks)
    return [
        pickle.loads(view[start:]) if blocks[start] == PICKLE else _array(view[start:])  # noqa: S301
        for start in range(0, len(blocks), BLOCK)
    ]


def _array(first: bytearray | memoryview) -> np.ndarray[Any, Any]:
    end = 2 + first[1]
    kind, shape, count = _form(bytes(first[2:end]))
    return np.frombuffer(first, kind, count, end).reshape(shape).copy()


def unpack(first: bytearray | memoryview, fetch: Callable[[Any, int], object]) -> Any:
    """Make the object from a message.

    Parameters
    ----------
    first
        Room that holds the message at its beginning.
    fetch
        Called with a writable buffer and a number when something follows separately; fills the buffer.
    """
    if first[0] == PICKLE:
        return pickle.loads(first)  # noqa: S301 - pyMPI's messages are pickles
    message, finish = unpack_later(first, fetch)
    return message if finish is None else finish()


def unpack_later(
    first: bytearray | memoryview, fetch: Callable[[Any, int], object]
) -> tuple[Any, Callable[[], Any] | None]:
    """Make the object from a message in two steps, so that `fetch` may only begin to fill the buffer.

    Returns
    -------
    message
        The object, complete when its buffer is filled.
    finish : callable or None
        If not None: to be called when the buffer is filled; gives the object.
    """
    what = first[0]
    if what == PICKLE:
        return pickle.loads(first), None  # noqa: S301 - pyMPI's messages are pickles
    if what == ARRAY:
        return _array(first), None
    if what == LARGE_ARRAY:
        number, kind, shape = _announced_array(first)
        array = np.empty(shape, kind)
        fetch(array, number)
        return array, None
    if what == LARGE_PICKLE:
        _, number, size = _ANNOUNCED_PICKLE.unpack_from(first)
        room = np.empty(size, np.uint8)
        fetch(room, number)
        return room, partial(pickle.loads, room.data)
    raise RuntimeError("a message on a communicator of pyMPI was not sent by pyMPI: use one interface on both sides")
