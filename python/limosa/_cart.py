"""Communicators whose ranks form a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from mpi4py import MPI

from limosa import _neighbours, errors
from limosa._agreement import agree
from limosa._comm import Comm
from limosa._memory import Array

T = TypeVar("T")
Target = TypeVar("Target")


class Cart(Comm):
    """A communicator whose ranks form a grid, as `Comm.cart` makes it.

    Attributes
    ----------
    dims : tuple of int
        The number of ranks along each axis.
    periodic : tuple of bool
        Whether the last rank along an axis is followed by the first.
    coords : tuple of int
        The place of this rank.
    neighbours : tuple of (int or None, int or None)
        For each axis the ranks before and after this one; None beyond an edge.

    Examples
    --------
    >>> import limosa, numpy as np
    >>> ring = limosa.world.cart([0], periodic=True)
    >>> before, after = ring.neighbours[0]
    >>> ghost = ring.sendrecv(np.full(3, ring.rank), to=after, source=before)

    """

    def __init__(self, mpi: MPI.Cartcomm) -> None:
        super().__init__(mpi)
        self._cart = self._envelopes
        assert isinstance(self._cart, MPI.Cartcomm)
        dims, periodic, coords = self._cart.Get_topo()
        self.dims = tuple(dims)
        self.periodic = tuple(bool(one) for one in periodic)
        self.coords = tuple(coords)
        self.neighbours = tuple(self.shift(axis) for axis in range(len(self.dims)))

    def __repr__(self) -> str:
        periodic = f", periodic {self.periodic}" if any(self.periodic) else ""
        return f"<limosa.Cart: rank {self.rank} of {self.size}, dims {self.dims}, coords {self.coords}{periodic}>"

    def shift(self, axis: int, step: int = 1) -> tuple[int | None, int | None]:
        """Give the ranks before and after this one along an axis.

        Parameters
        ----------
        axis
            The number of the axis; negative ones count from the end.
        step
            How far away; negative steps exchange the two.

        Returns
        -------
        tuple
            Source and destination of a shift by `step`: the rank `step` places before this one, and the one `step`
            places after it. None beyond an edge.

        Raises
        ------
        limosa.errors.DimsError
            If there is no such axis.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.cart([0], periodic=True).shift(0)
        (0, 0)

        """
        if not -len(self.dims) <= axis < len(self.dims):
            raise errors.BY_CLASS["DIMS"](
                f"there is no axis {axis} in {len(self.dims)} dimensions", call="shift", rank=self.rank
            )
        axis %= len(self.dims)
        ends = []
        for distance in (-step, step):
            place = list(self.coords)
            place[axis] += distance
            ends.append(self.rank_at(place))
        return ends[0], ends[1]

    def rank_at(self, coords: Sequence[int]) -> int | None:
        """Give the rank at a place.

        Parameters
        ----------
        coords
            The place, one number for each axis. Along periodic axes any number will do.

        Returns
        -------
        int or None
            The rank; None beyond an edge.

        Raises
        ------
        limosa.errors.DimsError
            If the number of coordinates is wrong.

        Examples
        --------
        >>> import limosa
        >>> grid = limosa.world.cart(2)
        >>> grid.rank_at(grid.coords) == grid.rank, grid.rank_at([0, -1])
        (True, None)

        """
        if len(coords) != len(self.dims):
            raise errors.BY_CLASS["DIMS"](
                f"{len(coords)} coordinates were given for {len(self.dims)} dimensions", call="rank_at", rank=self.rank
            )
        rank = 0
        for place, length, periodic in zip(coords, self.dims, self.periodic, strict=True):
            if not periodic and not 0 <= place < length:
                return None
            rank = rank * length + place % length
        return rank

    def coords_of(self, rank: int) -> tuple[int, ...]:
        """Give the place of a rank.

        Raises
        ------
        limosa.errors.RankError
            If there is no such rank.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.cart(3).coords_of(0)
        (0, 0, 0)

        """
        if not 0 <= rank < self.size:
            raise errors.BY_CLASS["RANK"](
                f"rank {rank} is not among 0 to {self.size - 1}", call="coords_of", rank=self.rank
            )
        place = []
        for length in reversed(self.dims):
            rank, here = divmod(rank, length)
            place.append(here)
        return tuple(reversed(place))

    def exchange(self, u: Target, width: int = 1) -> Target:
        """Exchange the edges of an array with the neighbours: the *halo exchange* of a divided mesh.

        The first axes of `u` are those of the grid. Along each, the outermost `width` layers on either side are ghost
        layers: they get the neighbour's layers next to its own ghost layers. Beyond an edge of the grid the ghost
        layers stay as they are. As the axes follow in turn, the corners are right, too.

        Parameters
        ----------
        u
            An array, which may be non-contiguous. The neighbours' have the same dtype, and fit along the other axes.
        width
            The number of ghost layers on each side.

        Returns
        -------
        array
            `u`.

        Raises
        ------
        limosa.errors.DimsError
            If `u` has fewer axes than the grid, or is too short along one of them.
        limosa.errors.Error
            If what arrives does not fit, as in `recv`.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> ring = limosa.world.cart(1, periodic=True)
        >>> ring.exchange(np.array([0.0, 1.0, 2.0, 3.0, 0.0]))
        array([3., 1., 2., 3., 1.])

        """
        array = self._target(u, "exchange")
        if array is None:
            raise self._error("BUFFER", "exchange needs an array, not None", "exchange")
        if type(width) is not int or width < 1:
            raise self._error("DIMS", f"width={width!r} is not a number from 1", "exchange")
        if array.ndim < len(self.dims):
            raise self._error(
                "DIMS", f"an array with {array.ndim} axes was given for {len(self.dims)} dimensions", "exchange"
            )
        for axis, neighbours in enumerate(self.neighbours):
            length = array.shape[axis]
            if length < 3 * width and neighbours != (None, None):
                raise self._error(
                    "DIMS",
                    f"axis {axis} has the length {length}: too short for ghost layers of width {width} on both sides",
                    "exchange",
                )
        try:
            for axis in range(len(self.dims)):
                self._exchange_axis(array, axis, width)
        except (MPI.Exception, errors.Error) as error:
            self._blame(error, "exchange")
        return u

    def _exchange_axis(self, array: Array, axis: int, width: int) -> None:
        """Exchange the layers at both ends of an axis.

        What goes up is sent first and received first, so that the two are not confused where both neighbours are the
        same rank.
        """

        def layers(start: int, end: int | None) -> Array:
            return array[(slice(None),) * axis + (slice(start, end), ...)]

        before, after = self.neighbours[axis]
        under_way = []
        for to, edge in ((after, layers(-2 * width, -width)), (before, layers(width, 2 * width))):
            if to is not None:
                under_way += self._start_push(edge, to)
        problem = None
        for source, ghost in ((before, layers(0, width)), (after, layers(-width, None))):
            if source is not None:
                try:
                    self._pull_from(source, ghost)
                except errors.Error as error:
                    problem = problem or error
        MPI.Request.Waitall(under_way)
        if problem is not None:
            raise problem

    def neighbour_allgather(self, x: T) -> list[T | None]:
        """Send all neighbours the same value, and get one from each.

        Parameters
        ----------
        x
            The value of this rank.

        Returns
        -------
        list
            What was received: from the neighbours before and after this rank along the first axis, then along the
            next. None beyond an edge.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.cart([0], periodic=True).neighbour_allgather("me")
        ['me', 'me']

        """
        return self._exchanged_with_neighbours("neighbour_allgather", [x] * (2 * len(self.dims)))

    def neighbour_alltoall(self, values: Sequence[T]) -> list[T | None]:
        """Send each neighbour its item of a sequence, and get one from each.

        Parameters
        ----------
        values
            One item for each neighbour: before and after this rank along the first axis, then along the next. Items
            beyond an edge are not used.

        Returns
        -------
        list
            What was received, in the same order. None beyond an edge.

        Raises
        ------
        limosa.errors.CountError
            If there are not two items for each axis. The neighbours raise `limosa.errors.PeerError`.

        Examples
        --------
        >>> import limosa
        >>> ring = limosa.world.cart([0], periodic=True)
        >>> ring.neighbour_alltoall(["to the one before", "to the one after"])
        ['to the one after', 'to the one before']

        """
        ranks = [rank for pair in self.neighbours for rank in pair]
        return self._exchanged_with_neighbours("neighbour_alltoall", _neighbours.items(values, ranks))

    def _exchanged_with_neighbours(self, call: str, values: list[Any] | Exception) -> list[Any]:
        ranks = [rank for pair in self.neighbours for rank in pair]
        # Where the neighbours along an axis are one rank, what it sends first, to the one before it, comes from after.
        order = [place ^ 1 for place in range(len(ranks))]
        return _neighbours.exchange(self, call, values, ranks, ranks, order)

    def sub(self, *axes: int) -> Cart:
        """Give the communicator of the ranks that differ from this one along these axes only, as in a row of the grid.

        Parameters
        ----------
        *axes
            Numbers of the axes that remain.

        Raises
        ------
        limosa.errors.DimsError
            If there is no such axis.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.cart(2).sub(1).dims
        (1,)

        """
        wrong = [axis for axis in axes if not -len(self.dims) <= axis < len(self.dims)]
        problem = None
        if wrong:
            problem = errors.BY_CLASS["DIMS"](f"there is no axis {wrong[0]} in {len(self.dims)} dimensions")
        agree(self, "sub", {"axes": axes}, problem)
        remain = {axis % len(self.dims) for axis in axes}
        assert isinstance(self._cart, MPI.Cartcomm)
        return _owned(self._cart.Sub([axis in remain for axis in range(len(self.dims))]))


def _owned(mpi: MPI.Cartcomm) -> Cart:
    made = Cart(mpi)
    made._owns_mpi = True
    return made


def make(comm: Comm, dims: int | Sequence[int], periodic: bool | Sequence[bool], reorder: bool) -> Cart:
    """Make the grid for `Comm.cart`."""
    wanted, cyclic, problem = _grid(comm.size, dims, periodic)
    agree(comm, "cart", {"dims": wanted, "periodic": cyclic, "reorder": bool(reorder)}, problem)
    try:
        return _owned(comm._envelopes.Create_cart(MPI.Compute_dims(comm.size, wanted), cyclic, reorder))
    except MPI.Exception as error:
        raise errors.from_mpi(error, call="cart", rank=comm.rank, tried=f"dims={dims}") from None


def _grid(
    size: int, dims: int | Sequence[int], periodic: bool | Sequence[bool]
) -> tuple[list[Any], list[bool], errors.Error | None]:
    """Give the lengths of a grid, 0 for those to be chosen, and which axes are periodic; or why there is none."""

    def refused(reason: str) -> tuple[list[Any], list[bool], errors.Error]:
        return [], [], errors.BY_CLASS["DIMS"](reason)

    wanted: list[Any] = [0] * dims if isinstance(dims, int) else list(dims)
    if not wanted or any(not hasattr(length, "__index__") or length < 0 for length in wanted):
        return refused(
            f"dims={dims!r} is not valid; hint: give the number of axes, or a non-negative length for each axis"
        )
    cyclic = [bool(periodic)] * len(wanted) if isinstance(periodic, (bool, int)) else [bool(one) for one in periodic]
    if len(cyclic) != len(wanted):
        return refused(f"periodic={periodic!r} has {len(cyclic)} entries for {len(wanted)} axes")
    fixed = math.prod(length for length in wanted if length)
    if size % fixed or (0 not in wanted and fixed != size):
        return refused(f"{size} ranks do not fill a grid of {' x '.join(str(n) if n else 'any' for n in wanted)}")
    return wanted, cyclic, None
