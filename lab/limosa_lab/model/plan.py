"""What to measure next for models: which sizes of which operations are unknown, uncertain or too far apart.

A *case* is an operation with so many bytes, at one number of ranks with one library. Measurements go round by round.
A case is measured in two rounds at least, and again until the two best rounds agree within `AGREEMENT`. Where the time
of a size deviates from the line through its neighbours by more than `STRAIGHT`, sizes between them are added: there a
library changes its protocol. The random messages, which no model is fitted to, say nothing about where. Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

Case = tuple[str, int]
# The times of a case, one of each round.
Times = Mapping[Case, Sequence[float]]

ROUNDS = 2
AGREEMENT = 1.03
STRAIGHT = 0.15
# Gains between these are confirmed by so many rounds, as are all losses above the smaller one.
SMALL = 0.02
CLEAR = 0.15
CONFIRMED = 9
# Sizes next to each other that differ by less are not refined further, nor are those below so many bytes.
CLOSE = 1.05
SHORT = 64
# Sizes that are added to one operation in one round, and altogether.
ADDED = 4
MOST_ADDED = 12


def certain(times: Sequence[float], rounds: int = ROUNDS) -> bool:
    """Tell whether enough rounds have measured a case, and the best two of them agree."""
    if len(times) < rounds:
        return False
    best, second, *_ = sorted(times)
    return second <= AGREEMENT * best


def added(times: Mapping[int, float], apart: Collection[int]) -> list[int]:
    """Give further sizes for an operation with these times; none that is in `apart`."""
    known = [(n, times[n]) for n in sorted(times) if n not in apart and times[n] > 0]
    gaps: dict[tuple[int, int], float] = {}
    for (n0, t0), (n1, t1), (n2, t2) in zip(known, known[1:], known[2:], strict=False):
        deviation = abs((t0 + (t2 - t0) * (n1 - n0) / (n2 - n0)) / t1 - 1)
        if deviation > STRAIGHT:
            for gap in ((n0, n1), (n1, n2)):
                gaps[gap] = max(deviation, gaps.get(gap, 0.0))
    found = []
    for low, high in sorted(gaps, key=lambda gap: -gaps[gap]):
        middle = _between(low, high)
        if low >= SHORT and high > CLOSE * low and middle not in times and middle not in apart:
            found.append(middle)
    return sorted(found[:ADDED])


def _between(low: int, high: int) -> int:
    """Give a size between two: just above a power of two, where most limits are, or else the geometric mean."""
    above = low + low // 64 // 8 * 8 + 8
    return above if low & (low - 1) == 0 and high >= 1.3 * low else round((low * high) ** 0.5)


def next_cases(
    times: Times,
    operations: Sequence[str],
    sizes: Sequence[int],
    apart: Collection[int],
    lost: Collection[Case],
    rounds: Mapping[Case, int] | None = None,
) -> list[Case]:
    """Give the cases of the next round, the least measured first.

    Parameters
    ----------
    sizes
        Those that are measured at any rate, in the order of their importance.
    apart
        The random messages among them.
    lost
        Cases that cannot be measured.
    rounds
        How often each case was measured, if some of its times do not count.

    """
    rounds = {case: len(of_case) for case, of_case in times.items()} if rounds is None else rounds
    wanted: list[Case] = []
    for operation in operations:
        of_operation = [n for name, n in times if name == operation]
        all_sizes = [0] if operation == "barrier" else list(dict.fromkeys([*sizes, *of_operation]))
        wanted += [(operation, n) for n in all_sizes]
        base = [n for n in all_sizes if n in sizes]
        if operation != "barrier" and all(len(times.get((operation, n), ())) >= ROUNDS for n in base):
            least = {n: min(times[operation, n]) for n in of_operation}
            room = MOST_ADDED - len([n for n in of_operation if n not in sizes])
            wanted += [(operation, n) for n in added(least, apart)[: max(room, 0)]]
    open_cases = [case for case in wanted if case not in lost and not certain(times.get(case, ()))]
    order = {n: at for at, n in enumerate(sizes)}
    return sorted(open_cases, key=lambda case: (rounds.get(case, 0), order.get(case[1], -1) // 4))


def compared(
    cases: Sequence[Case],
    own: Mapping[Case, Sequence[object]],
    before: Times,
    after: Times,
    lost: Collection[Case],
    rounds: int,
) -> list[Case]:
    """Give those of the cases of two ways of doing the same for which it is not certain which one is faster.

    Parameters
    ----------
    own
        All rounds with the way that is measured next, the least measured first.
    before, after
        What is known with both.
    lost
        Cases that cannot be measured with one of them.
    rounds
        In how many rounds each case is measured at least.

    """
    open_cases = [
        case for case in cases if case not in lost and not decided(before.get(case, ()), after.get(case, ()), rounds)
    ]
    return sorted(open_cases, key=lambda case: len(own.get(case, ())))


def decided(before: Sequence[float], after: Sequence[float], rounds: int) -> bool:
    """Tell whether the times of two ways of doing the same say which one is faster.

    Of hundreds of cases some differ by chance: by `SMALL` to `CLEAR`, or with a loss of more than that, in some rounds.
    These are measured in `CONFIRMED` rounds.
    """
    if not (certain(before, rounds) and certain(after, rounds)):
        return False
    gain = 1 - min(after) / min(before) if min(before) > 0 else 0.0
    is_doubtful = gain < -SMALL or SMALL < gain < CLEAR
    return not is_doubtful or min(len(before), len(after)) >= CONFIRMED


def text(cases: Sequence[Case]) -> str:
    """Write cases as the program `primitives` reads them: ``bcast=0,16;scan=8``."""
    parts: list[str] = []
    before = [("", 0), *cases]
    for (previous, _), (operation, n) in pairwise(before):
        if operation == previous:
            parts[-1] += f",{n}"
        else:
            parts.append(f"{operation}={n}")
    return ";".join(parts)
