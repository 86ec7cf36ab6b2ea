"""Who waited for whom: late senders, late receivers, and collective calls that ranks begin at different times.

This needs the calls one by one (``--profile-events``). Messages are matched by their order: what a rank sends to
another one with a tag arrives in the order in which it was sent. Clocks of different hosts are brought together by the
messages between them: the shortest way there and the shortest way back are taken to be equally long. Pure functions.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from limosa_lab.profile.files import Process

_WORLD = 0x101
# Functions by which something is sent or received; what they wait for is in the call itself, or in that which completes
# the request. A large-count form counts like the other one.
_SENDS = {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend", "MPI_Sendrecv", "MPI_Sendrecv_replace"}
_RECEIVES = {"MPI_Recv", "MPI_Mprobe", "MPI_Sendrecv", "MPI_Sendrecv_replace"}
_BEGIN_SENDS = {"MPI_Isend", "MPI_Issend", "MPI_Irsend", "MPI_Ibsend", "MPI_Isendrecv", "MPI_Isendrecv_replace"}
_BEGIN_RECEIVES = {"MPI_Irecv", "MPI_Isendrecv", "MPI_Isendrecv_replace"}
COLLECTIVES = {
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


@dataclass(frozen=True)
class Waited:
    """A wait: which call of which rank, at which place, how long, of a call how long, and for which rank."""

    kind: str
    rank: int
    function: str
    site: int
    seconds: float
    of: float
    awaited: int


@dataclass(frozen=True)
class Half:
    """One side of a message: when it was ready, and during which call its rank waited for it, if it did."""

    rank: int
    function: str
    site: int
    begin: float
    waits_from: float | None
    waits_to: float | None


@dataclass(frozen=True)
class Found:
    """What was found: all waits, and how many messages had no other side among the recorded calls."""

    waits: list[Waited]
    messages: int
    unmatched: int


LATE_SENDER = "late sender"
LATE_RECEIVER = "late receiver"
IMBALANCE = "others begin later"


def find(processes: Sequence[Process]) -> Found | None:
    """Find who waited for whom; None if the calls were not recorded one by one."""
    traced = _traced(processes)
    if not traced:
        return None
    pairs, unmatched = _match([_sides(process) for process in traced])
    offsets = _offsets(traced, pairs)
    hosts = {process.rank: offsets[process.host] for process in traced}
    waits = [wait for sent, received in pairs for wait in _waits(sent, received, hosts)]
    waits += _collective_waits(traced, offsets)
    return Found(waits, len(pairs), unmatched)


def clock_offsets(processes: Sequence[Process]) -> dict[str, float]:
    """Give for each host what to add to its clock's seconds, so that messages need as long one way as the other."""
    traced = _traced(processes)
    if len({process.host for process in traced}) < 2:
        return {process.host: 0.0 for process in traced}
    pairs, _ = _match([_sides(process) for process in traced])
    return _offsets(traced, pairs)


def _traced(processes: Sequence[Process]) -> list[Process]:
    return [process for process in processes if process.rank is not None and len(process.events)]


def seconds_of(process: Process, ticks: np.ndarray) -> np.ndarray:
    """Give the clock's seconds of a host at values of the processor's counter."""
    # Differences of whole numbers first: the counter has more digits than a float.
    since = (ticks - np.uint64(process.first_tick)).astype(np.int64).astype(float)
    return process.first_time + since * process.seconds_per_tick


Key = tuple[int, int, int]
Sides = dict[Key, list[Half]]


def _plain(name: str) -> str:
    return name.removesuffix("_c")


def _sides(process: Process) -> tuple[Sides, Sides]:
    """Give what a process sent and received by sender, receiver and tag, in the order of the calls."""
    sent: Sides = defaultdict(list)
    received: Sides = defaultdict(list)
    rank = process.rank or 0
    completing: dict[int, deque[tuple[float, float]]] = defaultdict(deque)
    parts = process.completed
    for request, begin, end in zip(
        parts["request"].tolist(), seconds_of(process, parts["begin"]), seconds_of(process, parts["end"])
    ):
        completing[request].append((begin, end))
    events = process.events
    begins, ends = seconds_of(process, events["begin"]), seconds_of(process, events["end"])
    for event, begin, end in zip(events, begins, ends):
        name = _plain(process.names[int(event["function"]) - 1])
        at_once, later = name in _SENDS | _RECEIVES, name in _BEGIN_SENDS | _BEGIN_RECEIVES
        if not (at_once or later):
            continue
        wait: tuple[float, float] | None = (begin, end) if at_once else None
        if later:
            # A handle is used again: the completion that comes next is this one's.
            known = completing[int(event["request"])]
            while known and known[0][1] < begin:
                known.popleft()
            wait = known.popleft() if known else None
        half = Half(rank, name, int(event["site"]), begin, *(wait or (None, None)))
        if name in _SENDS | _BEGIN_SENDS and event["peer"] >= 0:
            sent[rank, int(event["peer"]), int(event["tag"])].append(half)
        if name in _RECEIVES | _BEGIN_RECEIVES and event["source"] >= 0:
            received[int(event["source"]), rank, int(event["received_tag"])].append(half)
    return sent, received


def _match(sides: Sequence[tuple[Sides, Sides]]) -> tuple[list[tuple[Half, Half]], int]:
    """Bring both sides of each message together; also give how many have no other side."""
    all_sent = {key: halves for sent, _ in sides for key, halves in sent.items()}
    all_received = {key: halves for _, received in sides for key, halves in received.items()}
    pairs, unmatched = [], 0
    for key in all_sent.keys() | all_received.keys():
        one, other = all_sent.get(key, []), all_received.get(key, [])
        pairs += list(zip(one, other))
        unmatched += abs(len(one) - len(other))
    return pairs, unmatched


def _offsets(processes: Sequence[Process], pairs: Sequence[tuple[Half, Half]]) -> dict[str, float]:
    host_of = {process.rank: process.host for process in processes}
    shortest: dict[tuple[str, str], float] = {}
    for sent, received in pairs:
        way = (host_of[sent.rank], host_of[received.rank])
        if way[0] != way[1] and received.waits_to is not None:
            took = received.waits_to - sent.begin
            shortest[way] = min(shortest.get(way, np.inf), took)
    hosts = list(dict.fromkeys(host_of.values()))
    offsets = {hosts[0]: 0.0}
    # From host to host, as messages went both ways; a host without them keeps its clock.
    for known in hosts:
        for host in hosts:
            if known in offsets and host not in offsets and {(known, host), (host, known)} <= shortest.keys():
                # There it took the true time plus the difference of the clocks, back the true time minus it.
                offsets[host] = offsets[known] - (shortest[known, host] - shortest[host, known]) / 2
    return {host: offsets.get(host, 0.0) for host in hosts}


def _waits(sent: Half, received: Half, offsets: dict[int | None, float]) -> Iterator[Waited]:
    """Give who of the two waited for the other one to begin."""
    difference = offsets[sent.rank] - offsets[received.rank]
    for kind, mine, other, late in (
        (LATE_SENDER, received, sent, sent.begin + difference),
        (LATE_RECEIVER, sent, received, received.begin - difference),
    ):
        if mine.waits_from is None or mine.waits_to is None or not mine.waits_from < late < mine.waits_to:
            continue
        seconds, whole = late - mine.waits_from, mine.waits_to - mine.waits_from
        yield Waited(kind, mine.rank, mine.function, mine.site, seconds, whole, other.rank)


def _collective_waits(processes: Sequence[Process], offsets: dict[str, float]) -> Iterator[Waited]:
    """Compare when the members of a communicator begin the same collective call: the last one is waited for."""
    calls: dict[tuple[object, ...], list[tuple[float, float, int, str, int]]] = defaultdict(list)
    members: dict[tuple[object, ...], int] = {}
    for process in processes:
        names, offset = process.places, offsets[process.host]
        number: dict[tuple[object, ...], int] = defaultdict(int)
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
        events = process.events
        begins, ends = seconds_of(process, events["begin"]) + offset, seconds_of(process, events["end"]) + offset
        for event, begin, end in zip(events, begins, ends):
            name = _plain(process.names[int(event["function"]) - 1])
            handle = int(event["object"])
            if name not in COLLECTIVES:
                continue
            group = tuple(range(process.size or 0)) if handle == _WORLD else names.communicators.get(handle, ())
            if process.rank not in group:
                continue
            # Communicators of the same members are told apart by the order in which they are first used.
            if handle != _WORLD and handle not in alike[group]:
                alike[group].append(handle)
            which = (group, -1 if handle == _WORLD else alike[group].index(handle))
            key: tuple[object, ...] = (*which, number[which], name)
            number[which] += 1
            members[key] = len(group)
            calls[key].append((begin, end, process.rank or 0, name, int(event["site"])))
    for call, together in calls.items():
        if len(together) < members[call] or len(together) < 2:
            continue
        last, _, late, _, _ = max(together)
        for begin, end, rank, name, site in together:
            if rank != late and begin < last:
                yield Waited(IMBALANCE, rank, name, site, min(last, end) - begin, end - begin, late)
