"""The promises on performance, each with what was measured and whether it is met. Pure functions of the results.

A row that needs a number which is not in the recording is "not measured", never "met". Rows about many cases (all sizes
of a benchmark, all collectives) name the worst of them and how many miss the target.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from limosa_lab import stats
from limosa_lab.catalogue import COLLECTIVES
from limosa_lab.records import Recording
from limosa_lab.stats import LIMOSA, Case, Results, Summary
from limosa_lab.tables import Table
from limosa_lab.wording import number, ranks, size

KB = 1 << 10
MB = 1 << 20

SMALL = KB  # bytes up to which a collective counts as small
FLAG_FACTOR = 1.4
BANDWIDTH_FACTOR = 1.3
BANDWIDTH_SIZES = (64 * KB, 256 * KB, MB, 4 * MB)
COLLECTIVES_MEAN = 0.6
CROWDED = 0.5  # small collectives with more ranks than processors
CPU_BLOCKED = 0.01  # processors, of all blocked ranks together
WAKEUP_US = 60.0
DISTURBED = 2.0
OVERLAP = 90.0
MEMORY_MB = 3.0
START_S = 0.05


@dataclass
class Row:
    """A promise.

    Attributes
    ----------
    what, target
        What is promised, in words and as a number.
    measured
        Limosa's number; empty if it was not measured.
    peers
        The same number for each peer, where it makes sense.
    met
        The verdict; None if it was not measured.
    note
        Which cases miss the target.

    """

    what: str
    target: str
    measured: str = ""
    peers: dict[str, str] = field(default_factory=dict)
    met: bool | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return {None: "not measured", True: "met", False: "NOT MET"}[self.met]


def text(recording: Recording, found: Results, width: int | None, colour: bool) -> str:
    """Give all promises for a terminal: the table, and below it what misses."""
    promises = rows(recording, found)
    missed = "".join(f"  {row.what}: {row.note}\n" for row in promises if row.note)
    return table(recording, promises, with_misses=False).text(width, colour) + (
        f"\nMissed, the worst first:\n{missed}" if missed else ""
    )


def markdown(recording: Recording, found: Results) -> str:
    """Give all promises as Markdown."""
    return table(recording, rows(recording, found), with_misses=True).markdown()


def table(recording: Recording, promises: Sequence[Row], with_misses: bool) -> Table:
    """Give promises as a table, with or without a column of what misses."""
    titles = recording.titles()
    peers = [name for name in recording.libraries() if name != LIMOSA]
    made = Table("Budgets", ["what", "budget", "Limosa", *(titles[name] for name in peers), "verdict"], words=2)
    for row in promises:
        numbers = [row.peers.get(name, "-") for name in peers]
        made.rows.append([row.what, row.target, row.measured or "-", *numbers, row.verdict])
    if with_misses:
        made.columns.append("misses")
        for cells, row in zip(made.rows, promises, strict=True):
            cells.append(row.note or "-")
    return made


def rows(recording: Recording, found: Results) -> list[Row]:
    """Give all promises, in the order of the design."""
    processors = int(recording.environment["processors"])
    return [
        _flag(found),
        *(_faster(found, bench, form) for bench in ("pingpong", "pingping") for form in ("hot", "cold")),
        *(_bandwidth(found, length) for length in BANDWIDTH_SIZES),
        *_collectives(found, processors),
        *_waiting(found),
        *_independence(found),
        *_scale(found),
    ]


# --- the rows
# ----------------------------------------------------------------------------------------------------------------------


def _flag(found: Results) -> Row:
    row = Row("8-byte ping-pong, compared with a flag that two processors set in turn", f"<= {FLAG_FACTOR} x flag")
    bounce = [
        by[LIMOSA]
        for case, by in found.items()
        if case.series.bench == "flag" and case.series.unit == "us" and LIMOSA in by
    ]
    pingpong = _one(found, "pingpong", "latency", length=8)
    if bounce and pingpong and LIMOSA in pingpong:
        flag = bounce[0].median
        factor = pingpong[LIMOSA].median / flag
        row.measured = f"{number(factor)} x ({number(pingpong[LIMOSA].median)} of {number(flag)} us)"
        row.peers = {name: f"{number(summary.median / flag)} x" for name, summary in pingpong.items()}
        row.met = factor <= FLAG_FACTOR
    return row


def _faster(found: Results, bench: str, form: str) -> Row:
    chosen = _cases(
        found, lambda case: (case.series.bench, case.series.form, case.series.metric) == (bench, form, "latency")
    )
    return _all_below(
        Row(f"{bench}, {form}, every size", "< 1 x best other"), chosen, 1.0, lambda case: size(case.bytes), strict=True
    )


def _bandwidth(found: Results, length: int) -> Row:
    row = Row(f"bandwidth at {size(length)} (ping-pong, hot)", f">= {BANDWIDTH_FACTOR} x best other")
    for case, by in found.items():
        series = case.series
        if (series.bench, series.form, series.metric, case.bytes) == ("pingpong", "hot", "bandwidth", length):
            value = stats.ratio(case, by)
            if value is not None:
                row.measured = f"{number(value)} x ({number(by[LIMOSA].median)} {series.unit})"
                row.peers = {name: number(summary.median) for name, summary in by.items()}
                row.met = value >= BANDWIDTH_FACTOR
    return row


def _collectives(found: Results, processors: int) -> list[Row]:
    def label(case: Case) -> str:
        return f"{case.series.bench} {ranks(case.ranks)} {size(case.bytes)} {case.series.form}"

    def blocking(case: Case) -> bool:
        return (
            case.series.bench in COLLECTIVES
            and case.ranks in {2, 4, 8}
            and (case.bytes >= 8 or case.series.bench == "barrier")
        )

    every = _cases(found, blocking)
    crowded = _cases(found, lambda case: blocking(case) and case.ranks == 8 and case.bytes <= SMALL)
    mean = Row("blocking collectives on 2, 4, 8 ranks, geometric mean of all", f"<= {COLLECTIVES_MEAN} x best other")
    if every:
        value = stats.geometric_mean([cost for _, cost in every])
        mean.measured, mean.met = f"{number(value)} x ({len(every)} cases)", value <= COLLECTIVES_MEAN
    made = [
        _all_below(Row("blocking collectives on 2, 4, 8 ranks, each", "<= 1 x best other"), every, 1.0, label),
        mean,
        _all_below(
            Row(
                f"small collectives (to {size(SMALL)}) of 8 ranks on {processors} processors, each",
                f"<= {CROWDED} x best other",
            ),
            crowded,
            CROWDED,
            label,
        ),
    ]
    background = _cases(found, lambda case: case.series.program == "icollectives")
    return [
        *made,
        _all_below(Row("non-blocking and persistent collectives, each", "<= 1 x best other"), background, 1.0, label),
    ]


def _waiting(found: Results) -> list[Row]:
    cpu = Row("CPU time of all blocked ranks together", f"< {CPU_BLOCKED:.0%} of one")
    blocked = _cases_of(
        found, lambda case: case.series.bench in {"quiet_recv", "quiet_barrier"} and case.series.metric == "cpu"
    )
    if any(LIMOSA in by for by in blocked.values()):
        worst = _largest(blocked)
        cpu.measured = f"{100 * worst[LIMOSA]:.2g} %"
        cpu.peers = {name: f"{100 * value:.3g} %" for name, value in worst.items()}
        cpu.met = worst[LIMOSA] < CPU_BLOCKED
    wakeup = Row("a sleeping receiver is woken (median)", f"<= {WAKEUP_US:.0f} us")
    _single(wakeup, _one(found, "quiet_wakeup", "wakeup", length=8), WAKEUP_US, "us")
    return [cpu, wakeup]


def _independence(found: Results) -> list[Row]:
    made = []
    texts = {
        "independence_send": "MPI_Send to a partner that has posted and computes",
        "independence_receive": "MPI_Recv from a partner that has started and computes",
        "independence_iallreduce": "MPI_Iallreduce whose other rank computes",
        "independence_ibcast": "MPI_Ibcast whose root computes",
    }
    for bench, what in texts.items():
        chosen = {case: by for case, by in found.items() if (case.series.bench, case.series.metric) == (bench, "ratio")}
        row = Row(f"{what}, every size", f"<= {DISTURBED:g} x undisturbed")
        if any(LIMOSA in by for by in chosen.values()):
            worst = _largest(chosen)
            row.measured, row.met = f"{number(worst[LIMOSA])} x", worst[LIMOSA] <= DISTURBED
            row.peers = {name: f"{number(value)} x" for name, value in worst.items()}
            missed = [
                (by[LIMOSA].median, size(case.bytes))
                for case, by in chosen.items()
                if LIMOSA in by and by[LIMOSA].median > DISTURBED
            ]
            row.note = _note(missed)
        made.append(row)
    overlap = Row("overlap of transfers with computation, the other processor free, every size", f">= {OVERLAP:.0f} %")
    free = _cases_of(
        found,
        lambda case: case.series.metric == "overlap" and dict(case.x).get("computing") in {"sender", "receiver", "one"},
    )
    if any(LIMOSA in by for by in free.values()):
        worst = {name: min(by[name].median for by in free.values() if name in by) for name in _names(free)}
        overlap.measured, overlap.met = f"{number(worst[LIMOSA])} %", worst[LIMOSA] >= OVERLAP
        overlap.peers = {name: f"{number(value)} %" for name, value in worst.items()}
        low = [
            (by[LIMOSA].median, f"{case.series.bench} {dict(case.x)['computing']} {size(case.bytes)}")
            for case, by in free.items()
            if LIMOSA in by
        ]
        overlap.note = _note(sorted(item for item in low if item[0] < OVERLAP), unit="%")
    return [*made, overlap]


def _scale(found: Results) -> list[Row]:
    memory = Row(
        "memory inside the library, each of 8 ranks that have all talked to each other", f"<= {MEMORY_MB:g} MB"
    )
    _single(memory, _one(found, "memory", "growth", ranks=8, x={"kind": "pss", "partners": 7}), MEMORY_MB, "MB")
    start = Row("start and end of a job of 8 ranks", f"< {START_S:g} s")
    _single(start, _one(found, "start", "time", ranks=8), START_S, "s")
    return [memory, start]


# --- parts of them
# ---------------------------------------------------------------------------------------------------------------------


def _cases_of(found: Results, wanted: Callable[[Case], bool]) -> Results:
    return {case: by for case, by in found.items() if wanted(case)}


def _cases(found: Results, wanted: Callable[[Case], bool]) -> list[tuple[Case, float]]:
    """Give the wanted cases that Limosa and a peer have, with the cost of Limosa relative to the best peer."""
    costs = [(case, stats.cost(case, by)) for case, by in found.items() if wanted(case)]
    return [(case, cost) for case, cost in costs if cost is not None]


def _one(
    found: Results,
    bench: str,
    metric: str,
    ranks: int | None = None,
    length: int | None = None,
    x: dict[str, Any] | None = None,
) -> dict[str, Summary] | None:
    """Give the summaries of the first hot case that fits."""
    for case, by in found.items():
        fits = (case.series.bench, case.series.form, case.series.metric) == (bench, "hot", metric)
        if fits and ranks in {None, case.ranks} and length in {None, case.bytes} and x in (None, dict(case.x)):
            return by
    return None


def _names(cases: Results) -> set[str]:
    return {name for by in cases.values() for name in by}


def _largest(cases: Results) -> dict[str, float]:
    """Give the largest median of each library."""
    return {name: max(by[name].median for by in cases.values() if name in by) for name in _names(cases)}


def _single(row: Row, by_library: dict[str, Summary] | None, most: float, unit: str) -> None:
    """Fill in a row about one median that must not exceed a number."""
    if by_library is None or LIMOSA not in by_library:
        return
    row.measured = f"{number(by_library[LIMOSA].median)} {unit}"
    row.peers = {name: f"{number(summary.median)} {unit}" for name, summary in by_library.items()}
    row.met = by_library[LIMOSA].median <= most


def _all_below(
    row: Row, costs: list[tuple[Case, float]], most: float, label: Callable[[Case], str], strict: bool = False
) -> Row:
    """Fill in a row about many cases whose cost relative to the best peer must not exceed a number."""
    if costs:
        missed = [(cost, label(case)) for case, cost in costs if cost > most or (strict and cost == most)]
        worst = max(cost for _, cost in costs)
        row.measured = f"worst {number(worst)} x; {len(costs) - len(missed)} of {len(costs)} met"
        row.met = not missed
        row.note = _note(sorted(missed, reverse=True))
    return row


def _note(missed: Iterable[tuple[float, str]], unit: str = "x") -> str:
    """Name the worst misses."""
    listed = list(missed)
    texts = [f"{label} ({number(value)} {unit})" for value, label in listed[:5]]
    return ", ".join(texts) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
