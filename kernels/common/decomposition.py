"""How a mesh is cut into blocks, one per process, on a Cartesian grid of processes. Pure functions and one value class.

Every block carries one layer of ghost points. Blocks are numbered with the last axis running fastest, so all modules,
also those without Cartesian communicators, agree about which ranks are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Box = tuple[tuple[int, int], ...]
"""For each axis the first and the one-past-last of a block's own points, counted from 0."""


def share(n: int, parts: int, part: int) -> tuple[int, int]:
    """First and one-past-last of n points for one of `parts` nearly equal parts."""
    return n * part // parts, n * (part + 1) // parts


def grid(count: int, axes: int) -> tuple[int, ...]:
    """Give the grid of `count` processes whose blocks have the least surface, longest axis first.

    12 processes in 3-D are 3 x 2 x 2.
    """
    if axes == 1:
        return (count,)
    shapes = [(first, *grid(count // first, axes - 1)) for first in range(1, count + 1) if count % first == 0]
    return min((tuple(sorted(shape, reverse=True)) for shape in shapes), key=sum)


@dataclass(frozen=True)
class Block:
    """One process's part of a mesh with n points in each direction.

    Attributes
    ----------
    n
        Points of the whole mesh in each direction.
    dims
        Number of processes in each direction.
    coords
        This block's place on that grid.
    start, shape
        First own point and number of own points in each direction.
    neighbours
        For each axis the ranks below and above; None beyond a wall.

    """

    n: int
    dims: tuple[int, ...]
    coords: tuple[int, ...]
    start: tuple[int, ...]
    shape: tuple[int, ...]
    neighbours: tuple[tuple[int | None, int | None], ...]

    @classmethod
    def of(cls, n: int, axes: int, rank: int, size: int) -> Block:
        """Cut n points in each of so many directions for `size` processes; give the block of process `rank`.

        Raises
        ------
        ValueError
            If there are fewer points than processes in some direction.

        """
        dims = grid(size, axes)
        if max(dims) > n:
            raise ValueError(
                f"{size} processes ({' x '.join(map(str, dims))}) are too many for {n} points in each direction"
            )
        coords = tuple(int(place) for place in np.unravel_index(rank, dims))
        ranges = [share(n, parts, part) for parts, part in zip(dims, coords, strict=True)]
        return cls(
            n=n,
            dims=dims,
            coords=coords,
            start=tuple(first for first, _ in ranges),
            shape=tuple(last - first for first, last in ranges),
            neighbours=tuple((_beside(dims, coords, axis, -1), _beside(dims, coords, axis, 1)) for axis in range(axes)),
        )

    @property
    def padded(self) -> tuple[int, ...]:
        """Shape of an array of own points and ghost layers."""
        return tuple(points + 2 for points in self.shape)

    @property
    def whole(self) -> Box:
        """The box of all own points."""
        return tuple((0, points) for points in self.shape)

    def layer(self, axis: int, place: int) -> tuple[int | slice, ...]:
        """Give the index of a layer across an axis, without corners.

        Layers 0 and -1 are the ghost layers, 1 and -2 own points.
        """
        index: list[int | slice] = [slice(1, -1)] * len(self.shape)
        index[axis] = place
        return tuple(index)

    def inner_and_shell(self) -> tuple[Box, list[Box]]:
        """Cut the own points into those that touch no neighbour's ghost layer, and boxes that hold the others.

        Together the boxes hold each own point once. What can be computed while faces travel is the inner box.
        """
        boxes: list[Box] = []
        box = list(self.whole)
        for axis, (below, above) in enumerate(self.neighbours):
            first, last = box[axis]
            if below is not None:
                boxes.append((*box[:axis], (first, min(first + 1, last)), *box[axis + 1 :]))
                first = min(first + 1, last)
            if above is not None and last > first:
                boxes.append((*box[:axis], (last - 1, last), *box[axis + 1 :]))
                last -= 1
            box[axis] = (first, last)
        return tuple(box), boxes


def view(u: np.ndarray, box: Box, axis: int | None = None, shift: int = 0) -> np.ndarray:
    """Give the part of a padded array that lies in a box, shifted by `shift` points along `axis`."""
    return u[
        tuple(
            slice(first + 1 + shift * (at == axis), last + 1 + shift * (at == axis))
            for at, (first, last) in enumerate(box)
        )
    ]


def _beside(dims: tuple[int, ...], coords: tuple[int, ...], axis: int, step: int) -> int | None:
    """Give the rank of the block beside this one, or None beyond a wall."""
    place = list(coords)
    place[axis] += step
    if not 0 <= place[axis] < dims[axis]:
        return None
    return int(np.ravel_multi_index(place, dims))
