"""An uncaught exception on one rank ends the whole job, and the user sees its traceback.

With Python alone, the rank prints the traceback and ends, and the other ranks wait for a message that never comes. With
`install` the traceback is written once, in one piece, each line marked with the rank, and the job is aborted. If
several ranks fail at the same time, as they do with every error that does not depend on the rank, one of them prints
its traceback. Frames of Limosa's package and of mpi4py are left out, so that the last one is the user's; Python's
development mode (``python -X dev``) shows all. What the library would say of the abort is not shown: the traceback has
said it. Then the rank runs the program's exit handlers, as Python would, so that temporary folders are removed and logs
are complete, and ends. A handler that takes too long, or waits in MPI, is cut off. Used by
``limosa run script.py``, `limosa.world` and the dialects; a second call of `install` changes nothing.

Not affected: exceptions in other threads (`threading.excepthook`; the job continues, as a program of one process
would), ``SystemExit`` (its code is the exit code), jobs of one process that has spawned no others, and programs that
set a `sys.excepthook` of their own afterwards. ``KeyboardInterrupt`` reaches every rank; Limosa's launcher gives the
ranks a moment to end, so that the job need not be aborted.
"""

import contextlib
import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    import traceback

__all__ = ["hide_frames_of", "hide_library", "install", "place_in_job"]

_RANK_AND_SIZE = [
    ("LIMOSA_RANK", "LIMOSA_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
]

_hidden: set[str] = set()

_TIME_TO_ABORT = 1.0
"""How long a rank that prints no traceback waits for the end of the job, in seconds, after the one that does has ended.
"""

_TIME_TO_SHOW = 10.0
"""How long it waits for the end of that rank, which on a busy machine may still be on its way to its traceback."""

_TIME_OF_LAUNCHER = 10.0
"""How long a rank that fails because another has died leaves it to the launcher to say so and to end the job.

The launcher does so at once, unless the machine is very busy, or the dead rank is of another job.
"""

_TIME_OF_HANDLERS = 5
"""How long the program's exit handlers may take in a rank that fails, in seconds."""

_TIME_TO_READ = 0.2
"""Seconds for the launcher to read the traceback, and for ranks that fail at the same time to notice it."""

connections = 0
"""To how many groups of processes this one is connected; `limosa._spawn` counts them. They end with it."""

has_failed = False
"""Whether an exception is ending this rank: exit handlers must not wait for other ranks any more."""

_word: list["socket.socket"] = []
"""The socket that the rank with the traceback holds until it ends: other ranks cannot bind its name."""


def install() -> None:
    """Set the hook for uncaught exceptions, unless it is set already."""
    if sys.excepthook is not _show_and_abort and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show_and_abort


def hide_frames_of(file: str) -> None:
    """Leave frames of this source file out where a traceback begins with them: they are not of the user's program."""
    _hidden.add(file)


def place_in_job() -> tuple[int, int]:
    """Give rank and number of ranks of this process.

    They come from MPI while it is there, else as its launcher set them, else they are 0 and 1.
    """
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
    if _is_about_a_dead_rank(error):  # also a process that this one has spawned
        time.sleep(_TIME_OF_LAUNCHER)  # it may hear of that death later than this rank does
    if size > 1 and not issubclass(kind, KeyboardInterrupt) and not _is_first():
        _flush()
        _run_exit_handlers()
        _wait_for_the_first()
        os._exit(1)
    while trace and trace.tb_frame.f_code.co_filename in _hidden:
        trace = trace.tb_next
    shown = traceback.TracebackException(kind, error, trace)
    if not sys.flags.dev_mode:
        hide_library(shown)
    text = "".join(shown.format())
    if is_about_mpi4py(error) and MPI4PY_HINT not in text:
        text += f"hint: {MPI4PY_HINT}\n"
    if size > 1:
        text = "".join(f"[rank {rank}] {line}" for line in text.splitlines(keepends=True))
    _flush()
    if sys.stderr is not None:
        sys.stderr.write(text)
    _flush()
    mpi = sys.modules.get("mpi4py.MPI")
    by_limosa = "LIMOSA_RANK" in os.environ
    if by_limosa:
        _keep_the_name()
    if (size == 1 and not connections) or (by_limosa and issubclass(kind, KeyboardInterrupt)):
        return
    if mpi and mpi.Is_initialized() and not mpi.Is_finalized():
        _run_exit_handlers()
        if by_limosa or mpi.Get_library_version().startswith("Limosa"):
            _flush_c()
            os._exit(1)  # the launcher says so, and ends the other ranks
        time.sleep(_TIME_TO_READ)  # MPICH's may end before it has passed on what was written just before an abort
        _silence()
        mpi.COMM_WORLD.Abort(1)
    else:  # others that come to the same end now should not repeat it; Limosa's launcher ends those that come later
        time.sleep(_TIME_TO_READ if by_limosa else _TIME_TO_ABORT)


def _run_exit_handlers() -> None:
    """Do what Python does at the end of a program, but wait neither for threads nor in MPI.

    If it takes too long, as in a handler that waits in MPI, the process is ended, after its stacks have been shown.
    """
    global has_failed  # noqa: PLW0603
    import atexit
    import faulthandler
    import gc
    import io

    has_failed = True
    with contextlib.suppress(OSError):  # standard error is closed
        faulthandler.dump_traceback_later(_TIME_OF_HANDLERS, exit=True, file=2)
    atexit._run_exitfuncs()
    for thing in gc.get_objects():
        if type(thing) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):
            with contextlib.suppress(OSError, ValueError):  # the disk is full; it is closed
                thing.flush()
    faulthandler.cancel_dump_traceback_later()


def hide_library(shown: "traceback.TracebackException") -> None:
    """Leave the frames of the library out of a traceback and of those it is chained to, unless it has no others."""
    package = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - as above
    one: traceback.TracebackException | None = shown
    while one is not None:
        frames = [
            frame
            for frame in one.stack
            if not frame.filename.startswith((package, "src/mpi4py/", "<frozen importlib"))
            and not frame.filename.endswith(_FINDERS)
        ]
        if frames:
            one.stack[:] = frames
        one = one.__cause__ or one.__context__


MPI4PY_HINT = "`python -m limosa.install_mpi4py` installs an mpi4py that works with Limosa"
_FINDERS = tuple(os.sep + file for file in ("_limosa_mpi4py.py", "mpi4py/_mpiabi.py"))
"""The modules that look for one of mpi4py that fits the MPI library, and fail if there is none."""


def is_about_mpi4py(error: BaseException) -> bool:
    """Tell whether an exception says that mpi4py is missing, or does not work."""
    if "mpi4py.MPI" in sys.modules:
        return False
    one: BaseException | None = error
    while one is not None:
        if isinstance(one, ImportError) and (one.name or "").split(".")[0] == "mpi4py":
            return True
        trace = one.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.endswith(_FINDERS):
                return True
            trace = trace.tb_next
        one = one.__cause__ or one.__context__
    return False


def _is_about_a_dead_rank(error: BaseException) -> bool:
    """Tell whether an exception, or one that it comes from, says that another rank has ended."""
    one: BaseException | None = error
    while one is not None:
        if _says_that_a_rank_is_dead(one):
            return True
        one = one.__cause__ or one.__context__
    return False


def _says_that_a_rank_is_dead(error: BaseException) -> bool:
    if getattr(error, "error_class", "") == "MPI_ERR_PROC_ABORTED":
        return True
    mpi = sys.modules.get("mpi4py.MPI")
    known = getattr(mpi, "ERR_PROC_ABORTED", None)
    if mpi is None or known is None or not isinstance(error, mpi.Exception):
        return False
    found = error.Get_error_class()
    # Of several operations each has a class of its own, which the exception does not know.
    return bool(found == known or (found == mpi.ERR_IN_STATUS and "cannot be reached any more" in str(error)))


def _silence() -> None:
    """Drop what is written to standard error from now on."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _name_of_the_first() -> str:
    """Give the name that the first rank of the job to show a traceback takes.

    The kernel keeps it for as long as that rank lives (an abstract socket), so nothing is left behind.
    """
    return f"\0limosa-uncaught-{os.environ.get('LIMOSA_JOB_ID') or _job_of_parent()}"


def _is_first() -> bool:
    """Tell whether no other rank of the job has shown a traceback; then this one does."""
    import errno
    import socket

    try:
        _word.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        _word[-1].bind(_name_of_the_first())
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


def _keep_the_name() -> None:
    """Have the name of the first outlive this process, if it has it.

    Else a rank that fails after this one has ended, and before the launcher has ended it, would take it. What keeps it
    is a child, which the launcher ends with the job.
    """
    if _word:
        _word[-1].set_inheritable(True)
        nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
        with contextlib.suppress(OSError):
            os.posix_spawnp("sleep", ["sleep", str(_TIME_TO_SHOW)], os.environ, file_actions=nowhere)


def _wait_for_the_first() -> None:
    """Wait until the first rank has ended: if this one did before, it would end that one in the middle of its text."""
    import socket

    deadline = time.monotonic() + _TIME_TO_SHOW
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        while asking.connect_ex(_name_of_the_first()) == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
    time.sleep(_TIME_TO_ABORT)


def _flush_c() -> None:
    """Write out what C code has printed, unless another thread holds a stream for long."""
    import ctypes
    import threading

    flusher = threading.Thread(target=ctypes.CDLL(None).fflush, args=(None,), daemon=True)
    flusher.start()
    flusher.join(_TIME_TO_READ)


def _job_of_parent() -> str:
    """Give a word for the job of another launcher, which all its ranks know and other users cannot guess.

    Such launchers have one parent for all ranks. The addresses of its memory are random, and only its user may read
    them.
    """
    import hashlib

    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/auxv", "rb") as vector:  # noqa: PTH123 - pathlib is not needed for this
            return f"{parent}-{hashlib.sha256(vector.read()).hexdigest()[:32]}"
    except OSError:
        return str(parent)


def _flush() -> None:
    """Write out buffered output; closed streams are skipped."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass
