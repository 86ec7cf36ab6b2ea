"""The command line: ``python -m limosa_lab study thesis``, which ``limosa study thesis`` runs."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence

from limosa_lab import records, studies
from limosa_lab.errors import LabError
from limosa_lab.file_study.cli import study as files
from limosa_lab.java_study.command import study as java
from limosa_lab.libraries import PEERS
from limosa_lab.octave_study.command import study as octave
from limosa_lab.study import page, plan
from limosa_lab.study.measure import Options, measure
from limosa_lab.terminal import Terminal, names, numbers

EPILOG = """examples:
  limosa study thesis --quick                         two minutes: small meshes, Limosa and MPICH
  limosa study thesis                                 half an hour or so: every MPI library that is found
  limosa study thesis --full --ranks 1,2              the thesis's meshes; hours
  limosa study thesis --mpi limosa --mpi /opt/mpich --modules c,mpi4py,pypar
  limosa study thesis --report FOLDER                 the report of an earlier study again
"""


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = studies.parser(
        "limosa study",
        "Repeat a thesis that compared Python modules for MPI: micro-benchmarks and applications, every module and C, "
        "on every MPI library that is found.",
        EPILOG,
        quick="under two minutes: few sizes, small meshes",
        full="the thesis's sizes and meshes, up to 64 processes: hours",
    )
    made.add_argument(
        "study",
        choices=["thesis", "files", "java", "octave"],
        help="which study; `limosa study files -h`, `limosa study java -h` and `limosa study octave -h` are about the "
        "others",
    )
    made.add_argument(
        "--mpi",
        action="append",
        default=[],
        metavar="NAME",
        help=f"an MPI library; can be repeated: limosa, {', '.join(PEERS)} or a folder that holds one "
        "(default: all that are found)",
    )
    made.add_argument(
        "--modules", type=names, default=[], metavar="NAMES", help=f"some of {','.join(plan.MODULES)}; default: all"
    )
    made.add_argument(
        "--kernels", type=names, default=[], metavar="NAMES", help=f"some of {','.join(plan.KERNELS)}; default: all"
    )
    made.add_argument("--ranks", type=numbers, default=[], metavar="N,...", help="numbers of processes")
    made.add_argument("--rounds", type=int, metavar="N", help="how often everything is run")
    made.add_argument(
        "--time-limit", type=float, metavar="S", help="time limit of one job; a job that takes longer is shown as such"
    )
    return made


def study(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    others = {"files": files, "java": java, "octave": octave}
    if arguments[:1] and arguments[0] in others:
        return others[arguments[0]](arguments[1:])
    given = parser().parse_args(arguments)
    if given.rounds is not None and given.rounds < 1:
        raise LabError(f"--rounds {given.rounds}: at least one round is needed")
    if given.time_limit is not None and given.time_limit <= 0:
        raise LabError(f"--time-limit {given.time_limit:g}: a positive number of seconds is needed")
    terminal = Terminal("limosa study")
    folder = given.report
    if folder is None:
        folder = studies.new_folder(given)
        size_name = studies.size_of(given)
        size = {"quick": plan.QUICK, "normal": plan.NORMAL, "full": plan.FULL}[size_name]
        options = Options(
            size, size_name, given.mpi, given.modules, given.kernels, given.ranks, given.rounds, given.time_limit
        )
        measure(options, folder, terminal)
    recording = records.read(folder)
    if recording.environment["options"].get("study") != "thesis":
        raise LabError(f"{folder} does not hold a study", hint="its measurements are for `limosa bench --report`")
    studies.show(functools.partial(page.text, recording), terminal)
    for file in page.write(recording, folder):
        terminal.say(f"wrote {file}")
    return 1 if any(not sample.verified for sample in recording.samples) else 0
