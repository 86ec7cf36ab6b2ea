"""The command line of ``limosa model``: measures the operations of MPI libraries and fits models of them."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path

from limosa_lab import records, studies
from limosa_lab.errors import LabError
from limosa_lab.java_library import MODELLED
from limosa_lab.model import library, measuring, report, samples, store
from limosa_lab.options import Options
from limosa_lab.terminal import Terminal, names, numbers

EPILOG = """examples:
  limosa model --quick                           Limosa, few sizes, 2, 3, 4 and 8 processes: a minute
  limosa model --against mpich,openmpi,intel     beside three other libraries, 2 to 8 processes: 20 minutes
  limosa model --against java,java-threads       Java beside C, with processes and with threads as ranks
  limosa model --operations send,bcast,scatter,allgather --ranks 4,8
  limosa model --report FOLDER                   the models of an earlier measurement again
  limosa model --resume FOLDER                   go on with a measurement that was interrupted
"""

# How long measuring takes for each library.
MINUTES = 4.5
QUICK_MINUTES = 0.75


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="limosa model",
        description="Measure the operations of MPI libraries, fit models of their time, and say how well these predict "
        "and which operations take longer than a combination of others.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    made.add_argument(
        "--against", type=names, default=[], metavar="NAMES", help=f"other libraries, too: {', '.join(MODELLED)}"
    )
    made.add_argument(
        "--operations", type=names, default=[], metavar="NAMES", help="such as send,bcast,allreduce; default: all"
    )
    made.add_argument("--ranks", type=numbers, default=[], metavar="N,...", help="numbers of ranks; default: 2 to 8")
    made.add_argument("--max-bytes", type=int, default=1 << 20, metavar="N", help="largest message (default: 1048576)")
    made.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help="time for all runs; what is uncertain is repeated until then "
        f"(default: {MINUTES:g} for each library, with --quick {QUICK_MINUTES:g})",
    )
    made.add_argument(
        "--rounds", type=int, metavar="N", help=f"repetitions of a case at most (default: {measuring.MOST_ROUNDS})"
    )
    made.add_argument(
        "--start",
        choices=("barrier", "window"),
        default="barrier",
        help="how the ranks begin a call together: after a barrier, or at a time that has been agreed on",
    )
    made.add_argument("--seed", type=int, default=1, metavar="N", help="of the random messages (default: 1)")
    made.add_argument("--quick", action="store_true", help="powers of four, fewer samples, one round")
    made.add_argument("--output", type=Path, metavar="DIR", help="folder for the results (default: limosa-model-TIME)")
    made.add_argument("--report", type=Path, metavar="DIR", help="measure nothing; fit the measurement in DIR again")
    made.add_argument("--resume", type=Path, metavar="DIR", help="go on with the interrupted measurement in DIR")
    made.add_argument(
        "--statistic",
        choices=samples.STATISTICS,
        default=samples.MEDIAN,
        help="time of an operation: the median of its calls, or the least (default: %(default)s)",
    )
    made.add_argument("--limosa", type=Path, metavar="DIR", help="environment in which Limosa is installed")
    return made


def model(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)
    terminal = Terminal("limosa model")
    folder = given.report or given.resume
    if given.resume:
        recorded = records.read(folder)
        measuring.begin(Options.recorded(recorded, folder), folder, terminal, recorded)
    elif folder is None:
        folder = given.output or Path(f"limosa-model-{time.strftime('%Y%m%d-%H%M%S')}")
        measuring.begin(_options(given), folder, terminal, None)
    recording = records.read(folder)
    terminal.say("fitting")
    known = {sample.library for sample in recording.samples}
    names_of_known = [name for name in recording.libraries() if name in known]
    measured = {name: samples.of_library(recording, name, given.statistic) for name in names_of_known}
    fitted = library.fit_all(measured, samples.apart(recording), given.statistic)
    if not any(fitted.values()):
        raise LabError(f"{folder} holds too few measurements for a model", hint="see the runs that failed above")
    studies.show(functools.partial(report.text, recording, fitted), terminal)
    for file in (store.write(recording, fitted, folder), *report.write(recording, fitted, folder)):
        terminal.say(f"wrote {file}")
    return 1 if any(not sample.verified for sample in recording.samples) else 0


def _options(given: argparse.Namespace) -> Options:
    if given.max_bytes < 64:
        raise LabError(f"--max-bytes {given.max_bytes}: models need messages of 64 bytes and more")
    rounds = given.rounds if given.rounds is not None else (1 if given.quick else measuring.MOST_ROUNDS)
    usual = (QUICK_MINUTES if given.quick else MINUTES) * (1 + len(given.against))
    minutes = given.minutes if given.minutes is not None else usual
    if rounds < 1:
        raise LabError(f"--rounds {rounds}: at least one round is needed")
    if minutes <= 0:
        raise LabError(f"--minutes {minutes:g}: a positive number is needed")
    sizes, validation = samples.wanted_sizes(given.max_bytes, given.seed, quick=given.quick)
    return Options(
        against=given.against,
        programs=[samples.PROGRAM],
        only=given.operations,
        ranks=given.ranks or ([2, 3, 4, 8] if given.quick else []),
        rounds=rounds,
        program_options=["--forms", "hot", "--start", given.start, *(["--quick"] if given.quick else [])],
        prefix=given.limosa,
        model={
            "sizes": sizes,
            "validation": validation,
            "seconds": 60 * minutes,
            "rounds": rounds,
        },
    )
