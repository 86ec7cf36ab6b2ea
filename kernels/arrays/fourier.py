"""A Fourier transform of one long vector: as a matrix, whose columns and rows are transformed in turn.

The vector x of length ``rows * columns`` is the matrix ``x[j1, j2]`` in C order. Then, with w = exp(-2 pi i / n), the
transform is ``X[k1 + rows * k2] = sum over j2 of w^(rows j2 k2) w^(j2 k1) sum over j1 of w^(columns j1 k1) x[j1, j2]``:
transforms along one axis, factors, transforms along the second one. Between them the matrix is dealt anew, all to all.
"""

from __future__ import annotations

import argparse
import math

import limosa
import limosa.arrays as la
import numpy as np
from report import finish, timed


def transform(x: la.Array) -> la.Array:
    """Return the transform of a matrix that is dealt by columns, transposed."""
    rows, columns = x.shape
    first = la.fft.fft(x, axis=0)
    k1, j2 = np.ix_(*first.global_index())
    first.local[...] *= np.exp(-2j * np.pi / (rows * columns) * (k1 * j2))
    return la.fft.fft(first.remap(la.Map((limosa.world.size, 1))), axis=1).T


def main(rows: int, columns: int) -> None:
    """Transform random numbers and tones."""
    n = rows * columns
    by_columns = la.Map((1, limosa.world.size))
    real, imaginary = (la.random.normal((rows, columns), seed=seed, map=by_columns) for seed in (1, 2))
    made, seconds = timed(lambda: transform(real + 1j * imaginary), 3)
    # Parseval's theorem, and a tone, of which one element is left.
    energy = float(la.sum(real * real + imaginary * imaginary))
    error = abs(float(la.sum(abs(made) ** 2)) / n / energy - 1)
    tone = n // 3
    wave = la.from_function(
        lambda i, j: np.exp(2j * np.pi * ((i * columns + j) * tone % n) / n), (rows, columns), map=by_columns
    )
    peak = transform(wave)
    peak[tone // rows, tone % rows] -= n
    error = max(error, float(la.max(abs(peak))) / n)
    finish(f"FFT of {n} elements: {5 * n * math.log2(n) / seconds / 1e9:.2f} GFLOP/s", error, 1e-11)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--columns", type=int, default=1024)
    options = parser.parse_args()
    main(options.rows, options.columns)
