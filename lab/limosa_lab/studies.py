"""What all studies share: the usual options, the folder, and how a report is shown and written."""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from limosa_lab import output
from limosa_lab.errors import LabError
from limosa_lab.terminal import Terminal


class Found(Protocol):
    """What a study has measured."""

    @property
    def troubles(self) -> Sequence[object]:
        """What went wrong."""


Results = TypeVar("Results", bound=Found)


class Kind(Generic[Results]):
    """What is a study's own: its name, the file of its results, how these are read, shown and written."""

    def __init__(
        self,
        about: str,
        file: str,
        read: Callable[[Path], Results],
        text: Callable[[Results, int | None, bool], str],
        write: Callable[[Results, Path], Iterable[Path]],
    ) -> None:
        self.about = about
        self.file = file
        self.read = read
        self.text = text
        self.write = write

    def run(self, given: argparse.Namespace, measure: Callable[[Path, Terminal], None]) -> int:
        """Measure, unless the report of an earlier study is wanted, and write the report; give the exit code."""
        terminal = Terminal("limosa study")
        folder = given.report
        if folder is None:
            folder = new_folder(given)
            measure(folder, terminal)
        elif not (folder / self.file).is_file():
            raise LabError(f"{folder} does not hold a study of {self.about}", hint=f"there is no {self.file} in it")
        results = self.read(folder)
        show(functools.partial(self.text, results), terminal)
        for file in self.write(results, folder):
            terminal.say(f"wrote {file}")
        return 1 if results.troubles else 0


def parser(name: str, description: str, examples: str, quick: str, full: str) -> argparse.ArgumentParser:
    """Give a parser with the options of all studies: how much is run, and where the report is.

    `quick` and `full` say what these options mean.
    """
    made = argparse.ArgumentParser(
        prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=examples
    )
    size = made.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help=quick)
    size.add_argument("--full", action="store_true", help=full)
    made.add_argument("--output", type=Path, metavar="DIR", help="folder for the report (default: limosa-study-TIME)")
    made.add_argument("--report", type=Path, metavar="DIR", help="measure nothing; write the report of DIR again")
    return made


def size_of(given: argparse.Namespace) -> str:
    """Give the name of what is to be run: `quick`, `normal` or `full`."""
    return "quick" if given.quick else "full" if given.full else "normal"


def new_folder(given: argparse.Namespace) -> Path:
    """Give the folder for a new report."""
    return given.output or Path(f"limosa-study-{time.strftime('%Y%m%d-%H%M%S')}")


def show(text: Callable[[int | None, bool], str], terminal: Terminal) -> None:
    """Print a report, which is made for a width in columns, and with or without colours."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(text(terminal.width, colour), end="")


def write(page: str, text: str, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``report.txt`` into a folder; give the files."""
    return [output.write(folder / "report.html", page), output.write(folder / "report.txt", text)]
