"""Combinations of operations that have the same result as one operation, and where they are faster.

Each combination is a *guideline*: a library whose operation takes longer than a combination of its own other operations
can be improved by the combination at once. Sources: Taboada et al. (the first four); J. L. Traff, W. D. Gropp, R.
Thakur, "Self-consistent MPI performance guidelines" (2010), and S. Hunold, A. Carpen-Amarie, "Autotuning MPI
collectives using performance guidelines" (2018), for the others. docs/tuning.md lists all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from limosa_lab.model.models import Model


@dataclass(frozen=True)
class Part:
    """One operation of a combination: its bytes, and how often it is done, from the n and p of the original."""

    operation: str
    bytes: Callable[[float, int], float] = lambda n, p: n
    times: Callable[[int], int] = lambda p: 1

    def processes(self, p: int) -> int:
        """Give at how many processes it is measured: messages go between two."""
        return 2 if self.operation == "send" else p


@dataclass(frozen=True)
class Guideline:
    """The operation should not take longer than the parts in sequence."""

    operation: str
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        """Write it as ``bcast = scatter + allgather``."""
        return f"{self.operation} = {' + '.join(part.operation for part in self.parts)}"


def _blocks(n: float, p: int) -> float:
    return n * p


# A message to, or from, each of the others in turn; and a message to and from each.
_MESSAGES = Part("send", lambda n, p: n / p, lambda p: p - 1)
_EXCHANGES = Part("send", lambda n, p: n / p, lambda p: 2 * (p - 1))


# Bytes are those of `metrics`.
GUIDELINES: tuple[Guideline, ...] = (
    Guideline("bcast", (Part("scatter"), Part("allgather"))),
    Guideline("allgather", (Part("gather"), Part("bcast"))),
    Guideline("reduce_scatter", (Part("reduce"), Part("scatter"))),
    Guideline("allreduce", (Part("reduce"), Part("bcast"))),
    Guideline("allreduce", (Part("reduce_scatter"), Part("allgather"))),
    Guideline("reduce", (Part("reduce_scatter"), Part("gather"))),
    Guideline("reduce", (Part("allreduce"),)),
    Guideline("reduce_scatter", (Part("allreduce"),)),
    Guideline("bcast", (Part("allreduce"),)),
    Guideline("bcast", (Part("send", times=lambda p: (p - 1).bit_length()),)),
    Guideline("gather", (Part("allgather"),)),
    Guideline("gather", (Part("reduce"),)),
    Guideline("gather", (Part("gatherv"),)),
    Guideline("gather", (_MESSAGES,)),
    Guideline("gatherv", (Part("allgatherv"),)),
    Guideline("scatter", (Part("bcast"),)),
    Guideline("scatter", (Part("scatterv"),)),
    Guideline("scatter", (_MESSAGES,)),
    Guideline("allgather", (Part("alltoall"),)),
    Guideline("allgather", (Part("alltoallv"),)),
    Guideline("allgather", (Part("allreduce"),)),
    Guideline("allgather", (Part("allgatherv"),)),
    Guideline("allgather", (_EXCHANGES,)),
    Guideline("allgatherv", (Part("gatherv"), Part("bcast"))),
    Guideline("alltoall", (Part("alltoallv"),)),
    Guideline("alltoall", (_EXCHANGES,)),
    Guideline("reduce_scatter_block", (Part("reduce"), Part("scatter"))),
    Guideline("reduce_scatter_block", (Part("reduce_scatter"),)),
    Guideline("reduce_scatter_block", (Part("allreduce"),)),
    Guideline("scan", (Part("allgather", _blocks),)),
    Guideline("scan", (Part("exscan"),)),
    Guideline("exscan", (Part("scan"),)),
    Guideline("exscan", (Part("allgather", _blocks),)),
    Guideline("barrier", (Part("allreduce", lambda n, p: 8),)),
)


@dataclass(frozen=True)
class Range:
    """Sizes at which a combination is predicted to be faster: from `low` to `high` bytes, and by how much at best.

    `high` is None if it is faster up to the largest size that was looked at. `gain` is the largest part of the time
    that is saved: 0.2 is 20 %.
    """

    low: float
    high: float | None
    gain: float


def time_of(guideline: Guideline, models: Mapping[str, Model], n: float, p: int) -> float:
    """Give the predicted time of the parts in sequence."""
    return sum(
        part.times(p) * models[part.operation].time(part.bytes(n, p), part.processes(p)) for part in guideline.parts
    )


def gain(guideline: Guideline, models: Mapping[str, Model], n: float, p: int) -> float:
    """Give the part of the time that the combination saves; negative if it takes longer."""
    return 1 - time_of(guideline, models, n, p) / models[guideline.operation].time(n, p)


def crossings(
    guideline: Guideline,
    models: Mapping[str, Model],
    p: int,
    low: float = 1,
    high: float = 1 << 24,
    least: float = 0.0,
) -> list[Range]:
    """Give the sizes between `low` and `high` at which the combination saves more than the part `least` of the time.

    `least` should not be below the error of the models. Limits are exact to a thousandth.
    """
    sizes = np.geomspace(low, high, 16 * max(1, round(np.log2(high / low))) + 1)
    better = [_saves(guideline, models, n, p, least) for n in sizes]
    found: list[Range] = []
    start: float | None = low if better[0] else None
    for index in range(1, len(sizes)):
        if better[index] == better[index - 1]:
            continue
        limit = _limit(guideline, models, p, least, (sizes[index - 1], sizes[index]))
        if better[index]:
            start = limit
        else:
            found.append(_range(guideline, models, p, start if start is not None else low, limit, sizes))
            start = None
    if start is not None:
        found.append(_range(guideline, models, p, start, None, sizes))
    return found


def _saves(guideline: Guideline, models: Mapping[str, Model], n: float, p: int, least: float) -> bool:
    # Where a model gives no positive time, which happens outside its range, nothing is claimed.
    parts, whole = time_of(guideline, models, n, p), models[guideline.operation].time(n, p)
    return parts > 0 and whole > 0 and parts < (1 - least) * whole


def _limit(
    guideline: Guideline, models: Mapping[str, Model], p: int, least: float, between: tuple[float, float]
) -> float:
    """Halve an interval at whose ends `_saves` differs until it is short."""
    left, right = between
    at_left = _saves(guideline, models, left, p, least)
    while right / left > 1.0005:
        middle = (left * right) ** 0.5
        if _saves(guideline, models, middle, p, least) == at_left:
            left = middle
        else:
            right = middle
    return float((left * right) ** 0.5)


def _range(
    guideline: Guideline,
    models: Mapping[str, Model],
    p: int,
    low: float,
    high: float | None,
    sizes: Sequence[float] | np.ndarray,
) -> Range:
    end = high if high is not None else sizes[-1]
    inside = [n for n in sizes if low <= n <= end] or [low]
    return Range(low, high, max(gain(guideline, models, n, p) for n in inside))
