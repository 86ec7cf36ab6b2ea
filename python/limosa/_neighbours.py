"""Exchanges between neighbours, for communicators with a grid or a graph.

They go by messages between the neighbours, as `Cart.exchange` does: a rank that has all it is sent goes on, wherever
the others are, and the cost does not grow with the number of ranks. So there is no agreement of all ranks, as there is
in other collective calls. A rank whose argument is wrong tells its neighbours so, and raises the reason when it has
received what it is sent: nothing is left over for the next exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._agreement import Failed, described_error

if TYPE_CHECKING:
    from limosa._comm import Comm


def exchange(
    comm: Comm,
    call: str,
    values: Sequence[Any] | Exception,
    destinations: Sequence[int | None],
    sources: Sequence[int | None],
    order: Iterable[int],
) -> list[Any]:
    """Send each destination its value, and give what each source has sent.

    Parameters
    ----------
    comm, call
        The communicator, and the method that the user has called.
    values
        One for each destination, or why there are none.
    destinations, sources
        Ranks, or None for no process. One rank may be there several times.
    order
        In which order the sources are received from: a rank that is there several times has sent in this order.

    """
    problem = values if isinstance(values, Exception) else None
    sent: Sequence[Any] = [None] * len(destinations) if isinstance(values, Exception) else values
    under_way: list[MPI.Request] = []
    arrived: list[Any] = [None] * len(sources)
    try:
        for value, to in zip(sent, destinations, strict=True):
            if to is None:
                continue
            try:
                started = comm._start_push(value, to) if problem is None else []
            except MPI.Exception:
                raise
            except Exception as error:  # it cannot be pickled
                problem, started = error, []
            under_way += started or comm._start_push(Failed(described_error(problem), comm.rank), to)  # type: ignore[arg-type]
        for place in order:
            source = sources[place]
            if source is None:
                continue
            try:
                arrived[place] = comm._pull(source)
            except MPI.Exception:
                raise
            except Exception as error:  # it cannot be unpickled
                problem = problem or error
            if isinstance(arrived[place], Failed):
                problem = problem or comm._peer_error(arrived[place])
        MPI.Request.Waitall(under_way)
        if problem is not None:
            raise problem
    except (MPI.Exception, errors.Error) as error:
        comm._blame(error, call)
    return arrived


def items(values: Any, destinations: Sequence[int | None]) -> list[Any] | Exception:
    """Give the items of a sequence, one for each destination; or why that is not possible."""
    if not isinstance(values, (list, tuple)) and not (isinstance(values, np.ndarray) and values.ndim):
        return errors.BY_CLASS["COUNT"](
            f"a list, tuple or array with an item for each of the {len(destinations)} neighbours is needed, not "
            f"{values!r:.60}"
        )
    if len(values) != len(destinations):
        return errors.BY_CLASS["COUNT"](f"there are {len(values)} items for {len(destinations)} neighbours")
    return list(values)
