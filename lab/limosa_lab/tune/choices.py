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
from limosa_lab.tune.rules import RECIPES, Entry, row, row_bytes
from limosa_lab.tune.variants import WAYS

# How many sizes are looked at between a size and its double.
STEPS = 40
# What fits a slot of Limosa's goes there whatever is forced, unless that is messages.
SLOT = 8 << 10


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
        sizes = sorted({int(point.n) for point in operation.measured if point.n > 0})
        if not ways or not sizes:
            continue
        error = max(fitted.error or 0.0 for fitted in [operation, *(forced[way][name] for way in ways)])
        for p in sorted({point.p for point in operation.measured}):
            now = [max(operation.best.time(n, p), 1e-9) for n in sizes]
            times = {way: [_time(way, forced[way][name], n, p) for n in sizes] for way in ways}
            chosen = fastest(now, times, error)
            for way, run in itertools.groupby(range(len(sizes)), key=chosen.__getitem__):
                if way is not None:
                    own = list(run)
                    curve = tuple((sizes[at], 1 - times[way][at] / now[at]) for at in own)
                    low, high = sizes[own[0]], sizes[own[-1] + 1] - 1 if own[-1] + 1 < len(sizes) else sizes[-1]
                    word = words[way][name]
                    gain = max(gain for _, gain in curve)
                    rows = (row(name, word, p, low, high),)
                    found.append(Entry(name, word, p, low, high, gain, error, rows, curve=curve))
    return found


def _time(way: str, fitted: Operation, n: int, p: int) -> float:
    is_forced = way in ("slots", "messages") or row_bytes(fitted.name, n, p) > SLOT
    return max(fitted.best.time(n, p), 1e-9) if is_forced else math.inf


def fastest(now: Sequence[float], times: Mapping[str, Sequence[float]], error: float) -> list[str | None]:
    """Choose an algorithm for each size; None where none saves more than the models err.

    Of algorithms that differ by no more than that, the one of the size before is kept: two measurements then choose the
    same.
    """
    chosen: list[str | None] = []
    for at, before in enumerate(now):
        best = min(times, key=lambda way: times[way][at])
        last = chosen[-1] if chosen else None
        if last is not None and times[last][at] * (1 - error) <= times[best][at]:
            best = last
        chosen.append(best if 1 - times[best][at] / before > error else None)
    return chosen
