"""Communicators, requests and operations of Scientific.MPI."""

from __future__ import annotations

import operator as operators
from typing import Any, NoReturn, cast

import numpy as np
from mpi4py import MPI

__all__ = [
    "MPICommunicator",
    "MPIError",
    "MPIOperationObject",
    "MPIRequest",
    "PyMPICommunicator",
    "band",
    "bor",
    "bxor",
    "land",
    "lor",
    "lxor",
    "max",
    "maxloc",
    "min",
    "minloc",
    "prod",
    "replace",
    "sum",
    "world",
]

Array = np.ndarray[Any, np.dtype[Any]]

_LAST_TAG = 32767
_BYTES = b"\xff"  # in front of what was sent as bytes: no UTF-8 text has such a byte


class MPIError(EnvironmentError):
    """A call failed, or its arguments make no sense."""


MPIOperationObject = MPI.Op

max, min, sum, prod = MPI.MAX, MPI.MIN, MPI.SUM, MPI.PROD
land, lor, lxor, band, bor, bxor = MPI.LAND, MPI.LOR, MPI.LXOR, MPI.BAND, MPI.BOR, MPI.BXOR
maxloc, minloc, replace = MPI.MAXLOC, MPI.MINLOC, MPI.REPLACE

_SUM_OR_PRODUCT = (sum, prod)

# Types that need no thought: arrays of these are given to mpi4py as they are.
_REAL = frozenset(map(np.dtype, "?bBhHiIlLqQfd"))
_NUMBERS = _REAL | frozenset(map(np.dtype, "FD"))

# What mpi4py raises, before it communicates, for arrays that MPI cannot use as they are.
_UNFIT = (BufferError, KeyError, ValueError)


class MPIRequest:
    """A send or receive that has been started.

    Parameters
    ----------
    request
        MPI's request.
    room
        For a receive: where the message goes.
    array
        For a receive: the script's array, if that is not `room` itself.
    """

    def __init__(self, request: MPI.Request, room: Array | None = None, array: Array | None = None) -> None:
        self._request: MPI.Request | None = request
        self._room = room
        self._array = array

    def wait(self) -> tuple[Array, int, int, int] | None:
        """Wait until it is done; gives None for a send, (array, source, tag, count) for a receive.

        Raises
        ------
        MPIError
            It was done before.
        """
        status = MPI.Status()
        try:
            self._pending("wait on").Wait(status)
        except MPI.Exception as error:
            _fail(error)
        return self._done(status)

    def test(self) -> bool | tuple[Array, int, int, int]:
        """False while it is under way; then True for a send, (array, source, tag, count) for a receive."""
        status = MPI.Status()
        try:
            if not self._pending("test").Test(status):
                return False
        except MPI.Exception as error:
            _fail(error)
        return self._done(status) or True

    def _pending(self, action: str) -> MPI.Request:
        if self._request is None:
            raise MPIError(f"Cannot {action} expired request")
        return self._request

    def _done(self, status: MPI.Status) -> tuple[Array, int, int, int] | None:
        self._request = None
        if self._room is None:
            return None
        return _received(self._room, self._array, status)


class MPICommunicator:
    """A communicator; others are made from ``world`` by `duplicate` and `subset`.

    Attributes
    ----------
    rank, size : int
        Rank of this process, number of processes.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._to_self: list[MPI.Request] = []  # sends to oneself that have not been received

    # --- communicators
    # --------------------------------------------------------------------------------------------------

    def duplicate(self) -> MPICommunicator:
        """Make another communicator of the same processes."""
        return MPICommunicator(self._comm.Dup())

    def subset(self, ranks: Any) -> MPICommunicator | None:
        """Make a communicator of some ranks; collective. None for the processes that are not in it.

        Raises
        ------
        MPIError
            A rank does not exist or appears twice.
        """
        chosen = [operators.index(rank) for rank in ranks]
        if len(set(chosen)) < len(chosen) or not all(0 <= rank < self.size for rank in chosen):
            raise MPIError(f"ranks must be different and between 0 and {self.size - 1}, not {chosen}")
        whole = self._comm.Get_group()
        group = whole.Incl(chosen)
        made = self._comm.Create(group)
        whole.Free()
        group.Free()
        return None if made == MPI.COMM_NULL else MPICommunicator(cast(MPI.Intracomm, made))

    # --- messages
    # -------------------------------------------------------------------------------------------------------

    def send(self, data: Any, destination: int, tag: int) -> None:
        """Send an array or a string.

        Raises
        ------
        MPIError
            `data` is something else, or the rank or tag is not possible.
        """
        if not 0 <= destination < self.size or not 0 <= tag <= _LAST_TAG:
            self._refuse(destination, tag)
        message = (
            data if type(data) is np.ndarray and data.dtype in _NUMBERS and data.flags.c_contiguous else _message(data)
        )
        try:
            if destination != self.rank:
                self._comm.Send(message, destination, tag)
            else:
                self._send_to_self(message, tag)
        except (MPI.Exception, *_UNFIT) as error:
            _fail(error)

    def _send_to_self(self, message: Any, tag: int) -> None:
        self._to_self = [request for request in self._to_self if not request.Test()]
        self._to_self.append(
            self._comm.Isend(bytes(message) if isinstance(message, bytes) else message.copy(), self.rank, tag)
        )

    def nonblockingSend(self, data: Any, destination: int, tag: int) -> MPIRequest:
        """Begin to send an array or a string; see `send`."""
        message = _message(data)
        if not 0 <= destination < self.size or not 0 <= tag <= _LAST_TAG:
            self._refuse(destination, tag)
        try:
            return MPIRequest(self._comm.Isend(message, destination, tag))
        except (MPI.Exception, *_UNFIT) as error:
            _fail(error)

    nonblocking_send = nonblockingSend

    def receive(self, data: Any, source: int | None = None, tag: int | None = None) -> tuple[Array, int, int, int]:
        """Receive an array.

        Parameters
        ----------
        data
            An array to be filled, or a type code such as ``N.Float``, for a new array of one dimension and of the
            length of the message.
        source, tag
            None: any.

        Returns
        -------
        tuple
            The array, source, tag, and the number of elements received.

        Raises
        ------
        MPIError
            The message is longer than the array, or not a whole number of its elements.
        """
        if source is None:
            source = MPI.ANY_SOURCE
        if tag is None:
            tag = MPI.ANY_TAG
        status = MPI.Status()
        room = data
        try:
            if type(data) is np.ndarray and data.dtype in _NUMBERS and data.flags.c_contiguous:
                self._comm.Recv(data, source, tag, status)
            elif isinstance(data, str):
                kind = _kind(data)
                incoming = self._comm.Mprobe(source, tag, status)
                room = data = np.empty(-(-status.Get_count() // kind.itemsize), kind)
                incoming.Recv((room, room.nbytes, MPI.BYTE), status)
            else:
                room = _room(data)
                self._comm.Recv(room, source, tag, status)
        except (MPI.Exception, *_UNFIT) as error:
            _fail(error)
        return _received(room, data, status)

    def receiveString(self, source: int | None = None, tag: int | None = None) -> tuple[str | bytes, int, int]:
        """Receive a string of any length; gives it, its source and tag. What was sent as bytes comes back as bytes."""
        status = MPI.Status()
        try:
            incoming = self._comm.Mprobe(
                MPI.ANY_SOURCE if source is None else source, MPI.ANY_TAG if tag is None else tag, status
            )
            room = bytearray(status.Get_count(MPI.BYTE))
            incoming.Recv((room, MPI.BYTE), status)
        except MPI.Exception as error:
            _fail(error)
        return _string(room), status.source, status.tag

    def nonblockingReceive(self, data: Any, source: int | None = None, tag: int | None = None) -> MPIRequest:
        """Begin to receive into an array; see `receive`."""
        room = _room(data)
        try:
            request = self._comm.Irecv(
                room, MPI.ANY_SOURCE if source is None else source, MPI.ANY_TAG if tag is None else tag
            )
        except (MPI.Exception, *_UNFIT) as error:
            _fail(error)
        return MPIRequest(request, room, data)

    nonblocking_receive = nonblockingReceive

    def nonblockingProbe(self, source: int | None = None, tag: int | None = None) -> tuple[int, int] | None:
        """Source and tag of a message that has arrived, or None."""
        status = MPI.Status()
        try:
            there = self._comm.Iprobe(
                MPI.ANY_SOURCE if source is None else source, MPI.ANY_TAG if tag is None else tag, status
            )
        except MPI.Exception as error:
            _fail(error)
        return (status.source, status.tag) if there else None

    # --- collectives
    # ----------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until every process has called this."""
        self._comm.Barrier()

    def broadcast(self, array: Any, root: int) -> None:
        """Fill everyone's array with the root's."""
        plain = type(array) is np.ndarray and array.dtype in _NUMBERS and array.flags.c_contiguous
        room = array if plain else _room(array)
        try:
            self._comm.Bcast(room, root)
        except (MPI.Exception, *_UNFIT) as error:
            _fail(error)
        if not plain:
            _hand_over(room, array)

    def share(self, send: Any, receive: Any) -> None:
        """Collect everyone's array ``send`` in everyone's ``receive``, of the shape ``(size,) + send.shape``.

        Raises
        ------
        MPIError
            The arrays do not fit.
        """
        message, room = _array(send), _room(receive)
        if room.shape != (self.size, *message.shape) or room.dtype != message.dtype:
            shape = (self.size, *message.shape)
            raise MPIError(
                f"receive must be an array of shape {shape} and type {message.dtype}, not {room.shape} and {room.dtype}"
            )
        try:
            self._comm.Allgather(message, room)
        except (MPI.Exception, *_UNFIT) as error:
            _fail(error)
        _hand_over(room, receive)

    def reduce(self, sendbuffer: Any, receivebuffer: Any, operation: MPI.Op, root: int) -> None:
        """Combine everyone's array in the root's `receivebuffer`."""
        try:
            if type(sendbuffer) is np.ndarray and sendbuffer.dtype in _REAL and root < self.size:
                if self.rank != root:
                    self._comm.Reduce(sendbuffer, None, operation, root)
                    return
                if type(receivebuffer) is np.ndarray:
                    self._comm.Reduce(sendbuffer, receivebuffer, operation, root)
                    return
        except MPI.Exception as error:
            _fail(error)
        except (*_UNFIT, TypeError):
            pass
        self._reduce(sendbuffer, receivebuffer, operation, root)

    def allreduce(self, sendbuffer: Any, receivebuffer: Any, operation: MPI.Op) -> None:
        """Combine everyone's array in everyone's `receivebuffer`."""
        try:
            if type(sendbuffer) is type(receivebuffer) is np.ndarray and sendbuffer.dtype in _REAL:
                self._comm.Allreduce(sendbuffer, receivebuffer, operation)
                return
        except MPI.Exception as error:
            _fail(error)
        except (*_UNFIT, TypeError):
            pass
        self._reduce(sendbuffer, receivebuffer, operation, None)

    def _reduce(self, send: Any, receive: Any, operation: MPI.Op, root: int | None) -> None:
        """As `allreduce` (if `root` is None) or `reduce`, for what does not fit as it is."""
        message = _array(send)
        room = None
        if root is None or self.rank == root:
            room = _room(receive)
            if room.dtype != message.dtype or room.size != message.size:
                raise MPIError(
                    f"the result needs {message.size} elements of type {message.dtype}, not {room.size} of {room.dtype}"
                )
        if not isinstance(operation, MPI.Op):
            raise MPIError(f"{operation!r} is not an operation: use Scientific.MPI.sum, .max ...")
        out, back = message, room
        if (
            message.dtype.kind == "c" and operation not in _SUM_OR_PRODUCT
        ):  # real and imaginary parts by themselves, as ever
            out, back = _parts(message), None if room is None else _parts(room)
        try:
            if root is None:
                self._comm.Allreduce(out, cast(Array, back), operation)
            else:
                self._comm.Reduce(out, back, operation, root)
        except (MPI.Exception, *_UNFIT) as error:
            _fail(error)
        if room is not None:
            _hand_over(room, receive)

    def abort(self, error_code: int) -> NoReturn:
        """End the whole job."""
        self._comm.Abort(error_code)
        raise SystemExit(error_code)

    def _refuse(self, destination: int, tag: int) -> NoReturn:
        if not 0 <= destination < self.size:
            raise MPIError(f"invalid MPI destination {destination}: ranks are 0 to {self.size - 1}")
        raise MPIError(f"invalid MPI tag {tag}: tags are 0 to {_LAST_TAG}")

    def __repr__(self) -> str:
        return f"<PyMPICommunicator: rank {self.rank} of {self.size}>"


#: The name of the type in the C module.
PyMPICommunicator = MPICommunicator

world = MPICommunicator(MPI.COMM_WORLD)


def _fail(error: Exception) -> NoReturn:
    if isinstance(error, MPI.Exception):
        raise MPIError(error.Get_error_code(), str(error)) from None
    raise MPIError(f"this array cannot be sent or received: {error.args[0]}") from None


def _message(data: Any) -> Any:
    """What to send: a contiguous array, or bytes."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, bytes):
        return _BYTES + data
    if isinstance(data, np.ndarray):
        return _array(data)
    raise MPIError(f"can send only array or string, not {type(data).__name__}")


def _array(data: Any) -> Array:
    if not isinstance(data, np.ndarray):
        raise MPIError(f"an array is needed, not {type(data).__name__}")
    if data.dtype.kind in "SU" or data.dtype.hasobject:
        return _characters(data)
    return data if data.flags.c_contiguous else data.copy()


def _characters(data: Array) -> Array:
    if data.dtype.kind != "S":
        raise MPIError(f"arrays of type {data.dtype} cannot be sent")
    return data.view(np.uint8) if data.flags.c_contiguous else data.copy().view(np.uint8)


def _room(data: Any) -> Array:
    """Where to receive what is for an array: the array itself if it is contiguous."""
    if not isinstance(data, np.ndarray):
        raise MPIError(f"an array is needed, not {type(data).__name__}")
    if not data.flags.writeable:
        raise MPIError("this array cannot be written to")
    if data.dtype.kind == "S" and data.flags.c_contiguous:
        return data.view(np.uint8)
    return data if data.flags.c_contiguous else np.ascontiguousarray(data)


def _hand_over(room: Array, array: Array) -> None:
    """Copy what was received into the script's array, if it is not there already."""
    if room is not array and not np.may_share_memory(room, array):
        array[...] = room


def _kind(code: str) -> np.dtype[Any]:
    """Element type for a type code."""
    try:
        kind = np.dtype("S1" if code == "c" else code)
    except TypeError:
        raise MPIError(f"{code!r} is not a type code; use N.Float, N.Int ...") from None
    if not kind.itemsize or kind.hasobject:
        raise MPIError(f"{code!r}: arrays of this type cannot be received")
    return kind


def _received(room: Array, array: Array | None, status: MPI.Status) -> tuple[Array, int, int, int]:
    """What a finished receive gives."""
    count, rest = divmod(status.Get_count(), room.itemsize)
    if rest:
        size = room.itemsize
        raise MPIError(
            f"buffer data type incompatible with message: {status.Get_count()} bytes are not a multiple of the size "
            f"{size} of its elements"
        )
    if array is None:
        array = room
    elif array is not room:
        _hand_over(room, array)
    return array, status.Get_source(), status.Get_tag(), count


def _string(data: bytearray) -> str | bytes:
    if data.startswith(_BYTES):
        return bytes(data[1:])
    try:
        return data.decode()
    except UnicodeDecodeError:  # an array was sent
        return bytes(data)


def _parts(data: Array) -> Array:
    return data.reshape(-1).view(data.real.dtype)
