"""STREAM: the bandwidth of memory with distributed vectors. Nothing is communicated but the check."""

from __future__ import annotations

import argparse

import limosa.arrays as la
import numpy as np
from report import finish, timed

SCALE = 3.0


def main(n: int, trials: int) -> None:
    """Run the four loops some times."""
    a, b, c = la.full(n, 1.0), la.full(n, 2.0), la.full(n, 0.0)

    def triad() -> None:
        np.multiply(c, SCALE, out=a)
        np.add(a, b, out=a)

    loops = [
        ("copy", 2, lambda: np.positive(a, out=c)),
        ("scale", 2, lambda: np.multiply(c, SCALE, out=b)),
        ("add", 3, lambda: np.add(a, b, out=c)),
        ("triad", 5, triad),  # NumPy goes through `a` twice more
    ]
    best = dict.fromkeys([name for name, _, _ in loops], float("inf"))
    x, y, z = 1.0, 2.0, 0.0
    for _ in range(trials):
        for name, _, loop in loops:
            best[name] = min(best[name], timed(loop)[1])
        z = x
        y = SCALE * z
        z = x + y
        x = SCALE * z + y
    error = max(float(la.max(abs(v - s))) / s for v, s in ((a, x), (b, y), (c, z)))
    rates = ", ".join(f"{name} {passes * 8 * n / best[name] / 1e9:.2f}" for name, passes, _ in loops)
    finish(f"STREAM of {n} elements, GB/s: {rates}", error, 1e-13)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000_000, help="elements of each of the three vectors")
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args()
    main(options.n, options.trials)
