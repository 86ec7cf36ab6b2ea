"""Tables of a recording: one for each benchmark, form and metric, as text for a terminal and as Markdown.

Pure functions.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from limosa_lab import machine, placement, stats
from limosa_lab.machine import QUIET_PERCENT
from limosa_lab.records import Recording, Run
from limosa_lab.stats import Case, Series, Summary
from limosa_lab.wording import number, ranks, size

# More than this share of the processor time taken by a hypervisor is worth a warning.
STOLEN_SHARE = 0.01


@dataclass
class Table:
    """A title, the names of the columns, and rows of cells.

    The first `words` columns hold words, the others numbers.
    """

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: int = 0

    def text(self, width: int | None = None, colour: bool = False) -> str:
        """Give the table for a terminal, or, without a width, as wide as it is."""
        table = RichTable(box=None, header_style="bold", pad_edge=False)
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="left" if index < self.words else "right", no_wrap=index >= self.words)
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))
        out = io.StringIO()
        console = Console(file=out, width=width or 1000, force_terminal=colour, no_color=not colour, highlight=False)
        console.print(Text(self.title, style="bold"), soft_wrap=True)
        console.print(table)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"

    def markdown(self) -> str:
        """Give the table as Markdown, its title above it."""
        rule = ["---" if index < self.words else "--:" for index in range(len(self.columns))]
        lines = [self.columns, rule, *self.rows]
        return f"**{self.title}**\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(summary: Summary) -> str:
    """Write the median and, in brackets, the quartiles."""
    return f"{number(summary.median)} ({number(summary.lower)}-{number(summary.upper)})"


def benchmarks(recording: Recording, found: stats.Results) -> list[Table]:
    """Give a table for each benchmark, form and metric; rows are ranks, parameters and sizes as far as they differ."""
    by_series: dict[Series, list[Case]] = {}
    for case in found:
        by_series.setdefault(case.series, []).append(case)
    return [_table(series, cases, recording, found) for series, cases in by_series.items()]


def _table(series: Series, cases: Sequence[Case], recording: Recording, found: stats.Results) -> Table:
    libraries = recording.libraries()
    titles = recording.titles()
    parameters = sorted({name for case in cases for name, _ in case.x})
    same = {name: {dict(case.x).get(name) for case in cases} for name in parameters}
    shown = [name for name in parameters if len(same[name]) > 1]
    with_ranks = len({case.ranks for case in cases}) > 1
    with_bytes = len({case.bytes for case in cases}) > 1

    better = "larger" if series.larger_is_better else "smaller"
    title = f"{series.bench}, {series.form}: {series.metric} in {series.unit}, {better} is better"
    title += "" if with_ranks else f"; {ranks(cases[0].ranks)}"
    title += "" if with_bytes or not cases[0].bytes else f"; {size(cases[0].bytes)}"
    title += "".join(f"; {name} {next(iter(same[name]))}" for name in parameters if name not in shown)
    columns = [
        *(["ranks"] if with_ranks else []),
        *shown,
        *(["size"] if with_bytes else []),
        *(titles[name] for name in libraries),
    ]
    compared = len(libraries) > 1
    limits = stats.limits(series, recording.limits)
    columns += ["Limosa / best other library"] if compared else []
    columns += ["Limosa / limit"] if limits else []
    table = Table(title, columns)
    for case in cases:
        row = [str(case.ranks)] if with_ranks else []
        row += [str(dict(case.x).get(name, "")) for name in shown]
        row += [size(case.bytes)] if with_bytes else []
        row += [
            cell(found[case][name]) if name in found[case] else _missing(name, case, recording) for name in libraries
        ]
        if compared:
            row.append(_ratio(case, found[case], titles))
        if limits:
            known = case.bytes in limits and stats.LIMOSA in found[case]
            row.append(number(found[case][stats.LIMOSA].median / limits[case.bytes]) if known else "-")
        table.rows.append(row)
    return table


def _ratio(case: Case, by_library: dict[str, Summary], titles: dict[str, str]) -> str:
    value = stats.ratio(case, by_library)
    best = stats.best_peer(case, by_library)
    if value is None or best is None:
        return "-"
    return f"{number(value)} x {titles[best[0]]}"


def _missing(library: str, case: Case, recording: Recording) -> str:
    """Say why there is no number: what went wrong with the runs, or that the library does not offer it."""
    if any(s.library == library and not s.verified and stats.case_of(s) == case for s in recording.samples):
        return "wrong data"
    if any(s.library == library and s.verified and s.samples and stats.case_of(s) == case for s in recording.samples):
        return "other placement"
    failed = {run.outcome for run in recording.runs if _concerns(run, library, case) and run.outcome != "ok"}
    return ", ".join(sorted(failed)) or "-"


def _concerns(run: Run, library: str, case: Case) -> bool:
    if (run.library, run.program, run.ranks) != (library, case.series.program, case.ranks):
        return False
    only = run.command[run.command.index("--only") + 1].split(",") if "--only" in run.command else []
    return not only or case.series.bench in only


def troubles(recording: Recording) -> list[str]:
    """List, each in a sentence, what should make a reader doubt the numbers."""
    found = machine.doubts(recording.environment["busy_percent"], [run.others for run in recording.runs])
    at_end = (recording.end or {}).get("busy_percent", 0.0)
    if at_end > QUIET_PERCENT:
        found.append(f"Other programs used {at_end:.0f} % of the processors at the end.")
    stolen = sum(run.stolen for run in recording.runs)
    share = stolen / max(
        1e-9, sum(run.seconds for run in recording.runs) * recording.environment["processors_of_the_machine"]
    )
    if share > STOLEN_SHARE:
        found.append(f"The hypervisor gave {100 * share:.1f} % of the CPU time to others.")
    if recording.end is None:
        found.append("The measurement was cut short; what was measured until then is shown.")
    wrong = sorted({(s.library, s.bench) for s in recording.samples if not s.verified})
    found += [
        f"Wrong data: {bench} with {recording.titles()[library]}; these samples are left out."
        for library, bench in wrong
    ]
    outcomes: dict[tuple[str, str, int, str], int] = {}
    for run in recording.runs:
        if run.outcome in {"failed", "time limit"}:
            key = (recording.titles()[run.library], run.program, run.ranks, run.outcome)
            outcomes[key] = outcomes.get(key, 0) + 1
    for (title, program, number_of_ranks, outcome), count in outcomes.items():
        what = "failed" if outcome == "failed" else "took longer than the time limit"
        found.append(
            f"{title}: {count} {'run' if count == 1 else 'runs'} of {program} on {ranks(number_of_ranks)} {what}; "
            "what was printed before is used."
        )
    found += _placements(recording)
    left = {recording.titles()[run.library] for run in recording.runs if run.left_behind}
    found += [f"{title} left processes behind, which were killed." for title in sorted(left)]
    return found


def _placements(recording: Recording) -> list[str]:
    """Say how many samples are left out because the processors were placed differently."""
    cases = stats.by_case(recording.samples)
    used = {case: placement.alike(samples) for case, samples in cases.items()}
    found = []
    without = sum(not samples for samples in used.values())
    if without:
        found.append(
            f"In {without} of {len(cases)} cases the distance between the processors changed during every run, so that "
            "nothing can be compared; more rounds may help."
        )
    every, kept = sum(map(len, cases.values())), sum(map(len, used.values()))
    if kept < every:
        times = [time for samples in cases.values() for sample in samples for time in sample.flag or ()]
        span = (
            f"a cache line took {number(min(times))} to {number(max(times))} us between them"
            if times
            else "how far is not known"
        )
        found.append(
            f"{every - kept} of {every} series of samples are left out, because the processors were nearer to each "
            f"other, or farther apart, than in the rest ({span})."
        )
    return found


def environment(recording: Recording) -> Table:
    """Give the machine and the libraries as a table."""
    data = recording.environment
    table = Table("Environment", ["what", "value"], words=2)
    machine = "virtual machine" if data["virtual_machine"] else "no virtual machine"
    table.rows = [
        ["processor", f"{data['cpu']}, {data['processors']} processors usable, {machine}"],
        ["caches", "; ".join(data["caches"]) or "unknown"],
        ["memory", f"{data['memory_mb']} MB, huge pages: {data['huge_pages'] or 'unknown'}"],
        ["system", f"{data['system']}, Linux {data['kernel']}"],
        ["mitigations", "; ".join(f"{name}: {state}" for name, state in data["mitigations"].items()) or "none"],
        ["compiler", data["compiler"]],
        ["variables", " ".join(f"{name}={value}" for name, value in data["variables"].items()) or "none"],
        ["begin", f"{data['time']}, load {data['load'][0]:.2f}"],
        ["end", f"{recording.end['time']}, load {recording.end['load'][0]:.2f}" if recording.end else "cut short"],
        ["rounds", str(data["options"]["rounds"])],
    ]
    for library in data["libraries"]:
        table.rows.append([library["title"], "; ".join([library["version"], *library["settings"]])])
    return table
