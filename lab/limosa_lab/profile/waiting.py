"""Which ranks waited for which: late senders, late receivers, and collective calls that ranks begin at different times.

This needs the calls one by one (``--profile-events``). Messages are matched by their order: what a rank sends to
a second one with a tag arrives in the order in which it was sent. Clocks of different hosts are brought together by the
messages between them: the shortest way there and the shortest way back are taken to be equally long. Pure functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from limosa_lab.profile import operations
from limosa_lab.profile.files import Process
from limosa_lab.profile.operations import Operation


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
class Found:
    """What was found: all waits, and how many messages had no other side among the recorded calls."""

    waits: list[Waited]
    messages: int
    unmatched: int


LATE_SENDER = "late sender"
LATE_RECEIVER = "late receiver"
IMBALANCE = "others begin later"


@dataclass(frozen=True)
class _Side:
    """What a rank has to do with an operation."""

    rank: int
    operation: Operation


@dataclass(frozen=True)
class _Candidate:
    """What a call may have waited for: it came at a moment, by the clock of the waiting rank."""

    kind: str
    waiting: _Side
    awaited: int
    moment: float


_Pairs = list[tuple[_Side, _Side]]


def find(processes: Sequence[Process]) -> Found | None:
    """Find which ranks waited for which; None if the calls were not recorded one by one."""
    traced = _traced(processes)
    if not traced:
        return None
    sides = _sides(traced)
    pairs, unmatched = _match(sides)
    by_host = _offsets(traced, pairs)
    offsets = {process.rank or 0: by_host[process.host] for process in traced}
    candidates = [
        *(candidate for sent, received in pairs for candidate in _of_message(sent, received, offsets)),
        *_of_collectives(sides, offsets),
    ]
    return Found(list(_waits(candidates)), len(pairs), unmatched)


def clock_offsets(processes: Sequence[Process]) -> dict[str, float]:
    """Give for each host what to add to its clock's seconds, so that messages need as long one way as back."""
    traced = _traced(processes)
    if len({process.host for process in traced}) < 2:
        return {process.host: 0.0 for process in traced}
    return _offsets(traced, _match(_sides(traced))[0])


def _traced(processes: Sequence[Process]) -> list[Process]:
    return [process for process in processes if process.rank is not None and len(process.events)]


def _sides(processes: Sequence[Process]) -> list[_Side]:
    return [_Side(process.rank or 0, made) for process in processes for made in operations.read(process)]


def _match(sides: Iterable[_Side]) -> tuple[_Pairs, int]:
    """Bring both sides of each message together; also give how many have no other side."""
    # By sender, receiver and tag, in the order of the calls.
    sent: dict[tuple[int, int, int], list[_Side]] = defaultdict(list)
    received: dict[tuple[int, int, int], list[_Side]] = defaultdict(list)
    for side in sides:
        made = side.operation
        if made.to >= 0:
            sent[side.rank, made.to, made.tag].append(side)
        if made.source >= 0:
            received[made.source, side.rank, made.received_tag].append(side)
    pairs, unmatched = [], 0
    for key in sent.keys() | received.keys():
        one, other = sent.get(key, []), received.get(key, [])
        pairs += list(zip(one, other))
        unmatched += abs(len(one) - len(other))
    return pairs, unmatched


def _offsets(processes: Sequence[Process], pairs: _Pairs) -> dict[str, float]:
    host_of = {process.rank or 0: process.host for process in processes}
    shortest: dict[tuple[str, str], float] = {}
    for sent, received in pairs:
        way = (host_of[sent.rank], host_of[received.rank])
        if way[0] != way[1] and received.operation.wait is not None:
            took = received.operation.wait.end - sent.operation.begin
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


def _of_message(sent: _Side, received: _Side, offsets: dict[int, float]) -> Iterator[_Candidate]:
    """Give what each of two ranks may have waited for: that its partner begins."""
    difference = offsets[sent.rank] - offsets[received.rank]
    yield _Candidate(LATE_SENDER, received, sent.rank, sent.operation.begin + difference)
    yield _Candidate(LATE_RECEIVER, sent, received.rank, received.operation.begin - difference)


def _of_collectives(sides: Iterable[_Side], offsets: dict[int, float]) -> Iterator[_Candidate]:
    """Give for which rank others may have waited in a collective operation: the last to begin before one has ended."""
    calls: dict[Hashable, list[_Side]] = defaultdict(list)
    for side in sides:
        if side.operation.together is not None:
            calls[side.operation.together].append(side)
    for together in calls.values():
        if len(together) < len(together[0].operation.group):
            continue
        begun = sorted((side.operation.begin + offsets[side.rank], side.rank) for side in together)
        for side in together:
            wait = side.operation.wait
            if wait is None:
                continue
            end = wait.end + offsets[side.rank]
            moment, last = next((each for each in reversed(begun) if each[0] < end), begun[0])
            if last != side.rank:
                yield _Candidate(IMBALANCE, side, last, moment - offsets[side.rank])


def _waits(candidates: Iterable[_Candidate]) -> Iterator[Waited]:
    """Give for each call for what it has waited: that which came first or last, as the call ends with either."""
    by_call: dict[tuple[int, int], _Candidate] = {}
    for candidate in candidates:
        wait = candidate.waiting.operation.wait
        if wait is None or not wait.begin < candidate.moment < wait.end:
            continue
        call = (candidate.waiting.rank, wait.call)
        known = by_call.get(call)
        if known is None or (candidate.moment < known.moment) == wait.ends_with_first:
            by_call[call] = candidate
    for candidate in by_call.values():
        rank, made = candidate.waiting.rank, candidate.waiting.operation
        wait, moment = made.wait, candidate.moment
        if wait is not None and (seconds := wait.before(moment)) > 0:
            whole = wait.before(wait.end)
            yield Waited(candidate.kind, rank, made.function, made.site, seconds, whole, candidate.awaited)
