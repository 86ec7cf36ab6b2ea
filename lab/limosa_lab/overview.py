"""What a reader wants to know first: one picture and one or two sentences of a recording.

The picture shows the time of a message against its size, and the times of the collectives at one size. It is made for
whatever was measured; without messages and collectives there is none.
"""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limosa_lab import stats
from limosa_lab.catalogue import COLLECTIVES
from limosa_lab.records import Recording
from limosa_lab.stats import BEFORE, LIMOSA, Case, Results, Summary
from limosa_lab.styles import size_ticks, style, time_ticks
from limosa_lab.wording import bench_title, listed, number, ranks, seconds, size

MICROSECOND = 1e-6
# The size at which collectives are shown, or the nearest one that was measured.
SIZE = 1024
MOST_RANKS = 8


def sentences(recording: Recording, found: Results) -> list[str]:
    """Say in a few sentences what was found; differences within the noise are no findings."""
    titles = recording.titles()
    said = []
    messages = _messages(found)
    if messages:
        small = next((item for item in messages if item[0].bytes >= 8), messages[-1])
        large = messages[-1]
        text = f"From one process to another a message of {size(small[0].bytes)} takes {_time(small)}"
        if large is not small:
            rate = large[0].bytes / (large[1][LIMOSA].median * MICROSECOND)
            text += f", one of {size(large[0].bytes)} {_time(large)} ({number(1e-9 * rate)} GB/s)"
        said.append(f"{text}.")
    collectives = _collectives(found)
    peers = [title for name, title in titles.items() if name not in {LIMOSA, BEFORE}]
    if not said and collectives:
        case, by = collectives[0]
        said.append(
            f"{bench_title(case.series.bench)} of {size(case.bytes)} on {ranks(case.ranks)} takes {_time((case, by))}."
        )
    standing = stats.standing(found)
    if peers and standing.faster + standing.slower + standing.alike:
        best = f"the fastest of {listed(peers)}" if len(peers) > 1 else peers[0]
        total = standing.faster + standing.slower + standing.alike
        said.append(
            f"Beside {best}, Limosa is faster in {standing.faster} of {total} measurements and slower in "
            f"{standing.slower}; in {standing.alike} the difference is within the noise."
        )
    return said


def draw(recording: Recording, found: Results) -> Figure | None:
    """Draw the picture, or give None if neither messages nor collectives were measured."""
    messages, collectives = _messages(found), _collectives(found)
    shown = [part for part in (messages if len(messages) > 1 else [], collectives) if part]
    if not shown:
        return None
    figure, grid = plt.subplots(1, len(shown), figsize=(5.6 * len(shown), 4.6), squeeze=False, layout="constrained")
    panels = iter(grid.flat)
    titles = recording.titles()
    if len(messages) > 1:
        _draw_messages(next(panels), messages, titles)
    if collectives:
        _draw_collectives(next(panels), collectives, titles)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


Found = tuple[Case, dict[str, Summary]]


def _messages(found: Results) -> list[Found]:
    """Give the times of messages by size, without empty ones; Limosa has them all."""
    return [
        (case, by)
        for case, by in found.items()
        if (case.series.bench, case.series.form, case.series.metric) == ("pingpong", "hot", "latency")
        and case.bytes
        and LIMOSA in by
    ]


def _collectives(found: Results) -> list[Found]:
    """Give the times of the blocking collectives at one size and number of ranks, in their order."""
    every = [
        (case, by)
        for case, by in found.items()
        if case.series.bench in COLLECTIVES
        and (case.series.form, case.series.metric) == ("hot", "latency")
        and case.ranks <= MOST_RANKS
        and LIMOSA in by
    ]
    sizes = {case.bytes for case, _ in every if case.bytes}
    if not every:
        return []
    length = min(sizes, key=lambda count: (abs(count - SIZE), count), default=0)
    most = max(case.ranks for case, _ in every)
    chosen = [
        (case, by)
        for case, by in every
        if case.ranks == most and (case.bytes == length or case.series.bench == "barrier")
    ]
    return sorted(chosen, key=lambda item: COLLECTIVES.index(item[0].series.bench))


def _draw_messages(axes: Axes, messages: list[Found], titles: dict[str, str]) -> None:
    for name, written in titles.items():
        mine = [(case.bytes, by[name]) for case, by in messages if name in by]
        if mine:
            look, at = style(name), [length for length, _ in mine]
            axes.plot(at, [MICROSECOND * times.median for _, times in mine], label=written, markersize=4, **look)
            low, high = (
                [MICROSECOND * value for value in ends] for ends in zip(*((t.lower, t.upper) for _, t in mine))
            )
            axes.fill_between(at, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    size_ticks(axes, [case.bytes for case, _ in messages])
    time_ticks(axes.yaxis)
    axes.set_title("Time of a message between two processes")
    axes.set_xlabel("size of the message")
    axes.grid(alpha=0.3)


def _draw_collectives(axes: Axes, collectives: list[Found], titles: dict[str, str]) -> None:
    names = [bench_title(case.series.bench) for case, _ in collectives]
    for name, written in titles.items():
        mine = [(row, by[name]) for row, (_, by) in enumerate(collectives) if name in by]
        if mine:
            look, rows = style(name), [row for row, _ in mine]
            low, high = (
                [MICROSECOND * value for value in ends] for ends in zip(*((t.lower, t.upper) for _, t in mine))
            )
            axes.hlines(rows, low, high, color=look["color"], alpha=0.4, linewidth=4)
            at = [MICROSECOND * times.median for _, times in mine]
            axes.plot(at, rows, label=written, **{**look, "linestyle": "none"})
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xscale("log")
    time_ticks(axes.xaxis)
    length = max(case.bytes for case, _ in collectives)
    of_size = f" with {size(length)}" if length else ""
    axes.set_title(f"Time of a collective call{of_size}, {ranks(collectives[0][0].ranks)}")
    axes.grid(alpha=0.3)


def _time(item: Found) -> str:
    return seconds(MICROSECOND * item[1][LIMOSA].median)
