"""Workers of a pool that may die without ending the job, and how they have died.

On Limosa, a worker says by a hint of a communicator that the job goes on without it (`expendable`). Its death is then
an error of the calls that need it (`is_death`), and the communicator's info names it (`deaths`). With other libraries
the death of a process ends the job.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

from mpi4py import MPI

#: Seconds within which the launcher says how a process has ended, also on a machine that is very busy.
_LAUNCHER_TIME = 10.0


def is_death(error: BaseException) -> bool:
    """Tell whether an exception says that a process has died."""
    return isinstance(error, MPI.Exception) and error.Get_error_class() == MPI.ERR_PROC_ABORTED


def deaths(comm: MPI.Comm, member: str = "rank", within: float = _LAUNCHER_TIME) -> str:
    """Give which ranks have died and how, in a sentence; nothing where the library does not tell.

    Of an intercommunicator these are ranks of the remote group. `member` is what a rank is called; `within` are the
    seconds in which there is a death at all.
    """
    until = time.monotonic() + within
    while True:
        info = comm.Get_info()
        found = info.Get("limosa_deaths")
        info.Free()
        if found or time.monotonic() > until:
            break
        time.sleep(0.01)  # the launcher hears of the end of a process a little later
    ends = (map(int, each.split(":")) for each in (found or "").split(",") if each)
    return "; ".join(f"{member} {rank} of the pool {_how(status)}" for rank, status in ends)


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with code {code}"
    name = next((f" ({each.name})" for each in signal.Signals if each == -code), "")
    return f"was killed by signal {-code}{name}"


@contextlib.contextmanager
def expendable(comm: MPI.Comm) -> Iterator[None]:
    """Let the job go on if this process dies within the block; Limosa's launcher does."""
    _hint(comm, "true")
    try:
        yield
    finally:
        _hint(comm, "false")


def _hint(comm: MPI.Comm, is_expendable: str) -> None:
    if MPI.Get_library_version().startswith("Limosa"):
        info = MPI.Info.Create()
        info.Set("limosa_expendable", is_expendable)
        comm.Set_info(info)
        info.Free()
