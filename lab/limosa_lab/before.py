"""What has changed since an earlier Limosa that was measured in the same interleaved runs (``--before DIR``).

Pure functions.

A case is called slower or faster if the difference is beyond the noise (`stats.differ`).
"""

from limosa_lab.stats import BEFORE, LIMOSA, Case, Results, differ, geometric_mean
from limosa_lab.tables import Table, cell
from limosa_lab.wording import number, size


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


def table(found: Results) -> Table | None:
    """Give the table of all cases that are slower or faster, the slowest first; None if there was no earlier Limosa."""
    ratios = changes(found)
    if not ratios:
        return None
    changed = {case: ratio for case, ratio in ratios.items() if differ(found[case][LIMOSA], found[case][BEFORE])}
    slower = sum(ratio > 1 for ratio in changed.values())
    title = (
        f"Beside the Limosa before: geometric mean of cost {number(geometric_mean(list(ratios.values())))} x over "
        f"{len(ratios)} cases; slower in {slower}, faster in {len(changed) - slower}"
    )
    made = Table(title, ["case", "now", "before", "cost now / before"], words=1)
    for case, ratio in sorted(changed.items(), key=lambda item: -item[1]):
        made.rows.append([name(case), cell(found[case][LIMOSA]), cell(found[case][BEFORE]), f"{number(ratio)} x"])
    return made


def name(case: Case) -> str:
    """Write a case in words."""
    parameters = [f"{name} {value}" for name, value in case.x]
    return ", ".join(
        [
            f"{case.series.bench} {case.series.form}",
            f"{case.ranks} ranks",
            *parameters,
            f"{size(case.bytes)} ({case.series.unit})",
        ]
    )
