"""The command line of ``limosa study files``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from limosa_lab.errors import LabError
from limosa_lab.file_study import measure, page
from limosa_lab.terminal import Terminal

EPILOG = """examples:
  limosa study files --quick                 a minute: few sizes, up to 8 processes
  limosa study files --disk /scratch/me      files on this disk beside files in memory
  limosa study files --report FOLDER         the report of an earlier study again
"""


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="limosa study files",
        description="Measure messages that travel as files, beside plain message and lock files, and simulate "
        "broadcasts and aggregations by files on up to 8192 processes.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    size = made.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a minute: few sizes, up to 8 processes")
    size.add_argument("--full", action="store_true", help="up to 64 processes, five rounds")
    made.add_argument("--disk", type=Path, metavar="DIR", default=Path(), help="folder on a disk (default: this one)")
    made.add_argument("--output", type=Path, metavar="DIR", help="folder for the report (default: limosa-study-TIME)")
    made.add_argument("--report", type=Path, metavar="DIR", help="measure nothing; write the report of DIR again")
    return made


def study(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)
    terminal = Terminal("limosa study")
    folder = given.report
    if folder is None:
        folder = given.output or Path(f"limosa-study-{time.strftime('%Y%m%d-%H%M%S')}")
        size = measure.QUICK if given.quick else measure.FULL if given.full else measure.NORMAL
        measure.measure(size, folder, given.disk, terminal)
    elif not (folder / measure.RESULTS).is_file():
        raise LabError(f"{folder} does not hold a study of files", hint=f"there is no {measure.RESULTS} in it")
    results = page.read(folder)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(page.text(results, terminal.width, colour), end="")
    for file in page.write(results, folder):
        terminal.say(f"wrote {file}")
    return 1 if results.troubles else 0
