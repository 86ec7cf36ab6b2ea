"""Any Python object in messages, with the receiver knowing nothing beforehand: what pypar and boostmpi send.

A message has a *front* that says what comes. A payload of up to `INLINE_BYTES` lies behind the front; a longer one
follows in a message of its own on a private communicator, under a number that the front names. So a message is matched
once, by the user's source and tag, and neither wildcards nor threads nor several outstanding receives can mix up its
parts. Nothing is probed: a receiver gives the front all the space that it can need.

::

    marks (2 bytes)  length of the description (2)  description, such as "array:d:6:(2, 3)"  payload, or its number (4)

The description is filled up with blanks to make the whole a multiple of 32 bytes: MPICH would abort a receiver that
expected plain numbers and got a broken one, before we could say what is wrong.

Arrays of numbers travel as they lie in memory, text as UTF-8, bytes as they are, everything else pickled.
"""

import ast
import itertools
import pickle
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from mpi4py import MPI

MARKS = b"\xb5P"
INLINE_BYTES = 4096  # a payload up to here is copied behind its front: one copy more, one message less
FRONT_BYTES = 512  # enough for any front: an array has 64 axes at most, and most of them are short then
SPACE_BYTES = FRONT_BYTES + INLINE_BYTES

# Types of arrays that travel as they lie in memory: numbers and bools in the byte order of the machine.
NUMBER_TYPES = frozenset(map(np.dtype, "?bBhHiIlLqQefdgFDG"))

_NUMBERS = 1 << 20  # numbers of long payloads are used again after so many

Array: TypeAlias = np.ndarray[Any, Any]
Packed: TypeAlias = tuple[bytes, Any, int]  # front, payload (an array or bytes), bytes of the payload


class WrongFormError(RuntimeError):
    """A message came that has no front; `status` tells its source."""

    def __init__(self, status: MPI.Status) -> None:
        super().__init__(f"the message from rank {status.source} with tag {status.tag} does not describe itself")
        self.status = status


class Description(NamedTuple):
    """What a front says about its payload."""

    kind: str  # "array", "pickle", or the name of a type of text
    dtype: np.dtype[Any] | None
    nbytes: int
    shape: tuple[int, ...]


def contiguous(x: Array) -> Array:
    """Give x, or a copy whose elements lie in C order."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


def pickled(x: object) -> bytes:
    """Pickle x."""
    return pickle.dumps(x, pickle.HIGHEST_PROTOCOL)


def _front(description: str, nbytes: int) -> bytes:
    text = description.encode()
    following = nbytes if nbytes <= INLINE_BYTES else 4
    text += b" " * (-(4 + len(text) + following) % 32)
    return MARKS + len(text).to_bytes(2, "little") + text


@lru_cache(maxsize=1024)
def _array_front(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    size = int(np.prod(shape, dtype=int))
    return _front(f"array:{dtype.char}:{size}:{shape}", size * dtype.itemsize)


@lru_cache(maxsize=1024)
def _bytes_front(kind: str, nbytes: int) -> bytes:
    return _front(f"{kind}::{nbytes}:()", nbytes)


def pack(x: Any, as_pickle: object = False) -> Packed:
    """Give the front of x, its payload, and the payload's bytes; with `as_pickle` x is pickled whatever it is."""
    kind = type(x)
    if not as_pickle:
        if kind is np.ndarray:
            if x.dtype in NUMBER_TYPES:
                return _array_front(x.dtype, x.shape), contiguous(x), x.nbytes
        elif kind is str:
            text = x.encode("utf-8", "surrogatepass")
            return _bytes_front("str", len(text)), text, len(text)
        elif kind is bytes or kind is bytearray:
            return _bytes_front(kind.__name__, len(x)), x, len(x)
    text = pickled(x)
    return _bytes_front("pickle", len(text)), text, len(text)


@lru_cache(maxsize=1024)
def _parse(description: bytes) -> Description:
    kind, char, size, shape = description.decode().split(":")
    if kind != "array":
        return Description(kind, None, int(size), ())
    dtype = np.dtype(char)
    return Description(kind, dtype, int(size) * dtype.itemsize, ast.literal_eval(shape.strip()))


def _unpack(payload: Any, description: Description) -> Any:
    kind = description.kind
    if kind == "pickle":
        return pickle.loads(payload)  # noqa: S301 - what ranks of one job send each other is trusted
    if kind == "str":
        return payload.decode("utf-8", "surrogatepass")
    return bytes(payload) if kind == "bytes" else payload


def _joined(front: bytes, payload: Any) -> bytes:
    return front + (payload.tobytes() if type(payload) is np.ndarray else payload)


def _described(space: bytearray) -> tuple[Description, int]:
    """Give what the front in `space` says, and where it ends."""
    end = 4 + int.from_bytes(space[2:4], "little")
    return _parse(bytes(space[4:end])), end


def _inline(space: bytearray, start: int, about: Description) -> Any:
    """Make the value of a payload that lies in `space`."""
    if about.dtype is None:
        return _unpack(space[start : start + about.nbytes], about)
    return np.ndarray(about.shape, about.dtype, space, start).copy()


def _memory(about: Description) -> Any:
    """Give memory for a payload that comes by itself."""
    return bytearray(about.nbytes) if about.dtype is None else np.empty(about.shape, about.dtype)


class Arrival:
    """The receiver's side of a message whose front has come into `space`."""

    def __init__(self, space: bytearray, status: MPI.Status) -> None:
        if not space.startswith(MARKS):
            raise WrongFormError(status)
        self.description, start = _described(space)
        self.value: Any = None
        self.payload: Any = None  # memory for what still has to come
        if self.description.nbytes <= INLINE_BYTES:
            self.value = _inline(space, start, self.description)
        else:
            self.number = int.from_bytes(space[start : start + 4], "little")
            self.payload = _memory(self.description)

    def complete(self) -> None:
        """Make the value of the payload, which is here now."""
        self.value = _unpack(self.payload, self.description)
        self.payload = None


class Channel:
    """A communicator for messages of any object. Making one is collective."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.rank = comm.Get_rank()
        self.payloads = comm.Dup()
        self.payloads.Set_name(f"long payloads on {comm.Get_name() or 'a communicator'}")
        self._numbers = itertools.count()

    def _long_front(self, front: bytes) -> tuple[bytes, int]:
        number = next(self._numbers) % _NUMBERS
        return front + number.to_bytes(4, "little"), number

    def send(self, packed: Packed, destination: int, tag: int) -> None:
        """Send what `pack` made."""
        front, payload, nbytes = packed
        if nbytes <= INLINE_BYTES:
            self.comm.Send(_joined(front, payload), destination, tag)
        else:
            front, number = self._long_front(front)
            self.comm.Send(front, destination, tag)
            self.payloads.Send(payload, destination, number)

    def bsend(self, packed: Packed, destination: int, tag: int) -> None:
        """As `send`, but a long payload is copied to the attached buffer; a short message goes at once without one."""
        front, payload, nbytes = packed
        if nbytes <= INLINE_BYTES:
            self.send(packed, destination, tag)
        else:
            front, number = self._long_front(front)
            self.comm.Send(front, destination, tag)
            self.payloads.Bsend(payload, destination, number)

    def isend(self, packed: Packed, destination: int, tag: int) -> list[MPI.Request]:
        """Start to send; the requests keep what they send."""
        front, payload, nbytes = packed
        if nbytes <= INLINE_BYTES:
            return [self.comm.Isend(_joined(front, payload), destination, tag)]
        front, number = self._long_front(front)
        return [self.comm.Isend(front, destination, tag), self.payloads.Isend(payload, destination, number)]

    def receive(self, source: int, tag: int, status: MPI.Status) -> Arrival:
        """Receive a message; `status` becomes that of its front.

        Raises
        ------
        WrongFormError
            A message came that `send` did not make. It is lost.
        """
        space = bytearray(SPACE_BYTES)
        try:
            self.comm.Recv(space, source, tag, status)
        except MPI.Exception as error:
            if error.Get_error_class() == MPI.ERR_TRUNCATE:
                raise WrongFormError(status) from None
            raise
        arrival = Arrival(space, status)
        if arrival.payload is not None:
            self.payloads.Recv(arrival.payload, status.source, arrival.number)
            arrival.complete()
        return arrival

    def broadcast(self, x: Any, root: int, as_pickle: object = False) -> Any:
        """Give all ranks the root's x; the root gets x itself.

        The first broadcast has a fixed length, and holds the payload too if there is room for it.
        """
        if self.rank == root:
            front, payload, nbytes = pack(x, as_pickle)
            fits = len(front) + nbytes <= FRONT_BYTES
            first = _joined(front, payload) if fits else front
            self.comm.Bcast(first + bytes(FRONT_BYTES - len(first)), root)
            if not fits:
                self.comm.Bcast(payload, root)
            return x
        space = bytearray(FRONT_BYTES)
        try:
            self.comm.Bcast(space, root)
        except MPI.Exception as error:
            if error.Get_error_class() in (MPI.ERR_ROOT, MPI.ERR_COMM):
                raise
        if not space.startswith(
            MARKS
        ):  # what came was too long, too short (libraries differ in what they call that), or something else
            raise RuntimeError(
                f"rank {root} broadcasts an array in place; pass an array of the same type and size on every rank"
            )
        about, start = _described(space)
        if start + about.nbytes <= FRONT_BYTES:
            return _inline(space, start, about)
        payload = _memory(about)
        self.comm.Bcast(payload, root)
        return _unpack(payload, about)
