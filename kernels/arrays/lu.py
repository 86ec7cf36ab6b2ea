"""HPL in small: a linear system by LU decomposition with partial pivoting, columns in blocks dealt cyclically.

The owner of a block of columns decomposes it and gives it to all; every rank then updates its columns to the right.
Needs SciPy.
"""

from __future__ import annotations

import argparse

import limosa
import limosa.arrays as la
import numpy as np
from report import finish, timed
from scipy.linalg import solve_triangular

world = limosa.world


def decompose(a: la.Array, block: int) -> np.ndarray:
    """Replace a matrix by its factors, the unit diagonal of the lower one left out; return the order of its rows."""
    n = a.shape[0]
    mine = a.global_index()[1]
    order = np.arange(n)
    for start in range(0, n, block):
        end = min(start + block, n)
        owner = start // block % world.size
        here = (mine >= start) & (mine < end)
        panel, swaps = world.bcast(_panel(a.local[start:, here]) if world.rank == owner else None, owner)
        for k, other in enumerate(swaps):
            rows = [start + k, start + other]
            a.local[rows] = a.local[rows[::-1]]
            order[rows] = order[rows[::-1]]
        if world.rank == owner:
            a.local[start:, here] = panel
        right = mine >= end
        width = end - start
        top = solve_triangular(panel[:width], a.local[start:end, right], lower=True, unit_diagonal=True)
        a.local[start:end, right] = top
        a.local[end:, right] -= panel[width:] @ top
    return order


def _panel(columns: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Decompose a few columns; return the factors, and for each row the one with which it was swapped."""
    panel, swaps = columns.copy(), []
    for k in range(panel.shape[1]):
        other = k + int(np.argmax(np.abs(panel[k:, k])))
        swaps.append(other)
        panel[[k, other]] = panel[[other, k]]
        panel[k + 1 :, k] /= panel[k, k]
        panel[k + 1 :, k + 1 :] -= np.outer(panel[k + 1 :, k], panel[k, k + 1 :])
    return panel, swaps


def solve(factors: la.Array, b: np.ndarray, block: int) -> np.ndarray:
    """Return the solution, on all ranks, of the system with these factors."""
    n = factors.shape[0]
    mine = factors.global_index()[1]
    x = b.copy()
    starts = list(range(0, n, block))
    for lower, turns in ((True, starts), (False, starts[::-1])):
        for start in turns:
            end = min(start + block, n)
            owner = start // block % world.size
            if world.rank == owner:
                columns = factors.local[:, (mine >= start) & (mine < end)]
                x[start:end] = solve_triangular(columns[start:end], x[start:end], lower=lower, unit_diagonal=lower)
                rest = slice(end, n) if lower else slice(0, start)
                x[rest] -= columns[rest] @ x[start:end]
            x = world.bcast(x, owner)
    return x


def main(n: int, block: int) -> None:
    """Solve a random system."""
    a = la.random.uniform((n, n), seed=1, map=la.Map((1, world.size), ["block", block])) - 0.5
    b = la.random.uniform(n, seed=2).agg_all() - 0.5

    def run() -> np.ndarray:
        factors = a.copy()
        order = decompose(factors, block)
        return solve(factors, b[order], block)

    x, seconds = timed(run)
    residual = np.abs((a @ x).agg_all() - b).max()
    norm = float(la.linalg.matrix_norm(a, ord=np.inf))
    scaled = residual / (np.finfo(float).eps * (norm * np.abs(x).max() + np.abs(b).max()) * n)
    finish(f"LU of {n} x {n}: {(2 / 3 * n**3 + 3 / 2 * n**2) / seconds / 1e9:.2f} GFLOP/s", float(scaled), 16.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--block", type=int, default=48)
    options = parser.parse_args()
    main(options.n, options.block)
