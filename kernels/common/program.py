"""How a kernel becomes a program: options, one voice for all processes, a line of JSON for the laboratory, exit code.

Exit codes: 0 the result is right, 1 it is wrong, 2 the program cannot run like this.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.comm import Communication, communication, modules

# What a package that may be missing is for, and how to get it.
OPTIONAL = {
    "mpi4py": "python -m limosa.install_mpi4py",
    "numba": "python -m pip install numba",
    "scipy": "python -m pip install scipy",
    "matplotlib": "python -m pip install matplotlib",
    "rich": "python -m pip install rich",
}


class RefusalError(Exception):
    """The program cannot run like this; the message says why and what to do. Raised on all processes alike."""


@dataclass
class Measurement:
    """One measured number, as the laboratory keeps it (`limosa_lab.records.Sample`).

    Attributes
    ----------
    bench, metric, unit
        What was measured.
    samples
        Raw values in `unit`.
    verified
        Whether the result was right.
    size
        Bytes of a message, 0 where that has no meaning.
    x
        Further parameters, such as the mesh.

    """

    bench: str
    metric: str
    unit: str
    samples: list[float]
    verified: bool
    size: int = 0
    x: dict[str, Any] = field(default_factory=dict)


@dataclass
class Kernel:
    """A kernel as the programs see it.

    Attributes
    ----------
    name, description
        For the command line.
    add_options
        Adds its options to a parser.
    complete
        Checks the options and fills in what follows from others; may call ``parser.error``.
    title
        Says in a few words what will be done.
    run
        Does it. Gives measurements on process 0 (the other processes' are ignored) and says things for people by the
        function it is given: ``say(label, text)``.

    """

    name: str
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    complete: Callable[[argparse.ArgumentParser, argparse.Namespace], None]
    title: Callable[[Communication, argparse.Namespace], str]
    run: Callable[[Communication, argparse.Namespace, Callable[[str, str], None]], list[Measurement]]

    def parser(self) -> argparse.ArgumentParser:
        """Give the parser of the kernel's own options."""
        made = argparse.ArgumentParser(prog=self.name, description=self.description)
        self.add_options(made)
        return made

    def options(self, parser: argparse.ArgumentParser, words: Sequence[str] | None = None) -> argparse.Namespace:
        """Read and complete a command line."""
        given = parser.parse_args(words)
        self.complete(parser, given)
        return given


def main(kernel: Kernel) -> int:
    """Run one kernel as a program of its own; give the exit code."""
    parser = kernel.parser()
    _add_common_options(parser)

    def read() -> tuple[argparse.Namespace, list[tuple[Kernel, argparse.Namespace]]]:
        options = kernel.options(parser)
        return options, [(kernel, options)]

    return _program(parser.prog, read)


def main_of_several(kernels: dict[str, Kernel]) -> int:
    """Run several kernels in one job, as ``run.py`` does; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="run", description="Run several kernels in one job, with one module that communicates."
    )
    _add_common_options(parser)
    parser.add_argument(
        "kernels",
        nargs="+",
        metavar="KERNEL",
        help=f"a kernel with its options in one word, such as 'wave3d --n 65': {', '.join(kernels)}",
    )

    def read() -> tuple[argparse.Namespace, list[tuple[Kernel, argparse.Namespace]]]:
        given = parser.parse_args()
        todo = []
        for text in given.kernels:
            name, *words = shlex.split(text) or [""]
            if name not in kernels:
                parser.error(f"there is no kernel `{name}`; known: {', '.join(kernels)}")
            todo.append((kernels[name], kernels[name].options(kernels[name].parser(), words)))
        return given, todo

    return _program("run", read)


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all programs have."""
    parser.add_argument(
        "--comm",
        default="mpi4py",
        metavar="NAME",
        help=f"module that communicates: {', '.join(modules())} (default mpi4py)",
    )
    parser.add_argument("--json", action="store_true", help="print measurements as JSON, a line each, and nothing else")


def _program(name: str, read: Callable[[], tuple[argparse.Namespace, list[tuple[Kernel, argparse.Namespace]]]]) -> int:
    """Read the command line quietly, start the module, run the kernels; only process 0 explains what is wrong."""
    said, exited = io.StringIO(), None
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            given, todo = read()
        except SystemExit as error:
            exited = error
    if exited is not None:
        if _first():
            print(said.getvalue(), end="", file=sys.stderr if exited.code else sys.stdout)
        return int(exited.code or 0)
    try:
        comm = communication(given.comm)
    except (ImportError, ValueError) as error:
        return _fail(name, _explain(error))
    try:
        codes = [_run(kernel, comm, options, given.json) for kernel, options in todo]
    except RefusalError as error:
        return _fail(name, str(error))
    except ModuleNotFoundError as error:
        return _fail(name, _explain(error))
    return max(codes)


def _run(kernel: Kernel, comm: Communication, options: argparse.Namespace, as_json: bool) -> int:
    """Run one kernel, tell what came out, and give the exit code, the same on all processes."""
    chief = comm.rank == 0
    talking = chief and not as_json

    def say(label: str, text: str) -> None:
        if talking:
            print(f"  {label:<22} {text}", flush=True)

    if talking:
        print(f"{kernel.name}: {kernel.title(comm, options)}")
        say("library", comm.library() + ("" if comm.name == "mpi4py" else f", by way of {comm.name}"))
    found = kernel.run(comm, options, say)
    wrong = chief and not all(measurement.verified for measurement in found)
    if chief and as_json:
        for measurement in found:
            print(json_line(measurement, comm), flush=True)
    return int(comm.total(float(wrong)) > 0)


def json_line(measurement: Measurement, comm: Communication) -> str:
    """Write a measurement as the laboratory reads it."""
    return json.dumps(
        {
            "bench": measurement.bench,
            "bytes": measurement.size,
            "ranks": comm.size,
            "metric": measurement.metric,
            "unit": measurement.unit,
            "samples": measurement.samples,
            "verified": bool(measurement.verified),
            "x": {"module": comm.name, **measurement.x},
        }
    )


def _explain(error: Exception) -> str:
    """Say what is wrong and how to get what is missing."""
    missing = (getattr(error, "name", None) or "").partition(".")[0]
    if missing in OPTIONAL:
        return f"needs {missing}, which is not installed for {sys.executable}\nhint: {OPTIONAL[missing]}"
    return str(error)


def _fail(name: str, text: str) -> int:
    """Print an error once for all processes; give the exit code."""
    if _first():
        print(f"{name}: {text}", file=sys.stderr, flush=True)
    return 2


def _first() -> bool:
    """Tell whether this is process 0. All modules sit on mpi4py; without it, everyone is the first."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return True
    return MPI.COMM_WORLD.rank == 0
