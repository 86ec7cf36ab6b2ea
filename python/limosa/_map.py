"""`Comm.map`: a function is called for many items, and each rank gets the next one when it has done the last.

The root hands them out. A rank asks for items with the answer for those it has done, and gets no more when there are
none, or when a call of the function has failed. On the root, a thread answers the others while the main thread works on
items too.
"""

from __future__ import annotations

import pickle
import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from limosa import errors
from limosa._agreement import described_error, marked
from limosa._packet import SLOT

if TYPE_CHECKING:
    from limosa._comm import Comm, Item, Result

_Task = list[tuple[int, Any]]  # numbers of items, and the items


class RemoteError(Exception):
    """The traceback on the rank where an exception was raised: the cause of that exception elsewhere."""


@dataclass
class _Failure:
    """A call that raised an exception."""

    number: int
    item: str
    rank: int
    error: Exception
    trace: str

    def raised(self, rank: int) -> Exception:
        """Give the exception to be raised on a rank."""
        error = self.error
        note = f"limosa.Comm.map: raised on rank {self.rank} for item {self.number}, {self.item}"
        if hasattr(error, "add_note"):
            error.add_note(note)
        if rank != self.rank:
            error.__cause__ = RemoteError(f"\n{self.trace}")
        return error


@dataclass
class _Answer:
    """What a rank has done."""

    results: dict[int, Any] = field(default_factory=dict)
    failure: _Failure | None = None


class _Tasks:
    """The items that are left, and the results so far; used by two threads of the root."""

    def __init__(self, items: list[Any], chunk: int) -> None:
        self._items = items
        self._chunk = chunk
        self._next = 0
        self._lock = threading.Lock()
        self.answer = _Answer()

    def next(self) -> _Task | None:
        """Give the next items, None if there are none to be done."""
        with self._lock:
            start = self._next
            if start >= len(self._items) or self.answer.failure is not None:
                return None
            self._next = start + self._chunk
            return list(enumerate(self._items[start : self._next], start))

    def record(self, answer: _Answer) -> None:
        """Add what a rank has done."""
        with self._lock:
            self.answer.results.update(answer.results)
            failure, known = answer.failure, self.answer.failure
            if failure is not None and (known is None or failure.number < known.number):
                self.answer.failure = failure


class _Loaded:
    """A value in a pickle of its own, as which it is sent."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream

    def __reduce__(self) -> Any:
        return pickle.loads, (self._stream,)


def push(comm: Comm, x: Any, to: int) -> None:
    """Send a rank that pulls a call or a value; cloudpickle, where it is installed, pickles what pickle cannot.

    Raises
    ------
    Exception
        What pickling has raised. Nothing has been sent then.

    """
    try:
        comm._push(x, to)
    except MPI.Exception:
        raise
    except Exception as error:
        try:
            from cloudpickle import dumps
        except ImportError:
            if hasattr(error, "add_note"):
                error.add_note("hint: `pip install cloudpickle`, which pickles lambdas and functions inside functions")
            raise error from None
        comm._push(_Loaded(dumps(x)), to)


def run(
    comm: Comm, function: Callable[[Item], Result], items: Iterable[Item] | None, root: int, chunk: int
) -> list[Result]:
    """Do what `Comm.map` says."""
    try:
        number, problem = comm._root_or_problem(root)
        tasks = None
        if problem is None and comm.rank == number:
            try:
                if items is None:
                    raise errors.BY_CLASS["ARG"]("the root must give the items")
                if chunk < 1:
                    raise errors.BY_CLASS["ARG"](f"chunk={chunk} is not a number from 1")
                tasks = _Tasks(list(items), chunk)
            except Exception as error:
                problem = error
        slot = marked(comm._slots.object_head, SLOT, "map", number)
        comm._channel.announce()
        comm._meet(slot if problem is None else comm._refusal(problem, "map", number), problem)
        if tasks is None:
            _work_for(comm, function, number)
            answer = comm.bcast(root=number)
        else:
            _work_and_serve(comm, function, tasks)
            answer = comm.bcast(_sendable(tasks.answer), number)
    except (MPI.Exception, errors.Error) as error:
        if isinstance(error, errors.Error) and error.call:
            raise
        comm._blame(error, "map")
    if answer.failure is not None:
        raise answer.failure.raised(comm.rank)
    return [answer.results[place] for place in range(len(answer.results))]


def _done(comm: Comm, function: Callable[[Any], Any], task: _Task) -> _Answer:
    """Call the function for some items."""
    answer = _Answer()
    for number, item in task:
        try:
            answer.results[number] = function(item)
        except Exception as error:
            answer.failure = _Failure(number, f"{item!r:.60}", comm.rank, error, traceback.format_exc())
            break
    return answer


def _sendable(answer: _Answer) -> _Answer:
    """Give an answer that can be pickled: an exception that cannot is replaced by what it says."""
    failure = answer.failure
    if failure is not None:
        try:
            pickle.loads(pickle.dumps(failure.error))  # noqa: S301 - what this process has made itself
        except Exception:
            error = errors.PeerError(f"rank {failure.rank}: {described_error(failure.error)}")
            answer.failure = _Failure(failure.number, failure.item, failure.rank, error, failure.trace)
        answer.results = {}
    return answer


def _work_for(comm: Comm, function: Callable[[Any], Any], root: int) -> None:
    """Work on what the root hands out; this is another rank."""
    answer = _Answer()
    task: _Task = []
    while True:
        try:
            push(comm, _sendable(answer), root)
        except Exception as error:  # a result that cannot be pickled
            number, item = task[0]
            failure = _Failure(number, f"{item!r:.60}", comm.rank, error, traceback.format_exc())
            comm._push(_sendable(_Answer(failure=failure)), root)
        task = comm._pull(root)
        if task is None:
            return
        answer = _done(comm, function, task)


def _work_and_serve(comm: Comm, function: Callable[[Any], Any], tasks: _Tasks) -> None:
    """Hand out the items and work on them; this is the root."""
    if comm.size == 1 or MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        if comm.size > 1:
            _serve(comm, tasks)
        _work(comm, function, tasks)
        return
    problems: list[BaseException] = []

    def serve() -> None:
        try:
            _serve(comm, tasks)
        except BaseException as error:  # to be raised by the other thread
            problems.append(error)

    server = threading.Thread(target=serve, name="limosa-map", daemon=True)
    server.start()
    _work(comm, function, tasks)
    server.join()
    if problems:
        raise problems[0]


def _work(comm: Comm, function: Callable[[Any], Any], tasks: _Tasks) -> None:
    while (task := tasks.next()) is not None:
        tasks.record(_done(comm, function, task))


def _serve(comm: Comm, tasks: _Tasks) -> None:
    """Answer the other ranks until each has been told that there are no more items."""
    left = comm.size - 1
    while left:
        answer, source = comm._pull_from()
        tasks.record(answer)
        while True:
            task = tasks.next()
            try:
                push(comm, task, source)
                break
            except MPI.Exception:
                raise
            except Exception as error:  # an item that cannot be pickled
                number, item = task[0] if task else (0, None)
                failure = _Failure(number, f"{item!r:.60}", comm.rank, error, traceback.format_exc())
                tasks.record(_Answer(failure=failure))
        left -= task is None
