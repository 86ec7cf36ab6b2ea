"""The figures of the study as SVG: the first picture, and one for each measurement. Pure functions of the results."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limosa_lab import styles
from limosa_lab.file_study import measure
from limosa_lab.file_study.results import PAPER, Results, advantage, aggregated, array, simulated

# Colours that people with colour blindness can tell apart (Okabe and Ito).
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
PLAIN, AWARE = "central files", "local files, node-aware"
Curves = dict[str, dict[int, float]]


def overview(results: Results) -> str:
    """Draw the first picture: what messages take by their length, and broadcasts by the number of processes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.3), layout="constrained")
    between = [name for name in results.series("pingpong") if name.startswith("between")]
    names = {
        f"reference, {measure.MEMORY}": "plain files with polling",
        f"files, {measure.MEMORY}": "Limosa, files",
        **{name: f"Limosa, {name}" for name in between},
        "shared memory": "Limosa, shared memory",
    }
    _lengths(left, results, names)
    left.set_title("Time of a message, measured", fontsize="medium")
    found = simulated(results)
    words = {PLAIN: "plain, shared file system", AWARE: "node-aware, files of hosts"}
    curves = {said: {at: each.seconds for at, each in found[name].items()} for name, said in words.items()}
    _by_processes(right, curves)
    right.set_title("Time of a broadcast of 32 B, simulated", fontsize="medium")
    return styles.svg(figure)


def draw(results: Results) -> dict[str, str]:
    """Draw all other figures: title and SVG."""
    found = simulated(results)
    broadcasts = {name: {at: each.seconds for at, each in found[name].items()} for name in found}
    requests = {
        name: {at: float(each.central_requests) for at, each in found[name].items() if each.central_requests}
        for name in found
    }
    made = {"Half a round trip, measured": styles.svg(_messages(results))}
    for bench, title in (("bcast", "on imitated hosts"), ("apart", "and a barrier, on hosts")):
        curves = {name: results.times(bench, name, "ranks") for name in results.series(bench)}
        if curves:
            made[f"Broadcast of 32 B {title}, measured"] = _figure(curves)
    made["Broadcast of 32 B, simulated"] = _figure(broadcasts)
    made["How many times longer a plain broadcast by central files takes"] = styles.svg(_gains(advantage(results)))
    made["Requests to the shared file system during a broadcast, simulated"] = _figure(requests, times=False)
    for length in sorted({sample["bytes"] for sample in results.samples if sample["bench"] == "agg"}):
        curves = {name: results.times("agg", name, "ranks", length) for name in results.series("agg")}
        made[f"An array of {array(length)} gathered by a binary tree, measured"] = _figure(curves)
    made["Arrays gathered by a binary tree, simulated"] = _figure(aggregated(results))
    return made


def _lengths(axes: Axes, results: Results, names: dict[str, str]) -> None:
    """Draw times of messages by their length; `names`: series and what they are called."""
    lengths: set[float] = set()
    for at, (series, said) in enumerate(names.items()):
        times = results.times("pingpong", series, "bytes")
        lengths.update(times)
        line = ("-", ":")[at // len(COLOURS) % 2]
        axes.loglog(list(times), list(times.values()), line, **_look(at), label=said)
    styles.size_ticks(axes, lengths)
    styles.time_ticks(axes.yaxis)
    _finish(axes, "length of the message", "half a round trip")


def _look(at: int) -> dict[str, Any]:
    """Give the colour and the mark of a curve, by its number."""
    return {"color": COLOURS[at % len(COLOURS)], "marker": "os^"[at // len(COLOURS) % 3], "markersize": 3}


def _messages(results: Results) -> Figure:
    figure, axes = plt.subplots(figsize=(7, 4.3), layout="constrained")
    _lengths(axes, results, {name: name for name in results.series("pingpong")})
    return figure


def _by_processes(axes: Axes, curves: Curves, times: bool = True) -> None:
    for at, (name, values) in enumerate(curves.items()):
        line = "--" if "node-aware" in name else "-"
        axes.loglog(list(values), list(values.values()), line, **_look(at), label=name)
    styles.count_ticks(axes, {at for values in curves.values() for at in values})
    (styles.time_ticks if times else styles.number_ticks)(axes.yaxis)
    _finish(axes, "processes", "time" if times else "requests")


def _figure(curves: Curves, times: bool = True) -> str:
    figure, axes = plt.subplots(figsize=(7, 4.3), layout="constrained")
    _by_processes(axes, {name: values for name, values in curves.items() if values}, times)
    return styles.svg(figure)


def _gains(gains: dict[int, float]) -> Figure:
    figure, axes = plt.subplots(figsize=(7, 4.3), layout="constrained")
    axes.loglog(list(gains), list(gains.values()), color=COLOURS[0], label="simulated")
    axes.loglog(list(PAPER), list(PAPER.values()), "x", color=COLOURS[1], label="published")
    styles.count_ticks(axes, gains)
    styles.number_ticks(axes.yaxis)
    _finish(axes, "processes", "times longer than node-aware by files of hosts")
    return figure


def _finish(axes: Axes, horizontal: str, vertical: str) -> None:
    axes.set_xlabel(horizontal)
    axes.set_ylabel(vertical)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
