"""The notebook magic: ``%load_ext limosa``, then cells that begin with ``%%limosa`` run on several processes.

::

    %%limosa -n 4
    world.allreduce(rank)

    [0-3] 6

The processes are started by the first such cell and keep their variables; ``-n`` may be left out afterwards. What they
write, values and tracebacks are marked with their ranks, as in ``limosa shell``. Figures that they draw with Matplotlib
are shown below the cell. While a cell runs for long, a line says how many ranks are done. A cell that fails on some
rank has failed: "run all" stops there. Interrupting the cell interrupts all ranks.

=================================  ==============================================================
``%%limosa -n 4``                  the cell on 4 processes (at first 2, unless this says otherwise)
``%%limosa --rank 0,2``            the cell on some of them
``%%limosa -n 2``                  if there are others than two processes: two new ones, variables are lost
``%%limosa --new``                 new processes: variables are lost
``%%limosa --push NAME,NAME``      first give the ranks these variables of the notebook; without a cell, only that
``%%limosa --mpi mpich``           on another MPI library
``%limosa --pull NAME``            the values of a variable: a list by rank
``%limosa --end``                  end the processes
=================================  ==============================================================
"""

import argparse
import atexit
import shlex
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import DisplayHandle, Image, display

from limosa._group import PATIENCE, Answer, Group, GroupError, label, parse_ranks

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["LimosaMagics", "load"]


class CellError(Exception):
    """A cell has failed on some rank, so the cells below it are not to be run. Its traceback has been shown."""

    def _render_traceback_(self) -> list[str]:
        """Give the lines that IPython shows."""
        return [str(self)]


def _failure(answers: Mapping[int, Answer]) -> str:
    """Say where a cell has failed; nothing if it has not."""
    kinds: dict[str, list[int]] = {}
    for rank, answer in answers.items():
        if answer.kind == "exit":
            kinds.setdefault("called exit()", []).append(rank)
        elif answer.kind == "error":
            interrupted = str(answer.text).rstrip().endswith("KeyboardInterrupt")
            kinds.setdefault("was interrupted" if interrupted else "failed", []).append(rank)
    parts = []
    for what in ("failed", "was interrupted", "called exit()"):
        if ranks := kinds.get(what):
            parts.append(f"{what} on rank{'s' if len(ranks) > 1 else ''} {label(ranks).strip('[]')}")
    hint = "; the processes and their variables are still there" if "called exit()" in kinds else ""
    return f"limosa: the cell {', '.join(parts)}{hint}" if parts else ""


class _Options(argparse.ArgumentParser):
    """A command line whose errors end the cell, not the kernel."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"%%limosa: {message}")


def _options() -> argparse.ArgumentParser:
    parser = _Options(prog="%%limosa", add_help=False)
    parser.add_argument("-n", "-np", "--np", type=int, metavar="N")
    parser.add_argument("--mpi", metavar="NAME")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--rank", metavar="RANKS")
    parser.add_argument("--pull", metavar="NAME")
    parser.add_argument("--push", metavar="NAMES")
    parser.add_argument("--end", action="store_true")
    return parser


def _show_figure(rank: int, image: bytes) -> None:
    """Show the figure of a rank below the cell."""
    print(label([rank]))
    display(Image(data=image, format="png"))


class _Status:
    """The line that says how far a cell is; it goes when the cell ends."""

    def __init__(self, *, visible: bool) -> None:
        self._visible = visible
        self._started = 0.0
        self._handle: DisplayHandle | None = None

    def begin(self) -> None:
        """Start the clock."""
        self._started = time.monotonic()

    def update(self, answered: int, asked: int) -> None:
        """Say it, once the cell has run for `PATIENCE` seconds."""
        seconds = time.monotonic() - self._started
        if not self._visible or seconds < PATIENCE or answered == asked:
            return
        text = {"text/plain": f"limosa: {answered} of {asked} ranks are done after {seconds:.0f} s"}
        if self._handle is None:
            self._handle = display(text, raw=True, display_id=True)
        else:
            self._handle.update(text, raw=True)

    def end(self) -> None:
        """Take the line away."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)  # of no height
            self._handle = None


@magics_class
class LimosaMagics(Magics):  # type: ignore[misc]
    """The magic and its processes."""

    def __init__(self, shell: "InteractiveShell") -> None:
        super().__init__(shell)
        self._group: Group | None = None
        self._cells = 0
        self._status = _Status(visible=getattr(shell, "kernel", None) is not None)

    @line_cell_magic  # type: ignore[untyped-decorator]
    def limosa(self, line: str, cell: str | None = None) -> object:
        """Run a cell on several processes; see ``limosa.magic``."""
        try:
            options = _options().parse_args(shlex.split(line))
        except ValueError as error:  # a quotation mark without a partner
            raise UsageError(f"%%limosa: {error}") from None
        if options.end:
            self.end()
            return None
        if cell is None and options.pull is None and options.push is None and options.np is None and not options.new:
            raise UsageError(
                "%limosa takes --pull NAME, --push NAMES, --end, --new or -n N; code goes into a cell that begins with "
                "%%limosa"
            )
        try:
            group = self._processes(options.np, options.mpi, options.new)
            for name in options.push.split(",") if options.push is not None else ():
                if name not in self.shell.user_ns:
                    raise LookupError(f"the notebook has no variable {name!r} to push")
                group.push(name, self.shell.user_ns[name])
            if options.pull is not None:
                return group.pull(options.pull)
            if cell is not None:
                self._cells += 1
                self._status.begin()
                try:
                    answers = group.run(
                        cell, f"<cell {self._cells}>", parse_ranks(options.rank, group.size) if options.rank else None
                    )
                finally:
                    self._status.end()
                if said := _failure(answers):
                    raise CellError(said)
        except (GroupError, LookupError, ValueError) as error:
            raise UsageError(f"%%limosa: {error}") from None
        return None

    def _processes(self, n: int | None, library: str | None, new: bool) -> Group:
        """Give the processes, started now if there are none or if others are asked for."""
        if n is not None and n < 1:
            raise ValueError(f"-n is {n} but must be 1 or more")
        if self._group is not None and (new or not self._group.is_alive):
            n, library = n or self._group.size, library or self._group.library
            self.end()
        if self._group is not None:
            if n in {None, self._group.size} and library in {None, self._group.library}:
                return self._group
            before = f"{self._group.size} processes on {self._group.library}"
            n, library = n or self._group.size, library or self._group.library
            self.end()
            print(f"limosa: {n} new processes on {library}; the {before} and their variables are gone")
        self._group = Group(
            n or 2,
            library=library or "limosa",
            key="the stop button",
            figures=_show_figure,
            progress=self._status.update,
        )
        return self._group

    def end(self) -> None:
        """Let the processes leave."""
        if self._group is not None:
            self._group.end()
            self._group = None


LimosaMagics.limosa.__doc__ = __doc__  # what %limosa? shows


def load(shell: "InteractiveShell") -> None:
    """Register the magic: what ``%load_ext limosa`` does."""
    if type(getattr(shell.find_line_magic("limosa"), "__self__", None)) is LimosaMagics:
        return  # loaded again: the processes go on
    magics = LimosaMagics(shell)
    shell.register_magics(magics)
    atexit.register(magics.end)
