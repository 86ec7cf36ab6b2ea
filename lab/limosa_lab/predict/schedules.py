"""Algorithms of collective operations as rounds of messages. Pure functions.

A round is three arrays of the same length: senders, receivers, bytes. In a round each process sends at most one message
and receives at most one; a process begins a round when it has ended the round before. Bytes n are those of
`limosa_lab.model.metrics`. Sources: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
operations in MPICH" (2005); J. Bruck et al. (1997).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Round:
    """Messages that are under way at the same time: ``senders[i]`` sends ``bytes[i]`` to ``receivers[i]``."""

    senders: np.ndarray
    receivers: np.ndarray
    bytes: np.ndarray


Schedule = Callable[[int, float], Iterator[Round]]


def binomial_bcast(p: int, n: float) -> Iterator[Round]:
    """Send n bytes from rank 0 to all by a binomial tree: ceil(log2 p) rounds."""
    have = 1
    while have < p:
        senders = np.arange(min(have, p - have))
        yield _round(senders, senders + have, n)
        have *= 2


def linear_bcast(p: int, n: float) -> Iterator[Round]:
    """Send n bytes from rank 0 to one rank after the other."""
    for rank in range(1, p):
        yield _round(np.array([0]), np.array([rank]), n)


def binomial_scatter(p: int, n: float) -> Iterator[Round]:
    """Deal n bytes in blocks by a binomial tree, in which the upper half goes first."""
    yield from reversed(list(binomial_gather(p, n, backwards=True)))


def binomial_gather(p: int, n: float, *, backwards: bool = False) -> Iterator[Round]:
    """Gather n bytes, n / p of each rank, on rank 0 by a binomial tree; `backwards`: senders and receivers swapped."""
    block, span = n / p, 1
    while span < p:
        senders = np.arange(span, p, 2 * span)
        held = np.minimum(span, p - senders) * block
        pairs = (senders - span, senders) if backwards else (senders, senders - span)
        yield Round(*pairs, held)
        span *= 2


def ring_allgather(p: int, n: float) -> Iterator[Round]:
    """Collect n bytes on all ranks by p - 1 rounds in a ring."""
    ranks = np.arange(p)
    for _ in range(p - 1):
        yield _round(ranks, (ranks + 1) % p, n / p)


def bruck_allgather(p: int, n: float) -> Iterator[Round]:
    """Collect n bytes on all ranks in ceil(log2 p) rounds of growing messages."""
    ranks, held = np.arange(p), 1
    while held < p:
        yield _round(ranks, (ranks - held) % p, min(held, p - held) * n / p)
        held *= 2


def scatter_allgather_bcast(p: int, n: float) -> Iterator[Round]:
    """Broadcast by a scatter and a ring: for long messages."""
    yield from binomial_scatter(p, n)
    yield from ring_allgather(p, n)


def doubling_allreduce(p: int, n: float) -> Iterator[Round]:
    """Reduce n bytes on all ranks by exchanges at doubling distances; ranks above a power of two join at the ends."""
    power = 1 << (p.bit_length() - 1)
    rest = np.arange(p - power)
    if len(rest):
        yield _round(rest + power, rest, n)
    ranks = np.arange(power)
    span = 1
    while span < power:
        yield _round(ranks, ranks ^ span, n)
        span *= 2
    if len(rest):
        yield _round(rest, rest + power, n)


def ring_allreduce(p: int, n: float) -> Iterator[Round]:
    """Reduce n bytes on all ranks by two turns of a ring, in pieces of n / p."""
    ranks = np.arange(p)
    for _ in range(2 * (p - 1)):
        yield _round(ranks, (ranks + 1) % p, n / p)


def binomial_reduce(p: int, n: float) -> Iterator[Round]:
    """Reduce n bytes on rank 0 by a binomial tree."""
    span = 1
    while span < p:
        senders = np.arange(span, p, 2 * span)
        yield _round(senders, senders - span, n)
        span *= 2


def dissemination_barrier(p: int, n: float = 0) -> Iterator[Round]:
    """Wait for all in ceil(log2 p) rounds."""
    ranks, span = np.arange(p), 1
    while span < p:
        yield _round(ranks, (ranks + span) % p, n)
        span *= 2


def pairwise_alltoall(p: int, n: float) -> Iterator[Round]:
    """Exchange blocks of n / p between all, in p - 1 rounds."""
    ranks = np.arange(p)
    for distance in range(1, p):
        yield _round(ranks, (ranks + distance) % p, n / p)


def bruck_alltoall(p: int, n: float) -> Iterator[Round]:
    """Exchange short blocks between all in ceil(log2 p) rounds, each of about half the blocks."""
    ranks, span = np.arange(p), 1
    while span < p:
        blocks = np.count_nonzero(ranks & span)
        yield _round(ranks, (ranks + span) % p, blocks * n / p)
        span *= 2


ALGORITHMS: dict[str, dict[str, Schedule]] = {
    "bcast": {
        "binomial tree": binomial_bcast,
        "scatter and ring": scatter_allgather_bcast,
        "one after the other": linear_bcast,
    },
    "reduce": {"binomial tree": binomial_reduce},
    "allreduce": {"recursive doubling": doubling_allreduce, "ring": ring_allreduce},
    "scatter": {"binomial tree": binomial_scatter},
    "gather": {"binomial tree": binomial_gather},
    "allgather": {"Bruck": bruck_allgather, "ring": ring_allgather},
    "alltoall": {"Bruck": bruck_alltoall, "pairwise": pairwise_alltoall},
    "barrier": {"dissemination": dissemination_barrier},
}


def _round(senders: np.ndarray, receivers: np.ndarray, n: float) -> Round:
    return Round(senders, receivers, np.full(len(senders), float(n)))
