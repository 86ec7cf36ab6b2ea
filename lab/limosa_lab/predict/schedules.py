"""Algorithms of collective operations as rounds of messages. Pure functions.

A round is three arrays of the same length: senders, receivers, bytes. In a round each process sends at most one message
and receives at most one; a process begins a round when it has ended the round before. Rounds that do not wait (`waits`
is False) are posted together with the next one: their messages are waited for at the end of the first round that does.
Bytes n are those of `limosa_lab.model.metrics`.

=====================  ===============================================================================================
algorithm              source
=====================  ===============================================================================================
binomial tree          R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
                       MPICH" (2005); Limosa's `binomial`: the farthest subtree first, ``rank + p/2``
scatter and ring       Thakur et al., for long broadcasts
Bruck                  J. Bruck et al. (1997); Limosa's `bruck`
recursive doubling     Thakur et al.; Limosa's `recursive_doubling`
Rabenseifner           Thakur et al.: recursive halving, then recursive doubling or a tree
ring                   Thakur et al.; Limosa's `ring` of MPI_Allgather
pairwise               Thakur et al.
chain, binary tree     MPICH's pipelined trees, in segments of `SEGMENT` bytes
exchange               Limosa's `exchange`, `scatter_exchange` and `sliced`: to all others, `WINDOW` messages at a time
one after the other    Limosa's `linear`
dissemination          D. Hensgen, R. Finkel, U. Manber (1988); Limosa's `dissemination`
=====================  ===============================================================================================

Limosa's algorithms are those of the crate ``limosa-coll``. A test of that crate writes their messages down, and the
tests of this module compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Round:
    """Messages that are under way at the same time: ``senders[i]`` sends ``bytes[i]`` to ``receivers[i]``."""

    senders: np.ndarray
    receivers: np.ndarray
    bytes: np.ndarray
    waits: bool = True


Schedule = Callable[[int, float], Iterator[Round]]

# Messages that a rank has under way at a time in an exchange: WINDOW in crates/limosa-coll/src/exchange.rs, GROUP in
# slices.rs.
WINDOW = 32
# Bytes of a segment in pipelined algorithms.
SEGMENT = 64 << 10


# ---- Trees ---------------------------------------------------------------------------------------------------------


def binomial_bcast(p: int, n: float) -> Iterator[Round]:
    """Send n bytes from rank 0 to all by a binomial tree, the farthest subtree first: ceil(log2 p) rounds."""
    for senders, receivers in reversed(list(_binomial_edges(p))):
        yield _round(receivers, senders, n)


def binomial_reduce(p: int, n: float) -> Iterator[Round]:
    """Reduce n bytes on rank 0 by a binomial tree, the nearest rank first."""
    for senders, receivers in _binomial_edges(p):
        yield _round(senders, receivers, n)


def binomial_scatter(p: int, n: float) -> Iterator[Round]:
    """Deal n bytes in blocks by a binomial tree, in which the upper half goes first."""
    for step in reversed(list(binomial_gather(p, n))):
        yield Round(step.receivers, step.senders, step.bytes)


def binomial_gather(p: int, n: float) -> Iterator[Round]:
    """Gather n bytes, n / p of each rank, on rank 0 by a binomial tree."""
    for span, (senders, receivers) in zip(_doublings(p), _binomial_edges(p)):
        yield Round(senders, receivers, np.minimum(span, p - senders) * (n / p))


def linear_bcast(p: int, n: float) -> Iterator[Round]:
    """Send n bytes from rank 0 to each rank in turn."""
    for rank in range(1, p):
        yield _round(np.array([0]), np.array([rank]), n)


def linear_scatter(p: int, n: float) -> Iterator[Round]:
    """Send a block of n / p bytes from rank 0 to each rank in turn."""
    return linear_bcast(p, n / p)


def linear_gather(p: int, n: float) -> Iterator[Round]:
    """Receive a block of n / p bytes from each rank on rank 0, all of them at the same time."""
    for rank in range(1, p):
        yield _round(np.array([rank]), np.array([0]), n / p, waits=rank == p - 1)


def chain_bcast(p: int, n: float) -> Iterator[Round]:
    """Broadcast in segments along the ranks: in round t rank r passes on segment t - r."""
    segments = _segments(n)
    for t in range(len(segments) + p - 2 if p > 1 else 0):
        senders = np.arange(max(0, t - len(segments) + 1), min(t, p - 2) + 1)
        yield Round(senders, senders + 1, segments[t - senders])


def chain_reduce(p: int, n: float) -> Iterator[Round]:
    """Reduce in segments along the ranks, to rank 0."""
    for step in chain_bcast(p, n):
        yield Round(p - 1 - step.senders, p - 1 - step.receivers, step.bytes)


def binary_tree_bcast(p: int, n: float) -> Iterator[Round]:
    """Broadcast in segments along a binary tree: rank r has the children 2 r + 1 and 2 r + 2."""
    segments = _segments(n)
    ranks = np.arange(p // 2)  # those with children
    depth = np.frexp(ranks + 1)[1] - 1
    for t in range(len(segments) + int(depth.max(initial=0)) if p > 1 else 0):
        segment = t - depth
        active = (segment >= 0) & (segment < len(segments))
        for side in (1, 2):
            senders = ranks[active & (2 * ranks + side < p)]
            if len(senders):
                yield Round(senders, 2 * senders + side, segments[t - depth[senders]])


# ---- To all --------------------------------------------------------------------------------------------------------


def ring_allgather(p: int, n: float) -> Iterator[Round]:
    """Collect n bytes on all ranks by p - 1 rounds in a ring."""
    ranks = np.arange(p)
    for _ in range(p - 1):
        yield _round(ranks, (ranks + 1) % p, n / p)


def bruck_allgather(p: int, n: float) -> Iterator[Round]:
    """Collect n bytes on all ranks in ceil(log2 p) rounds of growing messages."""
    ranks = np.arange(p)
    for held in _doublings(p):
        yield _round(ranks, (ranks - held) % p, min(held, p - held) * n / p)


def exchange_allgather(p: int, n: float) -> Iterator[Round]:
    """Send n / p bytes to all others, some at a time."""
    ranks = np.arange(p)
    for step in range(1, p):
        yield _round(ranks, (ranks + step) % p, n / p, waits=_ends_window(step, p))


# Blocks of the same number of bytes go the same ways, whether they are the same block or not.
exchange_alltoall = exchange_allgather


def scatter_ring_bcast(p: int, n: float) -> Iterator[Round]:
    """Broadcast by a scatter and a ring: for long messages."""
    yield from binomial_scatter(p, n)
    yield from ring_allgather(p, n)


def scatter_exchange_bcast(p: int, n: float) -> Iterator[Round]:
    """Broadcast by slices that rank 0 sends to all, and all exchange."""
    yield from linear_scatter(p, n)
    ranks = np.arange(p)
    for step in range(1, p):
        # Rank 0 has all slices.
        senders = ranks[(ranks + step) % p != 0]
        yield _round(senders, (senders + step) % p, n / p, waits=_ends_window(step, p))


def doubling_allreduce(p: int, n: float) -> Iterator[Round]:
    """Reduce n bytes on all ranks by exchanges at doubling distances, among a power of two of the ranks."""
    power, excess = _power_of_two(p)
    rank_at = _odd_of_first(excess)
    even = 2 * np.arange(excess)
    if excess:
        yield _round(even, even + 1, n)
    places = np.arange(power)
    for span in _doublings(power):
        yield _round(rank_at(places), rank_at(places ^ span), n)
    if excess:
        yield _round(even + 1, even, n)


def rabenseifner_allreduce(p: int, n: float) -> Iterator[Round]:
    """Reduce by recursive halving of the vector at doubling distances, and collect the pieces the same way back."""
    power, excess = _power_of_two(p)
    rank_at = _odd_of_first(excess)
    even = 2 * np.arange(excess)
    if excess:
        yield _round(even, even + 1, n)
    halving = list(_halving(power, n, rank_at))
    yield from halving
    yield from reversed(halving)
    if excess:
        yield _round(even + 1, even, n)


def rabenseifner_reduce(p: int, n: float) -> Iterator[Round]:
    """Reduce by recursive halving of the vector at doubling distances, and gather the pieces on rank 0 by a tree."""
    power, excess = _power_of_two(p)

    def rank_at(place: np.ndarray) -> np.ndarray:
        return np.where(place < excess, 2 * place, place + excess)

    if excess:
        even = 2 * np.arange(excess)
        yield _round(even + 1, even, n)
    yield from _halving(power, n, rank_at)
    for span in reversed(list(_doublings(power))):
        places = np.arange(span, 2 * span)
        yield _round(rank_at(places), rank_at(places - span), n / (2 * span))


def ring_allreduce(p: int, n: float) -> Iterator[Round]:
    """Reduce n bytes on all ranks by two turns of a ring, in pieces of n / p."""
    ranks = np.arange(p)
    for _ in range(2 * (p - 1)):
        yield _round(ranks, (ranks + 1) % p, n / p)


def sliced_allreduce(p: int, n: float) -> Iterator[Round]:
    """Reduce on each rank a slice of n / p of all operands, and exchange the slices."""
    yield from _combine_slices(p, n)
    yield from exchange_allgather(p, n)


def sliced_reduce(p: int, n: float) -> Iterator[Round]:
    """Reduce on each rank a slice of n / p of all operands, and collect the slices on rank 0."""
    yield from _combine_slices(p, n)
    yield from linear_gather(p, n)


def dissemination_barrier(p: int, n: float = 0) -> Iterator[Round]:
    """Wait for all in ceil(log2 p) rounds."""
    ranks = np.arange(p)
    for span in _doublings(p):
        yield _round(ranks, (ranks + span) % p, n)


def pairwise_alltoall(p: int, n: float) -> Iterator[Round]:
    """Exchange blocks of n / p between all, in p - 1 rounds, by pairs if p is a power of two."""
    ranks = np.arange(p)
    for distance in range(1, p):
        yield _round(ranks, ranks ^ distance if p & (p - 1) == 0 else (ranks + distance) % p, n / p)


def bruck_alltoall(p: int, n: float) -> Iterator[Round]:
    """Exchange short blocks between all in ceil(log2 p) rounds, each of about half the blocks."""
    ranks = np.arange(p)
    for span in _doublings(p):
        blocks = np.count_nonzero(ranks & span)
        yield _round(ranks, (ranks + span) % p, blocks * n / p)


ALGORITHMS: dict[str, dict[str, Schedule]] = {
    "bcast": {
        "binomial tree": binomial_bcast,
        "binary tree, segments": binary_tree_bcast,
        "chain, segments": chain_bcast,
        "scatter and ring": scatter_ring_bcast,
        "scatter and exchange": scatter_exchange_bcast,
        "one after the other": linear_bcast,
    },
    "reduce": {
        "binomial tree": binomial_reduce,
        "Rabenseifner": rabenseifner_reduce,
        "chain, segments": chain_reduce,
        "slices": sliced_reduce,
    },
    "allreduce": {
        "recursive doubling": doubling_allreduce,
        "Rabenseifner": rabenseifner_allreduce,
        "ring": ring_allreduce,
        "slices": sliced_allreduce,
    },
    "scatter": {"binomial tree": binomial_scatter, "one after the other": linear_scatter},
    "gather": {"binomial tree": binomial_gather, "all to one": linear_gather},
    "allgather": {"Bruck": bruck_allgather, "ring": ring_allgather, "exchange": exchange_allgather},
    "alltoall": {"Bruck": bruck_alltoall, "pairwise": pairwise_alltoall, "exchange": exchange_alltoall},
    "barrier": {"dissemination": dissemination_barrier},
}

# Rounds of those whose number of rounds grows with the number of processes; twice as many where all messages of a round
# go through network cards, which takes longer to simulate.
ROUNDS_BY_RANKS: dict[Schedule, Callable[[int], int]] = {
    **dict.fromkeys((linear_bcast, linear_scatter, linear_gather), lambda p: p),
    **dict.fromkeys((chain_bcast, chain_reduce, scatter_ring_bcast, ring_allgather), lambda p: p),
    **dict.fromkeys((exchange_allgather, pairwise_alltoall, ring_allreduce), lambda p: 2 * p),
    scatter_exchange_bcast: lambda p: 3 * p,
    **dict.fromkeys((sliced_reduce, sliced_allreduce), lambda p: p * (p // WINDOW + 2)),
}


def over(members: np.ndarray, rounds: Iterable[Round]) -> Iterator[Round]:
    """Give the rounds of a schedule among several groups of the same size: a row of `members` has a group's ranks."""
    for step in rounds:
        senders, receivers = members[:, step.senders], members[:, step.receivers]
        yield Round(senders.ravel(), receivers.ravel(), np.tile(step.bytes, len(members)), step.waits)


# ---- Parts of algorithms -------------------------------------------------------------------------------------------


def _round(senders: np.ndarray, receivers: np.ndarray, n: float, waits: bool = True) -> Round:
    return Round(senders, receivers, np.full(len(senders), float(n)), waits)


def _doublings(p: int) -> Iterator[int]:
    """Give the powers of two below p."""
    span = 1
    while span < p:
        yield span
        span *= 2


def _binomial_edges(p: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give the children and parents of a binomial tree for each distance, the leaves first."""
    for span in _doublings(p):
        children = np.arange(span, p, 2 * span)
        yield children, children - span


def _power_of_two(p: int) -> tuple[int, int]:
    """Give the largest power of two up to p, and how many ranks there are beside that."""
    power = 1 << (p.bit_length() - 1)
    return power, p - power


def _odd_of_first(excess: int) -> Callable[[np.ndarray], np.ndarray]:
    """Give the function of places to ranks, where of the first ``2 * excess`` ranks the even ones step back."""
    return lambda place: np.where(place < excess, 2 * place + 1, place + excess)


def _halving(power: int, n: float, rank_at: Callable[[np.ndarray], np.ndarray]) -> Iterator[Round]:
    """Reduce pieces of a vector on a power of two of ranks: halves of what is left, at doubling distances."""
    places = np.arange(power)
    for span in _doublings(power):
        yield _round(rank_at(places), rank_at(places ^ span), n / (2 * span))


def _combine_slices(p: int, n: float) -> Iterator[Round]:
    """Bring each rank its slice of all operands, those of the last `WINDOW` ranks first."""
    for end in range(p, 0, -WINDOW):
        group = np.arange(max(0, end - WINDOW), end)
        for step in range(1, p):
            yield _round(group, (group + step) % p, n / p, waits=step == p - 1)


def _ends_window(step: int, p: int) -> bool:
    return step % WINDOW == 0 or step == p - 1


def _segments(n: float) -> np.ndarray:
    """Give the bytes of each segment of a message; a message without bytes is one segment."""
    count = max(1, int(np.ceil(n / SEGMENT)))
    return np.diff(np.minimum(np.arange(count + 1) * float(SEGMENT), n))
