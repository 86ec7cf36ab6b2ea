"""An exception that nobody catches on one rank ends the whole job, and its traceback is what the user sees.

Python alone shows the traceback and leaves; the other ranks wait for a message that never comes. With `install` the traceback
is written once, in one piece, each line marked with the rank, and the job is aborted. Used by ``limosa run script.py``,
`limosa.world` and the dialects; whoever comes second changes nothing.

What stays as it is: exceptions in other threads (`threading.excepthook`; the job goes on, as a program with one process
would), ``SystemExit`` (its code says what is meant), jobs of one process, and programs that set a `sys.excepthook` of their own
afterwards. ``KeyboardInterrupt`` reaches every rank; Limosa's launcher lets them a moment to end in their own ways, so there is
no need to abort.
"""

import os
import sys
from types import TracebackType

__all__ = ["hide_frames_of", "install", "place_in_job"]

_RANK_AND_SIZE = [("LIMOSA_RANK", "LIMOSA_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")]

_hidden: set[str] = set()


def install() -> None:
    """Set the hook for uncaught exceptions, unless it is set already."""
    if sys.excepthook is not _show_and_abort and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show_and_abort


def hide_frames_of(file: str) -> None:
    """Leave frames of this source file out where a traceback begins with them: they are no part of the user's program."""
    _hidden.add(file)


def place_in_job() -> tuple[int, int]:
    """Give rank and number of ranks of this process: from MPI while it is there, else as its launcher set them, else 0 and 1."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi and mpi.Is_initialized() and not mpi.Is_finalized():
        return mpi.COMM_WORLD.rank, mpi.COMM_WORLD.size
    for rank, size in _RANK_AND_SIZE:
        try:
            return int(os.environ[rank]), int(os.environ[size])
        except (KeyError, ValueError):
            continue
    return 0, 1


def _show_and_abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show the exception with the rank, then abort the job."""
    import traceback

    rank, size = place_in_job()
    while trace and trace.tb_frame.f_code.co_filename in _hidden:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(kind, error, trace))
    if size > 1:
        text = "".join(f"[rank {rank}] {line}" for line in text.splitlines(keepends=True))
    _flush()
    if sys.stderr is not None:
        sys.stderr.write(text)
    _flush()
    mpi = sys.modules.get("mpi4py.MPI")
    in_order = issubclass(kind, KeyboardInterrupt) and "LIMOSA_RANK" in os.environ
    if mpi and size > 1 and not in_order and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.COMM_WORLD.Abort(1)


def _flush() -> None:
    """Write out what is still in buffers; that one of them is closed is nobody's concern any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass
