"""Measurements for models, out of the records of ``limosa bench``'s program `primitives`. Pure functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from limosa_lab import placement
from limosa_lab.errors import LabError
from limosa_lab.model.fitting import Point
from limosa_lab.records import Recording, Sample
from limosa_lab.wording import bench_title

PROGRAM = "primitives"
# Random messages of each operation that no model is fitted to, as in the source.
VALIDATION = 20
# Operations with a root, and the suffix of their names where roots take turns; without it, the root is rank 0.
ROOTED = ("bcast", "gather", "gatherv", "scatter", "scatterv", "reduce")
TURNS = "@turns"
# The suffix where calls are back to back; without it, all ranks start each call together.
LOOP = "@loop"
# Statistics of the calls of a round.
MEDIAN, LEAST = "median", "least"
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    MEDIAN: lambda times: float(np.median(times)),
    LEAST: min,
}
# Rounds whose mean is the time of a case.
QUIET_ROUNDS = 2


def case_name(sample: Sample) -> str:
    """Give the name of a measured operation: ``bcast``, ``bcast@turns``, ``bcast@loop`` or ``bcast@turns@loop``."""
    return sample.bench + "".join(
        suffix for name, suffix in (("roots", TURNS), ("calls", LOOP)) if sample.x.get(name) == suffix[1:]
    )


def with_turns(operations: Sequence[str]) -> list[str]:
    """Give operations and, of those with a root, the same with roots by turns."""
    return [*operations, *(name + TURNS for name in operations if name in ROOTED)]


def calls_of(operation: str, statistic: str = MEDIAN) -> str:
    """Say which calls a time is of: ``median, root 0``."""
    bench, _, turns = operation.partition(TURNS[0])
    roots = ", roots by turns" if turns else ", root 0" if bench in ROOTED else ""
    return statistic + roots


def fitted_sizes(largest: int, *, quick: bool) -> list[int]:
    """Give the sizes to which models are fitted, in the order of their importance, powers of four first.

    0, powers of two up to `largest`, and three odd sizes between each two of these: copies of bytes that are not
    aligned take longer, and messages of programs have any size. With `quick` powers of four alone.
    """
    powers = [1 << k for k in range(largest.bit_length()) if 1 << k <= largest]
    if quick:
        return [0, *spread(powers[::2])]
    halves, *quarters = (odd_sizes(largest, part) for part in (0.5, 0.25, 0.75))
    return [
        0,
        *spread(powers[::2]),
        *spread(halves),
        *spread(powers[1::2]),
        *spread(sorted(itertools.chain(*quarters))),
    ]


def wanted_sizes(largest: int, seed: int, *, quick: bool) -> tuple[list[int], list[int]]:
    """Give the sizes to be measured, in the order of their importance, and the random ones among them.

    Both kinds come by turns, so that a measurement that ends early has some of each.
    """
    validation = validation_sizes(largest, seed)
    first, *others = fitted_sizes(largest, quick=quick)
    pairs = itertools.zip_longest(others, spread(validation))
    return [first, *(size for pair in pairs for size in pair if size is not None)], validation


def spread(sizes: Sequence[int]) -> list[int]:
    """Order sizes so that any number of the first ones covers the whole range: the ends, the middle, the quarters."""
    found = list(dict.fromkeys([*sizes[:1], *sizes[-1:]]))
    ranges = [(0, len(sizes) - 1)]
    while ranges:
        low, high = ranges.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            found.append(sizes[middle])
            ranges += [(low, middle), (middle, high)]
    return found


def odd_sizes(largest: int, part: float = 0.5) -> list[int]:
    """Give an odd size between each two powers of two from 32 bytes on, this part of the logarithm beyond the lower."""
    return [n for n in (int(2 ** (k + part)) | 1 for k in range(5, largest.bit_length())) if n <= largest]


def validation_sizes(largest: int, seed: int) -> list[int]:
    """Give `VALIDATION` random sizes up to `largest`, all magnitudes alike, none that models are fitted to."""
    random = np.random.default_rng(seed)
    found: set[int] = set()
    while len(found) < VALIDATION:
        n = int(np.exp(random.uniform(np.log(3), np.log(largest))))
        if n not in fitted_sizes(largest, quick=False):
            found.add(n)
    return sorted(found)


def time_of(times: Sequence[float], statistic: str = MEDIAN, roots: int = 1) -> float:
    """Give the time of a case in one round: the statistic of its calls.

    Of calls with so many `roots` by turns it is the mean of the roots' statistics: calls with root 0 may take half as
    long as others, and a median of both kinds would be of either by chance.
    """
    return float(np.mean([STATISTICS[statistic](times[root::roots]) for root in range(min(roots, len(times)))]))


def roots_of(sample: Sample) -> int:
    """Give the number of roots that take turns; the mean of a loop has all of them."""
    return sample.ranks if case_name(sample).endswith(TURNS) else 1


def of_rounds(times: Sequence[float], *, oversubscribed: bool) -> float:
    """Give the time of a case from those of its rounds: the mean of the two least, which nothing else disturbed.

    With more ranks than processors it is the median: the ranks disturb each other in all rounds.
    """
    return float(np.median(times) if oversubscribed else np.mean(sorted(times)[:QUIET_ROUNDS]))


def points(samples: Iterable[Sample], processors: float = math.inf, statistic: str = MEDIAN) -> dict[str, list[Point]]:
    """Give the measurements of each operation: one time of each size and number of processes.

    Names are those of `case_name`. The statistic is of the calls of each round.
    """
    found: dict[str, dict[tuple[int, int], list[float]]] = {}
    for sample in samples:
        if sample.program != PROGRAM or sample.form != "hot" or not sample.verified:
            continue
        if sample.x.get("language", "C") != "C":
            continue  # of `limosa bench primitives`
        if sample.samples:
            of_operation = found.setdefault(case_name(sample), {})
            of_operation.setdefault((sample.bytes, sample.ranks), []).append(
                time_of(sample.samples, statistic, roots_of(sample))
            )
    made = {
        operation: sorted(
            Point(n, p, of_rounds(times, oversubscribed=p > processors)) for (n, p), times in cases.items()
        )
        for operation, cases in found.items()
    }
    return {operation: [point for point in of_it if point.time > 0] for operation, of_it in made.items()}


def apart(recording: Recording) -> frozenset[int] | None:
    """Give the sizes of the random messages, which no model may be fitted to; None if that is not recorded."""
    recorded = recording.environment.get("options", {}).get("model", {}).get("validation")
    return None if recorded is None else frozenset(recorded)


def split(measured: Sequence[Point], validation: Collection[int] | None = None) -> tuple[list[Point], list[Point]]:
    """Separate measurements for fitting from those for validation: these sizes, or all that are no powers of two."""
    left_out = {point.n for point in measured if point.n & (point.n - 1)} if validation is None else set(validation)
    fitted = [point for point in measured if point.n not in left_out]
    return fitted, [point for point in measured if point.n in left_out]


def of_one_placement(samples: Iterable[Sample]) -> list[Sample]:
    """Leave out rounds in which the processors were placed otherwise than in most of them.

    A case that was measured in no other rounds keeps them.
    """
    measured = [sample for sample in samples if sample.program == PROGRAM]
    cases = [(sample.library, case_name(sample), sample.ranks, sample.bytes) for sample in measured]
    prevailing = set(map(id, placement.prevailing(measured)))
    covered = {case for case, sample in zip(cases, measured, strict=True) if id(sample) in prevailing}
    return [
        sample for case, sample in zip(cases, measured, strict=True) if id(sample) in prevailing or case not in covered
    ]


def of_library(recording: Recording, library: str, statistic: str = MEDIAN) -> dict[str, list[Point]]:
    """Give the measurements of a library, by operation as `points` names them.

    They are of one placement of the processors, the same for all libraries: models are compared with each other.

    Raises
    ------
    LabError
        If there are none.

    """
    processors = recording.environment.get("processors", math.inf)
    own = [sample for sample in of_one_placement(recording.samples) if sample.library == library]
    found = points(own, processors, statistic)
    if not found:
        raise LabError(
            f"there are no measurements of {PROGRAM} with {recording.titles().get(library, library)}",
            hint="`limosa model` without --report measures; its folder can be reported again",
        )
    return found


def title(operation: str) -> str:
    """Give the title of an operation: ``MPI_Bcast``, or ``MPI_Bcast, roots by turns``."""
    bench = operation.removesuffix(TURNS)
    by_turns = ", roots by turns" if bench != operation else ""
    return ("MPI_Send" if bench == "send" else bench_title(bench)) + by_turns
