"""The Mandelbrot set on several processes.

Each computes a block of columns; process 0 gathers them and can draw the picture.

What arrives on process 0 is compared with some columns computed there again. There is nothing to communicate until the
end.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.comm import Communication
from common.decomposition import share
from common.program import Kernel, Measurement, RefusalError, main
from mandelbrot import escape

PAPER_SIZE = 4800
CHECKED = 16  # columns that are computed again


def draw(path: str, picture: np.ndarray) -> None:
    """Draw the set."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.imsave(path, np.log1p(picture.T), cmap="magma", origin="lower")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--n", type=int, default=800, help=f"points in each direction (default 800; the paper's size is {PAPER_SIZE})"
    )
    parser.add_argument("--limit", type=int, default=100, help="largest number of steps for a point (default 100)")
    parser.add_argument("--png", metavar="FILE", help="draw the set")


def complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the options."""
    if options.n < 2 or not 2 <= options.limit < 1 << 15:
        parser.error("--n must be at least 2, --limit from 2 to 32767")


def title(comm: Communication, options: argparse.Namespace) -> str:
    """Say what will be done."""
    return f"{options.n} x {options.n} points, at most {options.limit} steps, {comm.size} processes"


def run(comm: Communication, options: argparse.Namespace, say: Callable[[str, str], None]) -> list[Measurement]:
    """Compute, gather, check."""
    n = options.n
    if comm.size > n:
        raise RefusalError(f"{comm.size} processes are too many for {n} columns")
    blocks = [share(n, comm.size, rank) for rank in range(comm.size)]
    comm.barrier()
    begin = time.perf_counter()
    mine = escape.columns(n, *blocks[comm.rank], options.limit)
    pieces = comm.gather(mine.ravel(), [(last - first) * n for first, last in blocks])
    seconds = time.perf_counter() - begin
    if pieces is None:
        return []
    picture = np.concatenate(pieces).reshape(n, n)
    again = np.linspace(0, n - 1, min(n, CHECKED)).astype(int)
    right = all(
        np.array_equal(picture[column], escape.columns(n, column, column + 1, options.limit)[0]) for column in again
    )
    say("time", f"{seconds:.3f} s")
    say("points in the set", f"{int(np.sum(picture == options.limit))} of {n * n}  ({'passed' if right else 'FAILED'})")
    if options.png:
        draw(options.png, picture)
        say("picture", os.path.abspath(options.png))
    return [Measurement("mandelbrot", "time", "s", [seconds], right, x={"n": n, "limit": options.limit})]


KERNEL = Kernel("mandelbrot", "The Mandelbrot set by blocks of columns.", add_options, complete, title, run)

if __name__ == "__main__":
    sys.exit(main(KERNEL))
