"""Requests: transfers that continue while the program does something else.

A request is a list of mpi4py's requests and, for a receive or a collective call, a generator: whenever the listed ones
are complete, the generator posts what comes next, or returns the value. It gives None while nothing can be posted
because another request has to go first. What calls functions of the program, such as a reduction of objects, is left to
`wait`: the generator returns a `Later`. State table:

========== ==================================== ====================================================
state      fields                               left by
========== ==================================== ====================================================
under way  `_active` not empty                  `_advance`, once all of `_active` are complete
done       `_done`, `_value` or `_error` set    never
========== ==================================== ====================================================

`_lock` guards all fields: a request may be waited for by one thread while a second one looks after it.

Requests with a generator are carried on by a thread too, so that they need no rank's attention: a rank that computes,
or waits for something else, still does its share. It looks at them from time to time: the longer nothing has happened,
the more rarely, every 3 s at last.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from mpi4py import MPI

from limosa import _uncaught, errors
from limosa._names import no_attribute

T = TypeVar("T")

Steps = Generator[list[MPI.Request] | None, None, Any]


class Later:
    """A value that is computed when the program asks for it, in its own thread."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class Request(Generic[T]):
    """A transfer under way, as `Comm.isend`, `Comm.irecv` and the non-blocking collective calls give it.

    Wait for it in one of three ways: ``value = request.wait()``, ``while not request.test(): ...``, or in a coroutine
    ``value = await request``. The value of a send is None, that of a receive what was received, that of a collective
    call what the blocking call returns.

    Sends and collective calls are completed also if the program never waits for them, at the latest when it ends.

    Examples
    --------
    >>> import limosa
    >>> request = limosa.world.irecv(source=0)
    >>> limosa.world.send([1, 2], to=0)
    >>> request.wait()
    [1, 2]

    """

    __slots__ = ("__weakref__", "_active", "_call", "_done", "_error", "_is_told", "_lock", "_rank", "_steps", "_value")

    _active: list[MPI.Request] | None
    _status: MPI.Status | None = None
    """Gets source and tag of the message; of receives only."""

    def __init__(self, active: list[MPI.Request] | None, steps: Steps | None, call: str, rank: int) -> None:
        self._active = active
        self._steps = steps
        self._call = call
        self._rank = rank
        self._lock = threading.Lock()
        self._done = False
        self._is_told = False  # whether the program knows that it is complete
        self._value: Any = None
        self._error: BaseException | None = None
        self._register()
        if steps is not None and not _helper.awake:
            _helper.wake()
        if len(under_way) >= _limits.sweep:
            _sweep()

    def __repr__(self) -> str:
        return f"<limosa.Request of {self._call}: {'done' if self._done else 'under way'}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute("limosa.Request", name, (*dir(type(self)), "wait_all", "wait_any"))

    @property
    def done(self) -> bool:
        """Whether `wait` or `test` found it complete; a look without a call of MPI."""
        self._is_told = self._is_told or self._done
        return self._done

    def wait(self) -> T:
        """Wait until the transfer is complete.

        If a signal ends this, as Ctrl-C does, a receive is withdrawn: the message goes to the next receive. Waiting for
        the request again posts it anew.

        Returns
        -------
        object
            What was received, or the result of a collective call; None for a send.

        Raises
        ------
        limosa.errors.Error
            If the transfer failed, or what was received does not fit into ``out``.

        """
        with self._lock:
            if not self._done:
                self._advance(blocking=True)
            self._is_told = True
            if type(self._value) is Later:
                try:
                    self._value = self._value.make()
                except Exception as error:
                    self._failed(error)
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def test(self) -> bool:
        """Tell whether the transfer is complete, without waiting. Then `wait` gives the value at once."""
        self._look()
        return self.done

    def _look(self) -> bool:
        """Do what `test` does, unknown to the program."""
        if not self._done and self._lock.acquire(blocking=False):
            try:
                self._advance(blocking=False)
            finally:
                self._lock.release()
        return self._done

    def cancel(self) -> bool:
        """Give up a receive for which no message has arrived yet.

        Returns
        -------
        bool
            Whether it was cancelled; then `wait` gives None. If not, it continues.

        """
        with self._lock:
            if not self._retract():
                return False
            self._is_told = True
            if self._steps is not None:
                self._steps.close()
            self._finish(None)
            return True

    def __await__(self) -> Generator[Any, None, T]:
        """Wait in a coroutine; other tasks run meanwhile.

        The longer it takes, the more rarely it looks (every 5 ms at most).

        If the coroutine is cancelled, as by a time limit, a receive is withdrawn: the message goes to the next receive.
        Waiting for the request again posts it anew. Sends and collective calls go on.
        """
        from asyncio import (
            sleep,
        )  # a program without coroutines does without asyncio, which takes as long to import as all else here

        delay = 0.0
        looks = 0
        try:
            while not self._look():
                yield from sleep(delay).__await__()
                looks += 1
                if looks >= 20:
                    delay = min(max(1.5 * delay, 1e-4), 5e-3)
        except BaseException:
            self._abandon()
            raise
        return self.wait()

    @property
    def _inner(self) -> Request[Any]:
        """The request itself; the program may have another object for it."""
        return self

    # --- what receives do in another way (`limosa._receive`) ---------------------------------------------------------

    def _register(self) -> None:
        """Note that it is under way."""
        under_way.add(self)

    def _unregister(self) -> None:
        under_way.discard(self)

    def _matched(self, status: MPI.Status) -> None:
        """Note the status of one of the transfers that are under way."""

    def _retract(self) -> bool:
        """Withdraw a receive unless a message has matched it; the lock is held."""
        return False

    def _abandon(self) -> None:
        """Do what is to be done when a coroutine does not wait for it any more."""

    # --- progress ----------------------------------------------------------------------------------------------------

    def _advance(self, *, blocking: bool) -> None:
        """Go as far as possible; the lock is held."""
        try:
            while not self._done:
                active = self._active
                if active is None:
                    self._continue()
                    if self._active is None and not self._done:
                        if not blocking:
                            return
                        time.sleep(_FIRST_LOOK)
                    continue
                if blocking:
                    if len(active) == 1:
                        active[0].Wait(self._status)
                    else:
                        MPI.Request.Waitall(active)
                elif not (active[0].Test(self._status) if len(active) == 1 else MPI.Request.Testall(active)):
                    return
                self._continue()
        except MPI.Exception as error:
            self._finish(None, errors.from_mpi(error, call=self._call, rank=self._rank))

    def _continue(self) -> None:
        """Do what comes after the transfers that are complete now; the lock is held."""
        if self._steps is None:
            self._finish(None)
            return
        try:
            self._active = next(self._steps)
        except StopIteration as end:
            self._finish(end.value)
        except MPI.Exception as error:
            self._finish(None, errors.from_mpi(error, call=self._call, rank=self._rank))
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, errors.Error) and not error.call:
            error.call, error.rank = self._call, self._rank
        self._finish(None, error)

    def _finish(self, value: Any, error: BaseException | None = None) -> None:
        self._value, self._error, self._done = value, error, True
        self._active = []
        self._steps = None
        self._unregister()


class _Limits:
    """How many requests there may be before finished ones are looked for."""

    sweep = 64


_limits = _Limits()
under_way: set[Request[Any]] = set()
"""All requests that are not done: nothing else may hold the memory of a send whose request was dropped."""


_FIRST_LOOK, _SOON = 5e-4, 2e-2  # seconds to the next look at requests that are new, or have just gone on
_LATEST = 3.0  # seconds between looks at requests for which nothing happens


class _Helper:
    """What looks after the requests with further steps.

    One thread keeps the time and calls nothing of MPI; it starts a second one to look, which ends. A thread that has
    called MPI and is neither asleep in there nor ended is one that may still act: Limosa's launcher would not recognise
    a deadlock of the program while there is one.
    """

    def __init__(self) -> None:
        self.awake = False
        self._ended = False
        self._call = threading.Event()
        self._thread: threading.Thread | None = None
        self._progress = False

    def wake(self) -> None:
        """Look soon."""
        if self._ended:
            return
        if self._thread is None:
            if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
                self.awake = True  # the program carries on its requests itself, when it waits for them
                return
            self._thread = threading.Thread(target=self._keep_time, name="limosa-requests", daemon=True)
            self._thread.start()
        self.awake = True
        self._call.set()

    def end(self) -> None:
        """Let the threads end: MPI is about to be finalised."""
        self._ended = True
        self._call.set()
        if self._thread is not None:
            self._thread.join()

    def _keep_time(self) -> None:
        _name_thread("limosa-requests")
        delay = _FIRST_LOOK
        while not self._ended:
            if self._call.wait(delay if _open() else None):
                self._call.clear()
                delay = _FIRST_LOOK
            looking = threading.Thread(target=self._look, args=(delay,), name="limosa-look", daemon=True)
            looking.start()
            looking.join()
            delay = _SOON if self._progress else min(1.3 * max(delay, _SOON), _LATEST)

    def _look(self, delay: float) -> None:
        """Look once, or again and again if something is to be expected soon."""
        _name_thread("limosa-look")
        self._progress = False
        while True:
            progress = any([request._look() for request in _open()])
            self._progress = self._progress or progress
            delay = _FIRST_LOOK if progress else 1.5 * delay
            self.awake = delay < _SOON and bool(_open())  # if not, the next new request calls
            if not self.awake or self._ended:
                return
            time.sleep(delay)


def _name_thread(name: str) -> None:
    """Tell the system the name of this thread: Limosa's launcher does not take it for one that may still act."""
    from pathlib import Path  # takes long to import, and few programs need this thread

    with contextlib.suppress(OSError):
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)


def _open() -> list[Request[Any]]:
    """Give the requests with further steps."""
    return [request for request in list(under_way) if request._steps is not None]


_helper = _Helper()


def _sweep() -> None:
    for request in list(under_way):
        request._look()
    _limits.sweep = max(64, 2 * len(under_way))


@atexit.register
def _complete_sends() -> None:
    """Complete the sends and collective calls that were not waited for; drop receives that are still open."""
    if _uncaught.has_failed:
        return
    _helper.end()
    if not under_way or MPI.Is_finalized():
        return
    for request in list(under_way):
        if request._call != "irecv":
            with contextlib.suppress(Exception), request._lock:
                request._advance(blocking=True)


def wait_all(requests: Iterable[Request[Any]]) -> list[Any]:
    """Wait for all requests.

    Parameters
    ----------
    requests
        Requests, in any number.

    Returns
    -------
    list
        Their values, in the same order.

    Raises
    ------
    limosa.errors.Error
        If one failed: the error of the first one that did, after all are complete.

    Examples
    --------
    >>> import limosa
    >>> sent = limosa.world.isend("a", to=0)
    >>> limosa.wait_all([sent, limosa.world.irecv(source=0)])
    [None, 'a']

    """
    requests = list(requests)
    problem: BaseException | None = None
    for request in requests:
        try:
            request.wait()
        except Exception as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return [request.wait() for request in requests]


def wait_any(requests: Sequence[Request[T]]) -> tuple[int, T]:
    """Wait for one of several requests.

    Parameters
    ----------
    requests
        At least one request.

    Returns
    -------
    tuple
        The place of a complete request in the sequence, and its value.

    Raises
    ------
    ValueError
        If there are no requests.
    limosa.errors.Error
        If that request failed.

    Examples
    --------
    >>> import limosa
    >>> never = limosa.world.irecv(source=0, tag=77)
    >>> soon = limosa.world.irecv(source=0, tag=78)
    >>> limosa.world.send("hello", to=0, tag=78)
    >>> limosa.wait_any([never, soon])
    (1, 'hello')
    >>> never.cancel()
    True

    """
    requests = list(requests)
    if not requests:
        raise ValueError("wait_any needs at least one request")
    while True:
        for place, request in enumerate(requests):
            if request.test():
                return place, request.wait()
        try:
            _wait_for_one([request._inner for request in requests])
        except BaseException:  # as of a signal
            for request in requests:
                request._abandon()
            raise


def _wait_for_one(requests: list[Request[Any]]) -> None:
    """Wait until one of several requests goes on."""
    with contextlib.ExitStack() as locks:
        for request in sorted(set(requests), key=id):
            locks.enter_context(request._lock)
        if any(request._active is None for request in requests):
            time.sleep(_FIRST_LOOK)
            return
        active = [(one, request) for request in requests for one in request._active or ()]
        if active and not any(request._done for request in requests):
            status = MPI.Status()
            try:
                place = MPI.Request.Waitany([one for one, _ in active], status)
                if place != MPI.UNDEFINED:
                    active[place][1]._matched(status)
            except MPI.Exception as error:
                request = next(request for request in requests if MPI.REQUEST_NULL in (request._active or ()))
                request._finish(None, errors.from_mpi(error, call=request._call, rank=request._rank))
