"""What MYMPI's integers stand for: communicators, data types, operations, groups; and the errors of their use."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

__all__ = ["OPERATIONS", "TYPES", "Element", "Entry", "communicators", "element", "error", "info", "operation", "state"]


class error(Exception):
    """A call failed, or its arguments make no sense."""


class _State:
    """What MYMPI keeps for the whole process."""

    def __init__(self) -> None:
        self.code = MPI.SUCCESS  # what mpi_error() tells
        self.status = MPI.Status()  # what mpi_status() and mpi_get_count() tell
        self.spawn_codes: list[int] = []


state = _State()


class Entry:
    """A communicator, and what to do about errors on it.

    As a context it watches calls of MPI: their error code goes to `state`, and errors are raised, ignored or printed,
    as ``mpi_comm_set_errhandler`` asked for (0, 1, 2).
    """

    def __init__(self, comm: MPI.Comm, handler: int = 0) -> None:
        # For the type checker all are intracommunicators; the calls are the same for both kinds.
        self.comm: MPI.Intracomm = comm  # type: ignore[assignment]
        self.inter = comm if isinstance(comm, MPI.Intercomm) else None
        self.root = MPI.ROOT if self.inter is not None else comm.rank  # what the root calls itself
        self.handler = handler

    @property
    def peers(self) -> int:
        """How many ranks a root gathers from or scatters to."""
        return self.inter.remote_size if self.inter is not None else self.comm.size

    def __enter__(self) -> None:
        pass

    def failed(self, failure: MPI.Exception) -> None:
        """Treat an error as ``mpi_comm_set_errhandler`` asked for; for calls that are too fast for a context."""
        state.code = failure.Get_error_code()
        if self.handler == 0:
            raise error(f"{failure} (code {state.code})") from failure
        if self.handler == 2:
            print(f"mpi generated the error {state.code}", flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if failure is None:
            state.code = MPI.SUCCESS
            return False
        if not isinstance(failure, MPI.Exception):
            return False
        self.failed(failure)
        return True


class _Communicators(dict[int, Entry]):
    """Entries by handle. Others are never given to MPI: not every library survives a handle that it did not make."""

    closed = False

    def __missing__(self, handle: int) -> Entry:
        if self.closed:
            raise error("MPI has ended: this call comes after mpi_finalize")
        if type(handle) is not int and _whole(handle, "communicator") in self:
            return self[int(handle)]
        raise error(
            f"{handle!r} is not a communicator: use mpi.MPI_COMM_WORLD, or what mpi_comm_split, mpi_comm_dup ... gave"
        )

    def add(self, comm: MPI.Comm, parent: Entry) -> int:
        """Handle of a new communicator, which inherits how errors are treated."""
        if comm != MPI.COMM_NULL:
            self[comm.handle] = Entry(comm, parent.handler)
        return comm.handle

    def close(self) -> None:
        """Let every call fail from now on."""
        self.clear()
        self.closed = True


communicators = _Communicators()
communicators[MPI.COMM_WORLD.handle] = Entry(MPI.COMM_WORLD)
communicators[MPI.COMM_SELF.handle] = Entry(MPI.COMM_SELF)


class Element(NamedTuple):
    """How elements of an MPI data type look in arrays."""

    kind: np.dtype[Any]
    datatype: MPI.Datatype
    width: int = 1  # array elements for one of MPI's


def _pair(value: str) -> np.dtype[Any]:
    return np.dtype([("value", value), ("index", np.intc)], align=True)


_ELEMENTS = [
    Element(np.dtype(np.intc), MPI.INT),
    Element(np.dtype(np.float32), MPI.FLOAT),
    Element(np.dtype(np.float64), MPI.DOUBLE),
    Element(np.dtype("S1"), MPI.CHAR),
    Element(np.dtype(np.int8), MPI.BYTE),
    Element(np.dtype(np.short), MPI.SHORT),
    Element(np.dtype("l"), MPI.LONG),
    Element(np.dtype(np.longlong), MPI.LONG_LONG),
    Element(np.dtype(np.uint8), MPI.UNSIGNED_CHAR),
    Element(np.dtype(np.ushort), MPI.UNSIGNED_SHORT),
    Element(np.dtype(np.uintc), MPI.UNSIGNED),
    Element(np.dtype("L"), MPI.UNSIGNED_LONG),
    Element(np.dtype(np.longdouble), MPI.LONG_DOUBLE),
    Element(np.dtype(np.uint8), MPI.PACKED),
    Element(np.dtype(np.intc), MPI.TWOINT, 2),
    Element(_pair("f4"), MPI.FLOAT_INT),
    Element(_pair("f8"), MPI.DOUBLE_INT),
    Element(_pair("l"), MPI.LONG_INT),
    Element(_pair("i2"), MPI.SHORT_INT),
    Element(_pair("g"), MPI.LONG_DOUBLE_INT),
]

#: By handle: how an MPI data type looks in arrays.
TYPES = {item.datatype.handle: item for item in _ELEMENTS}

#: Operations by handle.
OPERATIONS = {
    op.handle: op
    for op in (
        MPI.MAX, MPI.MIN, MPI.SUM, MPI.PROD, MPI.LAND, MPI.BAND, MPI.LOR, MPI.BOR, MPI.LXOR, MPI.BXOR,
        MPI.MINLOC, MPI.MAXLOC,
    )
}  # fmt: skip


def _whole(value: Any, what: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: an integer is needed, not {value!r}") from None


def element(datatype: Any) -> Element:
    """The element type with this handle."""
    found = TYPES.get(datatype)
    if found is None:
        raise error(
            f"{datatype!r} is not a data type: use mpi.MPI_INT, mpi.MPI_FLOAT, mpi.MPI_DOUBLE, mpi.MPI_CHAR ..."
        )
    return found


def operation(op: Any) -> MPI.Op:
    """The operation with this handle."""
    found = OPERATIONS.get(op)
    if found is None:
        raise error(f"{op!r} is not an operation: use mpi.MPI_SUM, mpi.MPI_MAX ...")
    return found


def info(handle: Any) -> MPI.Info:
    """The info object with this handle; MYMPI cannot make any."""
    if handle != MPI.INFO_NULL.handle:
        raise error(f"{handle!r} is not an info object: use mpi.MPI_INFO_NULL")
    return MPI.INFO_NULL
