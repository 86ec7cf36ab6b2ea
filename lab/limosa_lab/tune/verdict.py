"""From measurements to what is faster: entries that hold, and those that do not. Pure functions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from limosa_lab.model.samples import PROGRAM, time_of
from limosa_lab.records import Sample
from limosa_lab.tune.rules import Entry, Measured

# The times of an operation by (operation, ranks, bytes).
Cases = Mapping[tuple[str, int, int], Measured]

# What is less than this part of the time is no difference, however quiet the machine was.
LEAST = 0.03
# Nor are so few microseconds: what two runs of the same program differ by.
LEAST_TIME = 0.05
# What an entry must save at each of its sizes, so that it does when it is measured again.
KEPT = 0.05


@dataclass(frozen=True)
class Verdict:
    """Entries that hold, narrowed to the sizes where they do, and those that do not, each with the reason."""

    kept: list[Entry]
    dropped: list[tuple[Entry, str]]


def compare(
    samples: Iterable[Sample], before: str, after: str, processors: float = math.inf
) -> dict[tuple[str, int, int], Measured]:
    """Put the times of two libraries side by side, of cases that both have measured in two rounds or more."""
    times: dict[tuple[str, int, int], dict[str, dict[int, float]]] = {}
    for sample in samples:
        if sample.program == PROGRAM and sample.library in (before, after) and sample.verified and sample.samples:
            of_case = times.setdefault((sample.bench, sample.ranks, sample.bytes), {})
            took = time_of(sample.samples, "median" if sample.ranks > processors else "least")
            of_case.setdefault(sample.library, {})[sample.round] = took
    found = {}
    for (operation, ranks, n), libraries in times.items():
        rounds = [sorted(libraries.get(name, {}).values()) for name in (before, after)]
        if min(map(len, rounds)) >= 2 and min(map(min, rounds)) > 0:
            (old, old_noise), (new, new_noise) = (_of_rounds(one, ranks > processors) for one in rounds)
            found[operation, ranks, n] = Measured(n, old, new, max(old_noise, new_noise))
    return found


def _of_rounds(times: Sequence[float], oversubscribed: bool) -> tuple[float, float]:
    """Give the time of a case from those of the rounds, in order, and how far they lie apart, as a part of it.

    It is the least, and the next of them is beside it. With more ranks than processors it is the median.
    """
    if not oversubscribed:
        return times[0], times[1] / times[0] - 1
    middle = statistics.median(times)
    return middle, (times[-1] - times[0]) / 2 / middle


def judge(entries: Sequence[Entry], measured: Cases) -> Verdict:
    """Tell which entries hold, each narrowed to the ranges of sizes where it does."""
    kept, dropped = [], []
    for entry in entries:
        own = sorted(
            (case for (name, p, _), case in measured.items() if (name, p) == (entry.operation, entry.ranks)),
            key=lambda case: case.bytes,
        )
        # Of several entries that cover a size the first counts, and only that was measured.
        in_use = [
            case if counting(entries, entry.operation, entry.ranks, case.bytes) is entry else None for case in own
        ]
        evidence = tuple(case for case in in_use if case)
        if not evidence:
            dropped.append((entry, "not measured"))
            continue
        found = _narrowed(entry, in_use, own)
        kept += found
        if not found:
            best = max(case.gain for case in evidence)
            reason = f"saved {100 * best:.0f} % at best, by measurement"
            dropped.append((replace(entry, evidence=evidence), reason))
    return Verdict(kept, dropped)


def seen(entries: Sequence[Entry], measured: Cases) -> list[Entry]:
    """Give entries with what was measured of them in place of earlier evidence."""
    found = []
    for entry in entries:
        own = [case for key, case in measured.items() if counting(entries, *key) is entry]
        found.append(replace(entry, evidence=tuple(sorted(own, key=lambda case: case.bytes))))
    return found


def counting(entries: Iterable[Entry], operation: str, ranks: int, n: int) -> Entry | None:
    """Give the entry that is in use for a call: of those that cover it the one with the largest predicted gain."""
    found = [e for e in entries if (e.operation, e.ranks) == (operation, ranks) and e.covers(n)]
    return max(found, key=lambda entry: entry.predicted, default=None)


def is_slower(case: Measured) -> bool:
    """Tell whether a case takes longer with the entry, beyond the noise and what is any difference at all."""
    return case.gain < -max(case.noise, LEAST) and case.after - case.before > LEAST_TIME


def _narrowed(entry: Entry, in_use: Sequence[Measured | None], every: Sequence[Measured]) -> list[Entry]:
    """Give the entry for each range of sizes where it gains: up to the next measured size, which does not.

    A size that is no slower belongs to a range if both of its neighbours gain, so that ranges do not depend on chance.
    """
    gains = [case is not None and case.gain > max(case.noise, KEPT) for case in in_use]
    inside = [
        gain or (case is not None and not is_slower(case) and any(gains[at - 1 : at]) and any(gains[at + 1 : at + 2]))
        for at, (gain, case) in enumerate(zip(gains, in_use, strict=True))
    ]
    found = []
    for holds, run in itertools.groupby(range(len(every)), key=inside.__getitem__):
        if holds:
            own = list(run)
            following = own[-1] + 1
            end = every[following].bytes - 1 if following < len(every) else every[-1].bytes
            high = end if entry.high is None else min(end, entry.high)
            found.append(entry.within(every[own[0]].bytes, high, [every[at] for at in own]))
    return found


def mean_ratio(cases: Iterable[Measured]) -> float:
    """Give the geometric mean of the times with entries by those without; 1 if there are none."""
    logarithms = [math.log(case.after / case.before) for case in cases]
    return math.exp(statistics.fmean(logarithms)) if logarithms else 1.0
