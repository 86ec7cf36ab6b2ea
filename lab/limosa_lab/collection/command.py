"""The command line of ``limosa report``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from limosa_lab import output
from limosa_lab.collection import charts, page, sections
from limosa_lab.errors import LabError
from limosa_lab.terminal import Terminal

EPILOG = """examples:
  limosa report                              everything in this folder and below it
  limosa report bench-a models profile-1     these folders, on one page
  limosa report --output shown profile-1     into the folder `shown`

The page, report.html, needs no other file and no network. Its figures are in figures/ as PNG and SVG, their data in
data/ as CSV.
"""


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="limosa report",
        description="Put results of limosa bench, model, tune, study and of run --profile on one page of HTML.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    made.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="where to look (default: here)")
    made.add_argument("--output", type=Path, metavar="DIR", help="folder for the page (default: limosa-report-TIME)")
    made.add_argument("--no-files", action="store_true", help="the page only, without the files of its figures")
    return made


def report(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)
    if find_spec("vl_convert") is None:
        raise LabError(
            "the figures need vl-convert-python, which is not installed",
            hint="pip install 'limosa[lab]' (or just: vl-convert-python)",
        )
    terminal = Terminal("limosa report")
    found = sections.find(given.folders or [Path()])
    if not found.sections:
        unread = f"; not readable: {'; '.join(found.troubles)}" if found.troubles else ""
        raise LabError(
            f"there are no results in {', '.join(map(str, given.folders or [Path.cwd()]))}{unread}",
            hint="name folders that limosa bench, model, tune, study or run --profile have made",
        )
    folder = given.output or Path(f"limosa-report-{time.strftime('%Y%m%d-%H%M%S')}")
    written = [output.write(folder / sections.REPORT, page.page(found.sections, found.troubles))]
    if not given.no_files:
        written += charts.write([chart for section in found.sections for chart in section.charts], folder)
    for section in found.sections:
        terminal.say(f"{section.title}: {len(section.charts)} figures, {len(section.tables)} tables")
    for trouble in found.troubles:
        terminal.say(f"warning: not shown: {trouble}")
    for place in written:
        terminal.say(f"wrote {place}")
    return 0
