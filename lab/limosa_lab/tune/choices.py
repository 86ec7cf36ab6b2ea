"""From models to what may be faster: rules for any library, rows of Limosa's table. Pure functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from limosa_lab.model import equivalents
from limosa_lab.model.equivalents import Guideline
from limosa_lab.model.library import Operation, models
from limosa_lab.model.models import Model
from limosa_lab.tune.rules import RECIPES, Entry
from limosa_lab.tune.variants import WAYS

# Operations whose table has the bytes of one rank's contribution, not of all together.
PER_RANK = ("gather", "allgather")
# How many sizes are looked at between a size and its double.
STEPS = 40
# What is longer may not fit a slot of Limosa's.
SLOTS_END = 256 << 10


def substitutions(operations: Mapping[str, Operation]) -> list[Entry]:
    """Give what other collectives of the same library do faster by the models, beyond their errors.

    Where several combinations do, each size has the fastest.
    """
    of_operation = models(operations)
    known: dict[str, list[Guideline]] = {}
    for guideline in equivalents.GUIDELINES:
        names = {guideline.operation, *(part.operation for part in guideline.parts)}
        if str(guideline) in RECIPES and names <= of_operation.keys():
            known.setdefault(guideline.operation, []).append(guideline)
    found = []
    for name, guidelines in known.items():
        measured = operations[name].measured
        largest = max(point.n for point in measured)
        sizes = np.unique(np.geomspace(1, max(largest, 2), STEPS * round(np.log2(max(largest, 2)))).astype(int))
        for p in sorted({point.p for point in measured}):
            errors = [_error(guideline, operations, p) for guideline in guidelines]
            best = [_fastest(guidelines, errors, of_operation, int(n), p) for n in sizes]
            for at, run in itertools.groupby(range(len(sizes)), key=lambda index: best[index][0]):
                if at is not None:
                    curve = [(int(sizes[index]), best[index][1]) for index in run]
                    found.append(_entry(guidelines[at], p, curve, errors[at], curve[-1][0] == sizes[-1]))
    return found


def _error(guideline: Guideline, operations: Mapping[str, Operation], p: int) -> float:
    """Add up the errors of the models that a prediction needs."""
    of_whole = operations[guideline.operation]
    parts = [(operations[part.operation], part.processes(p)) for part in guideline.parts]
    known = [one.error_among({ranks}) or one.error or 0.0 for one, ranks in [(of_whole, p), *parts]]
    return sum(known)


def _fastest(
    guidelines: Sequence[Guideline], errors: Sequence[float], models: Mapping[str, Model], n: int, p: int
) -> tuple[int | None, float]:
    """Give which combination saves most, and how much; None if none saves more than the models err."""
    gains = [equivalents.gain(guideline, models, n, p) for guideline in guidelines]
    # Where a model gives no positive time, which happens outside its range, nothing is claimed.
    possible = [at for at, gain in enumerate(gains) if errors[at] < gain < 1]
    best = max(possible, key=lambda at: gains[at], default=None)
    return (best, gains[best]) if best is not None else (None, 0.0)


def _entry(guideline: Guideline, p: int, curve: Sequence[tuple[int, float]], error: float, is_last: bool) -> Entry:
    low, high = curve[0][0], None if is_last else curve[-1][0]
    if guideline.operation == "barrier":
        low, high = 0, None
    gain = max(gain for _, gain in curve)
    return Entry(guideline.operation, str(guideline), p, low, high, gain, error, curve=tuple(curve[::STEPS]))


def algorithms(
    default: Mapping[str, Operation],
    forced: Mapping[str, Mapping[str, Operation]],
    words: Mapping[str, Mapping[str, str]],
) -> list[Entry]:
    """Give the operations of Limosa that other algorithms do faster by the models, beyond their errors.

    Parameters
    ----------
    default
        What was fitted with Limosa's own choices.
    forced, words
        What was fitted with one algorithm for all, and the word for it of each operation that has it; by the way.

    """
    found = []
    for name, operation in default.items():
        ways = [way for way in WAYS if name in words.get(way, {}) and name in forced.get(way, {})]
        sizes = sorted({point.n for point in operation.measured if point.n > 0})
        if len(ways) < 2 or not sizes:
            continue
        of_way = [forced[way][name] for way in ways]
        error = max(fitted.error or 0.0 for fitted in [operation, *of_way])
        for p in sorted({point.p for point in operation.measured}):
            times = [_times(way, fitted, sizes, p) for way, fitted in zip(ways, of_way, strict=True)]
            chosen = in_order(times)
            now = [operation.best.time(n, p) for n in sizes]
            gains = [1 - times[chosen[at]][at] / now[at] if now[at] > 0 else 0.0 for at in range(len(sizes))]
            if max(gains) > error and min(gains) > -error:
                steps = [(ways[chosen[at]], sizes[at]) for at in range(len(sizes))]
                rows = rows_of(name, p, steps, {way: words[way][name] for way in ways})
                way = ", ".join(dict.fromkeys(words[way][name] for way, _ in steps))
                curve = tuple((int(n), gain) for n, gain in zip(sizes, gains, strict=True))
                found.append(Entry(name, way, p, int(sizes[0]), None, max(gains), error, tuple(rows), curve=curve))
    return found


def _times(way: str, fitted: Operation, sizes: Sequence[int], p: int) -> list[float]:
    # Slots have an end: what is forced into them beyond it goes as it always does.
    served = [way != "slots" or (n <= SLOTS_END and n < sizes[-1]) for n in sizes]
    return [
        max(fitted.best.time(n, p), 1e-9) if is_served else math.inf for n, is_served in zip(sizes, served, strict=True)
    ]


def in_order(times: Sequence[Sequence[float]]) -> list[int]:
    """Choose an algorithm for each size so that none comes after a later one, with the least sum of logarithms.

    `times` has a list for each algorithm, in their order, with a time for each size.
    """
    best: list[tuple[float, list[int]]] = [(0.0, []) for _ in times]
    for at in range(len(times[0])):
        following = []
        for way in range(len(times)):
            total, path = min(best[: way + 1], key=lambda one: one[0])
            following.append((total + math.log(times[way][at]), [*path, way]))
        best = following
    return min(best, key=lambda one: one[0])[1]


def rows_of(operation: str, p: int, steps: Sequence[tuple[str, int]], words: Mapping[str, str]) -> list[str]:
    """Write rows of Limosa's table for an operation of p ranks: up to which size each algorithm is taken.

    What fits a slot goes there whatever is forced. Where ranks cannot read each other's memory rounds follow.
    """
    largest: dict[str, int] = {}
    for way, size in steps:
        largest[way] = size
    last = steps[-1][0]
    rows = [f"{operation} shared {p} slot - slots"]
    for way, size in largest.items():
        bytes_ = -(-size // p) if operation in PER_RANK else size
        limit = "*" if way == last else str(bytes_)
        condition = "direct" if way == "direct" else "-"
        rows.append(f"{operation} shared {p} {limit} {condition} {words[way]}")
    if "direct" in largest and "rounds" in words and "messages" not in largest:
        rows.append(f"{operation} shared {p} * - rounds")
    return rows
