"""From measurements to what is faster: entries that hold, and those that do not. Pure functions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from limosa_lab import placement
from limosa_lab.model.samples import LOOP, PROGRAM, TURNS, case_name, roots_of, time_of
from limosa_lab.records import Sample
from limosa_lab.tune.rules import BELOW, LEVELS, MULTIPLE, Entry, Measured
from limosa_lab.wording import size

# The times of an operation by (operation, ranks, bytes). Suffixes of an operation name the kind of program.
Cases = Mapping[tuple[str, int, int], Measured]
# What suffixes say of a program.
NUMPY, THREADED = "@numpy", "@multiple"
KINDS = {NUMPY: "NumPy", THREADED: "MPI_THREAD_MULTIPLE", LOOP: "back to back", TURNS: "roots by turns"}

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
    """Put the times of two libraries side by side, of cases that both have measured in two rounds or more.

    Rounds count whose runs may be compared (`limosa_lab.placement`).
    """
    of_case: dict[tuple[str, int, int], list[Sample]] = {}
    for sample in samples:
        if sample.program == PROGRAM and sample.library in (before, after) and sample.verified and sample.samples:
            of_case.setdefault((case_name(sample), sample.ranks, sample.bytes), []).append(sample)
    found = {}
    for (operation, ranks, n), every in of_case.items():
        rounds = times_of_both(every, before, after)
        if min(map(len, rounds)) >= 2 and min(map(min, rounds)) > 0:
            (old, old_noise), (new, new_noise) = (_of_rounds(one, ranks > processors) for one in rounds)
            found[operation, ranks, n] = Measured(n, old, new, max(old_noise, new_noise))
    return found


def times_of_both(samples: Sequence[Sample], before: str, after: str) -> list[list[float]]:
    """Give the times of one case with each of two libraries, in order, of the rounds that may be compared."""
    known = placement.alike(samples)
    return [
        sorted(time_of(sample.samples, roots=roots_of(sample)) for sample in known if sample.library == name)
        for name in (before, after)
    ]


def _of_rounds(times: Sequence[float], oversubscribed: bool) -> tuple[float, float]:
    """Give the time of a case from those of the rounds, in order, and how far they lie apart, as a part of it.

    It is the least, and the next of them is beside it. With more ranks than processors it is the median.
    """
    if not oversubscribed:
        return times[0], times[1] / times[0] - 1
    middle = statistics.median(times)
    return middle, (times[-1] - times[0]) / 2 / middle


def judge(entries: Sequence[Entry], measured: Cases, kind: str = "") -> Verdict:
    """Tell which entries hold in programs of a kind (a suffix), each narrowed to the ranges of sizes where it does."""
    kept, dropped = [], []
    for entry in entries:
        name = entry.operation + kind
        own = sorted(
            (case for (of, p, _), case in measured.items() if (of, p) == (name, entry.ranks)),
            key=lambda case: case.bytes,
        )
        # Of several entries that cover a size the first counts, and only that was measured.
        in_use = [case if counting(entries, name, entry.ranks, case.bytes) is entry else None for case in own]
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
    """Give the entry that is in use for a call: of those that cover it the one with the largest predicted gain.

    The operation may have suffixes: kinds of programs differ by their thread level.
    """
    bench, levels = operation.partition("@")[0], ("", level_of(operation))
    found = [e for e in entries if (e.operation, e.ranks) == (bench, ranks) and e.level in levels and e.covers(n)]
    return max(found, key=lambda entry: entry.predicted, default=None)


def is_slower(case: Measured) -> bool:
    """Tell whether a case takes longer with the entry, beyond the noise and what is any difference at all."""
    return case.gain < -max(case.noise, LEAST) and case.after - case.before > LEAST_TIME


def level_of(operation: str) -> str:
    """Give the thread level of the programs of a case: mpi4py asks for MPI_THREAD_MULTIPLE."""
    return MULTIPLE if NUMPY in operation or THREADED in operation else BELOW


def at_levels(entries: Iterable[Entry]) -> list[Entry]:
    """Give entries for each of the thread levels in place of those for all; rows of Limosa's table have no level."""
    return [
        replace(entry, level=level)
        for entry in entries
        for level in ([entry.level] if entry.rows or entry.level else LEVELS)
    ]


def confirm(entries: Sequence[Entry], measured: Cases) -> Verdict:
    """Judge the entries for MPI_THREAD_MULTIPLE by programs with that level; those for lower levels have been judged.

    These are the programs in C, or in NumPy if there are no others.
    """
    kind = THREADED if any(THREADED in name for name, _, _ in measured) else NUMPY
    found = judge([entry for entry in entries if entry.level == MULTIPLE], measured, kind)
    return Verdict([*(entry for entry in entries if entry.level != MULTIPLE), *found.kept], found.dropped)


def kind_of(operation: str) -> str:
    """Name the kind of program of a case: ``C``, or ``NumPy, back to back, roots by turns``."""
    words = [word for suffix, word in KINDS.items() if suffix in operation]
    return ", ".join(words if NUMPY in operation else ["C", *words])


def withdraw(entries: Sequence[Entry], measured: Cases, *, keep_unmeasured: bool = False) -> Verdict:
    """Take entries back at the sizes at which a program is slower with them, whatever its kind."""
    kept, dropped = [], []
    for entry in entries:
        own = [(name, case) for (name, p, n), case in measured.items() if counting(entries, name, p, n) is entry]
        slow = [(case.after / case.before, case.bytes, name) for name, case in own if is_slower(case)]
        if not slow and (own or keep_unmeasured):
            kept.append(entry)
        elif not own:
            dropped.append((entry, "not measured in programs"))
        else:
            sizes, slow_sizes = sorted({case.bytes for _, case in own}), {n for _, n, _ in slow}
            kept += _between(entry, sizes, slow_sizes)
            factor, n, name = max(slow)
            reason = (
                f"slower in programs at {len(slow_sizes)} of {len(sizes)} sizes, by up to {100 * (factor - 1):.0f} % "
                f"({kind_of(name)}, {size(n)})"
            )
            dropped.append((replace(entry, low=min(slow_sizes), high=max(slow_sizes), rows=()), reason))
    return Verdict(kept, dropped)


def _between(entry: Entry, sizes: Sequence[int], slow: Collection[int]) -> list[Entry]:
    """Give the entry for each range of sizes that are not slow, if it gains at any of them.

    Beside a slow size a range ends at the last size that was measured, and a single size is none.
    """
    found = []
    for is_slow, run in itertools.groupby(sizes, key=lambda n: n in slow):
        own = list(run)
        low = entry.low if own[0] == sizes[0] else own[0]
        high = entry.high if own[-1] == sizes[-1] else own[-1]
        narrowed = entry.within(low, high, [case for case in entry.evidence if own[0] <= case.bytes <= own[-1]])
        if not is_slow and low != high and narrowed.evidence:
            found.append(narrowed)
    return found


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


@dataclass(frozen=True)
class Agreement:
    """How two tunings decide, each by its entries: the cases that either changes, and the sorts of these."""

    changed: int
    alike: int
    within_noise: int
    different: list[tuple[str, int, int]]


def agreement(
    first: Sequence[Entry], second: Sequence[Entry], tried: Iterable[Entry], cases: Iterable[tuple[str, int, int]]
) -> Agreement:
    """Compare the decisions of two tunings.

    Two decisions differ within the noise if neither is faster by more than that, by what both tunings have measured.

    Parameters
    ----------
    tried
        All that the tunings have measured, with the evidence: also what they have dropped.
    cases
        Operation, ranks and bytes of the calls that are compared.

    """
    tried = list(tried)
    changed = alike = within = 0
    different = []
    for key in cases:
        ways = [entry.way if (entry := counting(one, *key)) else None for one in (first, second)]
        changed += any(ways)
        if ways[0] == ways[1]:
            alike += any(ways)
            continue
        (one, one_noise), (other, other_noise) = (_time_of_way(way, key, tried) for way in ways)
        if max(one, other) / min(one, other) <= 1 + max(one_noise, other_noise, KEPT):
            within += 1
        else:
            different.append(key)
    return Agreement(changed, alike, within, different)


def _time_of_way(way: str | None, key: tuple[str, int, int], tried: Iterable[Entry]) -> tuple[float, float]:
    """Give the time of a way by that of the library itself, and its noise, at the nearest size that was measured."""
    operation, ranks, n = key
    wanted, levels = (operation.partition("@")[0], ranks, way), ("", level_of(operation))
    of_way = [one for one in tried if (one.operation, one.ranks, one.way) == wanted and one.level in levels]
    cases = [case for one in of_way for case in one.evidence]
    if not cases:
        return 1.0, 0.0
    far = [abs(math.log((case.bytes or 1) / (n or 1))) for case in cases]
    nearest = [case for case, distance in zip(cases, far, strict=True) if distance == min(far)]
    return mean_ratio(nearest), max(case.noise for case in nearest)
