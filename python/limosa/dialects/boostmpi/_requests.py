"""Communication under way: requests, and the functions that wait for several of them.

A request passes through *stages*, one MPI request each:

=======================  ==============================================================================
sending                  front, then payload if it is long
receiving an object      front, then payload if it is long: its receive is posted when the front is here
receiving a content      the content
=======================  ==============================================================================

A receive whose front is still to come is *open*: the payload cannot flow before we have noticed the front. A thread
that blocks here therefore looks after the open ones too (`finish`), so that two ranks which both have posted a
receive and then send something long do not wait for each other.
"""

from collections.abc import Callable, Iterable
from typing import Any

from mpi4py import MPI

from limosa.dialects._wire import SPACE_BYTES, Arrival, Channel
from limosa.dialects.boostmpi._errors import calls
from limosa.dialects.boostmpi._skeleton import Content


class Status:
    """What is known of a message: `source`, `tag`, `error`, `cancelled`."""

    __slots__ = ("_status",)

    def __init__(self, status: MPI.Status) -> None:
        self._status = status

    @property
    def source(self) -> int:
        """Rank of the sender."""
        return self._status.source

    @property
    def tag(self) -> int:
        """Tag of the message."""
        return self._status.tag

    @property
    def error(self) -> int:
        """MPI error code."""
        return self._status.error

    @property
    def cancelled(self) -> bool:
        """Whether the operation was cancelled."""
        return self._status.Is_cancelled()

    def __repr__(self) -> str:
        return f"<Status source={self.source} tag={self.tag} error={self.error} cancelled={self.cancelled}>"


class Request:
    """Something under way; made by `Communicator.isend`."""

    def __init__(self, stages: list[MPI.Request]) -> None:
        self._later = stages[1:]
        self._stage: MPI.Request | None = stages[0]
        self._status = MPI.Status()

    def _advance(self, status: MPI.Status) -> None:
        """Go on after the present stage, which has ended with `status`."""
        self._status = status
        self._stage = self._later.pop(0) if self._later else None

    def _result(self) -> Any:
        return Status(self._status)

    def _value(self) -> Any:
        """The value that came, or None."""
        return None

    @calls("MPI_Wait")
    def wait(self) -> Any:
        """Wait until it is done; give a Status (after isend) or (value, Status) (after irecv)."""
        finish([self])
        return self._result()

    @calls("MPI_Test")
    def test(self) -> Any:
        """Give what `wait` gives if it is done, otherwise None."""
        return self._result() if self._is_done() else None

    def _is_done(self) -> bool:
        while self._stage is not None:
            status = MPI.Status()  # a stage may keep it
            if not self._stage.Test(status):
                return False
            self._advance(status)
        return True

    @calls("MPI_Cancel")
    def cancel(self) -> None:
        """Take it back if the message has not been matched yet; `wait` must follow, whose Status tells."""
        if self._stage is not None:
            self._stage.Cancel()


class RequestWithValue(Request):
    """Something under way that will have a value; made by `Communicator.irecv`."""

    def __init__(self, stages: list[MPI.Request]) -> None:
        super().__init__(stages)
        self._received: Any = None

    def _result(self) -> Any:
        return self._received, Status(self._status)

    def _value(self) -> Any:
        return self._received


_open: list["ReceivedObject"] = []


class ReceivedObject(RequestWithValue):
    """A receive of an object."""

    def __init__(self, channel: Channel, source: int, tag: int) -> None:
        self._channel = channel
        self._space = bytearray(SPACE_BYTES)
        self._arrival: Arrival | None = None
        super().__init__([channel.comm.Irecv(self._space, source, tag)])
        _open.append(self)

    def _advance(self, status: MPI.Status) -> None:
        if self._arrival is not None:
            self._arrival.complete()
            self._stage = None
        else:
            _open.remove(self)
            self._status = status
            self._stage = None
            if status.Is_cancelled():
                return
            self._arrival = Arrival(self._space, status)
            if self._arrival.payload is not None:
                self._stage = self._channel.payloads.Irecv(self._arrival.payload, status.source, self._arrival.number)
                return
        self._received = self._arrival.value


class ReceivedContent(RequestWithValue):
    """A receive into the content of an array."""

    def __init__(self, channel: Channel, source: int, tag: int, content: Content) -> None:
        self._content = content
        super().__init__([channel.comm.Irecv(content.to_receive(), source, tag)])

    def _advance(self, status: MPI.Status) -> None:
        super()._advance(status)
        self._received = self._content.received()


def finish(requests: list[Request]) -> int:
    """Wait until one of the requests is done, and look after the open receives meanwhile; give its index."""
    while True:
        for index, request in enumerate(requests):
            if request._stage is None:
                return index
        waiting: list[Request] = [*requests, *(other for other in _open if other not in requests)]
        status = MPI.Status()
        if len(waiting) == 1:
            waiting[0]._stage.Wait(status)  # type: ignore[union-attr]
            waiting[0]._advance(status)
        else:
            index = MPI.Request.Waitany([request._stage for request in waiting if request._stage is not None], status)
            waiting[index]._advance(status)


def is_anything_open() -> bool:
    """Whether a receive is under way that has to be looked after."""
    return bool(_open)


class RequestList(list[Request]):
    """A list of requests.

    Parameters
    ----------
    iterable
        Requests to begin with.
    """

    def __contains__(self, request: object) -> bool:
        raise NotImplementedError("mpi requests are not comparable")


def _check_not_empty(requests: list[Request]) -> None:
    if len(requests) == 0:
        raise ValueError("cannot wait on an empty request vector")


@calls("MPI_Waitany")
def wait_any(requests: list[Request]) -> tuple[Any, Status, int]:
    """Wait until one of the requests is done.

    Parameters
    ----------
    requests
        A `RequestList`, or any list. Take out those that are done, or they will be found again.

    Returns
    -------
    object, Status, int
        The value received, or None; the status; the index of the request.

    Raises
    ------
    ValueError
        The list is empty.
    """
    _check_not_empty(requests)
    index = finish(list(requests))
    return requests[index]._value(), Status(requests[index]._status), index


@calls("MPI_Testany")
def test_any(requests: list[Request]) -> tuple[Any, Status, int] | None:
    """Give what `wait_any` gives if a request is done, otherwise None."""
    _check_not_empty(requests)
    for index, request in enumerate(requests):
        if request._is_done():
            return request._value(), Status(request._status), index
    return None


def _report(requests: Iterable[Request], callable: Callable[[Any, Status], object] | None) -> None:
    if callable is not None:
        for request in requests:
            callable(request._value(), Status(request._status))


@calls("MPI_Waitall")
def wait_all(requests: list[Request], callable: Callable[[Any, Status], object] | None = None) -> None:
    """Wait until all requests are done; then call ``callable(value, status)`` for each in their order."""
    _check_not_empty(requests)
    for request in list(requests):
        finish([request])
    _report(requests, callable)


@calls("MPI_Testall")
def test_all(requests: list[Request], callable: Callable[[Any, Status], object] | None = None) -> bool:
    """Tell whether all requests are done; if so, call ``callable(value, status)`` for each in their order."""
    _check_not_empty(requests)
    if not all([request._is_done() for request in requests]):
        return False
    _report(requests, callable)
    return True


def _some(requests: list[Request], callable: Callable[[Any, Status], object] | None) -> int:
    done = [request._is_done() for request in requests]
    completed = [request for request, is_done in zip(requests, done, strict=True) if is_done]
    requests[:] = [request for request, is_done in zip(requests, done, strict=True) if not is_done] + completed
    _report(completed, callable)
    return len(requests) - len(completed)


@calls("MPI_Waitsome")
def wait_some(requests: list[Request], callable: Callable[[Any, Status], object] | None = None) -> int:
    """Wait until one request or more are done, and put those at the end of the list.

    Returns
    -------
    int
        Index of the first one that is done: ``del requests[index:]`` takes them out.
    """
    _check_not_empty(requests)
    finish(list(requests))
    return _some(requests, callable)


@calls("MPI_Testsome")
def test_some(requests: list[Request], callable: Callable[[Any, Status], object] | None = None) -> int:
    """As `wait_some` without waiting; the index is the length of the list if none is done."""
    _check_not_empty(requests)
    return _some(requests, callable)
