"""STREAM, LU, FFT and agg as ``limosa study octave`` compares them: ``beside_octave.py BENCH SAMPLES SIZES...``.

``lab/limosa_lab/octave_study/arrays.m`` has the same programs with pMatlab, and says what is printed. Needs SciPy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import limosa
import limosa.arrays as la
import numpy as np
from fourier import transform
from lu import decompose
from scipy.linalg import solve_triangular

world = limosa.world
Measured = tuple[list[float], float]


def timed(call: Callable[..., Any], samples: int) -> tuple[list[float], Any]:
    """Give the times that all ranks need for something, the first one left out, and what it returns the last time."""
    times = []
    for _ in range(samples + 1):
        made = None
        world.barrier()
        start = time.perf_counter()
        made = call()
        world.barrier()
        times.append(time.perf_counter() - start)
    return times[1:], made


def want(is_right: object, what: str) -> None:
    """Fail if a result is wrong."""
    if not is_right:
        raise ArithmeticError(f"{what}: the result is wrong")


def stream(n: int, samples: int) -> Measured:
    """STREAM's scale, add and triad."""
    a, b, c = la.full(n, 1.0), la.full(n, 2.0), la.full(n, 1.0)

    def loops() -> None:
        np.multiply(c, 3.0, out=b)
        np.add(a, b, out=c)
        np.multiply(c, 3.0, out=a)
        np.add(a, b, out=a)

    times, _ = timed(loops, samples)
    x, y, z = 1.0, 2.0, 1.0
    for _ in range(samples + 1):
        y = 3 * z
        z = x + y
        x = y + 3 * z
    want(all(float(la.max(abs(v - s))) <= 1e-12 * s for v, s in ((a, x), (b, y), (c, z))), "stream")
    return times, float(la.sum(a)) / n


def hpl(n: int, samples: int) -> Measured:
    """HPL: the LU factors of a matrix of which the blocks of columns are dealt in turn."""
    block = 48
    a = la.random.uniform((n, n), seed=1, map=la.Map((1, world.size), ["block", block])) - 0.5
    b = la.random.uniform(n, seed=2).agg_all() - 0.5
    copies = [a.copy() for _ in range(samples + 1)]
    factors: list[la.Array] = []

    def run() -> Any:
        factors.append(copies.pop())
        return decompose(factors[-1], block)

    times, order = timed(run, samples)
    whole, of_last = a.agg_all(), factors[-1].agg_all()
    x = solve_triangular(of_last, b[order], lower=True, unit_diagonal=True)
    x = solve_triangular(of_last, x)
    scale = np.finfo(float).eps * (np.linalg.norm(whole, np.inf) * abs(x).max() + abs(b).max()) * n
    want(abs(whole @ x - b).max() < 16 * scale, "hpl")
    return times, float(np.linalg.norm(x))


def fourier(n: int, samples: int) -> Measured:
    """FFT of a long vector, as a matrix."""
    rows = 1 << (n.bit_length() - 1) // 2
    by_columns = la.Map((1, world.size))
    real, imaginary = (la.random.uniform((rows, n // rows), seed=seed, map=by_columns) for seed in (1, 2))
    x = real + 1j * imaginary
    times, made = timed(lambda: transform(x), samples)
    given, found = x.agg(), made.agg()
    if given is None or found is None:
        return times, 0.0
    # The transform comes with element k1 + rows * k2 at k2, k1.
    want(np.linalg.norm(found.ravel() - np.fft.fft(given.ravel())) <= 1e-12 * np.linalg.norm(found), "fft")
    return times, float(np.linalg.norm(found) + abs(found.ravel()[1]))


def gather(length: int, samples: int) -> Measured:
    """Gather a matrix of this many bytes on rank 0."""
    n = round((length / 8) ** 0.5)
    x = la.random.uniform((n, n), seed=1, map=la.Map((1, world.size)))
    times, whole = timed(x.agg, samples)
    return times, 0.0 if whole is None else float(whole.sum()) / n**2


def main(bench: str, samples: int, sizes: list[int]) -> None:
    """Run one program at some sizes."""
    program = {"stream": stream, "hpl": hpl, "fft": fourier, "agg": gather}[bench]
    for size in sizes:
        times, check = program(size, samples)
        if world.rank == 0:
            print("python", size, f"={check:.12g}", *(f"{seconds:.3e}" for seconds in times), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3:]])
