"""What a process sent, received and did together with others, and in which calls it waited for that.

This reads the calls one by one (``--profile-events``). A call that starts an operation says its request, and a call
that completes one says it, too: both are brought together here. Of a receive from any source the sender is known from
the call that completes it. Pure functions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from limosa_lab.profile.files import Process

_SENDS = {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend"}
_EXCHANGES = {"MPI_Sendrecv", "MPI_Sendrecv_replace"}
_COLLECTIVES = {
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Exscan",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Scan",
    "MPI_Scatter",
    "MPI_Scatterv",
}


def _nonblocking(names: set[str]) -> set[str]:
    return {f"MPI_I{name.removeprefix('MPI_').lower()}" for name in names}


def _persistent(names: set[str]) -> set[str]:
    return {f"{name}_init" for name in names}


_AT_ONCE = _SENDS | _EXCHANGES | _COLLECTIVES | {"MPI_Recv"}
_STARTED = _nonblocking(_AT_ONCE)
_INITIALIZED = _persistent(_SENDS | _COLLECTIVES | {"MPI_Recv"})
_TOGETHER = _COLLECTIVES | _nonblocking(_COLLECTIVES) | _persistent(_COLLECTIVES)
_WAITS = {"MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"}
_TESTS = {"MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome"}
# These end with the first of their requests, the others with the last one.
_END_WITH_FIRST = {"MPI_Waitany", "MPI_Waitsome", "MPI_Testany", "MPI_Testsome"}
_RECEIVES_LATER = {"MPI_Irecv", "MPI_Recv_init", *_nonblocking(_EXCHANGES)}
_PROBES = {"MPI_Mprobe", "MPI_Improbe"}
_RECEIVES_OF_FOUND = {"MPI_Mrecv", "MPI_Imrecv"}
# The source in the status of an operation that was cancelled.
_CANCELLED = -(1 << 31)


@dataclass(frozen=True)
class Wait:
    """The calls in which a rank waited for an operation: one, or some that asked whether it was completed.

    Attributes
    ----------
    begins, ends
        Of these calls, in seconds of the rank's own clock.
    call
        The number of the last of them, in which the operation was completed.
    ends_with_first
        That call ends as soon as one of its operations is completed.

    """

    begins: np.ndarray
    ends: np.ndarray
    call: int
    ends_with_first: bool = False

    @property
    def begin(self) -> float:
        """Give when the first call began."""
        return float(self.begins[0])

    @property
    def end(self) -> float:
        """Give when the last call ended."""
        return float(self.ends[-1])

    def before(self, moment: float) -> float:
        """Give the time in these calls before a moment."""
        return float(np.maximum(np.minimum(self.ends, moment) - self.begins, 0.0).sum())


@dataclass(frozen=True)
class Operation:
    """A message of which this rank is one side or, in an exchange, two; or a part in a collective operation.

    Attributes
    ----------
    function, site
        The call that has said what is to be done: that which started it, or made its persistent request.
    begin
        When this rank was ready, in seconds of its own clock.
    to, tag
        The receiver's rank in ``MPI_COMM_WORLD`` and the tag of what is sent; negative: nothing.
    source, received_tag
        The same of what is received.
    wait
        None if it is not known where the rank waited for it.
    group
        The communicator's members in ranks of ``MPI_COMM_WORLD``, of an intercommunicator those of the other group.
    together
        For a collective operation: what all members call it.

    """

    function: str
    site: int
    begin: float
    to: int = -1
    tag: int = -1
    source: int = -1
    received_tag: int = -1
    wait: Wait | None = None
    group: tuple[int, ...] = ()
    together: Hashable = None


def read(process: Process) -> list[Operation]:
    """Give the operations of a process, in the order in which it has called them."""
    return [made for made in _Reader(process).operations if made is not None]


@dataclass(frozen=True)
class _Part:
    """One of the requests or messages that a call is about, and what the status says of it."""

    handle: int
    source: int
    tag: int


class _Reader:
    """Walks through the calls of a process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.rank = process.rank or 0
        events, parts = process.events, process.parts
        self.names = [process.names[number - 1].removesuffix("_c") for number in events["function"].tolist()]
        self.begins, self.ends = process.clock(events["begin"]), process.clock(events["end"])
        self.column = {name: events[name].tolist() for name in events.dtype.names or ()}
        # By thread and begin of the call.
        self.parts: dict[tuple[int, int], list[_Part]] = defaultdict(list)
        columns = (parts[name].tolist() for name in ("thread", "begin", "request", "source", "received_tag"))
        for thread, begin, handle, source, tag in zip(*columns):
            self.parts[thread, begin].append(_Part(handle, source, tag))
        # None: cancelled.
        self.operations: list[Operation | None] = []
        # By request: numbers of operations with the calls that have started them; calls that have completed it.
        self.started: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.completed: dict[int, list[tuple[int, _Part]]] = defaultdict(list)
        # Calls of a function, of one thread at one place, that have asked whether something is completed.
        self.asked: dict[tuple[int, ...], list[int]] = defaultdict(list)
        self.times: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
        # By message: the number of the operation that is received with it.
        self.found: dict[int, int] = {}
        self.persistent: dict[int, Operation] = {}
        self.alike: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        self.numbers: dict[Hashable, int] = defaultdict(int)
        others = {name for name in self.names if name.endswith("_init")} - _INITIALIZED
        look_at = {
            **dict.fromkeys(others, self._forget),
            **dict.fromkeys(_AT_ONCE, self._do),
            **dict.fromkeys(_STARTED, self._start_new),
            **dict.fromkeys(_INITIALIZED, self._initialize),
            **dict.fromkeys(_WAITS, self._note_completed),
            **dict.fromkeys(_TESTS, self._note_asked),
            **dict.fromkeys(_PROBES, self._note_found),
            **dict.fromkeys(_RECEIVES_OF_FOUND, self._receive_found),
            "MPI_Start": self._start_one,
            "MPI_Startall": self._start_all,
        }
        for call, name in enumerate(self.names):
            if name in look_at:
                look_at[name](call)
        for request, started in self.started.items():
            self._complete(started, self.completed[request])

    def _do(self, call: int) -> None:
        self.operations.append(replace(self._said(call), wait=self._wait([call])))

    def _start_new(self, call: int) -> None:
        self._start(self.column["request"][call], call, self._said(call))

    def _initialize(self, call: int) -> None:
        self.persistent[self.column["request"][call]] = self._said(call)

    def _forget(self, call: int) -> None:
        """Note that a handle is used again, for what is not looked at."""
        self.persistent.pop(self.column["request"][call], None)

    def _start_one(self, call: int) -> None:
        self._start_again(self.column["request"][call], call)

    def _start_all(self, call: int) -> None:
        for part in self._parts_of(call):
            self._start_again(part.handle, call)

    def _said(self, call: int) -> Operation:
        """Give what a call says of its operation."""
        name, column = self.names[call], self.column
        handle, site, begin = column["object"][call], column["site"][call], float(self.begins[call])
        since, group = self.process.members(handle, column["begin"][call])
        if name in _TOGETHER:
            together = self._together(name, (handle, since), group) if self.rank in group else None
            return Operation(name, site, begin, group=group, together=together)
        to, tag, source, received_tag = (column[which][call] for which in ("peer", "tag", "source", "received_tag"))
        return Operation(name, site, begin, to, tag, source, received_tag, group=group)

    def _together(self, name: str, communicator: tuple[int, int], group: tuple[int, ...]) -> Hashable:
        """Give what all members call a collective operation: the communicator's so-manieth."""
        # Communicators of the same members are told apart by the order in which they are first used.
        alike = self.alike[group]
        if communicator not in alike:
            alike.append(communicator)
        which = (group, alike.index(communicator))
        self.numbers[which] += 1
        return which, self.numbers[which], name

    def _start(self, request: int, call: int, made: Operation) -> None:
        self.started[request].append((len(self.operations), call))
        self.operations.append(made)

    def _start_again(self, request: int, call: int) -> None:
        """Start what a persistent request is for; nothing if that is not known."""
        made = self.persistent.get(request)
        if made is None:
            return
        if made.together:
            self.numbers[made.together] += 1
            made = replace(made, together=(made.together, self.numbers[made.together]))
        self._start(request, call, replace(made, begin=float(self.begins[call])))

    def _note_completed(self, call: int) -> None:
        for part in self._parts_of(call):
            self.completed[part.handle].append((call, part))

    def _note_asked(self, call: int) -> None:
        self._note_completed(call)
        parts = self._parts_of(call)
        self.asked[self._series(call, parts[0] if parts else None)].append(call)

    def _note_found(self, call: int) -> None:
        """Note a call that looks for a message, which a second call is to receive."""
        asked = self.asked[self._series(call, None)]
        asked.append(call)
        message = self.column["request"][call]
        if message:
            self.found[message] = len(self.operations)
            self.operations.append(replace(self._said(call), wait=self._wait(asked)))
            asked.clear()

    def _receive_found(self, call: int) -> None:
        for part in self._parts_of(call):
            number = self.found.pop(part.handle, None)
            made = None if number is None else self.operations[number]
            if number is not None and made is not None:
                # The receiver has waited when it looked for the message; the sender may wait for this.
                self.operations[number] = replace(made, begin=float(self.begins[call]))

    def _complete(self, started: list[tuple[int, int]], completed: list[tuple[int, _Part]]) -> None:
        """Bring operations with the same request together with the calls that have completed them."""
        at = 0
        following = [call for _, call in started[1:]]
        for (number, call), next_call in zip(started, [*following, None], strict=True):
            # A handle is used again: what comes next is this operation's, unless a new one was started before.
            while at < len(completed) and self.ends[completed[at][0]] < self.begins[call]:
                at += 1
            if at == len(completed):
                return
            by, part = completed[at]
            made = self.operations[number]
            if made is None or (next_call is not None and self.begins[by] > self.ends[next_call]):
                continue
            at += 1
            self.operations[number] = None if part.source == _CANCELLED else self._ended(made, call, by, part)

    def _ended(self, made: Operation, call: int, by: int, part: _Part) -> Operation:
        """Give an operation that one call has started and a second one completed."""
        made = replace(made, wait=self._wait_since(call, by, part) if self.names[by] in _TESTS else self._wait([by]))
        if made.function not in _RECEIVES_LATER:
            return made
        if made.source < 0 and 0 <= part.source < len(made.group):
            made = replace(made, source=made.group[part.source])
        return replace(made, received_tag=part.tag) if made.received_tag < 0 else made

    def _wait_since(self, call: int, last: int, part: _Part) -> Wait:
        """Give the calls up to the last one that have asked for what a different call has started."""
        series = self._series(last, part)
        asked = self.asked[series]
        if series not in self.times:
            self.times[series] = (self.begins[asked], self.ends[asked])
        some = slice(bisect_left(asked, call), bisect_left(asked, last) + 1)
        begins, ends = self.times[series]
        return Wait(begins[some], ends[some], last, self.names[last] in _END_WITH_FIRST)

    def _parts_of(self, call: int) -> list[_Part]:
        return self.parts.get((self.column["thread"][call], self.column["begin"][call]), [])

    def _series(self, call: int, part: _Part | None) -> tuple[int, ...]:
        """Give what calls have in common that ask for the same."""
        place = tuple(self.column[name][call] for name in ("thread", "function", "site"))
        if self.names[call] != "MPI_Test":
            return place
        return (*place, part.handle if part else self.column["request"][call])

    def _wait(self, calls: list[int]) -> Wait:
        last = calls[-1]
        return Wait(self.begins[calls], self.ends[calls], last, self.names[last] in _END_WITH_FIRST)
