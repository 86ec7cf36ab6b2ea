"""Communicators whose ranks form a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

from limosa import _neighbours, errors
from limosa._agreement import agree, by_rank
from limosa._comm import Comm

T = TypeVar("T")


class Graph(Comm):
    """A communicator whose ranks have neighbours, as `Comm.graph` makes it.

    Attributes
    ----------
    neighbours : tuple of int
        The ranks that this one sends to.
    sources : tuple of int
        The ranks that this one receives from; the same unless the graph is directed.

    Examples
    --------
    >>> import limosa
    >>> world = limosa.world
    >>> mesh = world.graph([(world.rank - 1) % world.size, (world.rank + 1) % world.size])
    >>> mesh.neighbour_allgather("hello")
    ['hello', 'hello']

    """

    def __init__(self, mpi: MPI.Distgraphcomm) -> None:
        super().__init__(mpi)
        assert isinstance(self._envelopes, MPI.Distgraphcomm)
        sources, destinations, _ = self._envelopes.Get_dist_neighbors()
        self.sources = tuple(sources)
        self.neighbours = tuple(destinations)

    def __repr__(self) -> str:
        directed = "" if self.sources == self.neighbours else f", sources {self.sources}"
        return f"<limosa.Graph: rank {self.rank} of {self.size}, neighbours {self.neighbours}{directed}>"

    def exchange(self, values: Mapping[int, T]) -> dict[int, T]:
        """Send each neighbour a value, and get one from each.

        Parameters
        ----------
        values
            One value for each neighbour, by its rank.

        Returns
        -------
        dict
            What was received, by the rank of the sender.

        Raises
        ------
        limosa.errors.ArgumentError
            If a neighbour is left out, or a rank is none. The neighbours raise `limosa.errors.PeerError`.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> world = limosa.world
        >>> mesh = world.graph([world.rank])
        >>> mesh.exchange({rank: np.arange(3) for rank in mesh.neighbours})
        {0: array([0, 1, 2])}

        """
        given: list[Any] | Exception
        if not isinstance(values, Mapping):
            given = errors.BY_CLASS["ARG"](f"a dict with a value for each neighbour is needed, not {values!r:.60}")
        elif set(values) != set(self.neighbours):
            given = errors.BY_CLASS["ARG"](
                f"values for the ranks {sorted(values)} were given, the neighbours are {sorted(set(self.neighbours))}"
            )
        else:
            given = [values[rank] for rank in self.neighbours]
        arrived = self._exchanged_with_neighbours("exchange", given)
        return dict(zip(self.sources, arrived, strict=True))

    def neighbour_allgather(self, x: T) -> list[T]:
        """Send all neighbours the same value, and get one from each.

        Parameters
        ----------
        x
            The value of this rank.

        Returns
        -------
        list
            What was received, in the order of `sources`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.graph([]).neighbour_allgather("it has no neighbour")
        []

        """
        return self._exchanged_with_neighbours("neighbour_allgather", [x] * len(self.neighbours))

    def neighbour_alltoall(self, values: Sequence[T]) -> list[T]:
        """Send each neighbour its item of a sequence, and get one from each.

        Parameters
        ----------
        values
            One item for each of `neighbours`, in their order.

        Returns
        -------
        list
            What was received, in the order of `sources`.

        Raises
        ------
        limosa.errors.CountError
            If there is not one item for each neighbour. The neighbours raise `limosa.errors.PeerError`.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.graph([0]).neighbour_alltoall(["to myself"])
        ['to myself']

        """
        return self._exchanged_with_neighbours("neighbour_alltoall", _neighbours.items(values, self.neighbours))

    def _exchanged_with_neighbours(self, call: str, values: list[Any] | Exception) -> list[Any]:
        places = range(len(self.sources))
        return _neighbours.exchange(self, call, values, self.neighbours, self.sources, places)


def make(comm: Comm, neighbours: Iterable[int], sources: Iterable[int] | None) -> Graph:
    """Make the graph for `Comm.graph`."""
    destinations, problem = _ranks(comm, neighbours)
    origins, problem = (destinations, problem) if sources is None or problem else _ranks(comm, sources)
    agree(comm, "graph", {}, problem)
    # How often each rank sends to this one, as they say.
    sends = comm.alltoall(np.bincount(destinations, minlength=comm.size))
    receives = np.bincount(origins, minlength=comm.size)
    differ = [rank for rank in range(comm.size) if sends[rank] != receives[rank]]
    text = ""
    if differ:
        other = differ[0]
        text = f"{receives[other]} times as a source, but it has this rank {sends[other]} times as a neighbour"
        text = f"has rank {other} {text}"
    texts = comm.allgather(text)
    if any(texts):
        wrong = by_rank([one for one in texts if one])
        raise errors.MismatchError(f"the graph does not fit together: {wrong}", call="graph", rank=comm.rank)
    try:
        mpi = comm._envelopes.Create_dist_graph_adjacent(origins, destinations)
        made = Graph(mpi)
    except MPI.Exception as error:
        raise errors.from_mpi(error, call="graph", rank=comm.rank) from None
    made._owns_mpi = True
    return made


def _ranks(comm: Comm, ranks: Iterable[int]) -> tuple[list[int], errors.Error | None]:
    """Give ranks as a list, or why they are none."""
    try:
        found = [rank.__index__() for rank in ranks]
    except (AttributeError, TypeError):
        return [], errors.BY_CLASS["RANK"](f"{ranks!r:.80} is not a list of ranks")
    for rank in found:
        if not 0 <= rank < comm.size:
            return [], errors.BY_CLASS["RANK"](f"the neighbour {rank} is not among the ranks 0 to {comm.size - 1}")
    return found, None
