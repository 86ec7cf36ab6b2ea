"""The figures of a study as SVG: the first picture, and the thesis's own figures. Pure functions of the results."""

from __future__ import annotations

import math
from collections.abc import Callable

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limosa_lab import styles
from limosa_lab.study.plan import MODULES
from limosa_lab.study.results import (
    MICRO,
    REFERENCE,
    Contender,
    Spread,
    Times,
    contenders,
    curve,
    least_squares,
    micro,
    speedup,
)
from limosa_lab.study.tables import TITLES, mesh_of, meshes, step_and_exchange
from limosa_lab.study.verdict import APPLICATIONS, factor
from limosa_lab.wording import number, ranks, size

# Colours that people with colour blindness can tell apart (Okabe and Ito), and marks: the same for a module everywhere.
STYLES = {
    "c": ("#000000", "x"),
    "mpi4py": ("#0072B2", "s"),
    "mpi4py_objects": ("#88B6D8", "s"),
    "limosa": ("#D55E00", "o"),
    "pypar": ("#009E73", "^"),
    "scientific": ("#CC79A7", "D"),
    "mympi": ("#E69F00", "v"),
    "pympi": ("#56B4E9", "P"),
    "boostmpi": ("#999999", "*"),
}
FORM_LINES = {"blocking": "-", "non-blocking": "--"}

Curves = dict[Contender, dict[int, float]]


def draw(found: Times, libraries: dict[str, str]) -> dict[str, str]:
    """Draw all figures that the results allow; give title and SVG of each, in order."""
    made: dict[str, str] = {}
    for bench in MICRO:
        for count in sorted({point.ranks for point in found if point.bench == bench}):
            curves = {who: micro(found, bench, count, who) for who in contenders(found)}
            made[f"{TITLES[bench].capitalize()}, {ranks(count)}"] = styles.svg(_micro(bench, curves, libraries))
    for bench, mesh in meshes(found):
        curves = {
            who: curve(found, bench, mesh, "blocking" if bench == "wave3d" else "", who) for who in contenders(found)
        }
        name = f"{TITLES[bench].capitalize()}, {mesh_of(bench, mesh)}"
        if _several(curves):
            gains = {who: speedup(times) for who, times in curves.items()}
            made[f"{name}: run times"] = styles.svg(_by_ranks(curves, libraries))
            made[f"{name}: speed-up"] = styles.svg(_by_ranks(gains, libraries, ideal=True))
    for mesh in sorted({point.size for point in found if point.bench == "wave3d"}):
        forms = _forms(found, mesh, libraries)
        if forms is not None:
            made[f"{TITLES['wave3d'].capitalize()}, {mesh_of('wave3d', mesh)}: ways of computing and exchanging"] = (
                styles.svg(forms)
            )
    return made


def overview(found: Times, spread: Spread, libraries: dict[str, str]) -> str | None:
    """Draw the first picture: what a small message takes by module, and an application beside mpi4py."""
    modules = [name for name in MODULES if any(who.module == name for who in contenders(found))]
    small = {who: micro(found, "pingpong", 2, who) for who in contenders(found)}
    small = {who: times for who, times in small.items() if times}
    factors = {who: value for who in contenders(found) if (value := factor(found, spread, APPLICATIONS, who))}
    factors = {who: value for who, value in factors.items() if who.module != REFERENCE}
    panels = [part for part in (small, factors) if part]
    if not panels:
        return None
    figure, grid = plt.subplots(
        1, len(panels), figsize=(1.5 + 4.6 * len(panels), 4.2), squeeze=False, sharey=True, layout="constrained"
    )
    axes = list(grid.flat)
    for index, (name, title) in enumerate(libraries.items()):
        beside = 0.3 * ((index + 0.5) / len(libraries) - 0.5)
        places = {module: row + beside for row, module in enumerate(modules)}
        look = {**styles.style(name), "linestyle": "none"}
        if small:
            mine = [(times[min(times)], places[who.module]) for who, times in small.items() if who.library == name]
            axes[0].plot([time for time, _ in mine], [row for _, row in mine], label=title, **look)
        own = [(value, places[who.module]) for who, value in factors.items() if who.library == name]
        if own:
            rows = [row for _, row in own]
            low, high = [value.low for value, _ in own], [value.high for value, _ in own]
            axes[-1].hlines(rows, low, high, color=look["color"], alpha=0.4, linewidth=4)
            axes[-1].plot([value.mean for value, _ in own], rows, label=title, **look)
    if small:
        axes[0].set_xscale("log")
        styles.time_ticks(axes[0].xaxis)
        length = min(min(times) for times in small.values())
        axes[0].set_title(f"Time of a message of {size(length)}", fontsize="medium")
    if factors:
        axes[-1].axvline(1, color="0.5", linewidth=1)
        axes[-1].set_xlim(left=0)
        axes[-1].set_title("Time of the applications, mpi4py = 1 (bars: noise)", fontsize="medium")
    axes[0].set_yticks(range(len(modules)), [MODULES[name] for name in modules])
    axes[0].set_ylim(len(modules) - 0.5, -0.5)
    for each in axes:
        each.grid(alpha=0.3)
    _legend(figure, axes)
    return styles.svg(figure)


def _several(curves: Curves) -> bool:
    return len({at for times in curves.values() for at in times}) > 1


def _panels(
    curves: Curves, libraries: dict[str, str], paint: Callable[[Axes, Contender, dict[int, float]], None]
) -> tuple[Figure, list[Axes]]:
    """Make a panel for each library that has curves, with the same axes, and paint every contender's curve."""
    shown = [name for name in libraries if any(who.library == name and times for who, times in curves.items())]
    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(5.2 * columns, 0.7 + 3.9 * rows),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for axes, library in zip(grid.flat, shown, strict=False):
        for who, times in curves.items():
            if who.library == library and times:
                paint(axes, who, times)
        axes.set_title(libraries[library], fontsize="medium")
        axes.grid(alpha=0.3)
        axes.minorticks_off()
    for axes in list(grid.flat)[len(shown) :]:
        axes.set_visible(False)
    return figure, [axes for axes in grid.flat if axes.get_visible()]


def _legend(figure: Figure, panels: list[Axes]) -> None:
    """Put one legend for all panels below them."""
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=min(4, len(entries)),
        fontsize="small",
        frameon=False,
    )


def _plot(
    axes: Axes, who: Contender, at: list[int], values: list[float], line: str = "-", label: str | None = None
) -> None:
    colour, mark = STYLES[who.module]
    axes.plot(
        at,
        values,
        color=colour,
        marker=mark,
        markersize=5,
        linewidth=1.3,
        linestyle=line,
        label=MODULES[who.module] if label is None else label,
    )


def _micro(bench: str, curves: Curves, libraries: dict[str, str]) -> Figure:
    """Draw megabytes per second against the size of the message; for ping-pong the fitted lines too, thin."""

    def paint(axes: Axes, who: Contender, times: dict[int, float]) -> None:
        at = sorted(times)
        _plot(axes, who, at, [1e-6 * bytes_ / times[bytes_] for bytes_ in at])
        line = least_squares(at, [times[bytes_] for bytes_ in at]) if bench == "pingpong" else None
        if line and line.latency > 0:
            fitted = [1e-6 * bytes_ / (line.latency + bytes_ / line.bandwidth) for bytes_ in at]
            axes.plot(at, fitted, color=STYLES[who.module][0], linewidth=0.6, linestyle=":")

    figure, panels = _panels(curves, libraries, paint)
    sizes = sorted({at for times in curves.values() for at in times})
    ticks = sizes[:: max(1, len(sizes) // 6)]
    for axes in panels:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(ticks, [size(at) for at in ticks], rotation=45)
        axes.set_xlabel("message size")
        styles.number_ticks(axes.yaxis)
        axes.set_ylabel("MB/s")
    _legend(figure, panels)
    return figure


def _rank_axes(axes: Axes, counts: list[int], times: bool) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=10 if times else 2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set_xlabel("processes")
    if times:
        styles.time_ticks(axes.yaxis)
    else:
        axes.yaxis.set_major_formatter(lambda value, _: number(value))
    axes.set_ylabel("time" if times else "speed-up")


def _by_ranks(curves: Curves, libraries: dict[str, str], ideal: bool = False) -> Figure:
    """Draw run times or speed-ups against the number of processes."""

    def paint(axes: Axes, who: Contender, times: dict[int, float]) -> None:
        at = sorted(times)
        _plot(axes, who, at, [times[count] for count in at])

    figure, panels = _panels(curves, libraries, paint)
    counts = sorted({at for times in curves.values() for at in times})
    for axes in panels:
        if ideal:
            axes.plot(counts, counts, color="0.6", linewidth=1, linestyle="--", label="ideal")
        _rank_axes(axes, counts, times=not ideal)
    _legend(figure, panels)
    return figure


def _forms(found: Times, mesh: int, libraries: dict[str, str]) -> Figure | None:
    """Draw the variants of the wave equation beside each other: those of mpi4py, of limosa and C."""
    forms = sorted({point.form for point in found if (point.bench, point.size) == ("wave3d", mesh)})
    if len(forms) < 2:
        return None
    marks = {"slices, in place": "^", "Numba": "*"}
    curves = {
        who: curve(found, "wave3d", mesh, "blocking", who)
        for who in contenders(found)
        if who.module in {"c", "mpi4py", "limosa"}
    }

    def paint(axes: Axes, who: Contender, _: dict[int, float]) -> None:
        for form in forms:
            times = curve(found, "wave3d", mesh, form, who)
            if not times:
                continue
            step, exchange = step_and_exchange(form, who.module)
            at = sorted(times)
            words = [
                MODULES[who.module],
                step if step != "C" else "",
                "non-blocking" if exchange == "non-blocking" else "",
            ]
            _plot(axes, who, at, [times[count] for count in at], FORM_LINES[exchange], ", ".join(filter(None, words)))
            if step in marks:
                axes.lines[-1].set_marker(marks[step])

    figure, panels = _panels(curves, libraries, paint)
    counts = sorted({point.ranks for point in found if (point.bench, point.size) == ("wave3d", mesh)})
    for axes in panels:
        _rank_axes(axes, counts, times=True)
    _legend(figure, panels)
    return figure
