"""The command line of ``limosa study java``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from limosa_lab import studies
from limosa_lab.errors import LabError
from limosa_lab.java_study import measure, page
from limosa_lab.java_study.results import read
from limosa_lab.terminal import Terminal

EPILOG = """examples:
  limosa study java --quick             two minutes or so: four lengths, kernels of size A
  limosa study java --sizes ABC         the kernels of all sizes
  limosa study java --mpj ~/mpj         MPJ Express beside, from the folder that it calls MPJ_HOME
  limosa study java --report FOLDER     the report of an earlier study again
"""


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = studies.parser(
        "limosa study java",
        "Measure messages, collectives and kernels in Java, with ranks as processes and as threads, beside C.",
        EPILOG,
        quick="two minutes or so: four lengths, kernels of size A",
        full="kernels of sizes A, B and C, five rounds: hours",
    )
    made.add_argument("--sizes", metavar="LETTERS", help="sizes of the kernels: some of ABC (default: AB)")
    made.add_argument("--mpj", type=Path, metavar="DIR", help="measure MPJ Express, too, which is in this folder")
    return made


def study(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)

    def measured(folder: Path, terminal: Terminal) -> None:
        measure.measure(_size(given), folder, terminal, given.mpj)

    return studies.Kind("Java", measure.RESULTS, read, page.text, page.write).run(given, measured)


def _size(given: argparse.Namespace) -> measure.Size:
    size = measure.SIZES[studies.size_of(given)]
    if given.sizes is None:
        return size
    unknown = sorted(set(given.sizes) - set("ABC"))
    if unknown or not given.sizes:
        raise LabError(f"--sizes {given.sizes}: the kernels have the sizes A, B and C", hint="for example --sizes AB")
    return replace(size, sizes="".join(sorted(set(given.sizes))))
