"""The command line of ``limosa study octave``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from limosa_lab import studies
from limosa_lab.octave_study import measure, page
from limosa_lab.octave_study.results import read
from limosa_lab.terminal import Terminal

EPILOG = """examples:
  limosa study octave --quick             two minutes or so: four lengths, 2 and 4 ranks
  limosa study octave --full              up to 256 MB, 16 ranks, the Mandelbrot set of 4800 x 4800
  limosa study octave --report FOLDER     the report of an earlier study again
"""


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    return studies.parser(
        "limosa study octave",
        "Measure messages and distributed arrays in Octave, beside C and Python.",
        EPILOG,
        quick="two minutes or so: four lengths, 2 and 4 ranks",
        full="up to 256 MB, 16 ranks, the Mandelbrot set of 4800 x 4800",
    )


def study(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)

    def measured(folder: Path, terminal: Terminal) -> None:
        measure.measure(measure.SIZES[studies.size_of(given)], folder, terminal)

    return studies.Kind("Octave", measure.RESULTS, read, page.text, page.write).run(given, measured)
