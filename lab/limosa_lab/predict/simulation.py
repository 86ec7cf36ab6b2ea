"""The clocks of all processes while a schedule runs. Pure functions.

Ranks are dealt to hosts in blocks, whose sizes differ by one at most. A message inside a host costs what messages by
memory cost; one between hosts what the network costs. All messages that leave a host go one after the other through its
network card, as do all that enter it, whichever round they belong to; those of a round in the order in which they come
to the card. A process that sends is busy for o (inside a host also for the bytes); one that receives goes on when the
message is there and o has passed. Arithmetic takes no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from limosa_lab.predict.networks import Costs
from limosa_lab.predict.schedules import Round, Schedule, over


@dataclass(frozen=True)
class Cluster:
    """So many processes on so many hosts, with the costs of messages in a host and between hosts."""

    processes: int
    hosts: int
    inside: Costs
    between: Costs

    def host_of(self, ranks: np.ndarray) -> np.ndarray:
        """Give the hosts of ranks."""
        return ranks * self.hosts // self.processes

    def leaders(self) -> np.ndarray:
        """Give the first rank of each host."""
        return -(-np.arange(self.hosts) * self.processes // self.hosts)


def simulate(schedule: Schedule, n: float, cluster: Cluster) -> float:
    """Give the time until the last process has ended, if all begin at the same time."""
    return run(schedule(cluster.processes, n), cluster)


def run(rounds: Iterable[Round], cluster: Cluster) -> float:
    """Give the time until the last process has ended these rounds."""
    state = _State(cluster)
    for step in rounds:
        state.advance(step)
    return float(state.clocks.max())


def node_aware(parts: tuple[Schedule | None, Schedule, Schedule | None], n: float, cluster: Cluster) -> float:
    """Give the time of an operation in levels: inside the hosts, among one leader of each host, inside the hosts."""
    before, among, after = parts
    leaders = cluster.leaders()
    return run(
        (
            *(_inside(before, n, cluster) if before else ()),
            *over(leaders[np.newaxis], among(cluster.hosts, n)),
            *(_inside(after, n, cluster) if after else ()),
        ),
        cluster,
    )


def _inside(schedule: Schedule, n: float, cluster: Cluster) -> Iterator[Round]:
    """Give the rounds of a schedule inside each host, in all hosts at the same time."""
    leaders = cluster.leaders()
    sizes = np.diff(np.append(leaders, cluster.processes))
    groups = [leaders[sizes == size, np.newaxis] + np.arange(size) for size in np.unique(sizes)]
    for steps in zip_longest(*(over(group, schedule(group.shape[1], n)) for group in groups)):
        there = [step for step in steps if step is not None]
        senders, receivers, carried = (
            np.concatenate(x) for x in zip(*((s.senders, s.receivers, s.bytes) for s in there))
        )
        yield Round(senders, receivers, carried, waits=all(step.waits for step in there))


class _State:
    """When each process has ended what it does, and each network card what it has to carry."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.clocks = np.zeros(cluster.processes)
        # When the messages are received that a process has not waited for yet.
        self.received = np.zeros(cluster.processes)
        self.sending, self.receiving = np.zeros(cluster.hosts), np.zeros(cluster.hosts)

    def advance(self, step: Round) -> None:
        senders, receivers, n = step.senders, step.receivers, step.bytes
        from_host, to_host = self.cluster.host_of(senders), self.cluster.host_of(receivers)
        outside = from_host != to_host
        memory, network = self.cluster.inside, self.cluster.between
        overhead = np.where(outside, network.overhead, memory.overhead)
        sent = self.clocks[senders] + overhead
        copied = sent + np.where(outside, 0.0, memory.transfer(n))
        arrival = copied + memory.latency
        if outside.any():
            far = np.flatnonzero(outside)
            transfer = network.transfer(n[far])
            busy = np.maximum(network.gap, transfer)
            leaves = _queue(sent[far], busy, from_host[far], self.sending)
            arrival[far] = _queue(leaves + network.latency, busy, to_host[far], self.receiving) + transfer
        idle = np.maximum(self.clocks[receivers], self.received[receivers])
        self.received[receivers] = np.maximum(arrival, idle) + overhead
        self.clocks[senders] = np.maximum(self.clocks[senders], copied)
        if step.waits:
            np.maximum(self.clocks, self.received, out=self.clocks)


def _queue(ready: np.ndarray, busy: np.ndarray, hosts: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Give when each message begins to pass its host's card, which each keeps busy; note when the cards are `free`."""
    order = np.lexsort((ready, hosts))
    here, took = hosts[order], busy[order]
    is_first = np.r_[True, here[1:] != here[:-1]]
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(here)), 0))
    sums = np.cumsum(took) - took
    before = sums - sums[first]
    # A message begins when it is ready and those before it are through: the latest of what each of them allows.
    begins = np.where(is_first, np.maximum(ready[order], free[here]), ready[order]) - before
    distance, longest = 1, int((np.arange(len(here)) - first).max())
    while distance <= longest:
        same = here[distance:] == here[:-distance]
        begins[distance:] = np.where(same, np.maximum(begins[distance:], begins[:-distance]), begins[distance:])
        distance *= 2
    begins += before
    is_last = np.r_[is_first[1:], True]
    free[here[is_last]] = (begins + took)[is_last]
    found = np.empty(len(order))
    found[order] = begins
    return found
