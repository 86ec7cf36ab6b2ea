"""The report of a recording: text for the terminal, ``report.md`` and the folder ``plots`` beside the samples."""

from pathlib import Path

from limosa_lab import before, budget, stats, tables
from limosa_lab.records import Recording

HOW_TO_READ = (
    "Each cell is the median of the samples of all rounds, in brackets the lower and upper quartile. A sample is the "
    "mean of a batch of operations, on the slowest rank. `hot` uses the same buffers again and again, `cold` goes "
    "through buffers that are out of the caches. The last column is Limosa's median divided by that of the best other "
    "library."
)


def text(recording: Recording, width: int | None = None, colour: bool = False) -> str:
    """Give the report for a terminal of so many columns."""
    found = stats.results(recording.samples)
    parts = [tables.environment(recording).text(width, colour)]
    parts += [table.text(width, colour) for table in tables.benchmarks(recording, found)]
    parts.append(budget.text(recording, found, width, colour))
    parts += [table.text(width, colour) for table in [before.table(found)] if table]
    parts += [f"warning: {trouble}\n" for trouble in tables.troubles(recording)]
    return "\n".join(parts)


def markdown(recording: Recording, figures: list[Path]) -> str:
    """Give the report as Markdown; `figures` are paths relative to it."""
    found = stats.results(recording.samples)
    troubles = tables.troubles(recording)
    parts = ["# Benchmark report", tables.environment(recording).markdown()]
    if troubles:
        parts += ["## Doubts", "\n".join(f"- {trouble}" for trouble in troubles)]
    parts += ["## Budgets", budget.markdown(recording, found)]
    changes = before.table(found)
    if changes:
        parts += ["## Changes", changes.markdown()]
    if figures:
        parts += ["## Plots", "\n".join(f"![{figure.stem}]({figure})" for figure in figures)]
    parts += ["## Benchmarks", HOW_TO_READ, *(table.markdown() for table in tables.benchmarks(recording, found))]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def write(recording: Recording, folder: Path, with_plots: bool = True) -> list[Path]:
    """Write ``report.md`` and the plots into a folder; give the files that are worth naming."""
    figures: list[Path] = []
    if with_plots:
        from limosa_lab import plots

        figures = plots.draw(recording, stats.results(recording.samples), folder / "plots")
    target = folder / "report.md"
    target.write_text(markdown(recording, [figure.relative_to(folder) for figure in figures]))
    return [target, *([folder / "plots"] if figures else [])]
