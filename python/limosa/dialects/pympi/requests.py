"""Statuses, requests, and the functions that wait for several of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mpi4py import MPI

from limosa.dialects.pympi import wire
from limosa.dialects.pympi.errors import translated

__all__ = [
    "Request",
    "Status",
    "cancel",
    "test",
    "test_cancelled",
    "testall",
    "testany",
    "testsome",
    "wait",
    "waitall",
    "waitany",
    "waitsome",
]


class Status(NamedTuple):
    """Where a message came from: ``.source``, ``.tag``, ``.error``, also by index 0, 1, 2."""

    source: int
    tag: int
    error: int

    def __repr__(self) -> str:
        return f"<MPI_Status source={self.source} tag={self.tag} error={self.error}>"

    def __str__(self) -> str:
        return repr(self)


Arrived = Callable[[Status], tuple[Any, MPI.Request | None, Callable[[], Any] | None]]


class _CallableResult(tuple[bool, Status | None]):
    """What ``request.test`` gives; scripts write it as an attribute, some as a call."""

    def __call__(self) -> _CallableResult:
        return self


class _UnderWay:
    """Requests that are not done, kept so that their memory lives although the script may have let go of them."""

    def __init__(self) -> None:
        self.requests: set[Request] = set()
        self._most = 64

    def add(self, request: Request) -> None:
        if len(self.requests) >= self._most:
            for other in list(self.requests):
                other._drop_if_sent()
            self._most = max(64, 2 * len(self.requests))
        self.requests.add(request)


_under_way = _UnderWay()


class Request:
    """A send or receive that has been started.

    Parameters
    ----------
    parts
        The MPI requests that must finish, in turn.
    message
        What is being sent.
    arrived
        For a receive: called with the status when the first part is done; gives the message, or what will be
        the message when a further MPI request is done, that request, and a function that then makes the message.
    """

    def __init__(self, parts: list[MPI.Request], message: Any = None, arrived: Arrived | None = None) -> None:
        self._parts = parts
        self._message = message
        self._arrived = arrived
        self._finish: Callable[[], Any] | None = None
        self._receives = arrived is not None
        self._status: Status | None = None
        self._cancelled = False
        if self._receives or not self._advance(block=False):
            _under_way.add(self)

    def _advance(self, *, block: bool) -> bool:
        """Go on as far as is possible; True when all is done."""
        while self._parts:
            status = MPI.Status()
            with translated():
                if block:
                    self._parts[0].Wait(status)
                elif not self._parts[0].Test(status):
                    return False
            self._part_is_done(status)
        return True

    def _part_is_done(self, status: MPI.Status) -> None:
        del self._parts[0]
        if self._status is None:
            self._cancelled = status.Is_cancelled()
            self._status = Status(status.source, status.tag, status.error)
            if self._arrived is not None and not self._cancelled:
                self._message, more, self._finish = self._arrived(self._status)
                if more is not None:
                    self._parts.append(more)
        if not self._parts:
            _under_way.requests.discard(self)
            if self._finish is not None:
                self._message = self._finish()
                self._finish = None

    def _drop_if_sent(self) -> None:
        if not self._receives:
            self._advance(block=False)

    def wait(self) -> Status:
        """Wait until it is done; gives its status."""
        self._advance(block=True)
        assert self._status is not None
        return self._status

    @property
    def test(self) -> tuple[bool, Status | None]:
        """Whether it is done, and its status if so. May be written ``test[0]`` or ``test()[0]``."""
        done = self._advance(block=False)
        return _CallableResult((done, self._status if done else None))

    @property
    def ready(self) -> bool:
        """Whether the message has arrived (receives only)."""
        if not self._receives:
            raise AttributeError("only the request of a receive has the attribute 'ready'; use test[0]")
        return self._advance(block=False)

    @property
    def message(self) -> Any:
        """The message; of a receive once it has arrived."""
        if self._receives:
            self.wait()
        return self._message

    @property
    def status(self) -> Status:
        """The status; waits until there is one."""
        return self.wait()

    @property
    def test_cancelled(self) -> bool:
        """Whether it has been cancelled."""
        return self._advance(block=False) and self._cancelled

    def cancel(self) -> None:
        """Cancel it, if it has not begun to be received."""
        if self._status is None:
            for part in self._parts:
                part.Cancel()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<MPI_Request {'receive' if self._receives else 'send'}>"


def receive(comm: MPI.Comm, source: int, tag: int, world_rank: Callable[[int], int]) -> Request:
    """Start a receive (for `communicator.irecv`)."""
    room = wire.borrow()

    def arrived(status: Status) -> tuple[Any, MPI.Request | None, Callable[[], Any] | None]:
        if status.source < 0:  # MPI_PROC_NULL
            return None, None, None
        started: list[MPI.Request] = []

        def fetch(rest: Any, number: int) -> None:
            started.append(wire.later.Irecv((rest, MPI.BYTE), world_rank(status.source), number))

        message, finish = wire.unpack_later(room, fetch)
        wire.give_back(room)
        return message, started[0] if started else None, finish

    return Request([comm.Irecv((room, MPI.BYTE), source, tag)], arrived=arrived)


def _listed(requests: tuple[Any, ...]) -> list[Request]:
    """The requests, whether given one by one or as a sequence."""
    if len(requests) == 1 and not isinstance(requests[0], Request):
        requests = tuple(requests[0])
    for request in requests:
        if not isinstance(request, Request):
            raise TypeError(f"expected requests made by isend or irecv, not {type(request).__name__}")
    return list(requests)


def wait(request: Request) -> Status:
    """Wait for a request; gives its status."""
    return _listed((request,))[0].wait()


def waitall(*requests: Any) -> list[Status]:
    """Wait for all requests, given one by one or as a sequence; gives their statuses."""
    return [request.wait() for request in _listed(requests)]


def waitany(*requests: Any) -> tuple[int, Status]:
    """Wait for one of the requests; gives its index and status.

    Raises
    ------
    ValueError
        There are no requests.
    """
    indices, statuses = waitsome(*requests)
    return indices[0], statuses[0]


def waitsome(*requests: Any) -> tuple[list[int], list[Status]]:
    """Wait until at least one request is done; gives the indices and statuses of all that are.

    Raises
    ------
    ValueError
        There are no requests.
    """
    listed = _listed(requests)
    if not listed:
        raise ValueError("there is no request to wait for")
    while True:
        indices, statuses = testsome(listed)
        if indices:
            return indices, statuses
        status = MPI.Status()
        with translated():
            index = MPI.Request.Waitany([request._parts[0] for request in listed], status)
        listed[index]._part_is_done(status)


def test(request: Request) -> tuple[bool, Status | None]:
    """Whether a request is done, and its status if so."""
    return _listed((request,))[0].test


def testall(*requests: Any) -> list[Status]:
    """Statuses of all requests if all are done, otherwise an empty list."""
    indices, statuses = testsome(*requests)
    return statuses if len(indices) == len(_listed(requests)) else []


def testany(*requests: Any) -> tuple[int | None, Status | None]:
    """Index and status of a request that is done; (None, None) if there is none."""
    indices, statuses = testsome(*requests)
    return (indices[0], statuses[0]) if indices else (None, None)


def testsome(*requests: Any) -> tuple[list[int], list[Status]]:
    """Indices and statuses of the requests that are done."""
    listed = _listed(requests)
    done = [index for index, request in enumerate(listed) if request._advance(block=False)]
    return done, [listed[index].wait() for index in done]


def test_cancelled(request: Request) -> bool:
    """Whether a request has been cancelled."""
    return _listed((request,))[0].test_cancelled


def cancel(request: Request) -> None:
    """Cancel a request."""
    _listed((request,))[0].cancel()
