"""A picture of a map."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from limosa.arrays._map import Map
from limosa.arrays._pieces import Indices

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
        The drawing, with one colour and one number for each rank. Hatched is what the rank before stores too.

    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    if not shape or 0 in shape:
        raise ValueError(f"an array of the shape {tuple(shape)} has nothing to draw")
    drawn = plt.subplots()[1] if axes is None else axes
    # An array of one axis is drawn as one row.
    lines = [1, *shape] if len(shape) == 1 else list(shape[:2])
    blocks = list(itertools.islice(_blocks(map, tuple(shape)), _MOST_BLOCKS + 1))
    if len(blocks) > _MOST_BLOCKS:
        raise ValueError(f"more than {_MOST_BLOCKS} blocks cannot be told apart; hint: draw the map of a smaller shape")
    colours = {rank: k for k, rank in enumerate(sorted({rank for rank, _, _ in blocks}))}
    palette = plt.get_cmap("tab20")
    for rank, rows, columns in blocks:
        corner, size = (columns.start - 0.5, rows.start - 0.5), (len(columns), len(rows))
        drawn.add_patch(Rectangle(corner, *size, facecolor=palette(colours[rank] % 20), edgecolor="white"))
        if len(blocks) <= _MOST_NUMBERS:
            middle = (rows.start + rows.stop - 1) / 2, (columns.start + columns.stop - 1) / 2
            drawn.text(middle[1], middle[0], str(rank), ha="center", va="center")
    for rows, columns in _shared(map, tuple(shape)):
        corner = columns.start - 0.5, rows.start - 0.5
        drawn.add_patch(Rectangle(corner, len(columns), len(rows), fill=False, hatch="//", linewidth=0))
    drawn.set(
        xlim=(-0.5, lines[1] - 0.5), ylim=(lines[0] - 0.5, -0.5), xlabel="axis 1", ylabel="axis 0", title=f"{map}"
    )
    drawn.xaxis.set_major_locator(MaxNLocator(integer=True))
    drawn.yaxis.set_major_locator(MaxNLocator(integer=True))
    if len(shape) == 1:
        drawn.set(xlabel="axis 0", ylabel="", yticks=[])
    if len(shape) > 2:
        drawn.set_title(f"{map}, at index 0 of the other axes")
    return drawn


#: More blocks than this have no numbers, or are not drawn.
_MOST_NUMBERS, _MOST_BLOCKS = 200, 10_000


def _blocks(map: Map, shape: tuple[int, ...]) -> Iterator[tuple[int, range, range]]:
    """Give the blocks of the first two axes: the rank that owns each, its rows and its columns."""
    plain = map.without_overlap()
    along = [range(axis.cells) for axis in plain.axes(shape)]
    pieces = [[_runs(axis.indices(cell)) for cell in range(axis.cells)] for axis in plain.axes(shape)]
    for cell in itertools.product(*along[:2]):
        rank = map.comm.rank if map.everywhere else int(plain.ranks[(*cell, *[0] * (len(shape) - 2))])
        rows, columns = [[range(1)], *(pieces[d][i] for d, i in enumerate(cell))][-2:]
        yield from ((rank, row, column) for row, column in itertools.product(rows, columns))


def _shared(map: Map, shape: tuple[int, ...]) -> Iterator[tuple[range, range]]:
    """Give the rows and columns that are in an overlap."""
    whole = [range(1), *(range(length) for length in shape[:2])][-2:]
    for d, axis in enumerate(map.axes(shape)[:2]):
        for cell in range(axis.cells if axis.overlap else 0):
            stored = axis.indices(cell)
            extra = stored[axis.owned_count(cell) :]
            for run in _runs(extra):
                yield (run, whole[1]) if d == 0 and len(shape) > 1 else (whole[0], run)


def _runs(indices: Indices) -> list[range]:
    """Return runs of neighbours among rising indices."""
    ends = np.flatnonzero(np.diff(indices) != 1) + 1
    return [range(int(run[0]), int(run[-1]) + 1) for run in np.split(indices, ends) if run.size]
