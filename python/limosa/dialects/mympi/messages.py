"""Messages and collectives: data goes in as anything NumPy makes an array of, and comes out as a new flat array."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy import empty, ndarray

from limosa.dialects.mympi.handles import OPERATIONS, TYPES, Element, communicators, element, error, operation, state
from limosa.dialects.mympi.memory import FEW, new_array, new_copy

__all__ = [
    "mpi_alltoall",
    "mpi_alltoallv",
    "mpi_barrier",
    "mpi_bcast",
    "mpi_error",
    "mpi_gather",
    "mpi_gatherv",
    "mpi_get_count",
    "mpi_iprobe",
    "mpi_irecv",
    "mpi_isend",
    "mpi_probe",
    "mpi_recv",
    "mpi_reduce",
    "mpi_scatter",
    "mpi_scatterv",
    "mpi_send",
    "mpi_status",
    "mpi_test",
    "mpi_wait",
]

Array = np.ndarray[Any, np.dtype[Any]]


def _flat(data: Any, count: int, what: Element) -> Array:
    """At least `count` elements as a contiguous array."""
    if type(data) is np.ndarray and data.dtype is what.kind and data.flags.c_contiguous:
        array = data
    elif isinstance(data, (bytes, bytearray, str)):
        array = _from_bytes(data.encode() if isinstance(data, str) else data, what)
    else:
        array = np.asarray(data)
        if array.dtype != what.kind:
            array = array.view("S1") if what.kind.char == "S" and array.dtype.char == "S" else array.astype(what.kind)
        array = np.ascontiguousarray(array)
    if array.size < count * what.width:
        raise error(f"{count} elements are to be sent, but the data has {array.size // what.width}")
    return array


def _from_bytes(data: bytes | bytearray, what: Element) -> Array:
    if len(data) % what.kind.itemsize:
        raise error(
            f"{len(data)} bytes are not a multiple of the {what.kind.itemsize} bytes of an element; send "
            "bytes as MPI_CHAR"
        )
    return np.frombuffer(data, what.kind)


def _clear(array: Array, received: int) -> None:
    """Set to zero what was not received."""
    array[max(received, 0) :] = np.zeros((), array.dtype)


def _counts(values: Any, peers: int, what: str) -> list[int]:
    counts = [int(value) for value in np.ravel(values)]
    if len(counts) < peers:
        raise error(f"{what} has {len(counts)} entries, but there are {peers} processes")
    return counts[:peers]


def _extent(counts: list[int], displacements: list[int]) -> int:
    """Number of elements up to the last one used."""
    return max((start + count for count, start in zip(counts, displacements, strict=True) if count), default=0)


# The next four functions are as short as Python lets them be: half a microsecond is as much as a small message takes.
# An array that is right already is used as it is, and `failed` is called without a context.


def mpi_send(buf: Any, count: int, datatype: int, dest: int, tag: int, comm: int, /) -> int:
    """Send `count` elements of some data; bytes are sent as they are, whatever `count` says. Gives the error code."""
    entry, what = communicators[comm], TYPES.get(datatype) or element(datatype)
    if type(buf) is ndarray and buf.dtype is what.kind and buf.size == count * what.width and buf.flags.c_contiguous:
        array = buf
    elif type(buf) is bytes:
        array = _from_bytes(buf, what)
        count = array.size // what.width
    else:
        array = _flat(buf, count, what)
    try:
        entry.comm.Send((array, count, what.datatype), dest, tag)
        state.code = 0
    except MPI.Exception as failure:
        entry.failed(failure)
    return state.code


def mpi_recv(count: int, datatype: int, source: int, tag: int, comm: int, /) -> Array:
    """Receive into a new array of exactly `count` elements; zeros follow a shorter message."""
    entry, what = communicators[comm], TYPES.get(datatype) or element(datatype)
    result = empty(count * what.width, what.kind) if count < FEW else new_array(count * what.width, what.kind)
    status = state.status
    received = 0
    try:
        entry.comm.Recv((result, count, what.datatype), source, tag, status)
        received = status.Get_count(what.datatype)
        state.code = 0
    except MPI.Exception as failure:
        entry.failed(failure)
    if received != count:
        _clear(result, received * what.width)
    return result


def mpi_probe(source: int, tag: int, comm: int, /) -> int:
    """Wait for a message without receiving it; ``mpi_status()`` and ``mpi_get_count()`` tell about it. Gives 0."""
    entry = communicators[comm]
    with entry:
        entry.comm.Probe(source, tag, state.status)
    return 0


def mpi_iprobe(source: int, tag: int, comm: int, /) -> int:
    """Whether a message has arrived (1 or 0)."""
    entry = communicators[comm]
    with entry:
        return int(entry.comm.Iprobe(source, tag, state.status))
    return 0


def mpi_status() -> Array:
    """Source, tag and error of the last receive or probe."""
    status = state.status
    return np.array([status.source, status.tag, status.error], np.intc)


def mpi_get_count(*arguments: Any) -> int:
    """Number of elements of the last receive or probe, in units of a data type, the last argument."""
    return state.status.Get_count(element(arguments[-1] if arguments else None).datatype)


def mpi_error() -> int:
    """Error code of the last call."""
    return state.code


def _never_worked(name: str) -> Any:
    def call(*_arguments: Any) -> None:
        raise NotImplementedError(f"{name} never worked in MYMPI; use mpi_send, mpi_recv and mpi_iprobe")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Raise NotImplementedError: this never worked in MYMPI."
    return call


mpi_isend, mpi_irecv = _never_worked("mpi_isend"), _never_worked("mpi_irecv")
mpi_test, mpi_wait = _never_worked("mpi_test"), _never_worked("mpi_wait")


def mpi_barrier(comm: int, /) -> int:
    """Wait until every process has called this. Gives the error code."""
    entry = communicators[comm]
    with entry:
        entry.comm.Barrier()
    return state.code


def mpi_bcast(buf: Any, count: int, datatype: int, root: int, comm: int, /) -> Any:
    """Give every process the root's elements, as an array.

    If the root's data is bytes, the root gets the error code instead.
    """
    entry, what = communicators[comm], TYPES.get(datatype) or element(datatype)
    sends_bytes = False
    if root != entry.root:
        result = empty(count * what.width, what.kind) if count < FEW else new_array(count * what.width, what.kind)
        if root == MPI.PROC_NULL:
            _clear(result, 0)
    elif count < FEW and type(buf) is ndarray and buf.dtype is what.kind and buf.size == count * what.width:
        result = buf.flatten()
    else:
        sends_bytes = type(buf) is bytes
        array = _from_bytes(buf, what) if sends_bytes else _flat(buf, count, what)
        if sends_bytes:
            count = array.size // what.width
        result = new_copy(array, count * what.width)
    try:
        entry.comm.Bcast((result, count, what.datatype), root)
        state.code = 0
    except MPI.Exception as failure:
        entry.failed(failure)
        _clear(result, 0)
    return state.code if sends_bytes else result


def mpi_reduce(sendbuf: Any, count: int, datatype: int, op: int, root: int, comm: int, /) -> Array:
    """Combine everyone's elements on the root, which gets an array; the others get an empty one."""
    entry, what = communicators[comm], TYPES.get(datatype) or element(datatype)
    combine = OPERATIONS.get(op) or operation(op)
    array = sendbuf
    if (
        type(array) is not ndarray
        or array.dtype is not what.kind
        or array.size != count * what.width
        or not array.flags.c_contiguous
    ):
        array = _flat(sendbuf, count, what) if entry.inter is None or root >= 0 else empty(0, what.kind)
    send = (array, count, what.datatype)
    try:
        if root == entry.root:
            result = empty(count * what.width, what.kind) if count < FEW else new_array(count * what.width, what.kind)
            entry.comm.Reduce(send if entry.inter is None else None, (result, count, what.datatype), combine, root)
        else:
            result = empty(0, what.kind)
            entry.comm.Reduce(send if root >= 0 else None, None, combine, root)
        state.code = 0
    except MPI.Exception as failure:
        entry.failed(failure)
        _clear(result, 0)
    return result


def mpi_scatter(
    sendbuf: Any, sendcount: int, sendtype: int, recvcount: int, recvtype: int, root: int, comm: int, /
) -> Array:
    """Give each process its `sendcount` elements of the root's data, as an array."""
    entry, sent, got = communicators[comm], element(sendtype), element(recvtype)
    peers = entry.peers
    message = (_flat(sendbuf, sendcount * peers, sent), sendcount, sent.datatype) if root == entry.root else None
    result = np.zeros(recvcount * got.width, got.kind)
    with entry:
        entry.comm.Scatter(message, (result, recvcount, got.datatype), root)
    return result


def mpi_scatterv(
    sendbuf: Any, sendcounts: Any, displs: Any, sendtype: int, recvcount: int, recvtype: int, root: int, comm: int, /
) -> Array:
    """As `mpi_scatter`; the root says for each process how many elements, and where they begin."""
    entry, sent, got = communicators[comm], element(sendtype), element(recvtype)
    message: Any = None
    if root == entry.root:
        counts, starts = _counts(sendcounts, entry.peers, "sendcounts"), _counts(displs, entry.peers, "displs")
        message = (_flat(sendbuf, _extent(counts, starts), sent), counts, starts, sent.datatype)
    result = np.zeros(recvcount * got.width, got.kind)
    with entry:
        entry.comm.Scatterv(message, (result, recvcount, got.datatype), root)
    return result


def mpi_gather(
    sendbuf: Any, sendcount: int, sendtype: int, recvcount: int, recvtype: int, root: int, comm: int, /
) -> Array:
    """Join everyone's elements on the root, which gets an array; the others get an empty one."""
    entry, sent, got = communicators[comm], element(sendtype), element(recvtype)
    receives = root == entry.root
    message = (
        None if entry.inter is not None and root < 0 else (_flat(sendbuf, sendcount, sent), sendcount, sent.datatype)
    )
    result = np.zeros(recvcount * got.width * entry.peers if receives else 0, got.kind)
    with entry:
        entry.comm.Gather(message, (result, recvcount, got.datatype) if receives else None, root)
    return result


def mpi_gatherv(
    sendbuf: Any, sendcount: int, sendtype: int, recvcounts: Any, displs: Any, recvtype: int, root: int, comm: int, /
) -> Array:
    """As `mpi_gather`; the root says for each process how many elements come, and where they go."""
    entry, sent, got = communicators[comm], element(sendtype), element(recvtype)
    message = (
        None if entry.inter is not None and root < 0 else (_flat(sendbuf, sendcount, sent), sendcount, sent.datatype)
    )
    receive: Any = None
    result = np.zeros(0, got.kind)
    if root == entry.root:
        counts, starts = _counts(recvcounts, entry.peers, "recvcounts"), _counts(displs, entry.peers, "displs")
        result = np.zeros(_extent(counts, starts) * got.width, got.kind)
        receive = (result, counts, starts, got.datatype)
    with entry:
        entry.comm.Gatherv(message, receive, root)
    return result


def mpi_alltoall(sendbuf: Any, sendcount: int, sendtype: int, recvcount: int, recvtype: int, comm: int, /) -> Array:
    """Give each process its `sendcount` elements of everyone's data, as an array in the order of ranks."""
    entry, sent, got = communicators[comm], element(sendtype), element(recvtype)
    peers = entry.peers
    array = _flat(sendbuf, sendcount * peers, sent)
    result = np.zeros(recvcount * got.width * peers, got.kind)
    with entry:
        entry.comm.Alltoall((array, sendcount, sent.datatype), (result, recvcount, got.datatype))
    return result


def mpi_alltoallv(
    sendbuf: Any,
    sendcounts: Any,
    sdispls: Any,
    sendtype: int,
    recvcounts: Any,
    rdispls: Any,
    recvtype: int,
    comm: int,
    /,
) -> Array:
    """As `mpi_alltoall`, with a number of elements and a place for each process on both sides."""
    entry, sent, got = communicators[comm], element(sendtype), element(recvtype)
    peers = entry.peers
    out, out_starts = _counts(sendcounts, peers, "sendcounts"), _counts(sdispls, peers, "sdispls")
    back, back_starts = _counts(recvcounts, peers, "recvcounts"), _counts(rdispls, peers, "rdispls")
    array = _flat(sendbuf, _extent(out, out_starts), sent)
    result = np.zeros(_extent(back, back_starts) * got.width, got.kind)
    with entry:
        entry.comm.Alltoallv((array, out, out_starts, sent.datatype), (result, back, back_starts, got.datatype))
    return result
