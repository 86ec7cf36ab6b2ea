"""``limosa bench limit``: the least time that this machine allows for a message between two processes (``limit.c``).

Each size is copied in every way that two processes on one machine have: through a shared memory that the receiver
copies from, or both copy; by cross-memory attach, which is a system call; and in two copies through a ring, for which
the best piece counts. The best way is the limit of a library. `limosa bench` measures it in each round that has
ping-pong or ping-ping, and its tables show Limosa's time as a multiple of it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from limosa_lab import build
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.records import Sample, parse_line
from limosa_lab.tables import Table
from limosa_lab.wording import FORMS, number, size

SOURCE = Path(__file__).with_name("limit.c")
# Seconds. A measurement takes some 10 s, with --quick 1; it takes longer where other programs need the processors.
_LIMIT = 120.0


def main(arguments: Sequence[str]) -> int:
    """Measure as the command line says and print tables; give the exit code."""
    made = argparse.ArgumentParser(
        prog="limosa bench limit",
        description="Measure the least time that this machine allows for a message between two processes, without "
        "MPI: one copy by the receiver or shared by both, cross-memory attach, and two copies through a ring.",
    )
    made.add_argument("--quick", action="store_true", help="few sizes, some seconds")
    given = made.parse_args(arguments)
    samples = measure(given.quick)
    for table in tables(samples):
        print(table.text())
    wrong = sorted({f"{sample.x['way']}, {size(sample.bytes)}" for sample in samples if not sample.verified})
    if wrong:
        print(f"limosa bench limit: wrong bytes, and no times: {'; '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def measure(quick: bool) -> list[Sample]:
    """Give the samples of all ways, sizes, forms and directions; ``x`` names the way, its piece and the directions.

    Raises
    ------
    LabError
        If there are no two processors or no compiler, or if others need the processors all the time.

    """
    program = build.compiled_without_mpi(SOURCE)
    try:
        done = subprocess.run(
            [str(program), *(["--quick"] if quick else [])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise LabError(
            f"the measurement of the limit took more than {_LIMIT:.0f} s",
            hint="its two processes need a processor each; wait until other programs have ended",
            code=ENVIRONMENT,
        ) from None
    if done.returncode not in {0, 1}:
        raise LabError("the limit cannot be measured: it needs two processors and 36 MB of memory", code=ENVIRONMENT)
    return [
        parse_line(line, library="limit", program="limit", ranks=2, round_number=0) for line in done.stdout.splitlines()
    ]


def tables(samples: Iterable[Sample]) -> list[Table]:
    """Give a table for each form and number of directions: a row for each size, a column for each way."""
    cells: dict[tuple[int, str], dict[int, dict[str, tuple[float, int]]]] = {}
    for sample in samples:
        row = cells.setdefault((sample.x["directions"], sample.form), {}).setdefault(sample.bytes, {})
        median, way = statistics.median(sample.samples), sample.x["way"]
        if sample.verified and (way not in row or median < row[way][0]):
            row[way] = (median, sample.x["piece"])
    found = []
    for (directions, form), rows in cells.items():
        ways = list(dict.fromkeys(way for row in rows.values() for way in row))
        both = "both directions at once" if directions == 2 else "one way"
        table = Table(f"Limit of this machine, {both}, {FORMS[form]}: time in us, median", ["size", *ways])
        for nbytes, row in rows.items():
            table.rows.append([size(nbytes), *(_cell(*row[way], nbytes) if way in row else "-" for way in ways)])
        found.append(table)
    return found


def _cell(median: float, piece: int, nbytes: int) -> str:
    return number(median) + (f" (pieces of {size(piece)})" if 0 < piece < nbytes else "")
