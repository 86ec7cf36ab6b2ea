"""What the commands of the laboratory share towards the user: remarks, progress, lists on the command line."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Terminal:
    """Tells the user on stderr how a measurement goes on: a bar on a terminal, otherwise a line per run.

    Parameters
    ----------
    name
        The command, put before every remark.

    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.console = Console(stderr=True, highlight=False)
        self._progress: Progress | None = None
        self._total = 0

    @property
    def width(self) -> int | None:
        """The width of the terminal that stdout is; None if it is none."""
        return Console().width if sys.stdout.isatty() else None

    def say(self, text: str) -> None:
        """Print a remark."""
        self.console.print(f"{self.name}: {text}", markup=False, soft_wrap=True)

    @contextmanager
    def progress(self, total: int) -> Iterator[None]:
        """Show a bar while the context lasts."""
        self._total = total
        if not self.console.is_terminal:
            yield
            return
        columns = (
            BarColumn(20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
        )
        with Progress(*columns, console=self.console, transient=True, refresh_per_second=1) as self._progress:
            self._progress.add_task("", total=total)
            yield

    def running(self, number: int, text: str) -> None:
        """Show which run starts."""
        if self._progress is None:
            self.say(f"{number + 1}/{self._total} {text}")
        else:
            self._progress.update(self._progress.task_ids[0], completed=number, description=text)


def names(text: str) -> list[str]:
    """Read a list with commas."""
    return [name for name in text.split(",") if name]


def numbers(text: str) -> list[int]:
    """Read a list of positive whole numbers with commas."""
    try:
        found = [int(name) for name in names(text)]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a list of positive integers such as 2,4,8")
    return found
