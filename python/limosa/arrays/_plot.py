"""A picture of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from limosa.arrays._map import Map

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_map(map: Map, shape: Sequence[int], axes: Axes | None = None) -> Axes:
    """Draw which rank owns which elements of an array. Needs matplotlib. Local.

    Parameters
    ----------
    map
        The map.
    shape
        The shape of the array. Of more than two axes, the first two are drawn, at index 0 of the others.
    axes
        Where it is drawn; without it in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The drawing, with one colour and one number for each rank.

    """
    import matplotlib.pyplot as plt

    drawn = plt.subplots()[1] if axes is None else axes
    owners = _owners(map, tuple(shape))
    ranks = [int(rank) for rank in np.unique(owners)]
    colours = np.searchsorted(ranks, owners)
    drawn.imshow(colours, cmap="tab20", vmin=0, vmax=max(19, len(ranks) - 1), interpolation="nearest", aspect="auto")
    for rank in ranks:
        rows, columns = np.nonzero(owners == rank)
        drawn.text(columns[len(columns) // 2], rows[len(rows) // 2], str(rank), ha="center", va="center")
    drawn.set(xlabel="axis 1", ylabel="axis 0", title=f"{map}")
    if len(shape) < 2:
        drawn.set(xlabel="axis 0", ylabel="", yticks=[])
    return drawn


def _owners(map: Map, shape: tuple[int, ...]) -> Any:
    """Return the rank of each element of the first two axes, as a matrix."""
    if not shape or 0 in shape:
        raise ValueError(f"an array of the shape {shape} has nothing to draw")
    plain = map.without_overlap()
    cells = []
    for d, axis in enumerate(plain.axes(shape)):
        owner = np.empty(shape[d], np.intp)
        for cell in range(axis.cells):
            owner[axis.indices(cell)] = cell
        cells.append(owner if d < 2 else owner[:1])
    ranks = np.full(map.grid, map.comm.rank) if map.everywhere else plain.ranks
    return ranks[np.ix_(*cells)].reshape((1, -1) if len(shape) == 1 else shape[:2])
