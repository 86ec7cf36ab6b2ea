"""How an array is dealt to ranks: `Map`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

import limosa
from limosa.arrays._pieces import Axis, Indices

if TYPE_CHECKING:
    from limosa._comm import Comm

#: How one axis is dealt: "block" (or "b"), "cyclic" ("c"), or the size of the blocks of a block-cyclic one.
Distribution: TypeAlias = "str | int"

_KINDS: dict[str, Distribution] = {"block": "block", "b": "block", "cyclic": 1, "c": 1}


class Map:
    """Which rank has which part of an array.

    The ranks form a grid with as many dimensions as the array has axes. Each axis is dealt to the cells of the grid
    along it on its own, in blocks, cyclically, or in blocks cyclically.

    Parameters
    ----------
    grid
        Number of cells along each axis. A cell is a rank.
    dist
        How the axes are dealt, for all or one for each: ``"block"`` (``ceil(N / cells)`` indices for each cell; the
        last cells may have fewer, or none), ``"cyclic"`` (one index for each cell in turn), or a positive integer, the
        size of the blocks that the cells get in turn.
    ranks
        The ranks of `comm` in the grid, ``prod(grid)`` of them, each once, in the order `order`. The others have no
        part of the array. Without it: ranks from 0.
    overlap
        For each axis, or for all: how many indices after its own a cell stores too (see `Array.synch`). Only axes that
        are dealt in blocks can have it.
    order
        ``"C"``: the last axis of the grid varies fastest over `ranks`, as in NumPy; ``"F"``: the first, as in pMatlab.
    comm
        The communicator; without it `limosa.world`. All its ranks make the map, and use its arrays, together.

    Attributes
    ----------
    grid, dist, overlap : tuple
        As given, one entry for each axis. ``"cyclic"`` is given as 1.
    ranks : numpy.ndarray
        The ranks, in the shape `grid`.
    comm : limosa.Comm
        The communicator.

    Raises
    ------
    ValueError
        The arguments do not describe a map; the text says why.

    Notes
    -----
    The rules are those of pMatlab (see docs/arrays.md), with indices from 0.

    Examples
    --------
    >>> from limosa.arrays import Map
    >>> rows = Map((4, 1), ranks=[0, 0, 0, 0])
    Traceback (most recent call last):
    ValueError: rank 0 is 4 times in the map; hint: each rank has one cell of the grid

    """

    def __init__(
        self,
        grid: int | Sequence[int],
        dist: Distribution | Sequence[Distribution] = "block",
        *,
        ranks: Iterable[int] | None = None,
        overlap: int | Sequence[int] = 0,
        order: str = "C",
        comm: Comm | None = None,
    ) -> None:
        self.comm = limosa.world if comm is None else comm
        self.grid = _grid(grid)
        self.dist = tuple(_distribution(each) for each in _per_axis(dist, len(self.grid), "dist"))
        self.overlap = _overlaps(overlap, self.grid, self.dist)
        self.ranks = _placed(ranks, self.grid, order, self.comm.size)
        self.everywhere = False

    @classmethod
    def replicated(cls, ndim: int, comm: Comm | None = None) -> Map:
        """Return a map in which every rank has the whole array, with equal elements."""
        made = cls((1,) * ndim, comm=comm)
        made.everywhere = True
        return made

    @classmethod
    def default(cls, ndim: int, comm: Comm | None = None) -> Map:
        """Return the map of arrays that are made without one: blocks of the first axis, for all ranks."""
        if ndim == 0:
            return cls.replicated(0, comm)
        size = (limosa.world if comm is None else comm).size
        return cls((size, *(1,) * (ndim - 1)), comm=comm)

    @property
    def ndim(self) -> int:
        """Number of axes of the arrays that this map is for."""
        return len(self.grid)

    @cached_property
    def _cells(self) -> dict[int, tuple[int, ...]]:
        return {int(rank): tuple(int(i) for i in cell) for cell, rank in np.ndenumerate(self.ranks)}

    def cell(self, rank: int | None = None) -> tuple[int, ...] | None:
        """Return the coordinates in the grid of a rank (without it: of this one), or None if it has no part."""
        if self.everywhere:
            return (0,) * self.ndim
        return self._cells.get(self.comm.rank if rank is None else rank)

    def axes(self, shape: Sequence[int]) -> tuple[Axis, ...]:
        """Return how the axes of an array of this shape are dealt."""
        if len(shape) != self.ndim:
            raise ValueError(
                f"the map has {self.ndim} axes, but the shape {tuple(shape)} has {len(shape)}; "
                "hint: the grid of a map has one number for each axis of the array"
            )
        return _axes(tuple(shape), self.grid, self.dist, self.overlap)

    def local_shape(self, shape: Sequence[int], rank: int | None = None) -> tuple[int, ...]:
        """Return the shape of the part of an array that a rank stores; without a part, of zeros."""
        cell = self.cell(rank)
        axes = self.axes(shape)
        return tuple(0 if cell is None else axis.count(cell[d]) for d, axis in enumerate(axes))

    def global_index(self, shape: Sequence[int], rank: int | None = None) -> tuple[Indices, ...]:
        """Return, for each axis, the indices in the whole array of the part that a rank stores."""
        cell = self.cell(rank)
        axes = self.axes(shape)
        return tuple(np.empty(0, np.intp) if cell is None else axis.indices(cell[d]) for d, axis in enumerate(axes))

    def permuted(self, axes: Sequence[int]) -> Map:
        """Return the map of an array whose axes are permuted, such that no element moves to another rank."""
        return self._changed(
            self.ranks.transpose(axes),
            [self.dist[d] for d in axes],
            [self.overlap[d] for d in axes],
        )

    def without(self, axes: Sequence[int]) -> Map:
        """Return the map without some axes; of the cells along these, the first ones remain."""
        kept = [d for d in range(self.ndim) if d not in axes]
        if len(kept) == self.ndim:
            return self
        ranks = self.ranks[tuple(slice(None) if d in kept else 0 for d in range(self.ndim))]
        return self._changed(ranks, [self.dist[d] for d in kept], [self.overlap[d] for d in kept])

    def without_overlap(self) -> Map:
        """Return the map without overlaps: what each rank owns is the same."""
        return self._changed(self.ranks, self.dist, (0,) * self.ndim) if any(self.overlap) else self

    def with_blocks(self, axes: Sequence[int]) -> Map:
        """Return the map with some axes dealt in blocks."""
        dist = ["block" if d in axes else each for d, each in enumerate(self.dist)]
        return self if tuple(dist) == self.dist else self._changed(self.ranks, dist, self.overlap)

    def with_new(self, places: Sequence[int]) -> Map:
        """Return the map with further axes, of one cell each, at these places (in rising order)."""
        ranks, dist, overlap = self.ranks, list(self.dist), list(self.overlap)
        for place in places:
            ranks = np.expand_dims(ranks, place)
            dist.insert(place, "block")
            overlap.insert(place, 0)
        return self._changed(ranks, dist, overlap) if places else self

    def undivided(self, axis: int) -> Map:
        """Return a map for the same ranks in which an axis is whole, and a different one is divided in its place."""
        if self.everywhere or self.grid[axis] == 1:
            return self
        others = [d for d in range(self.ndim) if d != axis]
        if not others:
            return Map(1, ranks=[int(self.ranks.flat[0])], comm=self.comm)
        grid = list(self.grid)
        grid[axis] = 1
        grid[others[0]] *= self.grid[axis]
        return Map(grid, ranks=[int(rank) for rank in self.ranks.flat], comm=self.comm)

    def _changed(self, ranks: NDArray[np.intp], dist: Sequence[Distribution], overlap: Sequence[int]) -> Map:
        """Return a map of the same ranks, or of some of them. What was valid in this one is valid in it."""
        made = Map.__new__(Map)
        made.comm = self.comm
        made.grid = ranks.shape
        made.dist = tuple(dist)
        made.overlap = tuple(overlap)
        made.ranks = np.array(ranks, order="C")
        made.everywhere = self.everywhere
        return made

    @cached_property
    def _key(self) -> tuple[object, ...]:
        ranks = () if self.everywhere else tuple(self.ranks.flat)
        return (self.grid, self.dist, self.overlap, ranks, self.everywhere, id(self.comm))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Map) and (self is other or self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if self.everywhere:
            return f"Map.replicated({self.ndim})"
        parts = [str(self.grid)]
        if any(dist != "block" for dist in self.dist):
            parts.append(str(tuple("cyclic" if dist == 1 else dist for dist in self.dist)))
        if self.ranks.ravel().tolist() != list(range(self.ranks.size)):
            parts.append(f"ranks={self.ranks.ravel().tolist()}")
        if any(self.overlap):
            parts.append(f"overlap={self.overlap}")
        return f"Map({', '.join(parts)})"


@lru_cache(maxsize=1024)
def _axes(
    shape: tuple[int, ...], grid: tuple[int, ...], dist: tuple[Distribution, ...], overlap: tuple[int, ...]
) -> tuple[Axis, ...]:
    return tuple(
        Axis(length, cells, max(math.ceil(length / cells), 1) if kind == "block" else int(kind), width)
        for length, cells, kind, width in zip(shape, grid, dist, overlap, strict=True)
    )


def _grid(grid: int | Sequence[int]) -> tuple[int, ...]:
    cells = (grid,) if isinstance(grid, (int, np.integer)) else tuple(grid)
    for each in cells:
        if isinstance(each, bool) or not isinstance(each, (int, np.integer)) or each < 1:
            raise ValueError(f"the grid {cells} of a map must have positive integers; {each!r} is not one")
    return tuple(int(each) for each in cells)


def _per_axis(value: object, ndim: int, name: str) -> list[object]:
    if isinstance(value, (str, int, np.integer)):
        return [value] * ndim
    values: list[object] = list(value)  # type: ignore[call-overload]
    if len(values) != ndim:
        raise ValueError(f"{name} has {len(values)} entries, but the grid {ndim} axes")
    return values


def _distribution(dist: object) -> Distribution:
    if isinstance(dist, str) and dist in _KINDS:
        return _KINDS[dist]
    if isinstance(dist, (int, np.integer)) and not isinstance(dist, bool) and dist > 0:
        return int(dist)
    raise ValueError(
        f"{dist!r} is no distribution; hint: 'block', 'cyclic', or the size of the blocks of a block-cyclic one"
    )


def _overlaps(overlap: int | Sequence[int], grid: tuple[int, ...], dist: tuple[Distribution, ...]) -> tuple[int, ...]:
    widths = _per_axis(overlap, len(grid), "overlap")
    for d, width in enumerate(widths):
        if isinstance(width, bool) or not isinstance(width, (int, np.integer)) or width < 0:
            raise ValueError(f"the overlap {width!r} of axis {d} is not a non-negative integer")
        if width and dist[d] != "block":
            raise ValueError(f"axis {d} is dealt cyclically, and cannot have an overlap; hint: dist='block'")
    return tuple(int(width) for width in widths)  # type: ignore[call-overload]


def _placed(ranks: Iterable[int] | None, grid: tuple[int, ...], order: str, size: int) -> NDArray[np.intp]:
    cells = math.prod(grid)
    if order not in ("C", "F"):
        raise ValueError(f"order is {order!r}; hint: 'C' (the last axis of the grid varies fastest) or 'F' (the first)")
    if ranks is None and cells > size:
        raise ValueError(f"the grid {grid} has {cells} cells, but the communicator {size} ranks")
    placed = np.arange(cells) if ranks is None else np.array(list(ranks), dtype=np.intp)
    if placed.size != cells:
        raise ValueError(f"the grid {grid} has {cells} cells, but {placed.size} ranks were given")
    if ranks is None:
        return placed.reshape(grid, order=order)  # type: ignore[call-overload,no-any-return]
    values, times = np.unique(placed, return_counts=True)
    if placed.size and not 0 <= values[0] <= values[-1] < size:
        wrong = values[(values < 0) | (values >= size)][0]
        raise ValueError(f"there is no rank {wrong}: the communicator has {size} ranks, from 0")
    if placed.size and times.max() > 1:
        rank = values[times.argmax()]
        raise ValueError(f"rank {rank} is {times.max()} times in the map; hint: each rank has one cell of the grid")
    return placed.reshape(grid, order=order)  # type: ignore[call-overload,no-any-return]
