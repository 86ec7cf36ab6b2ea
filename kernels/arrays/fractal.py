"""The Mandelbrot set: columns dealt cyclically, gathered on rank 0, with a picture and the parallel efficiency."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import limosa
import limosa.arrays as la
import numpy as np
from report import finish, timed

sys.path.append(str(Path(__file__).resolve().parents[1]))

from mandelbrot import escape
from mandelbrot.mandelbrot import draw


def main(n: int, limit: int, png: str | None) -> None:
    """Compute the set and gather it."""
    world = limosa.world
    steps = la.zeros((n, n), np.int16, map=la.Map((world.size, 1), ["cyclic", "block"]))
    busy = 0.0

    def compute() -> np.ndarray | None:
        nonlocal busy
        start = time.process_time()
        for place, column in enumerate(steps.global_index()[0]):
            steps.local[place] = escape.columns(n, int(column), int(column) + 1, limit)[0]
        busy = time.process_time() - start
        return steps.agg()

    picture, seconds = timed(compute)
    efficiency = world.allreduce(busy) / (world.size * seconds)
    wrong = 0
    if picture is not None:
        for column in range(0, n, max(n // 16, 1)):
            wrong += int(np.count_nonzero(picture[column] != escape.columns(n, column, column + 1, limit)[0]))
        if png:
            draw(png, picture)
    finish(
        f"Mandelbrot set of {n} x {n} points in {seconds:.2f} s, parallel efficiency {100 * efficiency:.0f} %",
        world.bcast(wrong),
        0,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=800, help="points in each direction")
    parser.add_argument("--limit", type=int, default=100, help="largest number of steps for a point")
    parser.add_argument("--png", metavar="FILE", help="draw the set")
    options = parser.parse_args()
    main(options.n, options.limit, options.png)
