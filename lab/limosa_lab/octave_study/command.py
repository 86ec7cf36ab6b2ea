"""The command line of ``limosa study octave``."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence

from limosa_lab import studies
from limosa_lab.errors import LabError
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
    terminal = Terminal("limosa study")
    folder = given.report
    if folder is None:
        folder = studies.new_folder(given)
        measure.measure(measure.SIZES[studies.size_of(given)], folder, terminal)
    elif not (folder / measure.RESULTS).is_file():
        raise LabError(f"{folder} does not hold a study of Octave", hint=f"there is no {measure.RESULTS} in it")
    results = read(folder)
    studies.show(functools.partial(page.text, results), terminal)
    for file in page.write(results, folder):
        terminal.say(f"wrote {file}")
    return 1 if results.troubles else 0
