"""Writes crates/limosa-cli/src/python_commands.json: the options of the commands that are written in Python.

usage: python python/tools/python_commands.py

Shell completion and man pages are made by the command `limosa`, which cannot ask Python each time. The parsers of these
commands stay the only definition: `tests/tidy/test_python_commands.py` fails when the file is not what this writes.
Needs the packages of the laboratory.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "crates/limosa-cli/src/python_commands.json"
LABORATORY = ["bench", "model", "predict", "profile", "report", "study", "tune"]
JOBS = ["submit", "status", "log", "cancel"]


class CapturedError(Exception):
    """Carries the parser that a command was about to use."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


@contextmanager
def sources() -> Iterator[None]:
    """Import Limosa's packages from this checkout."""
    with mock.patch.object(
        sys, "path", [str(ROOT / "python"), str(ROOT / "python/toplevel"), str(ROOT / "lab"), *sys.path]
    ):
        yield


def parser_of(command: str) -> argparse.ArgumentParser:
    """Give the parser of a command: run it until it reads its command line."""

    def capture(parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise CapturedError(parser)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", capture):
        try:
            if command in LABORATORY:
                from limosa_lab import cli

                cli.main([command])
            elif command in JOBS:
                from limosa import jobs

                jobs.main([command])
            elif command == "shell":
                from limosa import shell

                shell.main()
            else:
                from limosa import modernize

                modernize.main()
        except CapturedError as captured:
            return captured.parser
    raise AssertionError(f"limosa {command} reads no command line")


def described(action: argparse.Action, formatter: argparse.HelpFormatter) -> dict[str, Any]:
    """Describe an option or argument."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    about: dict[str, Any] = {"help": formatter._expand_help(action)} if action.help else {}
    if action.option_strings:
        # What clap knows: one letter behind one dash, and words behind two.
        about["options"] = [word for word in action.option_strings if word.startswith("--") or len(word) == 2]
        if action.nargs != 0:
            about["value"] = name
    else:
        about["value"] = name
        about["many"] = action.nargs not in {None, "?"}
    if action.choices is not None:
        about["choices"] = [str(choice) for choice in action.choices]
    return about


def describe(command: str) -> dict[str, Any]:
    """Describe a command."""
    parser = parser_of(command)
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    formatter = argparse.HelpFormatter(parser.prog, width=1000)
    return {
        "about": parser.description,
        "epilog": parser.epilog or "",
        "arguments": [described(action, formatter) for action in shown],
    }


def text() -> str:
    """Give the text of the file."""
    with sources():
        commands = {command: describe(command) for command in [*LABORATORY, *JOBS, "shell", "modernize"]}
    return json.dumps(commands, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
