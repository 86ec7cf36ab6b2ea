"""What was measured, as numbers, tables and sentences. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean

from limosa_lab.java_study import measure, source
from limosa_lab.java_study.measure import C_NODES, JAVA, JAVA_NODES, JAVA_THREADS, KERNELS, MPJ, C
from limosa_lab.study_results import Results
from limosa_lab.tables import Table
from limosa_lab.wording import number, seconds, size
from limosa_lab.wording import ranks as written

#: Series of the suite, and the operations of the source behind `send`.
OPERATIONS = (
    *("barrier", "bcast", "scatter", "gather", "allgather", "alltoall"),
    *("reduce", "allreduce", "reduce_scatter", "scan"),
)
#: Series of kernels and what they are beside in the source.
BESIDE = {C: "ScaMPI", JAVA: "MPJ/Ibis"}


def read(folder: Path) -> Results:
    """Read what a study has left in a folder."""
    return Results(json.loads((folder / measure.RESULTS).read_text()))


def answer(results: Results) -> str:
    """Say in a sentence what was found."""
    said = []
    c, java = (results.medians("send", series, "bytes") for series in (C, measure.ARRAYS))
    if 8 in c and 8 in java:
        said.append(f"a message of 8 B takes {seconds(java[8])} in Java and {seconds(c[8])} in C")
    elif 16 in c and 16 in java:
        said.append(f"a message of 16 B takes {seconds(java[16])} in Java and {seconds(c[16])} in C")
    for other, text in (
        (C, "kernels on {ranks} ranks take {factor} times as long in Java as in C"),
        (JAVA_THREADS, "as processes they take {factor} times as long as with threads as ranks"),
    ):
        ranks, factors = _compared(results, JAVA, other)
        if factors:
            said.append(text.format(ranks=ranks, factor=number(geometric_mean(factors))))
    if not said:
        return "Too little was measured for a sentence."
    text = "; ".join(said)
    return text[0].upper() + text[1:] + "."


def _compared(results: Results, series: str, other: str) -> tuple[int, list[float]]:
    """Give the most ranks at which all kernels were run, and the ratios of two series there."""
    ranks = max((ranks for bench, _ in kernels(results) for _, ranks in results.places(bench)), default=0)
    ratios = (_ratio(results, bench, (series, ranks), (other, ranks)) for bench, _ in kernels(results))
    return ranks, [ratio for ratio in ratios if ratio]


def kernels(results: Results) -> Iterator[tuple[str, int]]:
    """Give the kernels that were run, by their names with the size, and the index of the size."""
    for index, letter in enumerate("ABC"):
        for kernel in KERNELS:
            if results.series(f"{kernel} {letter}"):
                yield f"{kernel} {letter}", index


def _ratio(results: Results, bench: str, first: tuple[str, int], second: tuple[str, int]) -> float | None:
    """Give the ratio of the times of a kernel with two series at numbers of ranks."""
    times = [results.median(bench, series, ranks, 0) for series, ranks in (first, second)]
    return times[0] / times[1] if times[0] and times[1] else None


def operation(results: Results, name: str, ranks: int) -> Table:
    """Give the times of one operation, and by how much each series takes longer than C."""
    names = results.series(name)
    title = "Half a round trip" if name == "send" else f"{name}, {ranks} ranks"
    table = Table(f"{title}: least time (times C's)", ["size", *names])
    for length, count in results.places(name):
        if count != ranks:
            continue
        c = results.median(name, C, ranks, length)
        cells = []
        for series in names:
            value = results.median(name, series, ranks, length)
            beside = f" ({number(value / c)})" if value and c and series != C else ""
            cells.append("-" if value is None else seconds(value) + beside)
        table.rows.append([size(length), *cells])
    return table


def speed_ups(results: Results) -> Table:
    """Give the times of the kernels, with speed-up and efficiency over one rank."""
    run = {series for bench, _ in kernels(results) for series in results.series(bench)}
    names = [name for name in (C, JAVA, JAVA_THREADS, MPJ) if name in run]
    table = Table("Kernels: time, speed-up, efficiency", ["kernel", "ranks", *names], words=1)
    for bench, _ in kernels(results):
        for ranks in sorted({ranks for _, ranks in results.places(bench)}):
            cells = []
            for series in names:
                value = results.median(bench, series, ranks, 0)
                gain = _ratio(results, bench, (series, 1), (series, ranks))
                more = f", {number(gain)}, {100 * gain / ranks:.0f} %" if gain and ranks > 1 else ""
                cells.append("-" if value is None else f"{seconds(value)}{more}")
            table.rows.append([bench, str(ranks), *cells])
    return table


Pair = Callable[[str], tuple[tuple[str, int], tuple[str, int]]]


def ratios(results: Results, title: str, pair: Pair, published: dict[str, source.Ratios]) -> Table:
    """Give ratios of two ways of running each kernel, beside the source's; `pair` gives the ways of C and Java."""
    columns = [f"{name}{what}" for series in (C, JAVA) for name, what in ((series, ""), (BESIDE[series], " (source)"))]
    table = Table(title, ["kernel", *columns], words=1)
    for bench, index in kernels(results):
        cells: list[str] = []
        for series in (C, JAVA):
            value = _ratio(results, bench, *pair(series))
            cells += ["-" if value is None else f"{value:.2f}"]
            cells += [f"{published[BESIDE[series]][bench.split()[0]][index]:.2f}"]
        if {cells[0], cells[2]} != {"-"}:
            table.rows.append([bench, *cells])
    return table


def all_ratios(results: Results) -> list[Table]:
    """Give the ratios of the source's tables 6 to 8; above 1 the second way is faster."""
    apart = {C: C_NODES, JAVA: JAVA_NODES}
    most = max((ranks for bench, _ in kernels(results) for _, ranks in results.places(bench)), default=1)
    return [
        ratios(
            results,
            f"Table 6: {most} processes, each on a node of its own, over as many on one node",
            lambda series: ((apart[series], most), (series, most)),
            source.TABLE_6,
        ),
        ratios(
            results,
            "Table 7: one process on a node over two",
            lambda series: ((series, 1), (series, 2)),
            source.TABLE_7,
        ),
        ratios(
            results,
            "Table 8: two processes on a node over four",
            lambda series: ((series, 2), (series, 4)),
            source.TABLE_8,
        ),
    ]


def threads(results: Results) -> Table:
    """Give how much longer processes take than threads as ranks."""
    found = [bench for bench, _ in kernels(results)]
    counts = sorted({ranks for bench in found for _, ranks in results.places(bench)})
    table = Table("Java: time of processes over that of threads", ["kernel", *(written(n) for n in counts)], words=1)
    for bench in found:
        made = [_ratio(results, bench, (JAVA, n), (JAVA_THREADS, n)) for n in counts]
        table.rows.append([bench, *("-" if value is None else f"{value:.2f}" for value in made)])
    return table


def tables(results: Results) -> list[Table]:
    """Give all tables that have rows."""
    made = [operation(results, "send", 2), speed_ups(results), *all_ratios(results), threads(results)]
    for name in OPERATIONS:
        made += [operation(results, name, ranks) for ranks in sorted({ranks for _, ranks in results.places(name)})]
    return [table for table in made if table.rows]
