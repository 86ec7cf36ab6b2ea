"""The command line: ``python -m limosa_lab bench``, which ``limosa bench`` runs.

``study``, ``model``, ``tune``, ``profile`` and ``report`` have their own, in `limosa_lab.study.cli`,
`limosa_lab.model.command`, `limosa_lab.tune.command`, `limosa_lab.profile.command` and `limosa_lab.collection.command`.

Data (tables) goes to stdout, everything else to stderr. Exit codes: 0 success, 1 wrong data was found, 2 usage, 3
something outside refused (a library cannot be installed, a program not be compiled), 130 interrupted.
"""

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from limosa_lab import catalogue, records, report
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.java_library import MODELLED
from limosa_lab.measure import measure
from limosa_lab.options import Options
from limosa_lab.terminal import Terminal, names, numbers
from limosa_lab.wording import FORMS

# Words that stand before the options, and the modules with their command lines.
OTHERS = {
    "python": "python_overhead",
    "diff": "diff",
    "instructions": "instructions",
    "limit": "limit",
    "primitives": "languages",
}
# Modules with the other commands, each with a function of the command's name.
COMMANDS = {
    "model": "model.command",
    "predict": "predict.command",
    "profile": "profile.command",
    "report": "collection.command",
    "study": "study.cli",
    "tune": "tune.command",
}

EPILOG = """examples:
  limosa bench --quick                                  Limosa alone, a few minutes
  limosa bench --against mpich,openmpi,intel            everything, with three other libraries; takes hours
  limosa bench --against openmpi --programs coll --only allreduce,bcast --ranks 8
  limosa bench python --mpi limosa,mpich                ping-pong with C, mpi4py and import limosa (-h: options)
  limosa bench primitives --against mpich               each operation by itself, from C and from Python
  limosa bench instructions --against mpich             counted instructions of calls, which no noise touches
  limosa bench limit                                    the least time that this machine allows for a message
  limosa bench diff FOLDER FOLDER                       what has become slower or faster between two measurements
  limosa bench --report FOLDER                          the report of an earlier measurement

The other libraries are installed from the Python package index, each into its own environment in ~/.cache/limosa/peers.
"""


def forms(text: str) -> list[str]:
    """Read a list of forms."""
    found = names(text)
    if not found or not set(found) <= set(FORMS):
        raise argparse.ArgumentTypeError(f"`{text}` is not a list of {', '.join(FORMS)}")
    return found


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="limosa bench",
        description="Measure Limosa, alone or compared with other MPI libraries, with the same programs in turn.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    add_measurement(made)
    made.add_argument(
        "--output", type=Path, metavar="DIR", help="folder for samples, tables and plots (default: limosa-bench-TIME)"
    )
    made.add_argument(
        "--limosa", type=Path, metavar="DIR", help="environment in which Limosa is installed (default: this one)"
    )
    made.add_argument(
        "--before",
        type=Path,
        metavar="DIR",
        help="environment with an earlier Limosa, to compare with",
    )
    made.add_argument(
        "--report", type=Path, metavar="DIR", help="measure nothing; write the report of the measurement in DIR"
    )
    made.add_argument("--resume", type=Path, metavar="DIR", help="go on with the interrupted measurement in DIR")
    made.add_argument("--no-plots", action="store_true", help="tables only")
    made.add_argument(
        "--budgets",
        action="store_true",
        help="also judge the project's own budgets, most of them beside other libraries",
    )
    made.add_argument("--list", action="store_true", help="list the programs and groups")
    return made


def add_measurement(made: argparse.ArgumentParser) -> None:
    """Add the options that say what is measured, how often, and for how long."""
    made.add_argument(
        "--against", type=names, default=[], metavar="NAMES", help=f"libraries to compare with: {', '.join(MODELLED)}"
    )
    made.add_argument(
        "--programs",
        type=names,
        default=[],
        metavar="NAMES",
        help="programs or groups of them (see --list); default: all",
    )
    made.add_argument(
        "--only", type=names, default=[], metavar="NAMES", help="benchmarks, such as pingpong,allreduce; default: all"
    )
    made.add_argument(
        "--ranks",
        type=numbers,
        default=[],
        metavar="N,...",
        help="numbers of ranks; default: all at which a program runs",
    )
    made.add_argument(
        "--rounds", type=int, default=None, metavar="N", help="how often everything is run (default 3, with --quick 1)"
    )
    made.add_argument(
        "--forms",
        type=forms,
        default=[],
        metavar="FORMS",
        help="; ".join(f"{form}: {meaning}" for form, meaning in FORMS.items()),
    )
    made.add_argument("--min-bytes", type=int, metavar="N", help="smallest message")
    made.add_argument("--max-bytes", type=int, metavar="N", help="largest message")
    made.add_argument("--samples", type=int, metavar="N", help="samples of each benchmark in one run")
    made.add_argument(
        "--start",
        choices=("barrier", "window"),
        help="how the ranks begin together: after a barrier (default), or at a time that has been agreed on",
    )
    made.add_argument(
        "--quick", action="store_true", help="few sizes and samples, at most 8 ranks: minutes instead of hours"
    )
    made.add_argument(
        "--time-limit",
        type=float,
        default=None,
        metavar="S",
        help="time limit of one run (default 120 s, with --quick 30 s)",
    )


def options_of(given: argparse.Namespace) -> Options:
    """Turn the command line into options for a measurement."""
    program_options: list[str] = []
    for option in ("min_bytes", "max_bytes", "samples", "start"):
        if getattr(given, option) is not None:
            program_options += [f"--{option.replace('_', '-')}", str(getattr(given, option))]
    if given.forms:
        program_options += ["--forms", ",".join(given.forms)]
    if given.quick:
        program_options.append("--quick")
    rounds = given.rounds if given.rounds is not None else (1 if given.quick else 3)
    limit = given.time_limit if given.time_limit is not None else (30.0 if given.quick else 120.0)
    if rounds < 1:
        raise LabError(f"--rounds {rounds}: at least one round is needed")
    if limit <= 0:
        raise LabError(f"--time-limit {limit:g}: a positive number of seconds is needed")
    ranks = given.ranks or ([1, 2, 4, 8] if given.quick else [])
    return Options(
        against=given.against,
        programs=given.programs,
        only=given.only,
        ranks=ranks,
        rounds=rounds,
        limit=limit,
        program_options=program_options,
        prefix=given.limosa,
        before=given.before,
    )


def bench(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    if arguments and arguments[0] in OTHERS:
        other = importlib.import_module(f"limosa_lab.{OTHERS[arguments[0]]}")
        code: int = other.main(arguments[1:])
        return code
    given = parser().parse_args(arguments)
    terminal = Terminal("limosa bench")
    if given.list:
        available = catalogue.programs()
        print(
            "".join(f"{name:<16} ranks {', '.join(map(str, program.ranks))}\n" for name, program in available.items()),
            end="",
        )
        print(
            "".join(
                f"{group:<16} = {', '.join(member for member in members if member in available)}\n"
                for group, members in catalogue.GROUPS.items()
            ),
            end="",
        )
        return 0
    folder = given.report or given.resume
    if given.resume:
        recorded = records.read(folder)
        measure(Options.recorded(recorded, folder), folder, terminal, recorded)
    elif folder is None:
        folder = given.output or Path(f"limosa-bench-{time.strftime('%Y%m%d-%H%M%S')}")
        measure(options_of(given), folder, terminal)
    recording = records.read(folder)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(report.text(recording, terminal.width, colour, with_budgets=given.budgets), end="")
    for file in report.write(recording, folder, with_plots=not given.no_plots, with_budgets=given.budgets):
        terminal.say(f"wrote {file}")
    return 1 if any(not sample.verified for sample in recording.samples) else 0


def main(arguments: Sequence[str]) -> int:
    """Run the command named by the first argument; give the exit code."""
    if not arguments or arguments[0] not in {"bench", *COMMANDS}:
        print(
            f"usage: python -m limosa_lab {'|'.join(['bench', *COMMANDS])} [OPTIONS]  (-h lists them)", file=sys.stderr
        )
        return 2
    name = f"limosa {arguments[0]}"
    try:
        if arguments[0] == "bench":
            return bench(arguments[1:])
        module = importlib.import_module(f"limosa_lab.{COMMANDS[arguments[0]]}")
        code: int = getattr(module, arguments[0])(arguments[1:])
        return code
    except LabError as error:
        print(f"{name}: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return error.code
    except BrokenPipeError:
        # The reader of the tables has enough of them; what is still to be flushed has no reader either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        print(f"{name}: {about}{error.strerror or error}", file=sys.stderr)
        return ENVIRONMENT
    except KeyboardInterrupt:
        print(
            f"{name}: interrupted; what was measured until now is kept (--report shows it, --resume goes on)",
            file=sys.stderr,
        )
        return 130
