"""The report of a study: text for a terminal, and one page of HTML that needs no other file."""

from __future__ import annotations

from pathlib import Path

from limosa_lab import html_page, studies
from limosa_lab.records import Recording
from limosa_lab.study import results, tables, thesis, verdict
from limosa_lab.tables import Table, environment, troubles

INTRODUCTION = (
    "The same programs with different modules for communication, on different MPI libraries. Beside them are the "
    "numbers of a thesis of 2010, which compared the modules of its time on a cluster. Every result was verified. "
    "Numbers are medians of all rounds; modules and libraries took turns."
)

SECTIONS = {
    "pingpong": "Ping-pong",
    "bcast": "Broadcast",
    "reduce": "Reduce",
    "allreduce": "Allreduce",
    "inner": "Inner product",
    "wave3d": "Wave equation in three dimensions",
    "cg": "Conjugate gradients for the Poisson equation",
    "mandelbrot": "Mandelbrot set",
}


def text(recording: Recording, width: int | None = None, colour: bool = False) -> str:
    """Give the report for a terminal of so many columns."""
    found = results.times(recording)
    spread, libraries = results.spread(recording), recording.titles()
    parts = [table.text(width, colour) for table in _all_tables(found, recording)]
    parts += ["\n".join(verdict.sentences(found, spread, libraries)) + "\n"]
    parts += [f"warning: {trouble}\n" for trouble in troubles(recording)]
    parts += [f"{verdict.answer(found, spread, libraries)}\n"]
    return "\n".join(part for part in parts if part.strip())


def _all_tables(found: results.Times, recording: Recording) -> list[Table]:
    libraries = recording.titles()
    made = [
        tables.ratios(found, libraries),
        tables.ping_pong(found, libraries),
        *tables.collectives(found, libraries),
        *tables.applications(found, recording),
        tables.wave_forms(found, recording),
    ]
    return [table for table in made if table is not None]


def page(recording: Recording) -> str:
    """Give the report as a page of HTML with the figures in it."""
    from limosa_lab.study import figures

    found = results.times(recording)
    libraries = recording.titles()
    spread = results.spread(recording)
    drawn = figures.draw(found, libraries)
    first = figures.overview(found, spread, libraries)
    parts = [
        "<h1>Python modules for MPI, measured again</h1>",
        html_page.paragraph(verdict.answer(found, spread, libraries), "answer"),
        *([html_page.figure("", first)] if first else []),
        html_page.paragraph(_size_sentence(recording), "small"),
        html_page.paragraph(INTRODUCTION, "small"),
    ]
    parts += [html_page.paragraph(trouble, "doubt") for trouble in troubles(recording)]
    parts += [
        "<h2>How the modules compare</h2>",
        *map(html_page.paragraph, verdict.sentences(found, spread, libraries)),
    ]
    parts += _optional(tables.ratios(found, libraries))
    for bench, title in SECTIONS.items():
        if not any(point.bench == bench for point in found):
            continue
        parts.append(f"<h2>{title}</h2>")
        parts += [html_page.paragraph(f"The thesis: {said}", "thesis") for said in _claims(bench)]
        own = tables.TITLES[bench].capitalize()
        if bench == "pingpong":
            parts += _optional(tables.ping_pong(found, libraries))
        parts += [
            html_page.table(table)
            for table in [*tables.collectives(found, libraries), *tables.applications(found, recording)]
            if _is_about(table, own)
        ]
        if bench == "wave3d":
            parts += _optional(tables.wave_forms(found, recording))
        if bench == "inner":
            parts.append(html_page.table(_thesis_inner()))
        parts += [html_page.figure(name, svg) for name, svg in drawn.items() if name.startswith(f"{own},")]
    parts += [
        "<h2>Machine</h2>",
        html_page.folded("Machine, libraries, settings", [html_page.table(environment(recording))], "wide"),
    ]
    return html_page.document("Python modules for MPI", parts)


def write(recording: Recording, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.txt`` into a folder; give the files."""
    return studies.write(page(recording), text(recording), folder)


def _optional(table: Table | None) -> list[str]:
    return [] if table is None else [html_page.table(table)]


def _is_about(table: Table, name: str) -> bool:
    return table.title.startswith((f"{name} on", f"{name},"))


def _claims(bench: str) -> list[str]:
    return [
        thesis.CLAIMS[name]
        for name in (bench, *(["nonblocking"] if bench == "wave3d" else []))
        if name in thesis.CLAIMS
    ]


def _size_sentence(recording: Recording) -> str:
    data = recording.environment
    processors = f"{data['processors']} processor{'s' if data['processors'] != 1 else ''}"
    name = {"quick": "Short study", "normal": "Usual study", "full": "Study with the thesis's sizes"}[
        data["options"]["size_name"]
    ]
    return (
        f"{name}, on {data['cpu']} with {processors}, {data['time']}. Where there are more processes than processors, "
        "they take turns."
    )


def _thesis_inner() -> Table:
    """Give table 2.1 of the thesis."""
    counts = list(thesis.INNER_SECONDS["c"])
    table = Table(
        "The thesis's own: seconds and speed-up by number of processes (table 2.1)",
        ["module", *map(str, counts)],
        words=1,
    )
    for module, seconds in thesis.INNER_SECONDS.items():
        cells = [f"{seconds[count]:.3f} ({seconds[1] / seconds[count]:.2f} x)" for count in counts]
        table.rows.append([{"c": "C", "pypar": "Python (pypar)"}[module], *cells])
    return table
