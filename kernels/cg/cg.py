"""The Poisson equation in two dimensions by the method of conjugate gradients, on several processes.

The square is cut into blocks, one per process; each holds the rows of its points as a CSR matrix of SciPy (`poisson`).
An iteration exchanges the faces of the search direction and adds up two inner products over all processes. (The thesis
adds up three; the third is known from the iteration before.) It ends when ``rho_k / rho_0`` is below the tolerance, rho
being the square of the residual.

Verified: the residual, computed afresh from the solution, and the distance from the exact solution.
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
from common.decomposition import Block
from common.program import Kernel, Measurement, RefusalError, main

PAPER_SIZES = (1025, 2049)
TOLERANCE = 1e-8


class Solver:
    """Conjugate gradients on one block.

    Parameters
    ----------
    block
        This process's part of the square.
    comm
        How the other parts are reached.

    """

    def __init__(self, block: Block, comm: Communication) -> None:
        from cg import poisson

        self._comm = comm
        self._halo = comm.halo(block)
        self._padded = np.zeros(block.padded)
        self._matrix = poisson.matrix(block)
        self.right_side = poisson.right_side(block)
        self.exact = poisson.exact(block)

    def product(self, values: np.ndarray) -> np.ndarray:
        """Give the matrix times a vector, of which each process has its points."""
        own = self._padded[1:-1, 1:-1]
        own[:] = values.reshape(own.shape)
        self._halo.exchange(self._padded)
        return self._matrix @ self._padded.ravel()

    def square(self, values: np.ndarray) -> float:
        """Give the inner product of a vector with itself, over all processes."""
        return self._comm.total(float(np.inner(values, values)))

    def solve(self, tolerance: float, most: int) -> tuple[np.ndarray, int]:
        """Iterate from x = b until rho_k/rho_0 is at most `tolerance`, or so often; give solution and iterations."""
        x = self.right_side.copy()
        residual = self.right_side - self.product(x)
        direction = residual.copy()
        rho = first = self.square(residual)
        iterations = 0
        while rho > tolerance * first and iterations < most:
            image = self.product(direction)
            step = rho / self._comm.total(float(np.inner(direction, image)))
            x += step * direction
            residual -= step * image
            before, rho = rho, self.square(residual)
            direction *= rho / before
            direction += residual
            iterations += 1
        return x, iterations


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    sizes = " and ".join(map(str, PAPER_SIZES))
    parser.add_argument(
        "--n", type=int, default=257, help=f"mesh points in each direction (default 257; in the paper {sizes})"
    )
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help=f"of rho_k/rho_0 (default {TOLERANCE:g})")
    parser.add_argument("--most", type=int, metavar="K", help="largest number of iterations (default 10 n)")


def complete(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the options."""
    if options.n < 2:
        parser.error(f"--n {options.n}: at least 2 points are needed in each direction")
    if not 0 < options.tolerance < 1:
        parser.error(f"--tolerance {options.tolerance:g}: a number between 0 and 1 is needed")
    if options.most is None:
        options.most = 10 * options.n
    if options.most < 1:
        parser.error("--most must be at least 1")


def title(comm: Communication, options: argparse.Namespace) -> str:
    """Say what will be done."""
    dims = " x ".join(map(str, block_of(comm, options.n).dims))
    return f"{options.n} x {options.n} points, rho_k/rho_0 to {options.tolerance:g}, {comm.size} processes as {dims}"


def block_of(comm: Communication, n: int) -> Block:
    """Give this process's block."""
    try:
        return Block.of(n, 2, comm.rank, comm.size)
    except ValueError as error:
        raise RefusalError(str(error)) from None


def run(comm: Communication, options: argparse.Namespace, say: Callable[[str, str], None]) -> list[Measurement]:
    """Solve, time, check."""
    solver = Solver(block_of(comm, options.n), comm)
    solver.solve(options.tolerance, most=2)
    comm.barrier()
    begin = time.perf_counter()
    solution, iterations = solver.solve(options.tolerance, options.most)
    comm.barrier()
    seconds = time.perf_counter() - begin

    first = solver.square(solver.right_side - solver.product(solver.right_side))
    left = solver.square(solver.right_side - solver.product(solution)) / first
    distance = (solver.square(solution - solver.exact) / solver.square(solver.exact)) ** 0.5
    right = left <= 1.01 * options.tolerance and distance <= options.tolerance**0.5
    say("iterations", f"{iterations} in {seconds:.2f} s, {1e3 * seconds / iterations:.3f} ms each")
    say(
        "residual",
        f"rho_k/rho_0 = {left:.2e}  ({'passed' if right else 'FAILED'}: the limit is {options.tolerance:.0e})",
    )
    say("distance from exact", f"{distance:.2e} of its length")
    x = {"n": options.n}
    return [
        Measurement("cg", "time", "s", [seconds], right, x=x),
        Measurement("cg", "iterations", "iterations", [iterations], right, x=x),
    ]


KERNEL = Kernel("cg", "Solve the 2-D Poisson equation by conjugate gradients.", add_options, complete, title, run)

if __name__ == "__main__":
    sys.exit(main(KERNEL))
