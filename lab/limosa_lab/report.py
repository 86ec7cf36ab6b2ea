"""The report of a recording: text for the terminal, ``report.html``, ``report.md`` and the folder ``plots``."""

from collections.abc import Mapping
from pathlib import Path

from limosa_lab import before, budget, limit, output, stats, tables
from limosa_lab.records import Recording


def text(recording: Recording, width: int | None = None, colour: bool = False, *, with_budgets: bool = False) -> str:
    """Give the report for a terminal of so many columns: tables, and in the last lines what they say."""
    from limosa_lab import overview

    found = stats.results(recording.samples)
    parts = [tables.environment(recording).text(width, colour)]
    parts += [
        table.text(width, colour) for table in tables.benchmarks(recording, found) + limit.tables(recording.limits)
    ]
    if with_budgets:
        parts.append(budget.text(recording, found, width, colour))
    parts += [table.text(width, colour) for table in [before.table(found)] if table]
    parts += [f"warning: {trouble}\n" for trouble in tables.troubles(recording)]
    parts += [f"{sentence}\n" for sentence in overview.sentences(recording, found)]
    return "\n".join(parts)


def markdown(recording: Recording, figures: Mapping[str, Path], *, with_budgets: bool = False) -> str:
    """Give the report as Markdown; `figures` are paths relative to it, by title."""
    from limosa_lab.page import HOW_TO_READ

    found = stats.results(recording.samples)
    troubles = tables.troubles(recording)
    parts = ["# Benchmark report", tables.environment(recording).markdown()]
    if troubles:
        parts += ["## Doubts", "\n".join(f"- {trouble}" for trouble in troubles)]
    if figures:
        parts += ["## Plots", "\n".join(f"![{title}]({file})" for title, file in figures.items())]
    changes = before.table(found)
    if changes:
        parts += ["## Changes", changes.markdown()]
    parts += ["## Benchmarks", HOW_TO_READ, *(table.markdown() for table in tables.benchmarks(recording, found))]
    if recording.limits:
        parts += ["## Limit of this machine", *(table.markdown() for table in limit.tables(recording.limits))]
    if with_budgets:
        parts += ["## Budgets", budget.markdown(recording, found)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def write(recording: Recording, folder: Path, with_plots: bool = True, *, with_budgets: bool = False) -> list[Path]:
    """Write ``report.html``, ``report.md`` and the plots into a folder; give the files that are worth naming."""
    from limosa_lab import page, plots

    found = stats.results(recording.samples)
    figures = plots.draw(recording, found, folder / "plots") if with_plots else {}
    html, marked = folder / "report.html", folder / "report.md"
    output.write(html, page.page(recording, found, figures, with_budgets))
    relative = {title: file.relative_to(folder) for title, file in figures.items()}
    output.write(marked, markdown(recording, relative, with_budgets=with_budgets))
    return [html, marked, *([folder / "plots"] if figures else [])]
