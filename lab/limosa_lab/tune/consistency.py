"""Self-consistency: operations that take longer than a combination of others, by measurement. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from limosa_lab.model.equivalents import GUIDELINES, Guideline
from limosa_lab.model.fitting import Point

# By how much an operation must be slower to count.
MARGIN = 1.1


@dataclass(frozen=True)
class Violation:
    """A guideline that a library violates with so many ranks.

    `factor` is how many times as long the operation takes as the combination, at `at` bytes, where that is worst; `low`
    and `high` are the smallest and the largest size at which it takes longer, of `sizes` that were compared.
    """

    guideline: Guideline
    ranks: int
    low: int
    high: int
    at: int
    factor: float
    violated: int
    sizes: int


def violations(measured: Mapping[str, Sequence[Point]], margin: float = MARGIN) -> list[Violation]:
    """List the violations of one library, from its measurements by operation.

    Times of parts at sizes that were not measured are interpolated between those that were; where a part was not
    measured up to that size nothing is said.
    """
    found = []
    for guideline in GUIDELINES:
        if {guideline.operation, *(part.operation for part in guideline.parts)} <= measured.keys():
            for p in sorted({point.p for point in measured[guideline.operation]}):
                found += _of(guideline, measured, p, margin)
    return found


def _of(guideline: Guideline, measured: Mapping[str, Sequence[Point]], p: int, margin: float) -> list[Violation]:
    factors: dict[int, float] = {}
    for point in measured[guideline.operation]:
        if point.p != p or (point.n == 0 and guideline.operation != "barrier"):
            continue
        parts = [
            (part.times(p), time_at(measured[part.operation], part.bytes(point.n, p), part.processes(p)))
            for part in guideline.parts
        ]
        known = [times * time for times, time in parts if time is not None]
        if len(known) == len(parts):
            factors[int(point.n)] = point.time / sum(known)
    worse = {n: factor for n, factor in factors.items() if factor > margin}
    if not worse:
        return []
    at = max(worse, key=lambda n: worse[n])
    return [Violation(guideline, p, min(worse), max(worse), at, worse[at], len(worse), len(factors))]


def time_at(points: Sequence[Point], n: float, p: int) -> float | None:
    """Give the time of n bytes between two measured sizes, on logarithmic axes; None outside of what was measured."""
    own = sorted((point.n, point.time) for point in points if point.p == p)
    exact = [time for size, time in own if size == n]
    if exact:
        return exact[0]
    own = [(size, time) for size, time in own if size > 0]
    if not own or not own[0][0] <= n <= own[-1][0]:
        return None
    sizes, times = zip(*own, strict=True)
    return float(np.exp(np.interp(np.log(n), np.log(sizes), np.log(times))))
