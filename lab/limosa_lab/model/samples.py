"""Measurements for models, out of the records of ``limosa bench``'s program `primitives`. Pure functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from limosa_lab.errors import LabError
from limosa_lab.model.fitting import Point
from limosa_lab.records import Recording, Sample

PROGRAM = "primitives"
# Random messages of each operation that no model is fitted to, as in the source.
VALIDATION = 20


def fitted_sizes(largest: int, *, quick: bool) -> list[int]:
    """Give the sizes to which models are fitted, in the order of their importance, powers of four first.

    0, powers of two up to `largest`, and odd sizes between these: copies of bytes that are not aligned take longer, and
    messages of programs have any size. With `quick` powers of four alone.
    """
    powers = [1 << k for k in range(largest.bit_length()) if 1 << k <= largest]
    more = [] if quick else [*spread(odd_sizes(largest)), *spread(powers[1::2])]
    return [0, *spread(powers[::2]), *more]


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


def odd_sizes(largest: int) -> list[int]:
    """Give an odd size between each two powers of two from 32 bytes on."""
    return [n for n in (int(2 ** (k + 0.5)) | 1 for k in range(5, largest.bit_length())) if n <= largest]


def validation_sizes(largest: int, seed: int) -> list[int]:
    """Give `VALIDATION` random sizes up to `largest`, all magnitudes alike, none that models are fitted to."""
    random = np.random.default_rng(seed)
    found: set[int] = set()
    while len(found) < VALIDATION:
        n = int(np.exp(random.uniform(np.log(3), np.log(largest))))
        if n & (n - 1) and n not in odd_sizes(largest):
            found.add(n)
    return sorted(found)


def time_of(times: Sequence[float], *, oversubscribed: bool) -> float:
    """Give the time of a case from its samples: the least.

    With more ranks than processors it is the median. A rank that waits for a processor is far slower than one that has
    it, and the least time is then that of the rare calls in which nobody waited.
    """
    return float(np.median(times)) if oversubscribed else min(times)


def points(samples: Iterable[Sample], processors: float = math.inf) -> dict[str, list[Point]]:
    """Give the measurements of each operation: one time of each size and number of processes."""
    found: dict[str, dict[tuple[int, int], list[float]]] = {}
    for sample in samples:
        if sample.program != PROGRAM or sample.form != "hot" or not sample.verified:
            continue
        if sample.x.get("language", "C") != "C":
            continue  # of `limosa bench primitives`
        found.setdefault(sample.bench, {}).setdefault((sample.bytes, sample.ranks), []).extend(sample.samples)
    made = {
        operation: sorted(
            Point(n, p, time_of(times, oversubscribed=p > processors)) for (n, p), times in cases.items() if times
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


def of_library(recording: Recording, library: str) -> dict[str, list[Point]]:
    """Give the measurements of a library.

    Raises
    ------
    LabError
        If there are none.

    """
    processors = recording.environment.get("processors", math.inf)
    found = points((sample for sample in recording.samples if sample.library == library), processors)
    if not found:
        raise LabError(
            f"there are no measurements of {PROGRAM} with {recording.titles().get(library, library)}",
            hint="`limosa model` without --report measures; its folder can be reported again",
        )
    return found
