"""What has changed since an earlier Limosa that was measured in the same interleaved runs (``--before DIR``).

Pure functions.

A case is called slower or faster if the medians differ by more than 10 % and the ranges between the quartiles do not
overlap; everything else is within the noise.
"""

from limosa_lab.stats import BEFORE, LIMOSA, Case, Results, Summary, geometric_mean
from limosa_lab.tables import Table, cell
from limosa_lab.wording import number, size

# Medians that differ by less than this factor are called equal.
NOTICEABLE = 1.1


def changes(found: Results) -> dict[Case, float]:
    """Give, for each case that both have, the cost now divided by the cost before.

    Less than 1 is better, whatever the unit.
    """
    both = {
        case: by
        for case, by in found.items()
        if LIMOSA in by and BEFORE in by and by[LIMOSA].median > 0 and by[BEFORE].median > 0
    }
    ratios = {case: by[LIMOSA].median / by[BEFORE].median for case, by in both.items()}
    return {case: 1 / ratio if case.series.larger_is_better else ratio for case, ratio in ratios.items()}


def is_beyond_noise(now: Summary, before: Summary, change: float) -> bool:
    """Tell whether a change is more than noise."""
    apart = now.lower > before.upper or now.upper < before.lower
    return apart and max(change, 1 / change) > NOTICEABLE


def table(found: Results) -> Table | None:
    """Give the table of all cases that are slower or faster, the slowest first; None if there was no earlier Limosa."""
    ratios = changes(found)
    if not ratios:
        return None
    changed = {
        case: ratio
        for case, ratio in ratios.items()
        if is_beyond_noise(found[case][LIMOSA], found[case][BEFORE], ratio)
    }
    slower = sum(ratio > 1 for ratio in changed.values())
    title = (
        f"Beside the Limosa before: geometric mean of cost {number(geometric_mean(list(ratios.values())))} x over "
        f"{len(ratios)} cases; slower in {slower}, faster in {len(changed) - slower}"
    )
    made = Table(title, ["case", "now", "before", "cost now / before"], words=1)
    for case, ratio in sorted(changed.items(), key=lambda item: -item[1]):
        made.rows.append([_name(case), cell(found[case][LIMOSA]), cell(found[case][BEFORE]), f"{number(ratio)} x"])
    return made


def _name(case: Case) -> str:
    parameters = [f"{name} {value}" for name, value in case.x]
    return ", ".join(
        [
            f"{case.series.bench} {case.series.form}",
            f"{case.ranks} ranks",
            *parameters,
            f"{size(case.bytes)} ({case.series.unit})",
        ]
    )
