"""Figures of a recording, each as PNG and SVG: what a table shows, for the eye.

* the overview (`overview`), which comes first;
* time (or rate) against message size, one figure for each benchmark, form and metric, one panel for each number of
  ranks;
* the ratio of Limosa to the best other library for all collectives and sizes, as a map of colours;
* time and memory against the number of ranks;
* time against the number of posted receives and of unexpected messages.

Lines are medians, bands reach from quartile to quartile. Libraries have fixed colours and marks everywhere.
"""

import math
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limosa_lab import output, overview, stats
from limosa_lab.catalogue import COLLECTIVES, GROUPS
from limosa_lab.records import Recording
from limosa_lab.stats import Case, Results, Series
from limosa_lab.styles import number_ticks, size_ticks, style, time_ticks
from limosa_lab.wording import FORMS, bench_title, number, ranks, size

OVERVIEW = "Overview"
# The programs in the order of their groups.
ORDER = [program for group in GROUPS.values() for program in group]
# Parameters that are an axis of their own, and what is written below it.
COUNTED = {"posted": "posted receives", "unexpected": "unexpected messages", "partners": "partners talked to"}


# Units of time, in seconds: their axes show us, ms and s.
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def draw(recording: Recording, found: Results, folder: Path) -> dict[str, Path]:
    """Draw everything that the results allow into a folder; give the PNG file of each title, the overview first.

    The SVG files lie beside them.
    """
    titles = recording.titles()
    made: dict[str, Path] = {}
    first = overview.draw(recording, found)
    if first is not None:
        made[OVERVIEW] = _save(first, folder, "overview")
    for form, words in FORMS.items():
        figure_or_none = _heat_map(found, form)
        if figure_or_none is not None:
            made[f"Blocking collectives beside the best other library, {words}"] = _save(
                figure_or_none, folder, f"collectives-{form}-ratio"
            )
    by_series: dict[Series, list[Case]] = {}
    for case in found:
        by_series.setdefault(case.series, []).append(case)
    for series, cases in sorted(by_series.items(), key=lambda item: ORDER.index(item[0].program)):
        for axis, panels in _curves(cases):
            figure = _lines(series, axis, panels, found, titles)
            name = f"{series.bench}-{series.form}-{series.metric}" + ("" if axis == "bytes" else f"-{axis}")
            title = f"{bench_title(series.bench)}: {series.metric}, {FORMS[series.form]}"
            made[title if axis == "bytes" else f"{title}, by {COUNTED.get(axis, axis)}"] = _save(figure, folder, name)
    return made


Panels = dict[str, list[tuple[float, Case]]]


def _curves(cases: list[Case]) -> list[tuple[str, Panels]]:
    """Choose the horizontal axes for the cases of a series, with the panels: title to points."""
    made: list[tuple[str, Panels]] = []
    for axis in COUNTED:
        chosen = [case for case in cases if axis in dict(case.x)]
        if axis == "partners" and chosen:
            chosen = [case for case in chosen if case.ranks == max(case.ranks for case in chosen)]
        if len({_at(case, axis) for case in chosen}) > 1:
            made.append((axis, _panels(chosen, axis)))
    rest = [case for case in cases if not any(axis in dict(case.x) for axis in COUNTED)]
    for axis, fewest in (("bytes", 2), ("ranks", 3)):
        if len({_at(case, axis) for case in rest}) >= fewest:
            made.append((axis, _panels(rest, axis)))
            break
    return made


def _at(case: Case, axis: str) -> float:
    """Give the place of a case on an axis."""
    places: dict[str, float] = {"bytes": case.bytes, "ranks": case.ranks}
    return places[axis] if axis in places else float(dict(case.x)[axis])


def _panels(cases: Iterable[Case], axis: str) -> Panels:
    """Put the cases on panels: one for each number of ranks and set of parameters, except what the axis shows."""
    panels: Panels = {}
    for case in cases:
        words = [ranks(case.ranks)] if axis != "ranks" else []
        words += [f"{name} {value}" for name, value in case.x if name != axis]
        panels.setdefault(", ".join(words), []).append((_at(case, axis), case))
    return {title: sorted(points, key=lambda point: point[0]) for title, points in panels.items()}


def _lines(series: Series, axis: str, panels: Panels, found: Results, titles: dict[str, str]) -> Figure:
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(1.5 + 4.2 * columns, 0.8 + 3.2 * rows), squeeze=False, layout="constrained"
    )
    for axes, (title, points) in zip(grid.flat, panels.items(), strict=False):
        for name, written in titles.items():
            look = style(name)
            mine = [(at, found[case][name]) for at, case in points if name in found[case]]
            if mine:
                at = [point[0] for point in mine]
                axes.plot(at, [point[1].median for point in mine], markersize=4, label=written, **look)
                low, high = [point[1].lower for point in mine], [point[1].upper for point in mine]
                axes.fill_between(at, low, high, color=look["color"], alpha=0.2, linewidth=0)
        _scales(axes, axis, series, [at for at, _ in points])
        axes.set_title(title, fontsize="medium")
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    grid.flat[0].legend(fontsize="small")
    figure.suptitle(bench_title(series.bench).partition(" (")[0])
    return figure


def _scales(axes: Axes, axis: str, series: Series, at: list[float]) -> None:
    """Set up axes: powers of two for sizes and ranks, decades for times."""
    if axis == "bytes":
        axes.set_xscale("symlog", base=2, linthresh=1)
        size_ticks(axes, at)
        axes.set_xlabel("message size")
    else:
        axes.set_xscale("symlog", base=10 if axis in {"posted", "unexpected"} else 2, linthresh=1)
        axes.set_xticks(sorted(set(at)), [f"{value:g}" for value in sorted(set(at))])
        axes.set_xlabel(COUNTED.get(axis, axis))
    axes.minorticks_off()
    if series.unit == "%":
        axes.set_ylim(0, 105)
    elif axes.dataLim.ymax > 8 * axes.dataLim.ymin > 0:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if series.unit in TIMES:
        time_ticks(axes.yaxis, TIMES[series.unit])
    else:
        number_ticks(axes.yaxis)
    axes.set_ylabel("time" if series.unit in TIMES else f"{series.metric} [{series.unit}]")
    axes.grid(alpha=0.3)


def _heat_map(found: Results, form: str) -> Figure | None:
    """Draw the cost of all blocking collectives relative to the best other library; None if there is none."""
    costs = {
        (case.series.bench, case.ranks, case.bytes): cost
        for case, by in found.items()
        if case.series.bench in COLLECTIVES and case.series.form == form and (cost := stats.cost(case, by)) is not None
    }
    if not costs:
        return None
    lines = sorted({(COLLECTIVES.index(bench), count) for bench, count, _ in costs})
    sizes = sorted({length for _, _, length in costs})
    values = np.full((len(lines), len(sizes)), np.nan)
    for (bench, count, length), cost in costs.items():
        values[lines.index((COLLECTIVES.index(bench), count)), sizes.index(length)] = cost
    figure, axes = plt.subplots(figsize=(3.5 + 0.6 * len(sizes), 1.8 + 0.24 * len(lines)), layout="constrained")
    image = axes.imshow(np.log2(values), cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")
    axes.set_xticks(range(len(sizes)), [size(length) for length in sizes], rotation=45)
    axes.set_yticks(range(len(lines)), [f"{COLLECTIVES[index]} {count}" for index, count in lines], fontsize="small")
    for row, column in np.ndindex(values.shape):
        value = values[row, column]
        if np.isfinite(value):
            colour = "white" if abs(np.log2(value)) > 2 else "black"
            axes.text(column, row, number(float(f"{value:.2g}")), ha="center", va="center", fontsize=6, color=colour)
    bar = figure.colorbar(image, ax=axes, ticks=[-3, -2, -1, 0, 1, 2, 3])
    bar.ax.set_yticklabels(["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    bar.set_label("time of Limosa / time of the best other library")
    axes.set_title("Blocking collectives", fontsize="medium")
    return figure


def _save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as PNG and SVG, the latter the same bytes each time and its text as text; give the PNG."""
    png = folder / f"{name}.png"
    with output.writing(png) as file:
        figure.savefig(file, dpi=120)
    with (
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}),
        output.writing(png.with_suffix(".svg")) as file,
    ):
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return png
