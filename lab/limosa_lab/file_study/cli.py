"""The command line of ``limosa study files``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from limosa_lab import studies
from limosa_lab.errors import LabError
from limosa_lab.file_study import measure, page
from limosa_lab.file_study.results import read
from limosa_lab.terminal import Terminal, names

EPILOG = """examples:
  limosa study files --quick                 a few minutes: few sizes, up to 8 processes
  limosa study files --disk /scratch/me      files on this disk beside files in memory
  limosa study files --hosts a,b --shared /nfs/me
                                             messages between hosts: files that they share, and files of each
  limosa study files --report FOLDER         the report of an earlier study again
"""


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = studies.parser(
        "limosa study files",
        "Measure messages that travel as files, beside plain message and lock files, and simulate broadcasts and "
        "aggregations by files on up to 8192 processes.",
        EPILOG,
        quick="a few minutes: few sizes, up to 8 processes",
        full="five rounds, arrays gathered from 16 processes",
    )
    made.add_argument("--disk", type=Path, metavar="DIR", default=Path(), help="folder on a disk (default: this one)")
    made.add_argument("--hosts", type=names, metavar="NAMES", default=[], help="measure between these hosts, too")
    made.add_argument("--shared", type=Path, metavar="DIR", help="with --hosts: a folder that all of them share")
    return made


def study(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)

    def measured(folder: Path, terminal: Terminal) -> None:
        size = measure.SIZES[studies.size_of(given)]
        measure.measure(size, folder, given.disk, cluster(given.hosts, given.shared), terminal)

    return studies.Kind("files", measure.RESULTS, read, page.text, page.write).run(given, measured)


def cluster(hosts: list[str], shared: Path | None) -> measure.Cluster:
    """Give the hosts of the command line."""
    if not hosts:
        return measure.Cluster()
    if len(hosts) < 2:
        raise LabError("--hosts: one host is no cluster", hint="name two or more, as in --hosts node1,node2")
    if shared is None or not shared.is_absolute():
        raise LabError("--hosts needs --shared with the absolute path of a folder that all of them share")
    return measure.Cluster(tuple(hosts), shared)
