"""Statistics of samples: medians, quartiles, ratios. Pure functions of the records.

A *case* is what one row of a table shows: benchmark, form, ranks, size and further parameters. For each case and
library the samples of all rounds are pooled, as far as their runs may be compared (`placement`); the median stands for
them and the quartiles show the spread.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limosa_lab import placement
from limosa_lab.records import Sample

LIMOSA = "limosa"
# An earlier Limosa, measured beside this one. It is no peer.
BEFORE = "before"
# The benchmarks whose times have a limit (`limit`), with the directions in which bytes travel at once.
DIRECTIONS = {"pingpong": 1, "pingping": 2}
# Medians that differ by less than this factor are called equal.
NOTICEABLE = 1.1


@dataclass(frozen=True, order=True)
class Series:
    """What one table or one curve shows."""

    program: str
    bench: str
    form: str
    metric: str
    unit: str

    @property
    def larger_is_better(self) -> bool:
        """True for rates and percentages, false for times, memory and use of processors."""
        return self.unit.endswith("/s") or self.unit == "%"


@dataclass(frozen=True)
class Case:
    """What one row of a table shows; `x` are the further parameters in the order of their names."""

    series: Series
    ranks: int
    bytes: int
    x: tuple[tuple[str, Any], ...] = ()

    def order(self) -> tuple[Any, ...]:
        """Give a key for sorting; parameters may be numbers or words."""
        return (self.series, self.ranks, [(name, isinstance(value, str), value) for name, value in self.x], self.bytes)


@dataclass(frozen=True)
class Summary:
    """Five numbers of a set of samples, in their unit."""

    count: int
    low: float
    lower: float
    median: float
    upper: float
    high: float


Results = dict[Case, dict[str, Summary]]


def summarize(values: Sequence[float]) -> Summary:
    """Give minimum, quartiles and maximum of samples; there must be at least one."""
    low, lower, median, upper, high = np.quantile(np.asarray(values, dtype=float), [0, 0.25, 0.5, 0.75, 1])
    return Summary(len(values), float(low), float(lower), float(median), float(upper), float(high))


def case_of(sample: Sample) -> Case:
    """Give the case that a sample belongs to."""
    series = Series(sample.program, sample.bench, sample.form, sample.metric, sample.unit)
    return Case(series, sample.ranks, sample.bytes, tuple(sorted(sample.x.items())))


def results(samples: Iterable[Sample]) -> Results:
    """Pool the verified samples of runs that may be compared by case and library.

    Cases are in order, rows of small size first.
    """
    pooled: dict[Case, dict[str, list[float]]] = {}
    for case, of_case in by_case(samples).items():
        for sample in placement.alike(of_case):
            pooled.setdefault(case, {}).setdefault(sample.library, []).extend(sample.samples)
    return {
        case: {name: summarize(values) for name, values in pooled[case].items()}
        for case in sorted(pooled, key=Case.order)
    }


def by_case(samples: Iterable[Sample]) -> dict[Case, list[Sample]]:
    """Give the verified samples of each case."""
    found: dict[Case, list[Sample]] = {}
    for sample in samples:
        if sample.verified and sample.samples:
            found.setdefault(case_of(sample), []).append(sample)
    return found


def limits(series: Series, samples: Iterable[Sample]) -> dict[int, float]:
    """Give the limit of each size in microseconds, the least median of all ways; empty for a series without limits."""
    if series.unit != "us":
        return {}
    pooled: dict[tuple[int, str, int], list[float]] = {}
    for sample in samples:
        if sample.verified and sample.form == series.form and sample.x["directions"] == DIRECTIONS.get(series.bench):
            pooled.setdefault((sample.bytes, sample.x["way"], sample.x["piece"]), []).extend(sample.samples)
    found: dict[int, float] = {}
    for (nbytes, _, _), values in pooled.items():
        found[nbytes] = min(found.get(nbytes, np.inf), float(np.median(values)))
    return found


def best_peer(case: Case, by_library: dict[str, Summary]) -> tuple[str, float] | None:
    """Give the peer with the best median, and that median; None without peers."""
    peers = [(name, summary.median) for name, summary in by_library.items() if name not in {LIMOSA, BEFORE}]
    if not peers:
        return None
    return (max if case.series.larger_is_better else min)(peers, key=lambda item: item[1])


def ratio(case: Case, by_library: dict[str, Summary]) -> float | None:
    """Give Limosa's median divided by that of the best peer; None if either is missing or the peer's is zero."""
    best = best_peer(case, by_library)
    if best is None or best[1] == 0 or LIMOSA not in by_library:
        return None
    return by_library[LIMOSA].median / best[1]


def cost(case: Case, by_library: dict[str, Summary]) -> float | None:
    """Give the ratio such that less than 1 means that Limosa is ahead, whatever the unit."""
    value = ratio(case, by_library)
    if value is None or not case.series.larger_is_better:
        return value
    return 1 / value if value > 0 else None


def differ(one: Summary, other: Summary) -> bool:
    """Tell whether two sets of samples differ by more than noise.

    The medians differ by more than 10 %, and the ranges between the quartiles do not overlap.
    """
    low, high = sorted([one.median, other.median])
    return (one.lower > other.upper or one.upper < other.lower) and high > NOTICEABLE * low


@dataclass(frozen=True)
class Standing:
    """In how many cases Limosa is faster than the best peer, slower, and neither beyond the noise."""

    faster: int
    slower: int
    alike: int


def standing(found: Results) -> Standing:
    """Compare Limosa with the best peer of each case that both have.

    A bandwidth counts only where nothing else was measured: otherwise it follows from the time or the rate.
    """
    with_others = {_bench(case) for case in found if case.series.metric != "bandwidth"}
    counts = {"faster": 0, "slower": 0, "alike": 0}
    for case, by in found.items():
        best, value = best_peer(case, by), cost(case, by)
        if best is None or value is None or (case.series.metric == "bandwidth" and _bench(case) in with_others):
            continue
        apart = differ(by[LIMOSA], by[best[0]])
        counts["alike" if not apart else "faster" if value < 1 else "slower"] += 1
    return Standing(**counts)


def _bench(case: Case) -> tuple[str, str, str]:
    return case.series.program, case.series.bench, case.series.form


def geometric_mean(values: Sequence[float]) -> float:
    """Give the geometric mean of positive numbers; there must be at least one."""
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=float)))))
