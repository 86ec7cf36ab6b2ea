"""What was measured, as numbers, tables and sentences. Pure functions."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path

from limosa_lab.octave_study import measure
from limosa_lab.study_results import Results
from limosa_lab.tables import Table
from limosa_lab.wording import number, seconds, size


def read(folder: Path) -> Results:
    """Read what a study has left in a folder."""
    return Results(json.loads((folder / measure.RESULTS).read_text()))


def answer(results: Results) -> str:
    """Say in two sentences what was found."""
    said = []
    short = {series: results.medians("pingpong", series, "bytes") for series in results.series("pingpong")}
    if all(8 in short.get(series, {}) for series in ("C", measure.MPITB, measure.MODERN)):
        c, mpitb, modern = (short[series][8] for series in ("C", measure.MPITB, measure.MODERN))
        said.append(
            f"Half a round trip of 8 B takes {seconds(modern)} with Limosa's functions for Octave, {seconds(mpitb)} "
            f"with MPITB's, and {seconds(c)} in C."
        )
    memory, original = (short.get(measure.MATLABMPI[way], {}).get(8) for way in ("memory", "original"))
    if memory and original:
        said.append(
            f"MatlabMPI's messages by memory take {seconds(memory)}, {number(original / memory)} times less than by "
            "its original scheme."
        )
    return " ".join(said) or "Too little was measured for a sentence."


def messages(results: Results) -> Table:
    """Give half round trips: median, and range of all samples."""
    names = results.series("pingpong")
    table = Table("Half a round trip between 2 ranks: median (range)", ["bytes", *names])
    found = {name: results.samples("pingpong", name, "bytes") for name in names}
    for length in sorted({length for of_name in found.values() for length in of_name}):
        table.rows.append([size(length), *(_cell(found[name].get(length)) for name in names)])
    return table


def bandwidth(results: Results) -> Table:
    """Give the bandwidth of long messages, and its ratio to C."""
    names = results.series("pingpong")
    table = Table("Bandwidth in GB/s (part of C's)", ["bytes", *names])
    found = {name: results.medians("pingpong", name, "bytes") for name in names}
    for length in sorted({length for of_name in found.values() for length in of_name if length >= 1 << 16}):
        row = [size(length)]
        c = found.get("C", {}).get(length)
        for name in names:
            value = found[name].get(length)
            part = f" ({100 * c / value:.0f} %)" if c and value and name != "C" else ""
            row.append("-" if value is None else number(length / value / 1e9) + part)
        table.rows.append(row)
    return table


def broadcasts(results: Results) -> Table:
    """Give broadcasts of 1 KB by the number of ranks."""
    names = results.series("bcast")
    table = Table("Broadcast of 1 KB, until all ranks have it: median (range)", ["ranks", *names])
    found = {name: results.samples("bcast", name, "ranks") for name in names}
    for ranks in sorted({ranks for of_name in found.values() for ranks in of_name}):
        table.rows.append([str(ranks), *(_cell(found[name].get(ranks)) for name in names)])
    return table


def mandelbrot(results: Results) -> Table:
    """Give time, speed-up and parallel efficiency of the Mandelbrot set."""
    table = Table("Mandelbrot set in Octave", ["ranks", "time", "speed-up", "efficiency"])
    found = results.medians("mandelbrot", measure.MODERN, "ranks")
    for ranks, value in found.items():
        gain = found[1] / value if 1 in found else None
        cells = ["-", "-"] if gain is None else [number(gain), f"{100 * gain / ranks:.0f} %"]
        table.rows.append([str(ranks), seconds(value), *cells])
    return table


#: What a program with distributed arrays is about at a size, its work, and the unit of work in a second.
WORK: dict[str, tuple[Callable[[int], str], Callable[[int], float], str]] = {
    "stream": (lambda n: f"STREAM, {n} elements", lambda n: 64.0 * n, "GB/s"),
    "hpl": (lambda n: f"HPL (LU), {n} x {n}", lambda n: 2 / 3 * n**3, "GFLOP/s"),
    "fft": (lambda n: f"FFT, {n} elements", lambda n: 5 * n * math.log2(n), "GFLOP/s"),
    "agg": (lambda n: f"agg, {size(n)}", float, "GB/s"),
}


def programs(results: Results) -> Table:
    """Give the programs with distributed arrays: median of the time, and the rate."""
    names = list(dict.fromkeys(name for bench in measure.PROGRAMS for name in results.series(bench)))
    table = Table("Programs with distributed arrays: median, and rate", ["program", "ranks", *names])
    for bench, (title, work, unit) in WORK.items():
        for length, ranks in results.places(bench):
            cells = []
            for name in names:
                value = results.median(bench, name, ranks, length)
                cells.append("-" if not value else f"{seconds(value)} ({number(work(length) / value / 1e9)} {unit})")
            table.rows.append([title(length), str(ranks), *cells])
    return table


def tables(results: Results) -> list[Table]:
    """Give all tables that have rows."""
    made = [messages(results), bandwidth(results), broadcasts(results), mandelbrot(results), programs(results)]
    return [table for table in made if table.rows]


def _cell(values: list[float] | None) -> str:
    if not values:
        return "-"
    return f"{seconds(statistics.median(values))} ({seconds(min(values))} - {seconds(max(values))})"
