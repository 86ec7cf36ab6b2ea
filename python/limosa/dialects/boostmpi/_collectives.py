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


def _arguments(call: str, comm: Any, *others: Any, names: str = "") -> tuple[Any, ...]:
    """Give the mpi4py communicator and the other arguments, moved on by one where the communicator was left out.

    `names` are those of the last arguments, which must be given.
    """
    found = list(others)
    if isinstance(comm, Communicator):
        handle = comm._comm
    else:
        handle = world._comm
        for index in range(len(found)):
            if comm is _MISSING:
                break
            found[index], comm = comm, found[index]
        if comm is not _MISSING:
            raise TypeError(f"{call}() takes a Communicator as its first argument, or none")
    required = names.split()
    for name, value in zip(required, found[len(found) - len(required) :], strict=True):
        if value is _MISSING:
            raise TypeError(f"{call}() needs {name}: {call}(comm, ...), or {call}(..., {name}=...)")
    if found[0] is _MISSING:
        found[0] = None
    return handle, *found


def _one_each(call: str, values: Iterable[Any], size: int) -> list[Any]:
    items = list(islice(values, size))
    if len(items) < size:
        raise ValueError(f"{call}() needs a value for each of the {size} ranks, and got {len(items)}")
    return items


@calls("MPI_Allgather")
def all_gather(comm: Any = _MISSING, value: Any = _MISSING) -> tuple[Any, ...]:
    """Give all ranks the values of all, as a tuple in the order of ranks."""
    comm, value = _arguments("all_gather", comm, value)
    return tuple(comm.allgather(value))


@calls("MPI_Allreduce")
def all_reduce(comm: Any = _MISSING, value: Any = _MISSING, op: _Operation = _MISSING) -> Any:
    """Combine the values of all ranks, in the order of ranks, by ``op(x, y)``; the result is given to all."""
    comm, value, op = _arguments("all_reduce", comm, value, op, names="value op")
    return comm.allreduce(value, op)


@calls("MPI_Alltoall")
def all_to_all(comm: Any = _MISSING, values: Iterable[Any] = _MISSING) -> tuple[Any, ...]:
    """Send a value to each rank; give the values that they sent, as a tuple in the order of ranks."""
    comm, values = _arguments("all_to_all", comm, values, names="values")
    return tuple(comm.alltoall(_one_each("all_to_all", values, comm.size)))


@calls("MPI_Bcast")
def broadcast(comm: Any = _MISSING, value: Any = _MISSING, root: int = _MISSING) -> Any:
    """Give all ranks the root's value; a `Content` (on all ranks) is received in place."""
    comm, value, root = _arguments("broadcast", comm, value, root, names="root")
    if type(value) is not Content:
        return comm.bcast(value, root)
    comm.Bcast(value.to_receive(), root)
    value.received()
    return value


@calls("MPI_Gather")
def gather(comm: Any = _MISSING, value: Any = _MISSING, root: int = _MISSING) -> tuple[Any, ...] | None:
    """Give the root the values of all ranks, as a tuple in the order of ranks; the others get None."""
    comm, value, root = _arguments("gather", comm, value, root, names="root")
    values = comm.gather(value, root)
    return None if values is None else tuple(values)


@calls("MPI_Reduce")
def reduce(comm: Any = _MISSING, value: Any = _MISSING, op: _Operation = _MISSING, root: int = _MISSING) -> Any:
    """Combine the values of all ranks, in the order of ranks, by ``op(x, y)``; the root gets the result, the others None."""
    comm, value, op, root = _arguments("reduce", comm, value, op, root, names="value op root")
    return comm.reduce(value, op, root)


@calls("MPI_Scan")
def scan(comm: Any = _MISSING, value: Any = _MISSING, op: _Operation = _MISSING) -> Any:
    """Combine the values of the ranks up to and with this one by ``op(x, y)``."""
    comm, value, op = _arguments("scan", comm, value, op, names="value op")
    return comm.scan(value, op)


@calls("MPI_Scatter")
def scatter(comm: Any = _MISSING, values: Iterable[Any] = _MISSING, root: int = _MISSING) -> Any:
    """Give each rank its one of the root's values."""
    comm, values, root = _arguments("scatter", comm, values, root, names="root")
    return comm.scatter(_one_each("scatter", values, comm.size) if comm.rank == root else None, root)
