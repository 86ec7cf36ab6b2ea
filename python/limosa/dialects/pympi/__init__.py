"""pyMPI's interface (version 2): ``import mpi`` in scripts that were run by the ``pyMPI`` interpreter.

Every operation is a method of a communicator (`communicators.Communicator`), and the methods of ``mpi.WORLD`` are
functions of this module: ``mpi.send`` is ``mpi.WORLD.send``. Messages are any Python objects; results are returned::

    import mpi

    if mpi.rank == 0:
        mpi.send({"answer": 42}, 1)
    elif mpi.rank == 1:
        message, status = mpi.recv()
    total = mpi.allreduce(mpi.rank, mpi.SUM)

Scripts run under any Python: ``limosa run -n 4 script.py``. MPI starts at the import.

Differs from upstream on purpose:

===================================== ========================================= ========================================
what                                  pyMPI                                     here
===================================== ========================================= ========================================
keywords of ``bcast``                 dropped: ``root=1`` meant 0               honoured
``testall``                           always ``[]``                             all statuses once all requests are done
error in a function given to          returned as if it were the value, or None raised on every rank
``allreduce``, ``scan``
collectives                           on the script's communicator, could be    apart from messages
                                      caught by ``recv`` with wildcards
``waitany``                           polls                                     sleeps
too short sequence in ``gather``      an error on one rank, the others wait     an error on that rank and on the root;
                                                                                everywhere in ``allgather``
``MAX``, ``MIN``, ``LAND`` ... of     an error, or the wrong array              element by element
arrays
uncaught exception on one rank        the others wait                           ends the job
rank ``PROC_NULL`` (from ``shift``)   not handled                               sends nothing, receives None
``mpi.configuration``                 how pyMPI was built                       the version; the rest is None
``-color=N``                          option of the interpreter                 argument of the script, left in
                                                                                ``sys.argv``
``map``, ``mapserver``, ``mapstats``  NotImplementedError                       the same; not part of ``from mpi import
                                                                                *``
===================================== ========================================= ========================================
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from mpi4py import MPI as _MPI

from limosa.dialects import end_job_on_exception as _end_job_on_exception
from limosa.dialects import mpi_choice as _mpi_choice
from limosa.dialects.pympi import configuration
from limosa.dialects.pympi.communicators import CartesianCommunicator as cartesian_communicator
from limosa.dialects.pympi.communicators import Communicator as communicator
from limosa.dialects.pympi.communicators import close_all as _close_all
from limosa.dialects.pympi.errors import MPIError
from limosa.dialects.pympi.output import trace, traceln
from limosa.dialects.pympi.requests import (
    cancel,
    test,
    test_cancelled,
    testall,
    testany,
    testsome,
    wait,
    waitall,
    waitany,
    waitsome,
)

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "BAND",
    "BOR",
    "BXOR",
    "COLOR",
    "COMM_NULL",
    "COMM_WORLD",
    "LAND",
    "LOR",
    "LXOR",
    "MAX",
    "MAXLOC",
    "MIN",
    "MINLOC",
    "PROD",
    "SUM",
    "UNDEFINED",
    "WORLD",
    "MPIError",
    "RemoteObject",
    "abort",
    "allgather",
    "allreduce",
    "barrier",
    "bcast",
    "cancel",
    "cart_create",
    "cartesian_communicator",
    "comm_create",
    "comm_dup",
    "comm_free",
    "comm_rank",
    "comm_size",
    "communicator",
    "configuration",
    "finalize",
    "finalized",
    "gather",
    "initialized",
    "irecv",
    "isend",
    "name",
    "persistent",
    "procs",
    "rank",
    "recv",
    "reduce",
    "scan",
    "scatter",
    "send",
    "sendrecv",
    "size",
    "stopwatch",
    "synchronizeQueuedOutput",
    "synchronizedWrite",
    "synchronizedWriteln",
    "test",
    "test_cancelled",
    "testall",
    "testany",
    "testsome",
    "tick",
    "time",
    "trace",
    "traceln",
    "wait",
    "waitall",
    "waitany",
    "waitsome",
    "wtick",
    "wtime",
]  # fmt: skip

ANY_SOURCE, ANY_TAG, UNDEFINED = _MPI.ANY_SOURCE, _MPI.ANY_TAG, _MPI.UNDEFINED

# Operations are numbers, as in pyMPI.
MAX, MIN, SUM, PROD = _MPI.MAX.handle, _MPI.MIN.handle, _MPI.SUM.handle, _MPI.PROD.handle
LAND, BAND, LOR, BOR = _MPI.LAND.handle, _MPI.BAND.handle, _MPI.LOR.handle, _MPI.BOR.handle
LXOR, BXOR, MINLOC, MAXLOC = _MPI.LXOR.handle, _MPI.BXOR.handle, _MPI.MINLOC.handle, _MPI.MAXLOC.handle

COMM_NULL = communicator()
COMM_WORLD = communicator(_MPI.COMM_WORLD)
WORLD = communicator(_MPI.COMM_WORLD.Dup())

#: Which MPI library this is.
name = _MPI.Get_library_version().split("\n")[0].split(",")[0].strip("\0 ")


def _color() -> int:
    for argument in sys.argv[1:]:
        if argument.startswith("-color="):
            try:
                return int(argument.removeprefix("-color="))
            except ValueError:
                raise ValueError(f"{argument}: the colour must be an integer") from None
    return UNDEFINED


#: What ``-color=N`` on the command line says.
COLOR = _color()

rank, size, procs, persistent = WORLD.rank, WORLD.size, WORLD.procs, WORLD.persistent

abort = WORLD.abort
allgather = WORLD.allgather
allreduce = WORLD.allreduce
barrier = WORLD.barrier
bcast = WORLD.bcast
cart_create = WORLD.cart_create
comm_create = WORLD.comm_create
comm_dup = WORLD.comm_dup
comm_free = WORLD.comm_free
comm_rank = WORLD.comm_rank
comm_size = WORLD.comm_size
gather = WORLD.gather
irecv = WORLD.irecv
isend = WORLD.isend
map = WORLD.map
mapserver = WORLD.mapserver
mapstats = WORLD.mapstats
recv = WORLD.recv
reduce = WORLD.reduce
scan = WORLD.scan
scatter = WORLD.scatter
send = WORLD.send
sendrecv = WORLD.sendrecv
stopwatch = WORLD.stopwatch
synchronizeQueuedOutput = WORLD.synchronizeQueuedOutput
synchronizedWrite = WORLD.synchronizedWrite
synchronizedWriteln = WORLD.synchronizedWriteln
tick = WORLD.tick
time = WORLD.time


class RemoteObject:
    """Never finished in pyMPI; here so that scripts which only name it run."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        raise NotImplementedError("pyMPI's remote objects were never finished; send the object itself")


def initialized() -> bool:
    """Whether MPI has been started (it is from the import on)."""
    return _MPI.Is_initialized()


def finalized() -> bool:
    """Whether MPI has ended."""
    return _MPI.Is_finalized()


def finalize() -> None:
    """End MPI; happens by itself at the end of the script."""
    if not finalized():
        _close_all()
        _MPI.Finalize()


def wtime() -> float:
    """Time in seconds."""
    return _MPI.Wtime()


def wtick() -> float:
    """Resolution of `wtime` in seconds."""
    return _MPI.Wtick()


def __getattr__(missing: str) -> NoReturn:
    _mpi_choice.refuse(missing, "pympi")


_end_job_on_exception()
