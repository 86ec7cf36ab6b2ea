"""The explicit scheme of the wave equation: start, exact solution, walls, and one time step in three ways.

Solves ``u_tt = laplace(u)`` on the unit cube with walls that reflect (the derivative across the boundary is zero),
starting at rest from ``2 cos(pi x) cos(pi y) cos(pi z)``: second order in space and time, with the 7-point star. No
communication here.

The start is an eigenfunction of the scheme itself, so its solution is known exactly: each step turns the phase by ``w
dt`` with ``sin(w dt / 2) = sqrt(3) dt/h sin(pi h / 2)``.

A step takes the values now and those before, and puts the new ones in the place of the latter, at the points of a box:
``after = 2 now - before + weight (sum of the six neighbours - 6 now)`` with ``weight = (dt/h)^2``. At rest, the values
before the start equal those after the first step; that step is the same one with ``before = now`` and half the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from common.decomposition import Block, Box, view

Step = Callable[[np.ndarray, np.ndarray, float, Box], None]
"""A time step: (values now, values before, weight, box)."""


def phase_per_step(h: float, dt: float) -> float:
    """w dt of the scheme's own solution 2 cos(w t) cos(pi x) cos(pi y) cos(pi z)."""
    return 2 * math.asin(math.sqrt(3) * dt / h * math.sin(math.pi * h / 2))


def stable_step(n: int) -> float:
    """Give the longest time step at which the scheme is stable, for n points in each direction."""
    return 1 / (n - 1) / math.sqrt(3)


def mode(block: Block) -> np.ndarray:
    """Give 2 cos(pi x) cos(pi y) cos(pi z) at a block's own points."""
    x, y, z = (
        np.cos(np.pi * np.arange(first, first + points) / (block.n - 1))
        for first, points in zip(block.start, block.shape, strict=True)
    )
    return 2 * x[:, None, None] * y[None, :, None] * z[None, None, :]


def reflect(u: np.ndarray, block: Block) -> None:
    """Fill the ghost layers beyond the walls: the mirror image of the layer inside."""
    for axis, (below, above) in enumerate(block.neighbours):
        layers = np.moveaxis(u, axis, 0)
        if below is None:
            layers[0] = layers[2]
        if above is None:
            layers[-1] = layers[-3]


def slices(now: np.ndarray, before: np.ndarray, weight: float, box: Box) -> None:
    """Take a step as one expression of slices, as the thesis wrote it: a pass over memory for each operation."""
    star = (
        weight * (view(now, box, 2, 1) + view(now, box, 2, -1))
        + weight * (view(now, box, 1, 1) + view(now, box, 1, -1))
        + weight * (view(now, box, 0, 1) + view(now, box, 0, -1))
    )
    view(before, box)[:] = star - 2 * (3 * weight - 1) * view(now, box) - view(before, box)


class InPlace:
    """Take a step with slices, without temporary arrays but one that is kept."""

    def __init__(self) -> None:
        self._work: dict[tuple[int, ...], np.ndarray] = {}

    def __call__(self, now: np.ndarray, before: np.ndarray, weight: float, box: Box) -> None:
        """Take the step."""
        own, after = view(now, box), view(before, box)
        if own.shape not in self._work:
            self._work[own.shape] = np.empty(own.shape)
        work = self._work[own.shape]
        np.add(view(now, box, 0, 1), view(now, box, 0, -1), out=work)
        for axis in (1, 2):
            for shift in (-1, 1):
                work += view(now, box, axis, shift)
        work *= weight
        np.subtract(work, after, out=after)
        np.multiply(own, 2 - 6 * weight, out=work)
        after += work


def compiled() -> Step:
    """Give the step as loops compiled by Numba: one pass over memory.

    The first call compiles, or finds what was compiled earlier.
    """
    from wave3d.compiled import step

    def take(now: np.ndarray, before: np.ndarray, weight: float, box: Box) -> None:
        (i0, i1), (j0, j1), (k0, k1) = box
        step(now, before, weight, i0 + 1, i1 + 1, j0 + 1, j1 + 1, k0 + 1, k1 + 1)

    return take


STEPS: dict[str, Callable[[], Step]] = {"slices": lambda: slices, "inplace": InPlace, "numba": compiled}
"""How a step is taken, by the name that ``--kernel`` takes: each gives a fresh `Step`."""
