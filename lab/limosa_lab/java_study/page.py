"""The report: text for a terminal, and one page of HTML whose first picture is the ping-pong."""

from __future__ import annotations

from pathlib import Path

from limosa_lab import html_page, studies, styles
from limosa_lab.java_study import source
from limosa_lab.java_study.measure import JAVA, JAVA_THREADS, MPJ, C
from limosa_lab.java_study.results import OPERATIONS, answer, kernels, tables
from limosa_lab.study_results import Results, curves, look

NODES = (
    "A node of this study is this host, or, for processes each on a node of its own, a process that sends all its "
    "messages by the network device. The source's nodes had two processors."
)


def text(results: Results, width: int | None = None, colour: bool = False) -> str:
    """Give the report for a terminal."""
    parts = [table.text(width, colour) for table in tables(results)]
    parts += [f"warning: {doubt}\n" for doubt in results.written_troubles()]
    return "\n".join([*parts, answer(results) + "\n"])


def page(results: Results) -> str:
    """Give the report as a page of HTML."""
    environment = results.environment
    machine = f"{environment['cpu']}, {environment['processors']} processors, {environment['time']}."
    parts = ["<h1>Message passing in Java</h1>", html_page.paragraph(answer(results), "answer")]
    if results.series("send"):
        parts.append(html_page.figure("Half a round trip", curves(results, "send", "bytes")))
    parts.append(html_page.paragraph(machine, "small"))
    parts += [html_page.paragraph(doubt, "doubt") for doubt in results.written_troubles()]
    figures = [html_page.figure(f"Speed-up: {bench}", _speed_up(results, bench)) for bench, _ in kernels(results)]
    for name in OPERATIONS:
        if name != "barrier" and results.series(name):
            most = max(ranks for _, ranks in results.places(name))
            figures.append(html_page.figure(f"{name}, {most} ranks", curves(results, name, "bytes", most)))
    parts += ["<h2>Figures</h2>", f'<div class="figures">{"".join(figures)}</div>', "<h2>Tables</h2>"]
    parts += [html_page.paragraph(NODES), html_page.paragraph(source.SPEED_UPS, "thesis")]
    parts += map(html_page.table, tables(results))
    return html_page.document("Message passing in Java", parts)


def write(results: Results, folder: Path) -> list[Path]:
    """Write `report.html` and `report.txt`; give the files."""
    return studies.write(page(results), text(results), folder)


def _speed_up(results: Results, bench: str) -> str:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.2, 3.4), layout="constrained")
    most = max(ranks for _, ranks in results.places(bench))
    axes.plot([1, most], [1, most], color="#bbbbbb", linewidth=1, linestyle="--")
    for at, series in enumerate((C, JAVA, JAVA_THREADS, MPJ)):
        found = results.medians(bench, series, "ranks")
        if 1 in found:
            axes.plot(list(found), [found[1] / value for value in found.values()], **look(at), label=series)
    styles.count_ticks(axes, [ranks for _, ranks in results.places(bench)])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("ranks")
    axes.set_ylabel("speed-up")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", frameon=False)
    return styles.svg(figure)
