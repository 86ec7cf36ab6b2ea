"""`limosa.Executor`: the interface of `concurrent.futures.Executor` on the ranks of a job.

Rank 0, the root, hands out the calls; the others make them, one at a time each. A call is sent to a rank that has
nothing to do by the thread that submits it, if there is one, otherwise by the root's receiving thread as soon as a rank
has answered. That thread is in MPI only while an answer is due. A job of one rank makes the calls in a thread.

With ``spawn=True`` the ranks are processes that the root starts (`limosa.spawn`), and a communicator of it and them.

State of a rank other than the root: idle (in `_Pool.idle`), or busy with one call (in `_Pool.busy`).

On Limosa, the death of a rank that makes calls does not end the job (`limosa._deaths`). The root's receiving thread
learns of it by an error, and breaks the pool.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import functools
import itertools
import os
import pickle
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mpi4py import MPI

from limosa import _uncaught, errors
from limosa._agreement import agree, described_error
from limosa._deaths import deaths, expendable, is_death
from limosa._map import RemoteError, push

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import ParamSpec

    from limosa._comm import Comm
    from limosa._spawn import Intercomm

    P = ParamSpec("P")

T = TypeVar("T")
Self = TypeVar("Self", bound="Executor")

#: What the root sends instead of a call when a rank has died: there are no more calls.
_BROKEN = "broken"

_Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


@dataclass
class _Answer:
    """What a call gave, or the exception that it raised, with its traceback."""

    value: Any = None
    error: Exception | None = None
    trace: str = ""


class Executor(concurrent.futures.Executor):
    """A pool of ranks that make calls for one of them, with the interface of `concurrent.futures.Executor`.

    All ranks enter the block together. Rank 0 has the pool; the others make the calls that it submits, and leave the
    block when it does. ``pool.is_root`` tells whether this rank is the one that submits. In a job of one rank, the
    calls are made by a thread.

    Parameters
    ----------
    max_workers
        How many ranks make calls at most; by default all but rank 0.
    comm
        The communicator of the ranks; by default `limosa.world`. It cannot be used for other things within the block.
    spawn
        Whether this rank alone has the pool, and starts `max_workers` processes that make the calls; by default as many
        as there is room for beside those that run already, at least one.

    Attributes
    ----------
    is_root : bool
        Whether this rank submits calls.

    Raises
    ------
    limosa.errors.UnsupportedOperationError
        If the library does not let several threads call MPI.
    limosa.errors.SpawnError
        If the processes cannot be started.

    Examples
    --------
    >>> import limosa
    >>> with limosa.Executor() as pool:
    ...     if pool.is_root:
    ...         print(list(pool.map(pow, [2, 3], [5, 2])))
    [32, 9]

    """

    def __init__(self, max_workers: int | None = None, comm: Comm | None = None, *, spawn: bool = False) -> None:
        self._workers: Intercomm | None = None
        if comm is None:
            import limosa

            if spawn:
                self._start(max_workers)
                return
            comm = limosa.world
        elif spawn:
            raise errors.BY_CLASS["ARG"]("comm= and spawn=True exclude each other", call="executor", rank=comm.rank)
        self._comm = comm
        self.is_root: bool = comm.rank == 0
        problem: errors.Error | None = None
        if max_workers is not None and (type(max_workers) is not int or max_workers < 1):
            problem = errors.BY_CLASS["ARG"](f"max_workers={max_workers!r} is not a number from 1")
        elif comm.size > 1 and MPI.Query_thread() != MPI.THREAD_MULTIPLE:
            problem = errors.BY_CLASS["UNSUPPORTED_OPERATION"]("an executor needs a library with MPI_THREAD_MULTIPLE")
        agree(comm, "executor", {"max_workers": max_workers}, problem)
        workers = min(comm.size - 1, max_workers or comm.size)
        self._pool = _Pool(comm, workers) if self.is_root else None
        atexit.register(self._end)
        if 0 < comm.rank <= workers:
            with expendable(comm.mpi):
                _serve(comm)

    def _start(self, max_workers: int | None) -> None:
        """Start processes that make the calls."""
        from limosa._spawn import spawn

        if max_workers is not None and (type(max_workers) is not int or max_workers < 1):
            raise errors.BY_CLASS["ARG"](f"max_workers={max_workers!r} is not a number from 1", call="executor", rank=0)
        if not MPI.Get_library_version().startswith("Limosa"):
            # With MPICH 5 and 2 threads, messages to processes that were spawned do not always arrive.
            raise errors.BY_CLASS["UNSUPPORTED_OPERATION"](
                "a pool of spawned processes needs the library Limosa; hint: start all processes with mpiexec, and use "
                "limosa.Executor()",
                call="executor",
                rank=0,
            )
        self._workers = spawn(_serve_parent, n=_spare() if max_workers is None else max_workers)
        self._comm = self._workers.merge()
        self.is_root = True
        self._pool = _Pool(self._comm, self._workers.remote_size)
        atexit.register(self._end)

    def __repr__(self) -> str:
        return f"<limosa.Executor: rank {self._comm.rank} of {self._comm.size}>"

    def __bool__(self) -> bool:
        """Tell whether this rank submits calls: ``if pool:`` is right where mpi4py's pools are None on other ranks."""
        return self.is_root

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a call made; gives its `concurrent.futures.Future`.

        Parameters
        ----------
        fn
            A function that can be pickled, as functions of a module can. It must not use the pool's communicator.
        *args, **kwargs
            Its arguments.

        Raises
        ------
        RuntimeError
            If the pool has been shut down.
        limosa.errors.RankError
            If this rank is not the root.

        Examples
        --------
        >>> import limosa
        >>> with limosa.Executor() as pool:
        ...     if pool.is_root:
        ...         print(pool.submit(divmod, 7, 2).result())
        (3, 1)

        """
        if self._pool is None:
            raise self._comm._error(
                "RANK",
                "only rank 0 submits calls; hint: `if pool.is_root:` in the block of the executor, which all ranks "
                "enter; the pool is None on none of them",
                "submit",
            )
        future: Future[T] = Future()
        self._pool.submit(future, (fn, args, kwargs))
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        **further: Any,
    ) -> Iterator[T]:
        """Have a function called for each item of iterables; gives an iterator over the results, in their order.

        Parameters
        ----------
        fn, *iterables
            The function, and the values of its arguments. They are collected at once.
        timeout
            For how many seconds the iterator waits before it raises `TimeoutError`, from this call on.
        chunksize
            How many calls a rank gets at once: more of them for calls that take less than a millisecond.
        **further
            What else the `map` of this version of `concurrent.futures` takes, such as ``buffersize`` from 3.14 on.

        Raises
        ------
        ValueError
            If `chunksize` is not a number from 1.

        Examples
        --------
        >>> import limosa
        >>> with limosa.Executor() as pool:
        ...     if pool.is_root:
        ...         print(sum(pool.map(abs, range(-1000, 0), chunksize=100)))
        500500

        """
        if chunksize < 1:
            raise ValueError(f"chunksize={chunksize!r} is not a number from 1")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout, **further)
        chunks = _chunks(zip(*iterables, strict=False), chunksize)
        return _flat(super().map(functools.partial(_call_for_each, fn), chunks, timeout=timeout, **further))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the other ranks go when the calls submitted so far have been made; the block's end does it.

        Parameters
        ----------
        wait
            Whether to wait for the calls.
        cancel_futures
            Whether calls that no rank has begun are cancelled.

        """
        atexit.unregister(self._end)
        if self._pool is not None:
            self._pool.shut_down(wait, cancel_futures)
        if self._workers is not None and wait:
            if self._pool is not None and self._pool.is_broken:
                self._workers._abandon()
            else:
                self._comm.free()
                self._workers.disconnect()
            self._workers = None

    def _end(self) -> None:
        """Shut down at the end of a program that has not done so, unless an exception ends it."""
        if not _uncaught.has_failed:
            self.shutdown()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        # An exception on the root should not wait for calls whose results are not needed.
        self.shutdown(wait=True, cancel_futures=kind is not None)
        return None


def _chunks(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(itertools.islice(items, size)):
        yield chunk


def _call_for_each(function: Callable[..., T], chunk: list[tuple[Any, ...]]) -> list[T]:
    return [function(*arguments) for arguments in chunk]


def _flat(lists: Iterator[list[T]]) -> Iterator[T]:
    """Give the items of lists; these are given up with this iterator."""
    for each in lists:
        each.reverse()
        while each:
            yield each.pop()


class _Pool:
    """The root's side: what is to be done, and which rank does what."""

    def __init__(self, comm: Comm, workers: int) -> None:
        self._comm = comm
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Future[Any], _Call]] = deque()
        self._idle = deque(range(1, workers + 1))
        self._busy: dict[int, Future[Any]] = {}
        self._closed = False
        self._broken: BrokenExecutor | None = None
        target = self._receive if workers else self._work
        self._thread = threading.Thread(target=target, name="limosa-executor", daemon=True)
        self._thread.start()

    @property
    def is_broken(self) -> bool:
        return self._broken is not None

    def submit(self, future: Future[Any], call: _Call) -> None:
        with self._changed:
            if self._broken is not None:
                raise BrokenExecutor(*self._broken.args) from self._broken.__cause__
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.append((future, call))
            self._hand_out()
            self._changed.notify()

    def shut_down(self, wait: bool, cancel: bool) -> None:
        with self._changed:
            self._closed = True
            if cancel:
                for future, _ in self._waiting:
                    future.cancel()
            self._changed.notify()
        if wait:
            self._thread.join()

    def _next(self) -> tuple[Future[Any], _Call] | None:
        """Give a call that has not been cancelled."""
        while self._waiting:
            future, call = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                return future, call
        return None

    def _hand_out(self) -> None:
        """Send calls to ranks that have nothing to do."""
        while self._idle and (found := self._next()) is not None:
            future, call = found
            try:
                push(self._comm, call, self._idle[0])
            except Exception as error:
                if not is_death(error):  # it cannot be pickled
                    future.set_exception(error)
                    continue
            # A rank that has died counts as busy, so that the receiving thread finds its death.
            self._busy[self._idle.popleft()] = future

    def _receive(self) -> None:
        """Take the answers; at the end, let the ranks go."""
        comm = self._comm
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._busy or (self._closed and not self._waiting))
                if not self._busy:
                    self._let_go()
                    return
            try:
                answer, source = comm._pull_from()
            except MPI.Exception as error:
                has_died = is_death(error)
                cause = errors.from_mpi(error, call="submit", rank=comm.rank)
                busy = self._give_up(cause, deaths(comm.mpi) if has_died else "")
                if has_died:
                    self._dismiss(busy)
                return
            with self._changed:
                future = self._busy.pop(source)
                self._idle.append(source)
                self._hand_out()
            _conclude(future, answer, source)

    def _let_go(self) -> None:
        """Tell the ranks, none of which makes a call, that no more come. A death found until then breaks the pool."""
        comm = self._comm
        if end := deaths(comm.mpi, within=0):
            self._broken = BrokenExecutor(end)
        while self._idle and self._broken is None:
            try:
                comm._push(None, self._idle[0])
                self._idle.popleft()
            except MPI.Exception as error:
                if not is_death(error):
                    raise
                self._broken = _broken(deaths(comm.mpi), error)
        if self._broken is not None:
            self._dismiss([])

    def _give_up(self, cause: errors.Error, deaths: str) -> list[int]:
        """Tell all waiting callers that there will be no answer; gives the ranks that had calls to make."""
        error = _broken(deaths, cause)
        with self._changed:
            self._broken = error
            busy = list(self._busy)
            for future in [*self._busy.values(), *(future for future, _ in self._waiting)]:
                if not future.done():
                    future.set_exception(error)
            self._waiting.clear()
            self._busy.clear()
        return busy

    def _dismiss(self, busy: list[int]) -> None:
        """Let the ranks go that are left, when their calls end."""
        for rank in busy:
            with contextlib.suppress(Exception):  # it has died, or its answer cannot be unpickled
                self._comm._pull(rank)
        for rank in [*busy, *self._idle]:
            with contextlib.suppress(MPI.Exception):  # it has died
                self._comm._push(_BROKEN, rank)

    def _work(self) -> None:
        """Make the calls here: there is no other rank."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                found = self._next()
                if found is None:
                    if self._closed:
                        return
                    continue
            future, call = found
            _conclude(future, _made(call), self._comm.rank)


def _broken(ends: str, cause: BaseException) -> BrokenExecutor:
    """Give the error of a pool in which ranks have died as `ends` says, if that is known."""
    error = BrokenExecutor(ends or f"a rank of the pool cannot be reached any more: {cause}")
    error.__cause__ = cause
    return error


def _conclude(future: Future[Any], answer: _Answer, source: int) -> None:
    if answer.error is None:
        future.set_result(answer.value)
        return
    if hasattr(answer.error, "add_note"):
        answer.error.add_note(f"limosa.Executor: raised on rank {source}")
    if answer.trace:
        answer.error.__cause__ = RemoteError(f"\n{answer.trace}")
    future.set_exception(answer.error)


def _made(call: _Call) -> _Answer:
    """Make a call."""
    function, args, kwargs = call
    try:
        return _Answer(function(*args, **kwargs))
    except Exception as error:
        return _Answer(error=error)


def _spare() -> int:
    """Give the number of processes for which there is room beside those that run already, at least 1."""
    found = MPI.COMM_WORLD.Get_attr(MPI.UNIVERSE_SIZE)
    return max(1, (found if isinstance(found, int) else os.cpu_count() or 1) - MPI.COMM_WORLD.size)


def _serve_parent() -> None:
    """Make the calls of the process that has started this one."""
    import limosa

    assert limosa.parent is not None
    comm = limosa.parent.merge()
    with expendable(comm.mpi):
        is_whole = _serve(comm)
    if is_whole:
        comm.free()
    else:
        limosa.parent._abandon()


def _serve(comm: Comm) -> bool:
    """Make the calls that the root sends; this is another rank. Gives whether no rank of the pool has died."""
    while True:
        try:
            call = comm._pull(0)
        except MPI.Exception as error:
            comm._blame(error, "executor")
        except Exception as error:  # it cannot be unpickled
            answer = _Answer(error=error, trace=traceback.format_exc())
        else:
            if call is None or call == _BROKEN:
                return call is None
            answer = _made(call)
        if answer.error is not None:
            answer = _sendable(answer)
        try:
            push(comm, answer, 0)
        except MPI.Exception as error:
            comm._blame(error, "executor")
        except Exception as error:  # its value cannot be pickled
            comm._push(_sendable(_Answer(error=error)), 0)


def _sendable(answer: _Answer) -> _Answer:
    """Give an answer with an exception that can be pickled, and its traceback."""
    error = answer.error
    assert error is not None
    trace = answer.trace or "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - what this process has made itself
    except Exception:
        error = errors.PeerError(described_error(error))
    return _Answer(error=error, trace=trace)
