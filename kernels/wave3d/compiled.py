"""The time step of the wave equation for Numba. Import only if Numba is there."""

import numba
import numpy as np


@numba.njit(cache=True, error_model="numpy")
def step(now: np.ndarray, before: np.ndarray, weight: float, i0: int, i1: int, j0: int, j1: int, k0: int, k1: int) -> None:
    """Put the new values in the place of those before, at the points of a box given in places of the padded arrays."""
    middle = 2.0 - 6.0 * weight
    for i in range(i0, i1):
        for j in range(j0, j1):
            for k in range(k0, k1):
                around = now[i - 1, j, k] + now[i + 1, j, k] + now[i, j - 1, k] + now[i, j + 1, k] + now[i, j, k - 1] + now[i, j, k + 1]
                before[i, j, k] = weight * around + middle * now[i, j, k] - before[i, j, k]
