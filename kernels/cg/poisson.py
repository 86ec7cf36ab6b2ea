"""The Poisson equation on the unit square by finite differences: matrix, right side, exact solution of one block.

Nothing here communicates.

``-laplace(u) = f`` with u = 0 on the boundary, on a mesh of n x n inner points, each equation times h^2: the matrix has
4 on its diagonal and -1 for each of the four neighbours. A block's rows form a CSR matrix whose columns are the places
of the block's padded array (own points and one layer of ghost points), so that a product needs nothing but the
neighbours' faces.

For ``u = x (1 - x) y (1 - y)`` the scheme is exact, so the solution of the discrete equations is known.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from common.decomposition import Block


def matrix(block: Block) -> sparse.csr_matrix:
    """Give the block's rows: (own points) x (points of the padded array).

    Neighbours beyond the boundary have no entry.
    """
    points, width = block.shape[0] * block.shape[1], block.padded[1]
    places = np.arange(block.padded[0] * width).reshape(block.padded)
    own = places[1:-1, 1:-1].ravel()
    columns, values = np.empty((5, points), np.int64), np.empty((5, points))
    for entry, (step, value) in enumerate(((-width, -1.0), (-1, -1.0), (0, 4.0), (1, -1.0), (width, -1.0))):
        columns[entry], values[entry] = own + step, value
    present = np.ones((5, *block.shape), bool)
    for entry, axis, layer in ((0, 0, 0), (4, 0, -1), (1, 1, 0), (3, 1, -1)):
        if block.neighbours[axis][0 if layer == 0 else 1] is None:
            np.moveaxis(present[entry], axis, 0)[layer] = False
    chosen = present.reshape(5, points).T  # row by row, columns ascending
    starts = np.concatenate(([0], np.cumsum(chosen.sum(axis=1))))
    return sparse.csr_matrix((values.T[chosen], columns.T[chosen], starts), shape=(points, places.size))


def exact(block: Block) -> np.ndarray:
    """Give x (1 - x) y (1 - y) at the block's points, flat."""
    x, y = _coordinates(block)
    return ((x * (1 - x))[:, None] * (y * (1 - y))[None, :]).ravel()


def right_side(block: Block) -> np.ndarray:
    """Give h^2 f at the block's points, flat."""
    x, y = _coordinates(block)
    return 2 / (block.n + 1) ** 2 * ((x * (1 - x))[:, None] + (y * (1 - y))[None, :]).ravel()


def _coordinates(block: Block) -> list[np.ndarray]:
    return [
        np.arange(first + 1, first + 1 + points) / (block.n + 1)
        for first, points in zip(block.start, block.shape, strict=True)
    ]
