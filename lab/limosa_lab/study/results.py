"""From records to results: times by contender, latency and bandwidth by least squares, ratios to mpi4py.

Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limosa_lab import stats
from limosa_lab.records import Recording
from limosa_lab.study.plan import COUNTERPARTS, MODULES, WITHOUT_ALLREDUCE

REFERENCE = "mpi4py"
"""The module that the others are compared with."""

MICRO = ("pingpong", "bcast", "reduce", "allreduce")


@dataclass(frozen=True, order=True)
class Contender:
    """A module, or C, on an MPI library."""

    library: str
    module: str


@dataclass(frozen=True, order=True)
class Point:
    """What was measured: a kernel at one size on so many processes.

    Attributes
    ----------
    size
        Bytes of a message, or the mesh; 0 if neither.
    form
        What distinguishes variants: for the wave equation how faces are exchanged, and how a step is computed if not as
        in the thesis.

    """

    bench: str
    size: int
    ranks: int
    form: str = ""


Times = dict[Point, dict[Contender, float]]
"""Medians over all rounds, in seconds."""


@dataclass(frozen=True)
class Spread:
    """Between which times the medians lie that another study of the same kind may find."""

    low: Times
    high: Times


FEW = 3
"""With fewer samples of a time than this, its spread is not known but assumed."""
ASSUMED = 1.3
LEAST = 1.1
"""By which factor two times differ by chance: what is assumed, and what it is at the least."""


def times(recording: Recording) -> Times:
    """Give the medians of all verified times."""
    return _each(_pooled(recording), lambda values: stats.summarize(values).median)


def spread(recording: Recording) -> Spread:
    """Give what noise makes of the times: the quartiles, and never less than `LEAST` or, of few samples, `ASSUMED`.

    Two times whose ranges do not overlap differ beyond the noise.
    """
    pooled = _pooled(recording)

    def factor(values: Sequence[float]) -> float:
        return math.sqrt(LEAST if len(values) >= FEW else ASSUMED)

    def low(values: Sequence[float]) -> float:
        found = stats.summarize(values)
        return min(found.lower, found.median / factor(values))

    def high(values: Sequence[float]) -> float:
        found = stats.summarize(values)
        return max(found.upper, found.median * factor(values))

    return Spread(_each(pooled, low), _each(pooled, high))


Pooled = dict[Point, dict[Contender, list[float]]]


def _each(pooled: Pooled, of: Callable[[Sequence[float]], float]) -> Times:
    """Give a number for the samples of each point and contender, in order."""
    return {
        point: {who: of(values) for who, values in sorted(pooled[point].items(), key=lambda item: order(item[0]))}
        for point in sorted(pooled)
    }


def _pooled(recording: Recording) -> Pooled:
    """Collect the samples of all verified times, in seconds."""
    pooled: Pooled = {}
    for sample in recording.samples:
        if sample.metric != "time" or not sample.verified or not sample.samples:
            continue
        x = sample.x
        point = Point(sample.bench, sample.bytes or int(x.get("n", 0)), sample.ranks, form_of(x))
        scale = 1e-6 if sample.unit == "us" else 1.0
        contender = Contender(sample.library, str(x["module"]))
        pooled.setdefault(point, {}).setdefault(contender, []).extend(scale * value for value in sample.samples)
    return pooled


def form_of(x: Mapping[str, Any]) -> str:
    """Name the variant of a kernel. The thesis's own, with slices, and C are not told apart: they are compared."""
    if "mode" not in x:
        return ""
    return str(x["mode"]) if x["kernel"] in {"slices", "c"} else f"{x['kernel']}, {x['mode']}"


def order(contender: Contender) -> tuple[bool, str, int]:
    """Give a key that sorts contenders: Limosa first, then by library, modules in their usual order."""
    return (contender.library != stats.LIMOSA, contender.library, list(MODULES).index(contender.module))


def contenders(found: Times) -> list[Contender]:
    """List the contenders that have a time, in order."""
    return sorted({who for by in found.values() for who in by}, key=order)


@dataclass(frozen=True)
class Line:
    """A straight line through times: seconds = latency + bytes / bandwidth.

    Attributes
    ----------
    latency
        In seconds.
    bandwidth
        In bytes per second.

    """

    latency: float
    bandwidth: float


def least_squares(sizes: Sequence[float], seconds: Sequence[float]) -> Line | None:
    """Fit latency and bandwidth so that the sum of the squares of the relative errors is smallest.

    The errors are relative because times differ by four orders of magnitude: with absolute ones nothing but the largest
    messages would count, and the latency would be what is left over, even below zero.

    Parameters
    ----------
    sizes
        Bytes of the messages.
    seconds
        Their times, in the same order.

    Returns
    -------
    Line or None
        None if there are fewer than two sizes, or if the times do not grow with them.

    """
    t = np.asarray(seconds, dtype=float)
    if len(set(sizes)) < 2:
        return None
    columns = np.stack([np.ones_like(t), np.asarray(sizes, dtype=float)], axis=1) / t[:, None]
    (latency, slope), *_ = np.linalg.lstsq(columns, np.ones_like(t), rcond=None)
    if slope <= 0:
        return None
    return Line(float(latency), 1 / float(slope))


def micro(found: Times, bench: str, ranks: int, who: Contender) -> dict[int, float]:
    """Give the times of a micro-benchmark by size."""
    return {
        point.size: by[who] for point, by in found.items() if (point.bench, point.ranks) == (bench, ranks) and who in by
    }


def curve(found: Times, bench: str, size: int, form: str, who: Contender) -> dict[int, float]:
    """Give the times of an application by number of processes."""
    return {
        point.ranks: by[who]
        for point, by in found.items()
        if (point.bench, point.size, point.form) == (bench, size, form) and who in by
    }


def speedup(by_ranks: Mapping[int, float]) -> dict[int, float]:
    """Give how many times faster than one process; nothing if that was not measured."""
    return {ranks: by_ranks[1] / seconds for ranks, seconds in by_ranks.items()} if 1 in by_ranks else {}


def own_times(found: Times, bench: str, who: Contender) -> dict[Point, float]:
    """Give a contender's times at all points of a kernel."""
    return {point: by[who] for point, by in found.items() if point.bench == bench and who in by}


def corresponding_times(found: Times, bench: str, who: Contender) -> dict[Point, float]:
    """Give the times of those calls of mpi4py, on the same library, that correspond to what a contender calls.

    pypar and MYMPI have no allreduce. As in the thesis they reduce and then broadcast, and so does mpi4py here.
    """
    reference = Contender(who.library, COUNTERPARTS[who.module])
    if bench != "allreduce" or who.module not in WITHOUT_ALLREDUCE:
        return own_times(found, bench, reference)
    reduced, broadcast = (own_times(found, part, reference) for part in ("reduce", "bcast"))
    return {
        replace(point, bench=bench): seconds + broadcast[replace(point, bench="bcast")]
        for point, seconds in reduced.items()
        if replace(point, bench="bcast") in broadcast
    }


@dataclass(frozen=True)
class Ratio:
    """How many times the time of others a contender takes: the geometric mean over all points, and the worst one."""

    mean: float
    worst: float
    where: Point


def ratio(times_: Mapping[Point, float], others: Mapping[Point, float]) -> Ratio | None:
    """Compare times at all points that both have."""
    pairs = [(times_[point] / others[point], point) for point in times_ if point in others]
    if not pairs:
        return None
    worst, where = max(pairs)
    return Ratio(stats.geometric_mean([value for value, _ in pairs]), worst, where)
