"""Pools of `mpi4py.futures` that break when a worker dies, as `limosa.Executor` does.

mpi4py's pools have no such case: the root's thread would end with an exception, and futures would never be done. On
Limosa, where a dead worker need not end the job, `adapt` replaces functions of the module ``mpi4py.futures._core``:

- a worker that makes calls is expendable (`limosa._deaths`);
- the root's thread that learns of a death breaks the executor, whose futures raise `BrokenExecutor`, takes the answers
  of the other workers that are due, and lets these go;
- neither side waits for the dead worker when it disconnects.

Workers that die before they make calls, as in an initializer, end the job.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from limosa._deaths import deaths, expendable, is_death

if TYPE_CHECKING:
    from types import ModuleType


def adapt(core: ModuleType) -> None:
    """Adapt the module ``mpi4py.futures._core``, which has just been loaded."""
    if MPI.Get_library_version().startswith("Limosa"):
        _adapt(core)


def _adapt(core: Any) -> None:
    execute, stop, serve, disconnect = core.client_exec, core.client_stop, core.server_exec, core.disconnect

    class Pool(core.Pool):  # type: ignore[misc]
        def setup(self, size: int) -> Any:
            queue = super().setup(size)
            queue.pool = self
            return queue

    def client_exec(comm: Any, options: Any, tag: int, workers: Any, queue: Any) -> None:
        def issend(task: Any, rank: int, tag: int) -> Any:
            try:
                return comm.issend(task, rank, tag)
            except MPI.Exception as error:
                if not is_death(error):
                    raise
                return MPI.REQUEST_NULL  # the next probe finds the death

        try:
            execute(_with(comm, "issend", issend), options, tag, workers, queue)
        except MPI.Exception as error:
            if not is_death(error):
                raise
            pending = _local(error, execute, "pending")
            _break(core.BrokenExecutor, queue.pool, pending, error, comm)
            for rank in pending:
                with contextlib.suppress(Exception):  # it has died, or its answer cannot be unpickled
                    comm.recv(None, rank, tag)

    def client_stop(comm: Any) -> None:
        try:
            stop(comm)
        except MPI.Exception as error:
            # All have been told, and one has died meanwhile: the error of several requests does not say so itself.
            if error.Get_error_class() == MPI.ERR_IN_STATUS and deaths(comm):
                return
            if not is_death(error):
                raise
            for rank in range(comm.Get_remote_size()):
                with contextlib.suppress(MPI.Exception):  # it has died
                    comm.isend(None, rank).Free()

    def server_exec(comm: Any, options: Any) -> None:
        def iprobe(_: int, tag: int, status: MPI.Status) -> bool:
            # From any source it would be an error after the death of another worker. The root is the only source.
            return bool(comm.iprobe(0, tag, status))

        with expendable(comm):
            serve(_with(comm, "iprobe", iprobe), options)

    def disconnect_living(comm: Any) -> None:
        try:
            disconnect(comm)
        except MPI.Exception as error:
            if not is_death(error):
                raise

    core.Pool, core.client_exec, core.client_stop = Pool, client_exec, client_stop
    core.server_exec, core.disconnect = server_exec, disconnect_living


def _with(comm: Any, name: str, method: Any) -> Any:
    """Give the communicator with another method of this name."""
    kind = type(comm)
    return type(kind.__name__, (kind,), {name: staticmethod(method)})(comm)


def _local(error: BaseException, function: Any, name: str) -> Any:
    """Give a variable of the function that the exception has left."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not function.__code__:
        trace = trace.tb_next
    assert trace is not None
    return trace.tb_frame.f_locals[name]


def _break(kind: type[Exception], pool: Any, pending: Any, cause: MPI.Exception, comm: MPI.Comm) -> None:
    """Have the pool's futures without a result raise an exception of this kind."""
    text = deaths(comm, "worker") or f"a worker of the pool cannot be reached any more: {cause}"
    pool.broken(text)
    for future, _ in pending.values():
        error = kind(text)
        error.__cause__ = cause
        future.set_exception(error)
