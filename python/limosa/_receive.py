"""Receives that the program may abandon, and what becomes of messages that have matched one.

A receive is *abandoned* when the program does not wait for it any more: a coroutine that awaits it is cancelled, a
signal ends `wait`, or the program drops the request. It is then withdrawn. A message that had matched it already is
*unexpected*: the communicator has it for the oldest request that is under way and fits, or else for the next receive.
Every call that receives looks there first; the compiled `recv` leaves this to Python while there is something to be
looked at (`divert`).

Unexpected messages are sorted by the numbers of the receives that they had matched. Among messages with the same source
and tag that is the order in which they were sent: a receive that is posted earlier matches earlier.

An abandoned request can be waited for again: this posts the receive anew.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from limosa import errors
from limosa._memory import Array
from limosa._packet import Inbox, into
from limosa._request import Later, Request
from limosa._transfer import inboxes

if TYPE_CHECKING:
    from limosa._messages import Messages

_numbers = itertools.count()
_TIME_TO_LOCK, _SHORTLY = 2.0, 0.005
"""Seconds to wait for a request that another thread looks at, and between attempts."""


class Post:
    """A receive as the library has it.

    Parameters
    ----------
    where
        Source and tag, as MPI numbers them.
    number
        The place among all receives of this process.

    """

    __slots__ = ("inbox", "number", "origin", "status", "unexpected", "where")

    def __init__(self, where: tuple[int, int], number: int) -> None:
        self.where = where
        self.number = number
        self.status = MPI.Status()
        self.origin: tuple[int, int] | None = None
        """Source and tag of the message that has matched."""
        self.inbox: Inbox | None = None
        """The memory for the first message, until that is looked at."""
        self.unexpected: UnexpectedMessage | None = None
        """The unexpected message that this receive has taken."""

    def matched(self, status: MPI.Status) -> None:
        """Note which message has matched."""
        if self.origin is None:
            self.origin = self.where if status.source == MPI.ANY_SOURCE else (status.source, status.tag)


class UnexpectedMessage:
    """A message that had matched a receive which was abandoned.

    Parameters
    ----------
    number
        That of the receive.
    origin
        Source and tag of the message.
    request
        What receives the rest of the message, and has its value then.

    """

    def __init__(self, number: int, origin: tuple[int, int], request: Request[Any]) -> None:
        self.number = number
        self.source, self.tag = origin
        self.request = request

    def fits(self, source: int, tag: int) -> bool:
        """Tell whether a receive from this source with this tag gets this message."""
        return source in (self.source, MPI.ANY_SOURCE) and tag in (self.tag, MPI.ANY_TAG)

    def value(self, target: Array | None, out: Any) -> Any:
        """Give the value, in `out` if there is one."""
        value = self.request.wait()
        if target is None:
            return value
        into(value, target)
        return out


class UnexpectedQueue:
    """The unexpected messages of a communicator.

    Parameters
    ----------
    divert
        Tells the compiled `recv` whether to look here first.

    """

    def __init__(self, divert: Callable[[bool], object]) -> None:
        self._divert = divert
        self.is_empty = True
        """Whether there is nothing to be looked at."""
        self._lock = threading.Lock()
        self._messages: list[UnexpectedMessage] = []
        self._dropped: deque[Receive] = deque()

    def drop(self, request: Receive) -> None:
        """Have a receive withdrawn before the next one; this may be called anywhere, by the garbage collector."""
        self._dropped.append(request)
        self._set_empty(False)

    def _set_empty(self, is_empty: bool) -> None:
        self.is_empty = is_empty
        self._divert(not is_empty)

    def find(self, source: int, tag: int, *, take: bool) -> UnexpectedMessage | None:
        """Give the first message that a receive gets, if there is one; `take` says whether it leaves the queue."""
        if self.is_empty:
            return None
        while self._dropped:
            with contextlib.suppress(IndexError):  # another thread was faster
                self._dropped.popleft()._abandon()
        with self._lock:
            found = next((unexpected for unexpected in self._messages if unexpected.fits(source, tag)), None)
            if found is not None and take:
                self._messages.remove(found)
            self._set_empty(not self._messages and not self._dropped)
        if self._dropped:  # meanwhile
            self._set_empty(False)
        return found

    def keep(self, unexpected: UnexpectedMessage) -> None:
        """Keep a message; receives that are under way may get it."""
        self.put(unexpected)
        others = [request for ref in receives.valuerefs() if (request := ref()) is not None]
        posted = [each for each in others if each._comm._unexpected is self and each._post.number > unexpected.number]
        if not any(unexpected.fits(*request._post.where) for request in posted):
            return
        # These are all withdrawn and posted again, so that messages and receives are sorted anew.
        with contextlib.ExitStack() as locks:
            withdrawn = []
            for request in sorted(posted, key=lambda request: request._post.number):
                if not request.lock():
                    continue
                locks.callback(request._lock.release)
                if request.is_movable:
                    message = request.give_up()
                    if message is not None:
                        self.put(message)
                    request.renew(request._post.number)
                    withdrawn.append(request)
            for request in withdrawn:
                request._continue()

    def put(self, unexpected: UnexpectedMessage) -> None:
        """Put a message among the others."""
        with self._lock:
            self._messages.append(unexpected)
            self._messages.sort(key=lambda unexpected: unexpected.number)
            self._set_empty(False)


class Receive(Request[Any]):
    """A receive under way; the program has a `Handle` of it.

    Parameters
    ----------
    comm
        The communicator.
    where
        Source and tag, as MPI numbers them.
    target, out
        The array to receive into, and what is returned for it.

    """

    __slots__ = ("_comm", "_out", "_post", "_status", "_target", "is_waited_for")

    def __init__(self, comm: Messages, where: tuple[int, int], target: Array | None, out: Any) -> None:
        self.is_waited_for = False  # whether a thread that looks at it may do so for long
        self._comm = comm
        self._target = target
        self._out = out
        self._post = Post(where, next(_numbers))
        self._status = self._post.status
        steps = comm._arriving(self._post, target, out)
        active = next(steps)  # raises what is wrong with the arguments
        super().__init__(active, steps, "irecv", comm.rank)

    def _register(self) -> None:
        super()._register()
        receives[self._post.number] = self

    def _matched(self, status: MPI.Status) -> None:
        self._post.matched(status)

    def _advance(self, *, blocking: bool) -> None:
        self.is_waited_for = blocking
        if self._post.number >= 0:
            super()._advance(blocking=blocking)

    def lock(self) -> bool:
        """Lock it unless another thread waits for it."""
        deadline = time.monotonic() + _TIME_TO_LOCK
        while not self._lock.acquire(timeout=_SHORTLY):
            if self.is_waited_for or time.monotonic() > deadline:
                return False
        return True

    def post_again(self) -> None:
        """Have it posted again if it was withdrawn: the program waits for it again."""
        if self._post.number < 0:
            with self._lock:
                if self._post.number < 0:
                    self._post.number = next(_numbers)
                    self._register()

    @property
    def is_movable(self) -> bool:
        """Whether another message may be given instead: the program does not know of one, and it has not failed."""
        return not self._is_told and bool(self._active or self._post.origin or self._post.unexpected)

    def _retract(self) -> bool:
        post = self._post
        if not self._active or post.origin is not None:
            return False
        posted = self._active[0]
        is_complete = posted == MPI.REQUEST_NULL  # a signal came just then
        if not is_complete:
            posted.Cancel()
            posted.Wait(post.status)
        if not is_complete and post.status.Is_cancelled():
            if post.inbox is not None:
                inboxes.append(post.inbox)
            return True
        post.matched(post.status)
        return False

    def _abandon(self) -> None:
        with self._lock:
            if not self.is_movable:
                return
            message = self.give_up()
            self.renew()
        if message is not None:
            self._comm._unexpected.keep(message)

    def drop(self) -> None:
        """Have it withdrawn soon, as the program has no more use for it; with `out` it may look at its array."""
        if self.is_movable and self._target is None:
            self._comm._unexpected.drop(self)

    def give_up(self) -> UnexpectedMessage | None:
        """Withdraw the receive, or give the message that has matched; the lock is held."""
        post = self._post
        try:
            if self._retract():
                return None
        except MPI.Exception:  # its communicator cannot be used any more
            return None
        if post.unexpected is not None:
            return post.unexpected
        if post.origin is None:
            return None
        request: Request[Any]
        if post.inbox is not None:
            steps = self._comm._receiving(post.inbox, None, None)
            request = Request([MPI.REQUEST_NULL], steps, "irecv", self._rank)
            return UnexpectedMessage(post.number, post.origin, request)
        if self._target is not None:  # the program may use its array again
            self._advance(blocking=True)
            self._copy_value()
        request = Request(self._active or [], self._steps, "irecv", self._rank)
        if self._done:
            request._finish(self._value, self._error)
        return UnexpectedMessage(post.number, post.origin, request)

    def _copy_value(self) -> None:
        """Have the value outside the array that it was received into, also if it did not fit there."""
        if self._error is None and type(self._value) is Later:
            try:
                self._value = self._value.make()
            except Exception as error:
                self._error = error
        if isinstance(self._error, errors.Error) and self._error.value is not None:
            self._value, self._error = self._error.value, None
        elif self._error is None and self._target is not None:
            self._value = self._target.copy()

    def renew(self, number: int = -1) -> None:
        """Make it a receive that is not posted yet; the lock is held."""
        receives.pop(self._post.number, None)
        self._unregister()
        self._post = Post(self._post.where, number)
        self._status = self._post.status
        self._steps = self._comm._arriving(self._post, self._target, self._out)
        self._active = None
        self._done, self._value, self._error = False, None, None
        if number >= 0:
            self._register()


class Handle(Request[Any]):
    """The request that `Comm.irecv` gives: the program drops it, and nothing else has it.

    Parameters
    ----------
    inner
        The receive.

    """

    __slots__ = ("_receive",)

    def __init__(self, inner: Receive) -> None:
        self._receive = inner

    def __del__(self) -> None:
        self._receive.drop()

    def __repr__(self) -> str:
        return repr(self._receive)

    @property
    def _inner(self) -> Receive:
        return self._receive

    @property
    def done(self) -> bool:
        return self._receive.done

    def wait(self) -> Any:
        self._receive.post_again()
        try:
            return self._receive.wait()
        except BaseException:  # as of a signal; an error of the request's own changes nothing
            self._receive._abandon()
            raise

    def cancel(self) -> bool:
        return self._receive.cancel()

    def _look(self) -> bool:
        self._receive.post_again()
        return self._receive._look()

    def _abandon(self) -> None:
        self._receive._abandon()


receives: weakref.WeakValueDictionary[int, Receive] = weakref.WeakValueDictionary()
"""The receives that have been posted, by number."""
