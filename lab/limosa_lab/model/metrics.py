"""Metrics of operations, from their models: asymptotic bandwidth and specific performance, plain and aggregated.

What the bytes n of an operation are, as in the source:

========================================  =======================================================================
operation                                 n
========================================  =======================================================================
send, bcast, reduce, allreduce, scan      the message; the vector of each process
alltoall                                  what each process sends, to all processes together
scatter, gather                           what the root sends or receives, all blocks together
allgather, reduce_scatter                 what each process has at the end (allgather), has at the beginning
                                          (reduce_scatter): all blocks together
========================================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from limosa_lab.model.growth import Growth

# How many bytes are moved for each byte of n, among p processes.
FACTORS: dict[str, Callable[[int], float]] = {
    "send": lambda p: 1,
    "barrier": lambda p: p - 1,
    "bcast": lambda p: p - 1,
    "alltoall": lambda p: p - 1,
    "reduce": lambda p: p - 1,
    "scan": lambda p: p - 1,
    "scatter": lambda p: (p - 1) / p,
    "gather": lambda p: (p - 1) / p,
    "allreduce": lambda p: 2 * (p - 1),
    "allgather": lambda p: (p * p - 1) / p,
    "reduce_scatter": lambda p: (p * p - 1) / p,
}


def asymptotic_bandwidth(operation: str, tb: Growth, p: int) -> float:
    """Give the aggregated bandwidth ``F(p) / tb(p)`` for very long messages, in MB/s (10^6 bytes).

    `tb` is in microseconds per byte. Where it is not positive, which a fit outside its range can give, there is no such
    bandwidth: the result is infinite.
    """
    return _ratio(FACTORS[operation](p), tb(p))


def specific_performance(operation: str, t0: Growth, p: int) -> float:
    """Give ``F(p) / t0(p)``, the slope of the bandwidth at short messages, in KB/s for each byte; `t0` in microseconds.

    The source's unit: 1 / t0 in 10^3/s.
    """
    return 1e3 * _ratio(FACTORS[operation](p), t0(p))


def peak(values: Iterable[float]) -> float:
    """Give the largest finite value; 0 if there is none."""
    return max((value for value in values if value < float("inf")), default=0.0)


def _ratio(factor: float, value: float) -> float:
    return factor / value if value > 0 else float("inf")
