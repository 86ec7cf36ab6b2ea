"""Blurring a picture in steps: each rank needs its neighbours' borders, which travel while it computes inside.

A step replaces each point by the mean of 3 x 3 points, of which it is the first. So a block needs the first two rows
and columns of the blocks after it: an overlap of 2.
"""

from __future__ import annotations

import argparse

import limosa
import limosa.arrays as la
import numpy as np
from report import finish, timed


def mean(u: np.ndarray) -> np.ndarray:
    """Return the means of 3 x 3 points; there are two rows and columns less."""
    rows = u[:-2] + u[1:-1] + u[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9


def grid(size: int) -> tuple[int, int]:
    """Return a grid of processes that is as square as possible."""
    rows = max(k for k in range(1, int(size**0.5) + 1) if size % k == 0)
    return rows, size // rows


def step(u: la.Array) -> None:
    """Do a step."""
    exchange = u.isynch()
    owned = u.owned
    inside = mean(owned) if min(owned.shape) > 2 else None
    exchange.wait()
    rows, columns = (max(n - 2, 0) for n in u.local.shape)
    if rows and columns:  # the last two rows and columns of the picture remain
        made = np.empty((rows, columns))
        k, m = inside.shape if inside is not None else (0, 0)
        if inside is not None:
            made[:k, :m] = inside
        if rows > k:
            made[k:] = mean(u.local[k:])
        if columns > m and k:
            made[:k, m:] = mean(u.local[: k + 2, m:])
        u.local[:rows, :columns] = made


def main(n: int, steps: int) -> None:
    """Blur a picture."""
    start = np.random.default_rng(1).random((n, n))
    u = la.asarray(start, map=la.Map(grid(limosa.world.size), overlap=2))

    def run() -> None:
        for _ in range(steps):
            step(u)

    _, seconds = timed(run)
    whole = u.agg()
    error = 0.0
    if whole is not None:
        for _ in range(steps):
            start[:-2, :-2] = mean(start)
        error = float(np.abs(whole - start).max())
    finish(
        f"{steps} steps on {n} x {n} points: {steps * n * n / seconds / 1e6:.1f} million points/s",
        limosa.world.bcast(error),
        1e-12,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="points in each direction")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    main(options.n, options.steps)
