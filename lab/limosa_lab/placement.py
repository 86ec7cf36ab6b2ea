"""Which runs may be compared, judged by the flag's time: how long a cache line takes from one processor to another.

The processors of a virtual machine may be near each other in one minute and far from each other in the next: the host
places them anew. Every short message depends on that, up to fourfold. So the flag's time is measured before and after
each run and kept with its record and its samples, and a case (a row of a table) is computed from runs of like placement
only.

The rule: a case uses those of its runs whose two flag times, before and after, all lie between some time and `LIKE`
times that time. Of all such sets of runs the one with most libraries is taken, then the one with most samples, then the
one with the shortest times. If there is no such run, a case of several libraries shows nothing, and one of a single
library, which compares nothing, uses all its runs. If no flag time is known in a case, all its runs are used: the
machine has one processor, or the recording is older than this rule. If some are known, the others are left out.

Models compare cases with each other: all of them use the placement that most samples are of. Pure functions.
"""

from collections import Counter
from collections.abc import Sequence

from limosa_lab.records import Sample

# Flag times that differ by no more than this factor are alike. One placement's times differ by a fifth or so, those of
# near and far processors by a factor of four (0.04 and 0.16 us).
LIKE = 1.5


def alike(samples: Sequence[Sample]) -> list[Sample]:
    """Give those samples of one case whose runs may be compared, in their order."""
    known = [sample for sample in samples if sample.flag]
    if not known:
        return list(samples)
    choices = [_between(known, least) for least in sorted({min(sample.flag or []) for sample in known})]
    # The first of equals is taken: the one with the shortest times.
    best = max(choices, key=lambda chosen: (len(_libraries(chosen)), len(chosen)))
    return best if best or len(_libraries(samples)) > 1 else list(samples)


def prevailing(samples: Sequence[Sample]) -> list[Sample]:
    """Give the samples of the placement that most of them are of, whatever the case, in their order."""
    known = [sample for sample in samples if sample.flag]
    if not known:
        return list(samples)
    spans = Counter((min(sample.flag or []), max(sample.flag or [])) for sample in known)

    def count(least: float) -> int:
        return sum(number for (low, high), number in spans.items() if least <= low and high <= LIKE * least)

    return _between(known, max(sorted({low for low, _ in spans}), key=count))


def _libraries(samples: Sequence[Sample]) -> set[str]:
    return {sample.library for sample in samples}


def _between(samples: Sequence[Sample], least: float) -> list[Sample]:
    return [
        sample for sample in samples if sample.flag and least <= min(sample.flag) and max(sample.flag) <= LIKE * least
    ]
