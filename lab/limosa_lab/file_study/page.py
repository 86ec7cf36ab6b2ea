"""The report: text for a terminal, and one page of HTML with the figures in it."""

from __future__ import annotations

from pathlib import Path

from limosa_lab import html_page, machine, studies
from limosa_lab.file_study.results import Results, answer, tables

INTRODUCTION = (
    "Messages that travel as files: measured on this machine, and simulated for more hosts than there are here. Plain "
    "files with polling: a program that writes a message file and a lock file and looks for locks every millisecond. "
    'What is marked "simulated" comes from a model whose costs are listed below, measured ones and assumed ones.'
)


def troubles(results: Results) -> list[str]:
    """Say what went wrong, and what makes the numbers doubtful."""
    doubts = machine.doubts(results.environment["busy_percent"], results.others)
    return doubts + [f"{t['bench']}, {t['series']}, {t['ranks']} ranks: {t['trouble']}" for t in results.troubles]


def text(results: Results, width: int | None = None, colour: bool = False) -> str:
    """Give the report for a terminal."""
    parts = [table.text(width, colour) for table in tables(results)]
    parts += [f"warning: {trouble}\n" for trouble in troubles(results)]
    return "\n".join([*parts, answer(results) + "\n"])


def page(results: Results) -> str:
    """Give the report as a page of HTML."""
    from limosa_lab.file_study import figures

    environment = results.environment
    machine = f"{environment['cpu']}, {environment['processors']} processors, {environment['time']}"
    parts = ["<h1>Messages by files</h1>", html_page.paragraph(answer(results), "answer")]
    parts += [html_page.figure("", figures.overview(results))]
    parts += [html_page.paragraph(f"{INTRODUCTION} {machine}.", "small")]
    parts += [html_page.paragraph(trouble, "doubt") for trouble in troubles(results)]
    drawn = [html_page.figure(title, svg) for title, svg in figures.draw(results).items()]
    parts += ["<h2>Figures</h2>", f'<div class="figures">{"".join(drawn)}</div>']
    parts += ["<h2>Tables</h2>", *map(html_page.table, tables(results))]
    return html_page.document("Messages by files", parts)


def write(results: Results, folder: Path) -> list[Path]:
    """Write `report.html` and `report.txt`; give the files."""
    return studies.write(page(results), text(results), folder)
