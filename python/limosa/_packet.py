"""How a Python value becomes messages, and messages become a value again.

Contract
--------
* A value is one *first message* and any number of *parts*. The first message says everything about the parts. It is
  never longer than than a known length, so that it can be received without asking for it.
* Arrays, and `bytes`, `bytearray`, `array.array` and NumPy scalars, are raw memory; all else is pickled with protocol
  5, whose large buffers are parts of their own. Nothing large is copied at the sender; the receiver gets it straight
  into its final place.
* This module does not communicate. The same packets serve messages between two ranks and collective calls.

A first message is either nothing but a pickle (its first byte is `BARE`), which spares a copy, or has this head,
little-endian:

====== ===== =========================================================================================================
offset bytes meaning
====== ===== =========================================================================================================
0      1     kind: `ARRAY` with its data behind the head, `ARRAY_APART`, `WIDE`, `OBJECT` with its pickle behind the
             head (only in collective calls), `OBJECT_APART`
1      1     arrays: what to make of it (`Container`), objects: 1 for a failure
2      1     arrays: 1 if the parts are in Fortran order
3      1     collective calls: which
4      4     rank of the sender; collective calls: the root
8      36    `ARRAY`, `ARRAY_APART`: dtype in 12 characters, three lengths of 8 bytes, -1 for those it has not.
             `WIDE` and `OBJECT_APART`: length of the meta data in 8 bytes, length of the pickle in 8 bytes, digest of
             the meta data in 16
44     4     number of the value, the tag of its parts; collective calls: digest of the reduction
====== ===== =========================================================================================================

Two arrays of the same dtype and shape from the same rank have the same first 44 bytes.

Meta data: for `WIDE`, which is for arrays that do not fit into a head, pickled dtype and shape; for `OBJECT_APART` the
lengths of the buffers. Behind the pickle are the buffers shorter than `APART_BYTES`, each padded to `_ALIGNMENT`; what
follows says "pickle" of both. Meta data and pickle each follow the head in the first message if there is room, else
they are parts.
"""

from __future__ import annotations

import array
import copyreg
import io
import itertools
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._memory import Array, Spec, as_array, is_array_like, is_on_device, spec_of

HEAD = 48
SLOT = 256  # bytes that each rank contributes where all hear from all
DESCRIPTION, NUMBER = 8, 44  # where dtype and shape begin, where they end
CALL = slice(3, 8)  # what says which collective call a slot belongs to, and its root
ARRAY, ARRAY_APART, WIDE, OBJECT, OBJECT_APART = range(1, 6)
BARE = pickle.PROTO[0]
_SHORT_KINDS = (ARRAY, ARRAY_APART)

APART_BYTES = 16384
"""Buffers of objects that are shorter travel together: below, a message of its own costs more than the copies."""
IN_BAND_BYTES = 16384
"""If all buffers of an object together are not longer, they are pickled with the rest."""

_NDARRAY, _BYTES, _BYTEARRAY, SCALAR = range(4)  # containers; that of an array.array is its type code
NUMBERS = 1 << 14
"""Values are numbered up to here and then from 0 again.

So every library has the tags of their parts, and as many for us.
"""

_PREFIX = struct.Struct("<BBBBi")
_NUMBER = struct.Struct("<I")
_LENGTHS = struct.Struct("<QQ16s")
_DESCRIPTION = struct.Struct("<12s3q")
_NO_NUMBER = bytes(4)
_SHORT_DIMS = 3
_PLAIN_KINDS = "biufcMmSU"  # of dtypes that their strings describe
_UINT8 = np.dtype(np.uint8)
_BYTE = MPI.BYTE
_CACHED = 1024  # entries of each cache

PLAIN: frozenset[type] = frozenset((int, float, complex, bool, str, type(None)))
"""Types of objects that have no buffers inside."""

PICKLED: set[type] = {dict, list, tuple, set, *PLAIN}
"""Types of objects that are pickled, as far as they have been met, and whose pickles are not long."""

_dumps, _loads = pickle.dumps, pickle.loads


class _BufferFound(Exception):  # noqa: N818 (a signal)
    """The object being pickled has a buffer, or more of them than are pickled with the rest."""


def _reduce_array(x: Array) -> Any:
    """Say how an array is made again. NumPy's own way takes twice as long, on both sides."""
    if x.size and x.flags.c_contiguous and x.dtype.kind in "biufc":
        return np.ndarray, (x.shape, x.dtype, pickle.PickleBuffer(x.data))
    return x.__reduce_ex__(5)


def _dump(x: object, keep: Callable[[pickle.PickleBuffer], Any]) -> bytes:
    """Pickle an object with arrays; its buffers are given to `keep`."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5, buffer_callback=keep)
    pickler.dispatch_table = {**copyreg.dispatch_table, np.ndarray: _reduce_array}
    pickler.dump(x)
    return file.getvalue()


_ALIGNMENT = 16
_PADDING = [bytes(length) for length in range(_ALIGNMENT)]


def _padded(length: int) -> int:
    """Give the place that a buffer takes beside others, so that the next one is aligned."""
    return length + -length % _ALIGNMENT


# --- sending ---------------------------------------------------------------------------------------------------------


class Encoder:
    """Makes packets.

    Parameters
    ----------
    source
        The rank that is written into them.
    limit
        How much data may follow the head in a first message, in bytes.
    bare
        The longest pickle that may be a first message, in bytes; 0 if all first messages need a head.

    """

    def __init__(self, source: int, limit: int, bare: int = 0) -> None:
        self._source = source
        self._limit = limit
        self._bare = bare
        self.numbers = itertools.count()
        """Of values with parts; what counts is the remainder by `NUMBERS`."""
        self.heads: dict[tuple[Any, Any], bytes] = {}
        """Heads of arrays that go into the first message, by dtype and shape. Filled by `encode`."""
        self.heads_apart: dict[tuple[Any, Any], bytes] = {}
        """The same, without the number, of C-contiguous arrays that go apart."""
        self._rich: set[type] = set()
        """Types whose objects had large buffers the last time: for these nothing attempts to pickle all together."""
        self.trusted = {dict, list, tuple, set, *PLAIN}
        """Types whose objects are pickled at once, with all that is inside.

        One large surprise, and a type is trusted no more.
        """
        self.object_head = _PREFIX.pack(OBJECT, 0, 0, 0, source).ljust(HEAD, b"\0")

    def encode(self, x: Any) -> tuple[bytes, Sequence[Array]]:
        """Give the first message and the parts of a value."""
        make = _makers.get(type(x))
        return make(self, x) if make else _maker_of(x)(self, x)

    def encode_pickled(self, x: Any, stream: bytes) -> tuple[bytes, Sequence[Array]]:
        """Give what `encode` gives, for an object of a trusted type that is pickled already."""
        if len(stream) <= IN_BAND_BYTES or type(x) in PLAIN:
            return self._pickled(stream)
        self.trusted.discard(type(x))
        return self.encode(x)

    def _number(self) -> bytes:
        return packed_number(next(self.numbers) % NUMBERS)

    def failure(self, text: str) -> bytes:
        """Give the first message that tells the other ranks that this one cannot take part, with a short reason."""
        return self.object_head[:1] + b"\1" + self.object_head[2:] + _dumps(text, 5)

    def _array(self, x: Array, container: int = _NDARRAY) -> tuple[bytes, Sequence[Array]]:
        tail = _tails.get((x.dtype, x.shape))
        if tail is None:
            if x.dtype.hasobject:
                return self._object(x)
            tail = _new_tail(x.dtype, x.shape)
        if tail and x.nbytes <= self._limit:
            head = _PREFIX.pack(ARRAY, container, 0, 0, self._source) + tail + _NO_NUMBER
            if container == _NDARRAY:
                if len(self.heads) >= _CACHED:
                    self.heads.clear()
                self.heads[x.dtype, x.shape] = head
            return head + x.tobytes(), ()
        # Collective calls compare heads, so there all arrays are in the same order.
        fortran = bool(self._bare) and not x.flags.c_contiguous and x.flags.f_contiguous
        if tail:
            head = _PREFIX.pack(ARRAY_APART, container, fortran, 0, self._source) + tail
            if container == _NDARRAY and not fortran:
                if len(self.heads_apart) >= _CACHED:
                    self.heads_apart.clear()
                self.heads_apart[x.dtype, x.shape] = head
            return head + self._number(), (x.T if fortran else x,)
        return self._apart(WIDE, container, fortran, _wide(x.dtype, x.shape), None, (x.T if fortran else x,))

    def _bytes(self, x: bytes | bytearray) -> tuple[bytes, Sequence[Array]]:
        return self._array(np.frombuffer(x, _UINT8), _BYTES if type(x) is bytes else _BYTEARRAY)

    def _typed(self, x: array.array[Any]) -> tuple[bytes, Sequence[Array]]:
        if x.typecode in "uw":
            return self._object(x)
        return self._array(np.frombuffer(x, x.typecode), ord(x.typecode))

    def _scalar(self, x: np.generic) -> tuple[bytes, Sequence[Array]]:
        value = np.asarray(x)
        return self._object(x) if value.dtype.hasobject or value.ndim else self._array(value, SCALAR)

    def _like(self, x: Any) -> tuple[bytes, Sequence[Array]]:
        try:
            value = as_array(x)
        except errors.BufferError:
            if is_on_device(x):
                raise
            return self._object(x)  # such as a tensor of a dtype that NumPy does not have
        return self._object(value) if value.dtype.hasobject else self._array(value, _NDARRAY)

    def _plain(self, x: object) -> tuple[bytes, Sequence[Array]]:
        """Encode an object that has no buffers inside."""
        return self._pickled(_dumps(x, 5))

    def _object(self, x: object) -> tuple[bytes, Sequence[Array]]:
        if type(x) in self._rich:
            return self._with_buffers(x)
        left = IN_BAND_BYTES

        def keep(buffer: pickle.PickleBuffer) -> bool:
            nonlocal left
            left -= memoryview(buffer).nbytes
            if left < 0:
                raise _BufferFound
            return True

        try:
            stream = _dumps(x, 5, buffer_callback=keep)
        except _BufferFound:
            self._rich.add(type(x))
            return self._with_buffers(x)
        return self._pickled(stream)

    def _pickled(self, stream: bytes) -> tuple[bytes, Sequence[Array]]:
        if len(stream) <= self._bare:
            return stream, ()
        if not self._bare and len(stream) <= self._limit:
            return self.object_head + stream, ()
        return self._apart(OBJECT_APART, 0, 0, b"", stream, ())

    def _with_buffers(self, x: object) -> tuple[bytes, Sequence[Array]]:
        buffers: list[pickle.PickleBuffer] = []
        stream = _dump(x, buffers.append)
        raws = [buffer.raw() for buffer in buffers]
        lengths = [raw.nbytes for raw in raws]
        if sum(lengths) <= IN_BAND_BYTES:
            self._rich.discard(type(x))
            return self._pickled(_dumps(x, 5))
        pieces: list[bytes | memoryview] = [stream, _PADDING[-len(stream) % _ALIGNMENT]]
        parts = []
        for raw, length in zip(raws, lengths, strict=True):
            if length >= APART_BYTES:
                parts.append(np.frombuffer(raw, _UINT8))
            else:
                pieces += [raw, _PADDING[-length % _ALIGNMENT]]
        return self._apart(OBJECT_APART, 0, 0, struct.pack(f"<{len(lengths)}Q", *lengths), b"".join(pieces), parts)

    def _apart(
        self, kind: int, container: int, fortran: int, meta: bytes, stream: bytes | None, parts: Sequence[Array]
    ) -> tuple[bytes, Sequence[Array]]:
        digest = b"" if self._bare else blake2b(meta, digest_size=16).digest()  # compared in collective calls only
        first = _PREFIX.pack(kind, container, fortran, 0, self._source) + _LENGTHS.pack(
            len(meta), len(stream or b""), digest
        )
        first = first.ljust(NUMBER, b"\0") + self._number()
        room, before = self._limit, []
        for piece in (meta, stream):
            if not piece:
                continue
            if len(piece) <= room:
                first += piece
                room -= len(piece)
            else:
                before.append(np.frombuffer(piece, _UINT8))
                room = 0
        return first, [*before, *parts]


_makers: dict[type, Callable[[Encoder, Any], tuple[bytes, Sequence[Array]]]] = {
    np.ndarray: Encoder._array,
    **dict.fromkeys(PLAIN, Encoder._plain),
    **dict.fromkeys((dict, list, tuple, set), Encoder._object),
    **dict.fromkeys((bytes, bytearray), Encoder._bytes),
    array.array: Encoder._typed,
}


def _maker_of(x: object) -> Callable[[Encoder, Any], tuple[bytes, Sequence[Array]]]:
    """Find out once for each type how its objects are sent."""
    if isinstance(x, np.generic):
        make = Encoder._scalar
    elif isinstance(x, (bytes, bytearray, array.array)) or (isinstance(x, np.ndarray) and type(x) is not np.memmap):
        make = Encoder._object
    else:
        make = Encoder._like if is_array_like(x) else Encoder._object
    if len(_makers) < _CACHED:
        _makers[type(x)] = make
        if make is Encoder._object:
            PICKLED.add(type(x))
    return make


_tails: dict[tuple[Any, Any], bytes] = {}


def _new_tail(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Give the end of the head of an array, and keep it; it is empty if dtype or shape do not fit."""
    name = dtype.str.encode("utf-8", "replace")
    fits = len(shape) <= _SHORT_DIMS and len(name) <= 12 and dtype.kind in _PLAIN_KINDS and np.dtype(dtype.str) == dtype
    tail = _DESCRIPTION.pack(name, *shape, *(-1,) * (_SHORT_DIMS - len(shape))) if fits else b""
    if len(_tails) >= _CACHED:
        _tails.clear()
    _tails[dtype, shape] = tail
    return tail


def _wide(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    plain = dtype.kind in _PLAIN_KINDS and np.dtype(dtype.str) == dtype
    return _dumps((dtype.str if plain else dtype, shape), 5)


# --- receiving -------------------------------------------------------------------------------------------------------


class Inbox:
    """Memory for a first message. They are used again and again: `take`, then `give_back`.

    Parameters
    ----------
    length
        The longest first message, in bytes.

    """

    __slots__ = ("_known", "dtype", "last", "raw", "shape", "source", "view", "whole")

    def __init__(self, length: int) -> None:
        self.raw = bytearray(length)
        self.whole = memoryview(self.raw)
        self._known: dict[bytes, tuple[Array | None, np.dtype[Any], tuple[int, ...], int]] = {}
        self.last = b"no message begins so"
        """How the last message that `recognise` was asked about began, up to its number: most are like the last."""
        self.view: Array | None = None
        """For such a message: the array in this memory if it is there (`ARRAY`), None if it follows."""
        self.dtype = _UINT8
        self.shape: tuple[int, ...] = ()
        self.source = -1

    def recognise(self) -> bool:
        """Describe the message in this memory by `view`, `dtype`, `shape` and `source`.

        It does so if the message is a C-contiguous array and no container.
        """
        raw = self.raw
        if raw[0] not in _SHORT_KINDS or raw[1] or raw[2]:
            return False
        start = self.whole[:NUMBER].tobytes()
        known = self._known.get(start)
        if known is None:
            dtype, shape = described(start[DESCRIPTION:])
            view = np.ndarray(shape, dtype, raw, HEAD) if raw[0] == ARRAY else None
            if len(self._known) >= _CACHED:
                self._known.clear()
            known = self._known[start] = view, dtype, shape, _PREFIX.unpack_from(start)[4]
        self.last = start
        self.view, self.dtype, self.shape, self.source = known
        return True


_descriptions: dict[bytes, tuple[np.dtype[Any], tuple[int, ...]]] = {}


def described(tail: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Give dtype and shape from the end of the head of an array."""
    found = _descriptions.get(tail)
    if found is None:
        name, *lengths = _DESCRIPTION.unpack(tail)
        found = np.dtype(name.rstrip(b"\0").decode()), tuple(length for length in lengths if length >= 0)
        if len(_descriptions) >= _CACHED:
            _descriptions.clear()
        _descriptions[tail] = found
    return found


def announced(first: memoryview) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Give dtype and shape of the array whose first message this is, of whatever length."""
    if first[0] != WIDE:
        return described(first[DESCRIPTION:NUMBER].tobytes())
    length, _, _ = _LENGTHS.unpack_from(first, DESCRIPTION)
    name, shape = _loads(first[HEAD : HEAD + length])
    return np.dtype(name), shape


def misfit(target: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> errors.Error | None:
    """Tell why an array cannot be received into a given one."""
    if target.dtype == dtype and target.shape == shape:
        return None
    sent = f"{dtype} {shape}"
    if target.dtype != dtype:
        return errors.BY_CLASS["TYPE"](f"the array that arrived is {sent}, but out is {target.dtype} {target.shape}")
    size = int(np.prod(shape, dtype=object))
    kind = "TRUNCATE" if target.size < size else "ARG"
    return errors.BY_CLASS[kind](f"the array that arrived is {sent}, but out has the shape {target.shape}")


def into(value: Any, target: Array | None) -> Any:
    """Copy a value that arrived as a whole into `target`, if there is one, and give it.

    Raises
    ------
    limosa.errors.Error
        If it does not fit; it has the value.

    """
    if target is None:
        return value
    if isinstance(value, (bytes, bytearray, array.array, np.generic)):
        value_array = np.asarray(value) if not isinstance(value, (bytes, bytearray)) else np.frombuffer(value, _UINT8)
    elif isinstance(value, np.ndarray):
        value_array = value
    else:
        error: errors.Error = errors.BY_CLASS["TYPE"](f"a {type(value).__name__} arrived, but out takes arrays only")
        error.value = value
        raise error
    problem = misfit(target, value_array.dtype, value_array.shape)
    if problem:
        problem.value = value
        raise problem
    target[...] = value_array
    return target


class Arrival:
    """A value whose first message is here, and whose parts are still to come.

    Use: receive the messages that `stages` gives, in this order, each stage before the next; then `finish`.

    Parameters
    ----------
    first
        The first message.
    limit
        How much data may follow its head: the same number as for the encoder.
    target
        The array to receive into, if there is one.

    """

    def __init__(self, first: memoryview, limit: int, target: Array | None) -> None:
        self._kind, self._container, self._fortran, _, self.source = _PREFIX.unpack_from(first)
        (self.number,) = _NUMBER.unpack_from(first, NUMBER)
        self._target = target
        self._problem: errors.Error | None = None
        self._value: Any = None
        self._datatypes: list[MPI.Datatype] = []
        self._description = first[DESCRIPTION:NUMBER].tobytes()
        body = first[HEAD : HEAD + limit]
        self._meta_bytes, self._stream_bytes, _ = (
            _LENGTHS.unpack_from(first, DESCRIPTION) if self._kind != ARRAY_APART else (0, 0, b"")
        )
        room = len(body)
        self._meta: Any = None
        self._stream: Any = None
        if self._meta_bytes <= room:
            self._meta, body = body[: self._meta_bytes].tobytes(), body[self._meta_bytes :]
            room -= self._meta_bytes
        else:
            room = 0
        if self._stream_bytes <= room:
            self._stream = bytearray(body[: self._stream_bytes])

    def stages(self) -> Iterator[list[Spec]]:
        """Give the parts to be received, as mpi4py takes them, in one or two lists."""
        if self._meta is None:
            self._meta = np.empty(self._meta_bytes, _UINT8)
            yield [spec_of(self._meta)[0]]
        if self._kind == OBJECT_APART:
            specs = []
            if self._stream is None:
                self._stream = np.empty(self._stream_bytes, _UINT8)
                specs.append([self._stream, self._stream_bytes, _BYTE])
            lengths = struct.unpack(f"<{self._meta_bytes // 8}Q", self._meta)
            place = self._stream_bytes - sum([_padded(length) for length in lengths if length < APART_BYTES])
            joined = memoryview(self._stream)
            self._value = []
            for length in lengths:
                if length < APART_BYTES:
                    self._value.append(joined[place : place + length])
                    place += _padded(length)
                else:
                    self._value.append(np.empty(length, _UINT8))
                    specs.append([self._value[-1], length, _BYTE])
            yield specs
        else:
            yield [self._array_spec()]

    def _array_spec(self) -> Spec:
        if self._kind == WIDE:
            name, shape = _loads(self._meta)
            dtype = np.dtype(name)
        else:
            dtype, shape = described(self._description)
        target = self._target
        if target is not None:
            self._problem = misfit(target, dtype, shape)
        fortran = self._fortran
        if target is None or self._problem:
            if self._container == _BYTEARRAY:
                self._bytes = bytearray(shape[0])
                target = np.frombuffer(self._bytes, _UINT8)
            else:
                target = np.empty(shape, dtype, "F" if fortran else "C")
        self._value = target
        spec, made = spec_of(target.T if fortran else target)
        if made:
            self._datatypes.append(made)
        return spec

    def started(self) -> None:
        """Free the objects that were made for the transfers, which have all been started or have failed."""
        while self._datatypes:
            self._datatypes.pop().Free()

    def finish(self) -> Any:
        """Give the value.

        Raises
        ------
        limosa.errors.Error
            If it does not fit into the target; it has the value.

        """
        self.started()
        if self._kind == OBJECT_APART:
            return into(_loads(self._stream, buffers=self._value), self._target)
        if self._problem is None and self._target is not None:
            return self._target
        value = self._value if self._container != _BYTEARRAY else self._bytes
        value = contained(value, self._container)
        if self._problem:
            self._problem.value = value
            raise self._problem
        return value


def contained(value: Any, container: int) -> Any:
    """Turn the array that was received into the type that was sent."""
    if container in (_NDARRAY, _BYTEARRAY):
        return value
    if container == _BYTES:
        return value.tobytes()
    if container == SCALAR:
        return value[()]
    made = array.array(chr(container))
    made.frombytes(memoryview(value).cast("B") if value.size else b"")
    return made


def opened(first: memoryview, target: Array | None) -> Any:
    """Give the value of a first message without parts (see `has_parts`), copied out of it."""
    if first[0] in (BARE, OBJECT):
        return into(_loads(first if first[0] == BARE else first[HEAD:]), target)
    head = first[:NUMBER].tobytes()
    dtype, shape = described(head[DESCRIPTION:])
    view = np.ndarray(shape, dtype, first, HEAD)
    container = head[1]
    if target is not None:
        problem = misfit(target, dtype, shape)
        if not problem:
            target[...] = view
            return target
    value = bytearray(view.data) if container == _BYTEARRAY else contained(view.copy(), container)
    if target is not None and problem:
        problem.value = value
        raise problem
    return value


def number_of(first: bytes | bytearray) -> int:
    """Give the number of the value that begins with this first message."""
    number: int = _NUMBER.unpack_from(first, NUMBER)[0]
    return number


packed_number = _NUMBER.pack
"""Give a number as it stands at the end of a head."""


def has_parts(first: memoryview) -> bool:
    """Tell whether parts follow a first message."""
    return first[0] not in (BARE, ARRAY, OBJECT)
