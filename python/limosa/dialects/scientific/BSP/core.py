"""The exchange on which all of BSP rests.

Processors leave messages for each other, and get what was left for them at `sync`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mpi4py import MPI

__all__ = ["numberOfProcessors", "processorID", "put", "send", "sync"]

_world = MPI.COMM_WORLD.Dup()

#: Number of processors, and which of them this is.
numberOfProcessors: int = _world.size
processorID: int = _world.rank

_waiting: list[list[Any]] = [[] for _ in range(numberOfProcessors)]


def put(obj: Any, pid_list: Iterable[int]) -> None:
    """Leave an object for each of the processors listed.

    Raises
    ------
    ValueError
        There is no such processor.
    """
    for pid in pid_list:
        if not 0 <= pid < numberOfProcessors:
            raise ValueError(f"invalid processor {pid}: they are 0 to {numberOfProcessors - 1}")
        _waiting[pid].append(obj)


def send(messages: Iterable[tuple[int, Any]]) -> None:
    """Leave objects, given as pairs of a processor and an object."""
    for pid, obj in messages:
        put(obj, [pid])


def sync() -> list[Any]:
    """Wait for all processors; gives what they have left for this one, in the order of senders."""
    received = _world.alltoall(_waiting)
    for messages in _waiting:
        messages.clear()
    return [obj for messages in received for obj in messages]
