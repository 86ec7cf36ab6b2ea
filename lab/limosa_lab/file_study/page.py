"""The report: text for a terminal, and one page of HTML with the figures in it."""

from __future__ import annotations

import functools
import io
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limosa_lab import html_page
from limosa_lab.file_study import costs, measure, schemes
from limosa_lab.file_study.costs import Cost
from limosa_lab.file_study.schemes import Shape
from limosa_lab.styles import size_ticks, time_ticks
from limosa_lab.tables import Table
from limosa_lab.wording import seconds, size

#: Ranks per host and numbers of ranks of the simulation: those of the paper.
PER_HOST = 32
SIMULATED = tuple(2**power for power in range(1, 14))
#: What the paper found: how many times longer a plain broadcast in the shared file system took.
PAPER = {1024: 14.3, 2048: 34.0}
#: Bytes of the arrays that are gathered.
ARRAYS = {"1 MB": 1 << 20, "1 GB": 1 << 30}

INTRODUCTION = (
    "Messages that travel as files: measured on this machine, and simulated for more hosts than there are here. A "
    "reference program writes a message file and a lock file and looks for locks every millisecond. Figures marked "
    '"simulated" come from a model whose costs are listed below, measured ones and assumed ones.'
)


class Results:
    """What was measured."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.samples = [sample for sample in found["samples"] if "seconds" in sample]
        self.troubles = [sample for sample in found["samples"] if "trouble" in sample]
        self.costs = {name: Cost(**cost) for name, cost in found["costs"].items()}
        self.operations: dict[str, float] = found["operations"]
        self.environment: dict[str, Any] = found["environment"]

    def times(self, bench: str, series: str, axis: str) -> dict[int, float]:
        """Give the medians over all rounds, by bytes or by ranks."""
        chosen: dict[int, list[float]] = {}
        for sample in self.samples:
            if (sample["bench"], sample["series"]) == (bench, series):
                chosen.setdefault(sample[axis], []).extend(sample["seconds"])
        return {at: statistics.median(values) for at, values in sorted(chosen.items()) if values}

    def series(self, bench: str) -> list[str]:
        """Give the names of the series, in the order of their runs."""
        return list(dict.fromkeys(sample["series"] for sample in self.samples if sample["bench"] == bench))


def read(folder: Path) -> Results:
    """Read what a study has left in a folder."""
    return Results(json.loads((folder / measure.RESULTS).read_text()))


def answer(results: Results) -> str:
    """Say in a sentence what was found."""
    parts = []
    for kind in (measure.MEMORY, measure.DISK):
        plain = results.times("pingpong", f"reference, {kind}", "bytes")
        own = results.times("pingpong", f"files, {kind}", "bytes")
        common = sorted(plain.keys() & own.keys())
        if common:
            small = common[0]
            parts.append(
                f"A message of {size(small)} by files ({kind}) takes {seconds(own[small])}, "
                f"{plain[small] / own[small]:.1f} times less than with the reference ({seconds(plain[small])})."
            )
    ratio = advantage(results)[1024]
    parts.append(
        f"Simulated for 1024 processes on {1024 // PER_HOST} hosts, a node-aware broadcast by files of the hosts takes "
        f"{ratio:.1f} times less than a plain one in a shared file system (a published measurement: {PAPER[1024]})."
    )
    return " ".join(parts)


@functools.cache
def simulated(results: Results) -> dict[str, dict[int, schemes.Outcome]]:
    """Simulate all broadcasts of 32 bytes."""
    model = costs.costs(results.costs)
    return {
        name: {ranks: broadcast(Shape(ranks, PER_HOST), model, 32) for ranks in SIMULATED}
        for name, broadcast in schemes.BROADCASTS.items()
    }


def advantage(results: Results) -> dict[int, float]:
    """Give the time of a plain broadcast by shared files divided by that of a node-aware one by files of the hosts."""
    found = simulated(results)
    plain, aware = found["central files"], found["local files, node-aware"]
    return {ranks: plain[ranks].seconds / aware[ranks].seconds for ranks in SIMULATED}


def validation(results: Results) -> Table | None:
    """Compare broadcasts that were run with what the model says of them."""
    measured = {name: results.times("bcast", name, "ranks") for name in ("plain", "node-aware")}
    message = results.times("pingpong", f"files, {measure.MEMORY}", "bytes").get(32)
    inside = results.times("pingpong", "shared memory", "bytes").get(32)
    if message is None or inside is None or not measured["plain"]:
        return None
    processors = results.environment["processors"]
    table = Table(
        "Broadcasts of 32 bytes on imitated hosts of this machine: measured, and by the model",
        ["ranks", "per host", "plain", "model", "node-aware", "model"],
    )
    for ranks, plain in measured["plain"].items():
        shape = Shape(ranks, measure.per_host(ranks))
        said = [schemes.broadcast_here(shape, message, inside, processors, aware) for aware in (False, True)]
        aware = measured["node-aware"].get(ranks)
        cells = [seconds(plain), seconds(said[0]), seconds(aware) if aware else "-", seconds(said[1])]
        table.rows.append([str(ranks), str(shape.per_host), *cells])
    return table


def point_to_point(results: Results) -> Table:
    """Give the times of messages by length."""
    names = results.series("pingpong")
    found = {name: results.times("pingpong", name, "bytes") for name in names}
    table = Table("Half a round trip between two processes, measured", ["bytes", *names], words=0)
    for length in sorted({length for times in found.values() for length in times}):
        cells = [seconds(found[name][length]) if length in found[name] else "-" for name in names]
        table.rows.append([size(length), *cells])
    return table


def broadcasts(found: dict[str, dict[int, schemes.Outcome]]) -> Table:
    """Give the simulated broadcasts."""
    table = Table(f"Broadcast of 32 bytes, simulated, {PER_HOST} processes per host", ["processes", *found])
    for ranks in SIMULATED:
        table.rows.append([str(ranks), *(seconds(found[name][ranks].seconds) for name in found)])
    return table


def load(found: dict[str, dict[int, schemes.Outcome]]) -> Table:
    """Give what the broadcasts cost the shared file system."""
    names = [name for name in found if name.endswith(("files", "node-aware")) and "network" not in name]
    table = Table("Requests to the shared file system during that broadcast, simulated", ["processes", *names])
    for ranks in SIMULATED:
        table.rows.append([str(ranks), *(f"{found[name][ranks].central_requests:,}" for name in names)])
    return table


def aggregation(results: Results) -> Table:
    """Give the simulated aggregations."""
    model = costs.costs(results.costs)
    columns = [f"{name}, {kind} files" for name in ARRAYS for kind in ("central", "local")]
    table = Table("Aggregation of a distributed array by a binary tree, simulated", ["processes", *columns])
    for ranks in SIMULATED:
        shape = Shape(ranks, PER_HOST)
        cells = [
            seconds(schemes.aggregate(shape, model, total, central).seconds)
            for total in ARRAYS.values()
            for central in (True, False)
        ]
        table.rows.append([str(ranks), *cells])
    return table


def origins(results: Results) -> Table:
    """Give the costs of the simulation and where they come from."""
    table = Table("Costs of the simulation", ["cost", "seconds", "origin"], words=3)
    for name, cost in results.costs.items():
        table.rows.append([name, f"{cost.seconds:.3g}", cost.origin])
    return table


def operations(results: Results) -> Table | None:
    """Give the system calls per message."""
    if not results.operations:
        return None
    table = Table(
        "System calls about files per message of 32 bytes (both processes), counted", ["call", "per message"], words=1
    )
    for call, number in results.operations.items():
        table.rows.append([call, f"{number:.2f}"])
    return table


@functools.cache
def tables(results: Results) -> list[Table]:
    """Give all tables."""
    found = simulated(results)
    made = [
        point_to_point(results),
        operations(results),
        validation(results),
        broadcasts(found),
        load(found),
        aggregation(results),
        origins(results),
    ]
    return [table for table in made if table is not None]


def text(results: Results, width: int | None = None, colour: bool = False) -> str:
    """Give the report for a terminal."""
    parts = [table.text(width, colour) for table in tables(results)]
    parts += [f"warning: {t['bench']}, {t['series']}, {t['ranks']} ranks: {t['trouble']}\n" for t in results.troubles]
    return "\n".join([*parts, answer(results) + "\n"])


def _figure(draw: Callable[[Any], None]) -> str:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    draw(axes)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    out = io.StringIO()
    figure.savefig(out, format="svg")
    plt.close(figure)
    svg = out.getvalue()
    return svg[svg.index("<svg") :]


def figures(results: Results) -> dict[str, str]:
    """Draw the figures as SVG."""
    found, gains = simulated(results), advantage(results)

    def messages(axes: Any) -> None:
        names = results.series("pingpong")
        for name in names:
            times = results.times("pingpong", name, "bytes")
            axes.loglog(list(times), list(times.values()), marker="o", markersize=3, label=name)
        size_ticks(axes, [sample["bytes"] for sample in results.samples if sample["bench"] == "pingpong"])
        time_ticks(axes.yaxis)

    def times(axes: Any) -> None:
        for name, outcomes in found.items():
            line = "--" if "node-aware" in name else "-"
            axes.loglog(list(outcomes), [outcome.seconds for outcome in outcomes.values()], line, label=name)
        axes.set_xlabel("processes (simulated)")
        time_ticks(axes.yaxis)

    def ratios(axes: Any) -> None:
        axes.loglog(list(gains), list(gains.values()), label="simulated")
        axes.loglog(list(PAPER), list(PAPER.values()), "x", label="published")
        axes.set_xlabel("processes")
        axes.set_ylabel("plain, central / node-aware, local")

    return {
        "Half a round trip, measured": _figure(messages),
        "Broadcast of 32 bytes, simulated": _figure(times),
        "What knowing the hosts gains, simulated": _figure(ratios),
    }


def page(results: Results) -> str:
    """Give the report as a page of HTML."""
    drawn = figures(results)
    parts = ["<h1>Messages by files</h1>", html_page.paragraph(answer(results), "answer")]
    parts += [html_page.paragraph(INTRODUCTION, "small")]
    parts += [
        html_page.paragraph(f"{t['bench']}, {t['series']}, {t['ranks']} ranks: {t['trouble']}", "doubt")
        for t in results.troubles
    ]
    parts += [html_page.figure(title, svg) for title, svg in drawn.items()]
    parts += [html_page.table(table) for table in tables(results)]
    environment = results.environment
    parts.append(
        html_page.paragraph(f"{environment['cpu']}, {environment['processors']} processors, {environment['time']}")
    )
    return html_page.document("Messages by files", parts)


def write(results: Results, folder: Path) -> list[Path]:
    """Write `report.html` and `report.txt`; give the files."""
    made = [folder / "report.html", folder / "report.txt"]
    made[0].write_text(page(results))
    made[1].write_text(text(results))
    return made
