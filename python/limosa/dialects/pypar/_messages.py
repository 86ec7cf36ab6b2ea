"""Messages between two ranks: send, receive, and the functions for buffered sends.

There are two forms, and both sides must agree on one, as in pypar:

- *raw* (``use_buffer=True`` or ``bypass=True`` / ``buffer=...``): the payload alone, an ordinary MPI message.
- *described* (the default): see `limosa.dialects._wire`.
"""

import ast
import pickle
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy import ndarray

from limosa.dialects._wire import MARKS, NUMBER_TYPES, Array, WrongFormError, contiguous, pack, pickled
from limosa.dialects.pypar._base import (
    TEXT_TYPES,
    any_source,
    channel,
    check_rank,
    check_tag,
    comm,
    control_data_max_size,
    control_sep,
    control_tag,
    default_tag,
    is_array,
    to_bytes,
    warn_of_string,
)

__all__ = [
    "Status",
    "alloc",
    "alloc_and_attach",
    "array_push_for_alloc_and_attach",
    "attach",
    "bsend",
    "bsend_array",
    "bsend_string",
    "create_control_info",
    "dealloc",
    "detach",
    "detach_and_dealloc",
    "mpi_alloc",
    "mpi_alloc_and_attach",
    "mpi_attach",
    "mpi_dealloc",
    "mpi_detach",
    "mpi_detach_and_dealloc",
    "push_for_alloc",
    "raw_receive",
    "raw_send",
    "receive",
    "receive_array",
    "receive_control_info",
    "receive_string",
    "send",
    "send_array",
    "send_control_info",
    "send_string",
    "string_push_for_alloc_and_attach",
]

StatusTuple = tuple[int, int, int, int, int]
ControlInfo = list[Any]
_BYTE = MPI.BYTE
_About = tuple[np.dtype[Any] | None, int | None]  # type of the elements and bytes of a payload, as far as known


class Status:
    """What `receive` tells about a message when called with ``return_status=True``.

    Attributes
    ----------
    source, tag
        Rank of the sender and tag.
    error
        MPI error code.
    length
        Number of elements; a complex number counts as two.
    size
        Bytes of one element.
    """

    def __init__(self, status_tuple: StatusTuple) -> None:
        self.source, self.tag, self.error, self.length, self.size = status_tuple

    def __repr__(self) -> str:
        fields = "".join(f"  {name}={value}\n" for name, value in vars(self).items())
        return "Pypar Status Object:\n" + fields

    def bytes(self) -> int:
        """Give the number of bytes of the payload."""
        return self.length * self.size


def _status_tuple(status: MPI.Status, dtype: np.dtype[Any] | None = None, nbytes: int | None = None) -> StatusTuple:
    if nbytes is None:
        nbytes = status.Get_count(MPI.BYTE)
    size = 1 if dtype is None else dtype.itemsize // (2 if dtype.kind == "c" else 1)
    return status.source, status.tag, status.error, nbytes // size, size


# --- raw messages: pypar's functions in C
# ------------------------------------------------------------------------------


def send_array(x: Any, destination: int, tag: int) -> None:
    """Send the elements of an array, or of a list or tuple of numbers, and nothing else."""
    comm.Send(contiguous(x) if type(x) is ndarray else np.ascontiguousarray(x), destination, tag)


def bsend_array(x: Any, destination: int, tag: int) -> None:
    """As `send_array`, buffered."""
    comm.Bsend(contiguous(x) if type(x) is ndarray else np.ascontiguousarray(x), destination, tag)


def _receive_into(buffer: Array, source: int, tag: int, status: MPI.Status | None) -> None:
    if buffer.flags.c_contiguous:
        comm.Recv(buffer, source, tag, status)
    else:
        copy = np.ascontiguousarray(buffer)
        comm.Recv(copy, source, tag, status)
        buffer[...] = copy


def receive_array(buffer: Array, source: int, tag: int) -> StatusTuple:
    """Receive elements into an array; give (source, tag, error, length, size)."""
    status = MPI.Status()
    _receive_into(buffer, source, tag, status)
    return _status_tuple(status, buffer.dtype)


def send_string(x: str | bytes | bytearray, destination: int, tag: int) -> None:
    """Send text or bytes and nothing else."""
    comm.Send(to_bytes(x), destination, tag)


def bsend_string(x: str | bytes | bytearray, destination: int, tag: int) -> None:
    """As `send_string`, buffered."""
    comm.Bsend(to_bytes(x), destination, tag)


def receive_string(buffer: bytearray, source: int, tag: int) -> StatusTuple:
    """Receive bytes into a bytearray (Python's strings cannot be changed); give (source, tag, error, length, size)."""
    if not isinstance(buffer, bytearray):
        raise TypeError(
            f"pypar: receive_string fills its buffer, so it must be a bytearray, not {type(buffer).__name__}; or use "
            "receive()"
        )
    status = MPI.Status()
    comm.Recv(buffer, source, tag, status)
    return _status_tuple(status)


def _receive_bytes(source: int, tag: int, status: MPI.Status) -> bytearray:
    message = comm.Mprobe(source, tag, status)
    received = bytearray(status.Get_count(MPI.BYTE))
    message.Recv(received, status)
    return received


# --- send and receive
# --------------------------------------------------------------------------------------------------


def send(
    x: Any,
    destination: int,
    use_buffer: bool = False,
    vanilla: object = False,
    tag: int = default_tag,
    bypass: bool = False,
) -> None:
    """Send x to another rank.

    Parameters
    ----------
    x
        Anything that can be pickled. Arrays of numbers, text and bytes are sent as they are.
    destination
        Rank of the receiver.
    use_buffer
        Send the payload alone; the receiver calls `receive` with ``buffer=``.
    vanilla
        Pickle x whatever it is.
    tag
        Tag of the message.
    bypass
        Send an array (or a list of numbers) without any checks; the receiver says ``bypass=True`` and ``buffer=`` too.

    Raises
    ------
    AssertionError
        `destination` is no integer, or `tag` is the one that pypar reserves.
    """
    if bypass:
        comm.Send(x if type(x) is ndarray and x.flags.c_contiguous else np.ascontiguousarray(x), destination, tag)
        return
    if type(destination) is not int:
        check_rank(destination, "Destination")
    if tag == control_tag or type(tag) is not int:
        check_tag(tag)
    if not use_buffer:
        channel.send(pack(x, vanilla), destination, tag)
    elif type(x) is ndarray and not vanilla and x.flags.c_contiguous and x.dtype in NUMBER_TYPES:
        comm.Send(x, destination, tag)
    else:
        comm.Send(pack(x, vanilla)[1], destination, tag)


def receive(
    source: int,
    buffer: Any = None,
    vanilla: object = False,
    tag: int = default_tag,
    return_status: bool = False,
    bypass: bool = False,
) -> Any:
    """Receive what another rank sends.

    Parameters
    ----------
    source
        Rank of the sender, or `any_source`.
    buffer
        Something of the kind that will come, for a sender that says ``use_buffer=True``. An array or bytearray is
        filled.
    vanilla
        With `buffer`: what comes is pickled, whatever `buffer` is.
    tag
        Tag of the message, or `any_tag`. Without it only messages of tag 1 are received.
    return_status
        Give a `Status` too.
    bypass
        Fill `buffer` with an array, without any checks.

    Returns
    -------
    object or (object, Status)
        Without `buffer` a new object; with it `buffer` itself, if that is an array or a bytearray. A string shorter
        than `buffer` is filled up from it.

    Raises
    ------
    AssertionError
        `source` is no integer, or `tag` is the one that pypar reserves.
    RuntimeError
        The sender used the other form of message.
    """
    if bypass:
        if return_status:
            return buffer, Status(receive_array(buffer, source, tag))
        if buffer.flags.c_contiguous:
            comm.Recv(buffer, source, tag)
        else:
            _receive_into(buffer, source, tag, None)
        return buffer
    warn_of_string("receive", buffer)
    if type(source) is not int:
        check_rank(source, "Source")
    if tag == control_tag or type(tag) is not int:
        check_tag(tag)
    status = MPI.Status()
    if buffer is None:
        value, about = _receive_described(source, tag, status)
    elif type(buffer) is ndarray and not vanilla and buffer.flags.c_contiguous and buffer.dtype in NUMBER_TYPES:
        comm.Recv(buffer, source, tag, status)
        count = status.Get_count(_BYTE)
        if count != buffer.nbytes:
            _check_form(buffer, status)
        value, about = buffer, (buffer.dtype, count)
    else:
        value, about = _receive_raw(buffer, vanilla, source, tag, status)
    return (value, Status(_status_tuple(status, *about))) if return_status else value


def _receive_described(source: int, tag: int, status: MPI.Status) -> tuple[Any, _About]:
    """Receive what describes itself."""
    try:
        arrival = channel.receive(source, tag, status)
    except WrongFormError:
        raise _wrong_form(
            status, "without a description", "receive it with buffer=, or send it without use_buffer and bypass"
        ) from None
    return arrival.value, (arrival.description.dtype, arrival.description.nbytes)


def _receive_raw(buffer: Any, vanilla: object, source: int, tag: int, status: MPI.Status) -> tuple[Any, _About]:
    """Receive a payload alone; `buffer` says what it is."""
    if not vanilla and is_array(buffer):
        _receive_into(buffer, source, tag, status)
        _check_form(buffer, status)
        return buffer, (buffer.dtype, None)
    if not vanilla and type(buffer) is bytearray:
        comm.Recv(buffer, source, tag, status)
        return buffer, (None, None)
    payload = _receive_bytes(source, tag, status)
    if payload.startswith(MARKS):
        raise _wrong_form(status, "with a description", "send it with use_buffer=True, or receive it without buffer=")
    if vanilla or type(buffer) not in TEXT_TYPES:
        return pickle.loads(payload), (None, None)  # noqa: S301 - as above
    text: str | bytes = payload.decode() if type(buffer) is str else bytes(payload)
    return text + buffer[len(text) :], (None, None)


def _check_form(buffer: Array, status: MPI.Status) -> None:
    """Refuse what describes itself, in a buffer that a raw message was expected in."""
    if contiguous(buffer).tobytes().startswith(MARKS):
        raise _wrong_form(status, "with a description", "send it with use_buffer=True, or receive it without buffer=")


def _wrong_form(status: MPI.Status, how: str, cure: str) -> RuntimeError:
    return RuntimeError(f"pypar: the message from rank {status.source} with tag {status.tag} was sent {how}: {cure}")


# --- control information, for scripts that make their own protocols
# ------------------------------------------------------


def create_control_info(x: Any, vanilla: object = 0, return_object: bool = False) -> Any:
    """Give ``[protocol, typecode, size, shape]`` of x, and with `return_object` what would be sent."""
    if not vanilla and is_array(x):
        info: ControlInfo = ["array", x.dtype.char, x.size, x.shape]
    elif not vanilla and type(x) in TEXT_TYPES:
        info = ["string", "c", len(to_bytes(x)), ()]
    else:
        x = pickled(x)
        info = ["vanilla", " ", len(x), ()]
    return (info, x) if return_object else info


def send_control_info(control_info: ControlInfo, destination: int) -> None:
    """Send control information as a string on `control_tag`."""
    text = control_sep.join(map(str, control_info))
    if len(text) > control_data_max_size:
        raise ValueError(
            f"pypar: control information of {len(text)} characters exceeds the maximum of {control_data_max_size}"
        )
    send_string(text, destination, control_tag)


def receive_control_info(source: int, return_source: bool = False) -> Any:
    """Receive what `send_control_info` sent; with `return_source` also its source."""
    text = bytearray(control_data_max_size)
    status = receive_string(text, source, control_tag)
    protocol, typecode, size, shape = text[: status[3]].decode().split(control_sep)
    info = [protocol, typecode, int(size), ast.literal_eval(shape)]
    return (info, status[0]) if return_source else info


# --- buffered sends
# --------------------------------------------------------------------------------------------------------


class _Attached:
    """The memory of buffered sends, and how much was asked for so far."""

    memory: Any = None
    pushed = 0


def bsend(
    x: Any,
    destination: int,
    use_buffer: bool = False,
    vanilla: object = False,
    tag: int = default_tag,
    bypass: bool = False,
) -> None:
    """As `send`, but the payload is copied to the attached buffer and the call returns at once.

    Raises
    ------
    RuntimeError
        No buffer is attached, or it has not enough space.
    """
    if bypass:
        bsend_array(x, destination, tag)
        return
    check_rank(destination, "Destination")
    check_tag(tag)
    packed = pack(x, vanilla)
    if use_buffer:
        comm.Bsend(packed[1], destination, tag)
    else:
        channel.bsend(packed, destination, tag)


def _push(nbytes: int) -> int:
    _Attached.pushed += nbytes + MPI.BSEND_OVERHEAD
    return _Attached.pushed


def array_push_for_alloc_and_attach(x: Any) -> int:
    """Add the space of an array to what `alloc` takes; give the total in bytes."""
    return _push(np.asarray(x).nbytes)


def string_push_for_alloc_and_attach(x: str | bytes | bytearray) -> int:
    """Add the space of a string to what `alloc` takes; give the total in bytes."""
    return _push(len(to_bytes(x)))


def push_for_alloc(x: Any, vanilla: object = False, use_buffer: bool = False, bypass: bool = False) -> int:
    """Add the space that ``bsend(x, ...)`` needs to what `alloc` takes; give the total in bytes."""
    if bypass:
        return array_push_for_alloc_and_attach(x)
    return _push(pack(x, vanilla)[2])


def alloc(nbytes: int = -1) -> int:
    """Allocate the buffer: so many bytes, or what was asked for by `push_for_alloc`. Gives its size."""
    if nbytes < 0:
        nbytes = _Attached.pushed
    if nbytes <= 0:
        raise RuntimeError("pypar: alloc() needs a size, or push_for_alloc() before it")
    if _Attached.memory is not None:
        raise RuntimeError("pypar: there is a buffer already; dealloc() or detach_and_dealloc() it first")
    _Attached.memory = bytearray(nbytes)
    return nbytes


def attach() -> None:
    """Let buffered sends use the buffer."""
    if _Attached.memory is None:
        raise RuntimeError("pypar: attach() without a buffer; call alloc() first")
    MPI.Attach_buffer(_Attached.memory)


def detach() -> None:
    """Wait until everything in the buffer has been sent, and take the buffer back."""
    MPI.Detach_buffer()


def dealloc() -> None:
    """Free the buffer."""
    _Attached.memory = None
    _Attached.pushed = 0


def alloc_and_attach() -> None:
    """Allocate and attach the buffer that was asked for by `push_for_alloc`."""
    alloc()
    attach()


def detach_and_dealloc() -> None:
    """Detach and free the buffer; what was asked for is forgotten."""
    detach()
    dealloc()


mpi_alloc, mpi_attach, mpi_detach, mpi_dealloc = alloc, attach, detach, dealloc
mpi_alloc_and_attach, mpi_detach_and_dealloc = alloc_and_attach, detach_and_dealloc


# --- names of pypar 1.9
# ----------------------------------------------------------------------------------------------------


def raw_send(x: Any, destination: int, tag: int = default_tag, vanilla: object = 0) -> None:
    """As in pypar 1.9: `send` with ``use_buffer=True``."""
    send(x, destination, use_buffer=True, vanilla=vanilla, tag=tag)


def raw_receive(
    x: Any, source: int = any_source, tag: int = default_tag, vanilla: object = 0, return_status: bool = False
) -> Any:
    """As in pypar 1.9: `receive` with ``buffer=x``."""
    return receive(source, buffer=x, vanilla=vanilla, tag=tag, return_status=return_status)
