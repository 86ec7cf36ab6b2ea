"""Operations of all ranks of a communicator.

The communicator is the first parameter and may be left out; positional arguments then begin with the value.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from limosa.dialects.boostmpi._communicator import Communicator, world
from limosa.dialects.boostmpi._errors import calls
from limosa.dialects.boostmpi._skeleton import Content


class _Missing:
    def __repr__(self) -> str:
        return "<not given>"


_MISSING: Any = _Missing()
_Operation = Callable[[Any, Any], Any]


def _arguments(call: str, required: tuple[str, ...], comm: Any, *others: Any) -> tuple[Any, ...]:
    """Give the channel and the other arguments, moved on by one where the communicator was left out.

    `required` are the names of the last arguments, those that must be given.
    """
    if type(comm) is Communicator:
        found = others
    else:
        moved, carried = [], comm
        for other in others:
            moved.append(other if carried is _MISSING else carried)
            carried = carried if carried is _MISSING else other
        if carried is not _MISSING:
            raise TypeError(f"{call}() takes a Communicator as its first argument, or none")
        comm, found = world, tuple(moved)
    for name, value in zip(reversed(required), reversed(found)):  # noqa: B905 - the first ones may have defaults
        if value is _MISSING:
            raise TypeError(f"{call}() needs {name}: {call}(comm, ...), or {call}(..., {name}=...)")
    if found[0] is _MISSING:
        found = (None, *found[1:])
    return comm._channel, *found


def _one_each(call: str, values: Iterable[Any], size: int) -> list[Any]:
    items = list(islice(values, size))
    if len(items) < size:
        raise ValueError(f"{call}() needs a value for each of the {size} ranks, and got {len(items)}")
    return items


@calls("MPI_Allgather")
def all_gather(comm: Any = _MISSING, value: Any = _MISSING) -> tuple[Any, ...]:
    """Give all ranks the values of all, as a tuple in the order of ranks."""
    channel, value = _arguments("all_gather", (), comm, value)
    return tuple(channel.comm.allgather(value))


@calls("MPI_Allreduce")
def all_reduce(comm: Any = _MISSING, value: Any = _MISSING, op: _Operation = _MISSING) -> Any:
    """Combine the values of all ranks, in the order of ranks, by ``op(x, y)``; the result is given to all."""
    channel, value, op = _arguments("all_reduce", ("value", "op"), comm, value, op)
    return channel.comm.allreduce(value, op)


@calls("MPI_Alltoall")
def all_to_all(comm: Any = _MISSING, values: Iterable[Any] = _MISSING) -> tuple[Any, ...]:
    """Send a value to each rank; give the values that they sent, as a tuple in the order of ranks."""
    channel, values = _arguments("all_to_all", ("values",), comm, values)
    return tuple(channel.comm.alltoall(_one_each("all_to_all", values, channel.comm.size)))


@calls("MPI_Bcast")
def broadcast(comm: Any = _MISSING, value: Any = _MISSING, root: int = _MISSING) -> Any:
    """Give all ranks the root's value; a `Content` (on all ranks) is received in place."""
    channel, value, root = _arguments("broadcast", ("root",), comm, value, root)
    if type(value) is not Content:
        return channel.broadcast(value, root)
    channel.comm.Bcast(value.to_receive(), root)
    value.received()
    return value


@calls("MPI_Gather")
def gather(comm: Any = _MISSING, value: Any = _MISSING, root: int = _MISSING) -> tuple[Any, ...] | None:
    """Give the root the values of all ranks, as a tuple in the order of ranks; the others get None."""
    channel, value, root = _arguments("gather", ("root",), comm, value, root)
    values = channel.comm.gather(value, root)
    return None if values is None else tuple(values)


@calls("MPI_Reduce")
def reduce(comm: Any = _MISSING, value: Any = _MISSING, op: _Operation = _MISSING, root: int = _MISSING) -> Any:
    """Combine the values of all ranks, in the order of ranks, by ``op(x, y)``; all but the root get None."""
    channel, value, op, root = _arguments("reduce", ("value", "op", "root"), comm, value, op, root)
    return channel.comm.reduce(value, op, root)


@calls("MPI_Scan")
def scan(comm: Any = _MISSING, value: Any = _MISSING, op: _Operation = _MISSING) -> Any:
    """Combine the values of the ranks up to and with this one by ``op(x, y)``."""
    channel, value, op = _arguments("scan", ("value", "op"), comm, value, op)
    return channel.comm.scan(value, op)


@calls("MPI_Scatter")
def scatter(comm: Any = _MISSING, values: Iterable[Any] = _MISSING, root: int = _MISSING) -> Any:
    """Give each rank its one of the root's values."""
    channel, values, root = _arguments("scatter", ("root",), comm, values, root)
    return channel.comm.scatter(_one_each("scatter", values, channel.comm.size) if channel.rank == root else None, root)
