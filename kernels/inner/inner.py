"""The inner product of two vectors on several processes.

Each process holds its share of both vectors, multiplies and adds, and the sums meet on process 0. The elements are
small whole numbers, so the exact result is known and every order of additions gives it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: its threads would compete with the other processes

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.comm import Communication
from common.decomposition import share
from common.program import Kernel, Measurement, main

PAPER_SIZE = 1 << 18


def vectors(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Give the elements `first` to `last` of both vectors."""
    places = np.arange(first, last)
    return (places % 1000).astype(float), (places % 7 + 1).astype(float)


def exact(n: int) -> int:
    """Give the inner product of n elements in whole numbers."""
    places = np.arange(n)
    return int(np.sum((places % 1000) * (places % 7 + 1)))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--n", type=int, default=PAPER_SIZE, help="number of elements (default 2^18, as in the paper)")
    parser.add_argument(
        "--repeat", type=int, default=100, metavar="K", help="inner products that are timed together (default 100)"
    )


def complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the options."""
    if options.n < 1 or options.repeat < 1:
        parser.error("--n and --repeat must be at least 1")


def title(comm: Communication, options: argparse.Namespace) -> str:
    """Say what will be done."""
    return f"{options.n} elements, {options.repeat} times, {comm.size} processes"


def run(comm: Communication, options: argparse.Namespace, say: Callable[[str, str], None]) -> list[Measurement]:
    """Compute, time and check."""
    mine = vectors(*share(options.n, comm.size, comm.rank))
    result = comm.total_on_root(float(np.inner(*mine)))
    comm.barrier()
    begin = time.perf_counter()
    for _ in range(options.repeat):
        result = comm.total_on_root(float(np.inner(*mine)))
    comm.barrier()
    seconds = (time.perf_counter() - begin) / options.repeat
    if result is None:
        return []
    right = result == exact(options.n)
    say("inner product", f"{result:.0f}  ({'passed' if right else 'FAILED'}: exactly {exact(options.n)})")
    say("time", f"{1e6 * seconds:.1f} us each")
    return [Measurement("inner", "time", "s", [seconds], right, x={"n": options.n})]


KERNEL = Kernel("inner", "Inner product of two vectors on several processes.", add_options, complete, title, run)

if __name__ == "__main__":
    sys.exit(main(KERNEL))
