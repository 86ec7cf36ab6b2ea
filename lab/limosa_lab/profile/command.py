"""The command line of ``limosa profile``."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from limosa_lab import output, studies
from limosa_lab.profile import files, summary, trace
from limosa_lab.terminal import Terminal
from limosa_lab.wording import distinct

EPILOG = """examples:
  limosa run --profile -n 4 wave.py              records, and shows a summary at the end
  limosa profile limosa-profile-1234             the tables again, and report.html, matrix.csv in that folder
  limosa run --profile --profile-events 1000000 -n 4 wave.py
                                                 each call with its times, too: trace.json, which ui.perfetto.dev opens
  limosa profile diff FIRST SECOND               two profiles side by side: two libraries, or before and after
"""


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="limosa profile",
        description="Show what the calls of an MPI program cost.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    made.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="the profile; after `diff`, two of them")
    made.add_argument("--all", action="store_true", help="all functions, not only those that took most time")
    made.add_argument(
        "--callers",
        type=int,
        default=0,
        metavar="N",
        help="name up to N callers of each line of a Python program, too (at most 7 are recorded)",
    )
    made.add_argument("--after-run", action="store_true", help=argparse.SUPPRESS)
    return made


def profile(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    if arguments[:1] == ["diff"]:
        return _diff(arguments[1:])
    given = parser().parse_args(arguments)
    if len(given.folders) != 1:
        parser().error("one folder is shown at a time; `limosa profile diff FIRST SECOND` compares two")
    (folder,) = given.folders
    terminal = Terminal("limosa profile")
    processes = files.read(folder)
    if given.after_run:
        # On stderr, so that the program's own output stays what it is.
        terminal.console.print(
            _text(processes, given.all, given.callers, 120, False, brief=True), markup=False, soft_wrap=True, end=""
        )
    else:
        studies.show(functools.partial(_text, processes, given.all, given.callers), terminal)
    written = []
    if find_spec("matplotlib") is None:
        terminal.say("report.html and its figures need matplotlib: pip install 'limosa[lab]'")
    else:
        from limosa_lab.profile import page

        written.append(output.write(folder / "report.html", page.page(processes, "Profile")))
    sent = summary.matrix(processes)
    if sent is not None and sent.any():
        rows = "".join(",".join(f"{value:.0f}" for value in row) + "\n" for row in sent)
        written.append(output.write(folder / "matrix.csv", rows))
    if trace.write(processes, folder / "trace.json"):
        written.append(folder / "trace.json")
    for file in written:
        terminal.say(f"wrote {file}")
    return 0


def _text(
    processes: files.Profile, everything: bool, callers: int, width: int | None, colour: bool, brief: bool = False
) -> str:
    shown = [summary.functions(processes, None if everything else summary.FUNCTIONS_SHOWN)]
    if brief:
        shown.append(summary.sites(processes, None if everything else 5, callers))
        shown.append(summary.waiting_table(processes, 5))
    else:
        shown += summary.tables(processes, callers)[1:]
    parts = [table.text(width, colour) for table in shown if table.rows]
    parts += [f"warning: {trouble}\n" for trouble in summary.troubles(processes)]
    return "\n".join([*parts, summary.answer(processes) + "\n"])


def _diff(arguments: Sequence[str]) -> int:
    made = argparse.ArgumentParser(prog="limosa profile diff", description="Show two profiles side by side.")
    made.add_argument("first", type=Path, metavar="FIRST")
    made.add_argument("second", type=Path, metavar="SECOND")
    given = made.parse_args(arguments)
    both = [files.read(given.first), files.read(given.second)]
    first, second = distinct([given.first, given.second])
    shown = summary.compare(both[0], both[1], (first, second))
    left_out = [f"warning: {said}\n" for found in both for said in found.left_out]
    terminal = Terminal("limosa profile")
    studies.show(lambda *how: "\n".join([*(table.text(*how) for table in shown), *left_out]), terminal)
    return 0
