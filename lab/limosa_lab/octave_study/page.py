"""The report: text for a terminal, and one page of HTML with figures and the picture of the Mandelbrot set."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from limosa_lab import html_page, studies, styles
from limosa_lab.octave_study import measure
from limosa_lab.octave_study.results import answer, tables
from limosa_lab.study_results import Results, curves, look

mpl.use("Agg")


def text(results: Results, width: int | None = None, colour: bool = False) -> str:
    """Give the report for a terminal."""
    parts = [table.text(width, colour) for table in tables(results)]
    parts += [f"warning: {trouble}\n" for trouble in results.written_troubles()]
    return "\n".join([*parts, answer(results) + "\n"])


def page(results: Results, folder: Path) -> str:
    """Give the report as a page of HTML."""
    environment = results.environment
    machine = f"{environment['cpu']}, {environment['processors']} processors, {environment['time']}."
    parts = ["<h1>Message passing in Octave</h1>", html_page.paragraph(answer(results), "answer")]
    parts += [html_page.paragraph(machine, "small")]
    parts += [html_page.paragraph(trouble, "doubt") for trouble in results.written_troubles()]
    figures = []
    if results.series("pingpong"):
        figures.append(html_page.figure("Half a round trip", curves(results, "pingpong", "bytes")))
    if results.series("bcast"):
        figures.append(html_page.figure("Broadcast of 1 KB", curves(results, "bcast", "ranks")))
    if results.series("mandelbrot"):
        figures.append(html_page.figure("Mandelbrot set: parallel efficiency", _efficiency(results)))
    picture = _picture(folder / measure.PICTURE)
    if picture:
        figures.append(html_page.figure("The picture that the ranks have made", picture))
    parts += [f'<div class="figures">{"".join(figures)}</div>', "<h2>Tables</h2>"]
    parts += map(html_page.table, tables(results))
    return html_page.document("Message passing in Octave", parts)


def write(results: Results, folder: Path) -> list[Path]:
    """Write `report.html` and `report.txt`; give the files."""
    return studies.write(page(results, folder), text(results), folder)


def _efficiency(results: Results) -> str:
    import matplotlib.pyplot as plt

    found = results.medians("mandelbrot", measure.MODERN, "ranks")
    figure, axes = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
    if 1 in found:
        axes.plot(list(found), [100 * found[1] / value / ranks for ranks, value in found.items()], **look(2))
    axes.set_ylim(0, 110)
    axes.set_xlabel("ranks")
    axes.set_ylabel("efficiency in %")
    axes.grid(alpha=0.3)
    return styles.svg(figure)


def _picture(file: Path) -> str | None:
    import matplotlib.pyplot as plt

    if not file.is_file():
        return None
    counts = np.fromfile(file, np.uint8)
    points = int(len(counts) ** 0.5)
    if points * points != len(counts) or not points:
        return None
    picture = counts.reshape(points, points).T
    step = max(1, points // 600)
    figure, axes = plt.subplots(figsize=(4.2, 4.2), layout="constrained")
    axes.imshow(picture[::step, ::step], cmap="magma")
    axes.set_axis_off()
    return styles.svg(figure)
