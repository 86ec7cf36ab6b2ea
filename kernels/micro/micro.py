"""Micro-benchmarks of the thesis: ping-pong, broadcast, reduce, allreduce, for messages of 8 bytes to 8 MB.

The clock is read outside the loop over the operations, as the thesis did; a sample is the mean of one loop. Ping-pong
counts half of a round trip. A loop of collectives ends with a barrier, so that no rank's work is left out.

Every operation is verified once at each size, before it is timed. An operation that is slow takes part with fewer
iterations, so that no size takes longer than ``--seconds``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.comm import Communication
from common.program import Kernel, Measurement, RefusalError, main

ITERATIONS = 200
LARGEST = 1 << 23
BENCHES = ("pingpong", "bcast", "reduce", "allreduce")

Operation = Callable[[], None]


def sizes(smallest: int, largest: int, factor: int) -> list[int]:
    """Give the message sizes in bytes, the largest always among them."""
    found = []
    while smallest < largest:
        found.append(smallest)
        smallest *= factor
    return [*found, largest]


def operation(
    comm: Communication, bench: str, mine: np.ndarray, into: np.ndarray
) -> tuple[Operation, Callable[[], bool]]:
    """Give an operation on two arrays, and a check that says whether its last result was right."""
    mine[:], into[:] = comm.rank + 1, 0
    last = [into]
    total = comm.size * (comm.size + 1) / 2
    partner = 1 - comm.rank

    def pingpong() -> None:
        if comm.rank == 0:
            comm.send(mine, partner)
            last[0] = comm.receive(into, partner)
        else:
            last[0] = comm.receive(into, partner)
            comm.send(mine, partner)

    def bcast() -> None:
        last[0] = comm.broadcast(mine)

    def reduce() -> None:
        last[0] = comm.reduce(mine, into)

    def allreduce() -> None:
        last[0] = comm.allreduce(mine, into)

    expected = {"pingpong": partner + 1, "bcast": 1, "reduce": total, "allreduce": total}[bench]

    def check() -> bool:
        return (bench == "reduce" and comm.rank != 0) or bool(
            np.shape(last[0]) == mine.shape and np.all(last[0] == expected)
        )

    return {"pingpong": pingpong, "bcast": bcast, "reduce": reduce, "allreduce": allreduce}[bench], check


def timed(comm: Communication, work: Operation, iterations: int) -> float:
    """Give the seconds that so many operations take, together with the barrier after them."""
    comm.barrier()
    begin = time.perf_counter()
    for _ in range(iterations):
        work()
    comm.barrier()
    return time.perf_counter() - begin


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--only", default=",".join(BENCHES), metavar="NAMES", help=f"some of {','.join(BENCHES)}")
    parser.add_argument("--min-bytes", type=int, default=8, metavar="N", help="smallest message (default 8)")
    parser.add_argument("--max-bytes", type=int, default=LARGEST, metavar="N", help="largest message (default 8 MB)")
    parser.add_argument("--factor", type=int, default=2, metavar="N", help="from one size to the next (default 2)")
    parser.add_argument(
        "--iterations", type=int, default=ITERATIONS, metavar="N", help=f"operations in a loop (default {ITERATIONS})"
    )
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="longest time for a loop (default 2)")


def complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the options."""
    options.only = options.only.split(",")
    unknown = [name for name in options.only if name not in BENCHES]
    if unknown:
        parser.error(f"there is no benchmark `{unknown[0]}`; known: {', '.join(BENCHES)}")
    if not 8 <= options.min_bytes <= options.max_bytes or options.min_bytes % 8 or options.max_bytes % 8:
        parser.error("--min-bytes and --max-bytes must be multiples of 8, the second not below the first")
    if options.factor < 2 or options.iterations < 1 or options.seconds <= 0:
        parser.error("--factor must be at least 2, --iterations at least 1, --seconds positive")


def title(comm: Communication, options: argparse.Namespace) -> str:
    """Say what will be done."""
    return f"{', '.join(options.only)}, {options.min_bytes} to {options.max_bytes} bytes, {comm.size} processes"


def run(comm: Communication, options: argparse.Namespace, say: Callable[[str, str], None]) -> list[Measurement]:
    """Measure and check."""
    if comm.size < 2:
        raise RefusalError("at least 2 processes are needed")
    if "pingpong" in options.only and comm.size != 2:
        raise RefusalError(f"pingpong is for 2 processes, not {comm.size}; leave it out with --only")
    found = []
    memory = np.full((2, options.max_bytes // 8), 0.0)
    for bench in options.only:
        for size in sizes(options.min_bytes, options.max_bytes, options.factor):
            work, check = operation(comm, bench, *memory[:, : size // 8])
            work()
            right = comm.total(float(not check())) == 0
            probe = comm.total(timed(comm, work, 2)) / (2 * comm.size)
            iterations = max(1, min(options.iterations, int(options.seconds / probe)))
            seconds = timed(comm, work, iterations) / iterations / (2 if bench == "pingpong" else 1)
            found.append(Measurement(bench, "time", "us", [1e6 * seconds], right, size=size))
            say(
                f"{bench} {size}",
                f"{1e6 * seconds:.2f} us, {size / seconds / 1e6:.0f} MB/s" + ("" if right else "  FAILED"),
            )
    return found


KERNEL = Kernel("micro", "Ping-pong, broadcast, reduce and allreduce.", add_options, complete, title, run)

if __name__ == "__main__":
    sys.exit(main(KERNEL))
