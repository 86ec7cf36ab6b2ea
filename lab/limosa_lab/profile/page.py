"""A profile as one page of HTML."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np

from limosa_lab import html_page, styles
from limosa_lab.profile import summary
from limosa_lab.profile.files import Process, Profile

mpl.use("Agg")
LARGEST_MATRIX = 64
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def page(processes: Profile, title: str) -> str:
    """Give the page."""
    parts = [f"<h1>{title}</h1>", html_page.paragraph(summary.answer(processes), "answer")]
    parts += [html_page.paragraph(trouble, "doubt") for trouble in summary.troubles(processes)]
    figures = [html_page.figure("Time in MPI by rank", _by_rank(processes))]
    sent = summary.matrix(processes)
    if sent is not None and sent.any() and len(sent) <= LARGEST_MATRIX:
        figures.append(html_page.figure("Bytes sent from rank to rank", _matrix(sent)))
    parts += [f'<div class="figures">{"".join(figures)}</div>']
    parts += ["<h2>Tables</h2>", *map(html_page.table, summary.tables(processes))]
    return html_page.document(title, parts)


def _by_rank(processes: Sequence[Process]) -> str:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    at = np.arange(len(processes))
    found = {name: line for name, line in summary.lines(processes).items() if name not in summary.STARTS_AND_ENDS}
    bottom = np.zeros(len(processes))
    largest = list(found.items())[: len(COLOURS)]
    for colour, (name, line) in zip(COLOURS, largest, strict=False):
        axes.bar(at, line.of_processes, bottom=bottom, color=colour, label=name, width=0.8)
        bottom = bottom + line.of_processes
    rest = np.array([summary.in_calls(process) for process in processes]) - bottom
    if rest.max(initial=0) > 0:
        axes.bar(at, np.maximum(rest, 0), bottom=bottom, color="#BBBBBB", label="others", width=0.8)
    axes.set_xlabel("rank")
    axes.set_ylabel("time")
    styles.time_ticks(axes.yaxis)
    if len(processes) <= LARGEST_MATRIX:
        axes.set_xticks(at, [str(process.rank if process.rank is not None else "?") for process in processes])
    axes.legend(fontsize="small", frameon=False)
    return styles.svg(figure)


def _matrix(sent: np.ndarray) -> str:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.4, 3.8), layout="constrained")
    image = axes.imshow(np.where(sent > 0, sent, np.nan), cmap="viridis", aspect="equal")
    axes.set_xlabel("to rank")
    axes.set_ylabel("from rank")
    figure.colorbar(image, format=lambda value, _: summary.amount(value))
    return styles.svg(figure)
