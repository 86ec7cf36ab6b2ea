"""Distributed factors of a square matrix: LU with partial pivoting, and Cholesky, both by blocks of columns.

The columns are dealt to the ranks in turn, in blocks. The owner of a block decomposes it and gives it to all; every
rank then updates its columns to the right. So each rank does a share of the work, and receives each block once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limosa.arrays._array import Array
from limosa.arrays._map import Map

Values = NDArray[Any]

#: Columns of a block, at most.
BLOCK = 64


class Columns:
    """The columns that this rank has of a matrix, as a copy that may be changed."""

    def __init__(self, matrix: Array, dtype: np.dtype[Any]) -> None:
        self.comm = matrix.comm
        self.n = matrix.shape[0]
        self.block = max(1, min(BLOCK, -(-self.n // self.comm.size)))
        self.map = Map((1, self.comm.size), ["block", self.block], comm=matrix.comm)
        self.values: Values = np.array(matrix.remap(self.map).local, dtype, order="F")
        self._mine = self.map.global_index(matrix.shape)[1]

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Give for each block its first column, the one after its last, and the rank that has it."""
        for start in range(0, self.n, self.block):
            yield start, min(start + self.block, self.n), start // self.block % self.comm.size

    def place(self, start: int, end: int | None = None) -> slice:
        """Return where this rank has the columns from one to before another (without it: all that follow)."""
        first = int(np.searchsorted(self._mine, start))
        return slice(first, None if end is None else int(np.searchsorted(self._mine, end)))

    def array(self) -> Array:
        """Return the matrix as a distributed array."""
        return Array((self.n, self.n), self.map, self.values)


class Eliminated(NamedTuple):
    """What is left of a system after elimination."""

    #: An upper triangle above the factors of the elimination.
    columns: Columns
    #: The diagonal of the triangle, on all ranks.
    diagonal: Values
    #: -1 after an odd number of swaps of rows.
    sign: int


def eliminate(matrix: Array, dtype: np.dtype[Any], right: Values | None = None) -> Eliminated:
    """Make a square matrix triangular, and change this rank's columns of the right hand sides in the same way."""
    columns = Columns(matrix, dtype)
    values, comm = columns.values, columns.comm
    diagonal, sign = np.empty(columns.n, dtype), 1
    for start, end, owner in columns.blocks():
        here = columns.place(start, end)
        panel, swaps = comm.bcast(_panel(values[start:, here]) if comm.rank == owner else None, owner)
        width = end - start
        diagonal[start:end] = panel.diagonal()
        sign *= -1 if sum(other != k for k, other in enumerate(swaps)) % 2 else 1
        parts = [(values, columns.place(end))] + ([] if right is None else [(right, slice(None))])
        lower = np.tril(panel[:width], -1) + np.eye(width, dtype=dtype)
        for part, chosen in parts:
            rest = part[:, chosen]
            for k, other in enumerate(swaps):
                if k != other:
                    rest[[start + k, start + other]] = rest[[start + other, start + k]]
            rest[start:end] = np.linalg.solve(lower, rest[start:end])
            rest[end:] -= panel[width:] @ rest[start:end]
        if comm.rank == owner:
            values[start:, here] = panel
    return Eliminated(columns, diagonal, sign)


def _panel(columns: Values) -> tuple[Values, list[int]]:
    """Decompose a few columns; return the factors, and for each row the one with which it was swapped."""
    panel, swaps = columns.copy(), []
    for k in range(panel.shape[1]):
        other = k + int(np.argmax(np.abs(panel[k:, k])))
        swaps.append(other)
        if other != k:
            panel[[k, other]] = panel[[other, k]]
        if panel[k, k] != 0:
            panel[k + 1 :, k] /= panel[k, k]
        panel[k + 1 :, k + 1 :] -= np.outer(panel[k + 1 :, k], panel[k, k + 1 :])
    return panel, swaps


def substitute(done: Eliminated, right: Values) -> None:
    """Replace this rank's right hand sides by the solutions, from the last unknown to the first."""
    columns = done.columns
    for start, end, owner in reversed(list(columns.blocks())):
        here = columns.place(start, end)
        upper = columns.comm.bcast(columns.values[:end, here] if columns.comm.rank == owner else None, owner)
        right[start:end] = np.linalg.solve(np.triu(upper[start:end]), right[start:end])
        right[:start] -= upper[:start] @ right[start:end]


def lower_factor(matrix: Array, dtype: np.dtype[Any]) -> Array | None:
    """Return the Cholesky factor of a matrix, of which the lower triangle is read; None if it is not positive."""
    columns = Columns(matrix, dtype)
    values, comm = columns.values, columns.comm
    for start, end, owner in columns.blocks():
        here = columns.place(start, end)
        panel = comm.bcast(_cholesky_panel(values[start:, here]) if comm.rank == owner else None, owner)
        if panel is None:
            return None
        if comm.rank == owner:
            values[:start, here] = 0
            values[start:, here] = panel
        later = columns.place(end)
        rows = columns._mine[later] - start
        values[start:, later] -= panel @ panel[rows].conj().T
    return columns.array()


def _cholesky_panel(columns: Values) -> Values | None:
    width = columns.shape[1]
    panel = np.zeros_like(columns)
    try:
        panel[:width] = np.linalg.cholesky(columns[:width])
    except np.linalg.LinAlgError:
        return None
    panel[width:] = np.linalg.solve(panel[:width], columns[width:].conj().T).conj().T
    return panel
