"""``limosa bench diff``: what has become slower or faster between two measurements, beyond their noise.

The measurements were not made in turns, so the machine may have changed, too: their environments are compared first.
A case is slower or faster if it differs by more than noise (`stats.differ`) and the interval of 95 % confidence of the
ratio of the medians does not hold 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from limosa_lab import before, placement, records, stats
from limosa_lab.errors import LabError
from limosa_lab.records import Recording, Sample
from limosa_lab.stats import BEFORE, LIMOSA, Case
from limosa_lab.tables import Table, cell
from limosa_lab.terminal import Terminal
from limosa_lab.wording import number

SLOWER = 1
# What of the environment explains a difference by itself.
COMPARED = ("cpu", "processors", "kernel", "frequency_governor", "huge_pages", "mitigations", "compiler", "variables")
REPEATS = 1000
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[- T]?(\d\d):?(\d\d)(?::?(\d\d))?)?")

EPILOG = """examples:
  limosa bench diff limosa-bench-20300101-120000 limosa-bench-20300102-120000
  limosa bench diff 2030-01-01 2030-01-02      the latest measurements of these days in this folder

Exit code: 0 if nothing has become slower, 1 if something has, 2 if the measurements cannot be compared.
"""


@dataclass(frozen=True)
class Change:
    """A case of both measurements: cost now divided by the cost before, its interval, and whether it is beyond noise.

    Less than 1 is better, whatever the unit.
    """

    library: str
    case: Case
    earlier: stats.Summary
    later: stats.Summary
    cost: float
    interval: tuple[float, float]
    beyond_noise: bool


def main(arguments: Sequence[str]) -> int:
    """Compare as the command line says; give the exit code."""
    made = argparse.ArgumentParser(
        prog="limosa bench diff",
        description="Compare two measurements: what has become slower or faster beyond their noise.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    made.add_argument("earlier", help="folder or file of the earlier measurement, or its date")
    made.add_argument("later", help="folder or file of the later one, or its date")
    made.add_argument("--all", action="store_true", help="also list the cases that are alike")
    made.add_argument("--json", action="store_true", help="print the changes as JSON")
    given = made.parse_args(arguments)
    folders = [find(name, Path()) for name in (given.earlier, given.later)]
    earlier, later = (records.read(folder) for folder in folders)
    found = changes(earlier, later)
    if not found:
        raise LabError(
            f"{folders[0]} and {folders[1]} have no case in common", hint="measure the same programs in both"
        )
    terminal = Terminal("limosa bench diff")
    for difference in environments(earlier, later):
        terminal.say(difference)
    if given.json:
        json.dump([asdict(change) for change in found], sys.stdout, indent=1)
        print()
    else:
        print(table(found, {**earlier.titles(), **later.titles()}, all_of_them=given.all).text(terminal.width), end="")
        print(answer(found))
    return SLOWER if any(change.beyond_noise and change.cost > 1 for change in found) else 0


def find(name: str, folder: Path) -> Path:
    """Give the folder of a measurement from a folder, its file, or the beginning of its date.

    Raises
    ------
    LabError
        If there is none.

    """
    path = Path(name)
    if path.is_file() and path.name == records.FILE_NAME:
        return path.parent
    date = _DATE.fullmatch(name)
    if path.exists() or not date:
        return path
    year, month, day, *time = (part or "" for part in date.groups())
    begins = f"{year}{month}{day}" + (f"-{''.join(time)}" if time[0] else "")
    known = sorted(one.parent for one in folder.glob(f"limosa-*-{begins}*/{records.FILE_NAME}"))
    if not known:
        raise LabError(
            f"there is no measurement of {name} in {folder.resolve()}",
            hint="folders with the default name limosa-bench-DATE-TIME are looked for; or give the folder itself",
        )
    return known[-1]


def changes(earlier: Recording, later: Recording) -> list[Change]:
    """Compare every case that both have, library by library."""
    found = []
    for library in [name for name in later.libraries() if name in earlier.libraries()]:
        both = [
            replace(sample, library=name)
            for recording, name in ((earlier, BEFORE), (later, LIMOSA))
            for sample in recording.samples
            if sample.library == library
        ]
        results = stats.results(both)
        cases = stats.by_case(both)
        found += [
            _change(library, case, results[case], cases[case], cost) for case, cost in before.changes(results).items()
        ]
    return found


def _change(
    library: str, case: Case, summaries: dict[str, stats.Summary], samples: Sequence[Sample], cost: float
) -> Change:
    alike = placement.alike(samples)
    values = {
        name: np.array([value for sample in alike if sample.library == name for value in sample.samples])
        for name in (BEFORE, LIMOSA)
    }
    low, high = _interval(values[BEFORE], values[LIMOSA])
    if case.series.larger_is_better:
        low, high = 1 / high, 1 / low
    apart = stats.differ(summaries[BEFORE], summaries[LIMOSA]) and not low <= 1 <= high
    return Change(library, case, summaries[BEFORE], summaries[LIMOSA], cost, (low, high), apart)


def _interval(earlier: np.ndarray, later: np.ndarray) -> tuple[float, float]:
    """Give the interval of 95 % confidence of the ratio of the medians (bootstrap)."""
    random = np.random.default_rng(1)
    medians = [np.median(random.choice(values, (REPEATS, len(values))), axis=1) for values in (earlier, later)]
    low, high = np.quantile(medians[1] / np.maximum(medians[0], 1e-300), [0.025, 0.975])
    return max(float(low), 1e-300), float(high)


def environments(earlier: Recording, later: Recording) -> list[str]:
    """Say, each in a sentence, in what the environments differ that may explain a difference."""
    one, other = earlier.environment, later.environment
    found = [
        f"the machines differ: {name} was {one[name]!r} and is {other[name]!r}"
        for name in COMPARED
        if name in one and name in other and one[name] != other[name]
    ]
    versions = [{str(lib["name"]): str(lib.get("version")) for lib in env["libraries"]} for env in (one, other)]
    found += [
        f"{name} was version {versions[0][name]} and is {version}"
        for name, version in versions[1].items()
        if versions[0].get(name, version) != version
    ]
    return found


def table(found: Sequence[Change], titles: dict[str, str], *, all_of_them: bool = False) -> Table:
    """Give the table of what has become slower or faster, or of all cases, the slowest first."""
    made = Table(
        "Later beside earlier: cost (time, or the inverse of a rate) with its interval of 95 % confidence",
        ["library", "case", "earlier", "later", "cost later / earlier", "interval", ""],
        words=2,
    )
    for change in sorted(found, key=lambda change: -change.cost):
        if change.beyond_noise or all_of_them:
            verdict = ("slower" if change.cost > 1 else "faster") if change.beyond_noise else "alike"
            interval = f"{number(change.interval[0])}..{number(change.interval[1])}"
            cells = [cell(change.earlier), cell(change.later), f"{number(change.cost)} x", interval, verdict]
            made.rows.append([titles[change.library], before.name(change.case), *cells])
    return made


def answer(found: Sequence[Change]) -> str:
    """Say how many cases have changed."""
    slower = sum(change.beyond_noise and change.cost > 1 for change in found)
    faster = sum(change.beyond_noise and change.cost < 1 for change in found)
    mean = stats.geometric_mean([change.cost for change in found])
    return (
        f"Of {len(found)} cases {slower} are slower, {faster} faster, and {len(found) - slower - faster} alike; "
        f"geometric mean of the cost: {number(mean)} x."
    )
