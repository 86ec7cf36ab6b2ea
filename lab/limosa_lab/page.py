"""The report of a recording as one page of HTML: an answer and a picture first, then all figures, tables at the end."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from limosa_lab import before, budget, html_page, limit, overview, tables
from limosa_lab.plots import OVERVIEW
from limosa_lab.records import Recording
from limosa_lab.stats import LIMOSA, Results

HOW_TO_READ = (
    "Each cell is the median of the samples of all rounds, in brackets the lower and upper quartile. A sample is the "
    "mean of a batch of operations, on the slowest rank. “hot” uses the same buffers again and again, “cold” goes "
    "through buffers that are out of the caches, and in “fresh” the sender has just written them, the time of which "
    "counts. A ratio is Limosa's median divided by that of the best other library, or by the least time that the "
    "machine allows for a message (`limosa bench limit`)."
)


def page(recording: Recording, found: Results, drawn: Mapping[str, Path], with_budgets: bool) -> str:
    """Give the page; `drawn` are the figures by title, of which the SVG files are read."""
    alone = recording.libraries() == [LIMOSA]
    parts = ["<h1>Limosa, measured on this machine</h1>"]
    parts += [html_page.paragraph(" ".join(overview.sentences(recording, found)), "answer")]
    if OVERVIEW in drawn:
        parts.append(html_page.figure("", svg(drawn[OVERVIEW])))
    parts.append(html_page.paragraph(_circumstances(recording), "small"))
    if alone:
        parts.append(
            html_page.paragraph("limosa bench --against mpich,openmpi,intel measures other libraries too.", "small")
        )
    parts += [html_page.paragraph(trouble, "doubt") for trouble in tables.troubles(recording)]
    others = {title: file for title, file in drawn.items() if title != OVERVIEW}
    if others:
        parts.append("<h2>Figures</h2>")
        parts.append(
            html_page.paragraph("Lines are medians; bands reach from the lower to the upper quartile.", "small")
        )
        parts.append('<div class="figures">')
        parts += [html_page.figure(title, svg(file)) for title, file in others.items()]
        parts.append("</div>")
    changes = before.table(found)
    if changes:
        parts += ["<h2>Beside the earlier Limosa</h2>", html_page.table(changes)]
    if with_budgets:
        promises = budget.table(recording, budget.rows(recording, found), with_misses=True)
        parts += ["<h2>Budgets</h2>", f'<div class="wide">{html_page.table(promises)}</div>']
    parts += ["<h2>Tables</h2>", html_page.paragraph(HOW_TO_READ)]
    made_tables = tables.benchmarks(recording, found) + limit.tables(recording.limits)
    parts += [html_page.folded(made.title, [html_page.table(made)]) for made in made_tables]
    parts += [
        "<h2>Machine</h2>",
        html_page.folded("Machine, libraries, settings", [html_page.table(tables.environment(recording))], "wide"),
    ]
    return html_page.document("Limosa, measured", parts)


def svg(png: Path) -> str:
    """Give the figure that lies beside a PNG file as an element for a page."""
    text = png.with_suffix(".svg").read_text()
    return text[text.index("<svg") :]


def _circumstances(recording: Recording) -> str:
    """Say where and when in a sentence."""
    data = recording.environment
    processors = f"{data['processors']} processor{'s' if data['processors'] != 1 else ''}"
    machine = " of a virtual machine" if data["virtual_machine"] else ""
    libraries: Sequence[str] = [f"{library['title']} {library['version']}" for library in data["libraries"]]
    return f"Measured on {data['time'][:16]}: {data['cpu']}, {processors}{machine}; {', '.join(libraries)}."
