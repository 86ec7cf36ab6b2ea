"""Start and end, groups, communicators, new processes, shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from limosa.dialects.mympi.handles import communicators, error, info, state

__all__ = [
    "mpi_array_of_errcodes",
    "mpi_attr_get",
    "mpi_close_port",
    "mpi_comm_accept",
    "mpi_comm_connect",
    "mpi_comm_create",
    "mpi_comm_disconnect",
    "mpi_comm_dup",
    "mpi_comm_free",
    "mpi_comm_get_parent",
    "mpi_comm_group",
    "mpi_comm_rank",
    "mpi_comm_set_errhandler",
    "mpi_comm_size",
    "mpi_comm_spawn",
    "mpi_comm_split",
    "mpi_comm_split_type",
    "mpi_finalize",
    "mpi_get_processor_name",
    "mpi_group_incl",
    "mpi_group_rank",
    "mpi_init",
    "mpi_intercomm_merge",
    "mpi_open_port",
    "mpi_start",
    "mpi_win_allocate_shared",
    "mpi_win_free",
    "mpi_win_shared_query",
    "mpi_wtick",
    "mpi_wtime",
]

T = TypeVar("T")

_WORLD = MPI.COMM_WORLD.handle

# What else has handles.
_groups: dict[int, MPI.Group] = {}
_windows: dict[int, MPI.Win] = {}


def _checked(call: Callable[[], T]) -> T:
    """Result of a call that concerns no communicator in particular; its errors are those of the world."""
    result: list[T] = []
    with communicators[_WORLD]:
        result.append(call())
    if not result:
        raise error(f"there is no result, because of an error (code {state.code})")
    return result[0]


def _found(things: dict[int, T], handle: Any, what: str) -> T:
    if handle not in things:
        raise error(f"{handle!r} is not a {what}")
    return things[handle]


# --- start and end
# -----------------------------------------------------------------------------------------------------------


def mpi_init(argc: int = 0, argv: Sequence[str] = (), /) -> tuple[str, ...]:
    """Start MPI (it has been since the import). Gives `argv` back as a tuple."""
    communicators[_WORLD]  # after mpi_finalize this says so
    return tuple(argv)[:argc]


def mpi_start(argc: int, command: str, /) -> np.ndarray[Any, np.dtype[Any]]:
    """Start MPI in the older way. Gives rank and size."""
    mpi_init(argc, command.split())
    return np.array([mpi_comm_rank(_WORLD), mpi_comm_size(_WORLD)], np.intc)


def mpi_finalize() -> int:
    """End MPI; where it is forgotten, it happens at the end of the script. Gives the error code."""
    if not communicators.closed:
        communicators.close()
        MPI.Finalize()
    return MPI.SUCCESS


def mpi_get_processor_name() -> str:
    """Name of this machine."""
    return MPI.Get_processor_name()


def mpi_wtime() -> float:
    """Time in seconds."""
    return MPI.Wtime()


def mpi_wtick() -> float:
    """Resolution of `mpi_wtime` in seconds."""
    return MPI.Wtick()


# --- groups and communicators
# ------------------------------------------------------------------------------------------------


def mpi_comm_rank(comm: int, /) -> int:
    """Rank of this process."""
    return communicators[comm].comm.Get_rank()


def mpi_comm_size(comm: int, /) -> int:
    """Number of processes."""
    return communicators[comm].comm.Get_size()


def mpi_attr_get(comm: int, keyval: int, /) -> int:
    """Value of an attribute, such as ``MPI_TAG_UB``."""
    entry = communicators[comm]
    value = None
    with entry:
        value = entry.comm.Get_attr(keyval)
    if value is None:
        raise error(f"the attribute {keyval} is not set on this communicator")
    return int(value)


def mpi_comm_group(comm: int, /) -> int:
    """Group of a communicator."""
    return _new_group(_checked(communicators[comm].comm.Get_group))


def _new_group(group: MPI.Group) -> int:
    _groups[group.handle] = group
    return group.handle


def mpi_group_incl(group: int, n: int, ranks: Any, /) -> int:
    """Group of the first `n` of some ranks of a group."""
    members = [int(rank) for rank in np.ravel(ranks)]
    if len(members) < n:
        raise error(f"{n} ranks are to be included, but there are only {len(members)}")
    return _new_group(_checked(lambda: _found(_groups, group, "group").Incl(members[:n])))


def mpi_group_rank(group: int, /) -> int:
    """Rank of this process in a group, or MPI_UNDEFINED."""
    return _checked(_found(_groups, group, "group").Get_rank)


def mpi_comm_create(comm: int, group: int, /) -> int:
    """Communicator of a group; MPI_COMM_NULL on processes that are not in it."""
    entry = communicators[comm]
    return communicators.add(_checked(lambda: entry.comm.Create(_found(_groups, group, "group"))), entry)


def mpi_comm_dup(comm: int, /) -> int:
    """Another communicator of the same processes."""
    entry = communicators[comm]
    return communicators.add(_checked(entry.comm.Dup), entry)


def mpi_comm_split(comm: int, color: int, key: int, /) -> int:
    """Communicator of the processes with the same colour, in the order of their keys."""
    entry = communicators[comm]
    return communicators.add(_checked(lambda: entry.comm.Split(color, key)), entry)


def mpi_comm_split_type(comm: int, split_type: int, key: int, info_handle: int, /) -> int:
    """Communicator of the processes that have something in common, such as MPI_COMM_TYPE_SHARED."""
    entry = communicators[comm]
    return communicators.add(_checked(lambda: entry.comm.Split_type(split_type, key, info(info_handle))), entry)


def mpi_comm_free(comm: int, /) -> int:
    """Free a communicator. Gives the error code."""
    entry = communicators[comm]
    with entry:
        entry.comm.Free()
        del communicators[comm]
    return state.code


def mpi_comm_set_errhandler(comm: int, n: int, /) -> int:
    """Choose what errors do: 0 raises them, which ends the job; 1 leaves the code in ``mpi_error()``; 2 prints it."""
    if n not in {0, 1, 2}:
        raise error(f"error handler {n}: choose 0 (end the job), 1 (return the code) or 2 (print the code)")
    communicators[comm].handler = n
    return MPI.SUCCESS


# --- new processes
# -----------------------------------------------------------------------------------------------------------


def mpi_comm_spawn(command: str, argv: Any, maxprocs: int, info_handle: int, root: int, comm: int, /) -> int:
    """Start processes. Gives an intercommunicator."""
    entry = communicators[comm]
    arguments = [argv] if isinstance(argv, str) and argv else [str(argument) for argument in argv or ()]
    codes: list[int] = []
    made = _checked(lambda: entry.comm.Spawn(command, arguments, maxprocs, info(info_handle), root, codes))
    state.spawn_codes = codes
    return communicators.add(made, entry)


def mpi_array_of_errcodes() -> np.ndarray[Any, np.dtype[Any]]:
    """Error codes of the processes of the last `mpi_comm_spawn`."""
    return np.array(state.spawn_codes, np.intc)


def mpi_comm_get_parent() -> int:
    """Intercommunicator to the processes that started this one, or MPI_COMM_NULL."""
    return communicators.add(_checked(MPI.Comm.Get_parent), communicators[_WORLD])


def mpi_intercomm_merge(comm: int, high: int, /) -> int:
    """Communicator of both sides of an intercommunicator."""
    entry = communicators[comm]
    inter: Any = entry.comm
    return communicators.add(_checked(lambda: inter.Merge(bool(high))), entry)


def mpi_open_port(info_handle: int, /) -> str:
    """Name under which other jobs can connect."""
    return _checked(lambda: MPI.Open_port(info(info_handle)))


def mpi_close_port(name: str, /) -> int:
    """Give up such a name. Gives the error code."""
    _checked(lambda: MPI.Close_port(name))
    return state.code


def mpi_comm_accept(port: str, info_handle: int, root: int, comm: int, /) -> int:
    """Wait for another job to connect. Gives an intercommunicator."""
    entry = communicators[comm]
    return communicators.add(_checked(lambda: entry.comm.Accept(port, info(info_handle), root)), entry)


def mpi_comm_connect(port: str, info_handle: int, root: int, comm: int, /) -> int:
    """Connect to another job. Gives an intercommunicator."""
    entry = communicators[comm]
    return communicators.add(_checked(lambda: entry.comm.Connect(port, info(info_handle), root)), entry)


def mpi_comm_disconnect(comm: int, /) -> int:
    """End such a connection. Gives the error code."""
    entry = communicators[comm]
    with entry:
        entry.comm.Disconnect()
        del communicators[comm]
    return state.code


# --- shared memory
# -----------------------------------------------------------------------------------------------------------


def mpi_win_allocate_shared(size: int, disp_unit: int, info_handle: int, comm: int, /) -> tuple[int, int]:
    """Allocate memory that all processes of a communicator see. Gives the window and the address of one's own part."""
    entry = communicators[comm]
    window = _checked(lambda: MPI.Win.Allocate_shared(size, disp_unit, info(info_handle), entry.comm))
    _windows[window.handle] = window
    return window.handle, window.tomemory().address


def mpi_win_shared_query(window: int, rank: int, /) -> tuple[int]:
    """Address of a rank's part of such memory."""
    memory, _ = _checked(lambda: _found(_windows, window, "window").Shared_query(rank))
    return (memory.address,)


def mpi_win_free(window: int, /) -> int:
    """Free such memory. Gives the error code."""
    _checked(_found(_windows, window, "window").Free)
    del _windows[window]
    return state.code
