"""The clocks of all processes while a schedule runs. Pure functions.

Ranks are dealt to hosts in equal blocks. A message inside a host costs what messages by memory cost; one between hosts
what the network costs, and all messages that leave a host in a round go one after the other through its network card,
as do those that enter it. A process that sends is busy for o and for the bytes; one that receives goes on when the
message is there and o has passed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limosa_lab.predict.networks import Costs
from limosa_lab.predict.schedules import Round, Schedule


@dataclass(frozen=True)
class Cluster:
    """So many processes on so many hosts, with the costs of messages in a host and between hosts."""

    processes: int
    hosts: int
    inside: Costs
    between: Costs

    def host_of(self, ranks: np.ndarray) -> np.ndarray:
        """Give the hosts of ranks: blocks of the same size, but for the last."""
        return ranks // -(-self.processes // self.hosts)


def simulate(schedule: Schedule, n: float, cluster: Cluster) -> float:
    """Give the time until the last process has ended, if all begin at the same time."""
    clocks = np.zeros(cluster.processes)
    for step in schedule(cluster.processes, n):
        _advance(clocks, step, cluster)
    return float(clocks.max())


def node_aware(leaders: Schedule, inside: Schedule, n: float, cluster: Cluster, order: str) -> float:
    """Give the time of an operation in two levels: among one leader of each host, and inside the hosts.

    `order` says what comes first: ``down`` the leaders (broadcast, scatter), ``up`` the hosts (reduce, gather),
    ``both`` the hosts before and after the leaders (barrier, allreduce, with n bytes each time).
    """
    local = -(-cluster.processes // cluster.hosts)
    one_host = Cluster(local, 1, cluster.inside, cluster.between)
    all_leaders = Cluster(cluster.hosts, cluster.hosts, cluster.inside, cluster.between)
    within = simulate(inside, n, one_host)
    across = simulate(leaders, n, all_leaders)
    return across + (2 * within if order == "both" else within)


def _advance(clocks: np.ndarray, step: Round, cluster: Cluster) -> None:
    senders, receivers, n = step.senders, step.receivers, step.bytes
    from_host, to_host = cluster.host_of(senders), cluster.host_of(receivers)
    outside = from_host != to_host
    inside_costs, network = cluster.inside, cluster.between
    begin = clocks[senders]
    overhead = np.where(outside, network.overhead, inside_costs.overhead)
    latency = np.where(outside, network.latency, inside_costs.latency)
    transfer = np.where(outside, network.transfer(n), inside_costs.transfer(n))
    # Who waits for the network card: the k-th message of a host in this round, at either end.
    busy = np.maximum(network.gap, transfer) * outside
    waits = np.maximum(_before(from_host, busy, outside), _before(to_host, busy, outside))
    arrival = begin + overhead + waits + latency + transfer
    ended = clocks.copy()
    np.maximum.at(ended, senders, begin + overhead + np.where(outside, 0.0, transfer))
    np.maximum.at(ended, receivers, np.maximum(arrival, clocks[receivers]) + overhead)
    clocks[:] = ended


def _before(hosts: np.ndarray, busy: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Give for each message that uses the network the time that earlier ones of the same host take."""
    waits = np.zeros(len(hosts))
    used = np.flatnonzero(outside)
    if not len(used):
        return waits
    order = used[np.argsort(hosts[used], kind="stable")]
    sums = np.cumsum(busy[order]) - busy[order]
    first = np.r_[True, hosts[order][1:] != hosts[order][:-1]]
    base = np.maximum.accumulate(np.where(first, sums, 0.0))
    waits[order] = sums - base
    return waits
