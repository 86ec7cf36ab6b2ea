"""Gathering an array on one rank over several hosts: first to one rank of each host, then one message from each."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from limosa.arrays._move import Layout, regions
from limosa.arrays._pieces import all_of

if TYPE_CHECKING:
    from limosa._comm import Comm
    from limosa.arrays._array import Array


class _Hosts(NamedTuple):
    """The ranks of this host; the lowest ranks of all hosts, which collect; and which rank is where."""

    inside: MPI.Comm
    collectors: MPI.Comm
    ranks: list[list[int]]


@lru_cache(maxsize=16)
def _hosts(comm: Comm) -> _Hosts:
    mpi: MPI.Intracomm = comm.mpi
    inside = mpi.Split_type(MPI.COMM_TYPE_SHARED, mpi.rank)
    collectors = mpi.Split(0 if inside.rank == 0 else MPI.UNDEFINED, mpi.rank)
    hosts = sorted({tuple(host) for host in mpi.allgather(inside.allgather(mpi.rank))})
    return _Hosts(inside, collectors, [list(host) for host in hosts])


def on_several_hosts(comm: Comm) -> bool:
    """Return whether the ranks are on several hosts, some of them together. All call this together at first."""
    return comm.size > 1 and 1 < len(_hosts(comm).ranks) < comm.size


def gather(array: Array, root: int, made: NDArray[Any]) -> None:
    """Copy the whole array to `made` on the rank `root`."""
    comm, source = array.comm, Layout(array.map, array.shape)
    inside, collectors, hosts = _hosts(comm)
    counts = {rank: _count(source, rank) * array.dtype.itemsize for host in hosts for rank in host}
    here = next(host for host in hosts if comm.rank in host)
    target = next(k for k, host in enumerate(hosts) if root in host)
    packed = _gathered(inside, np.ascontiguousarray(array.owned), [counts[rank] for rank in here], 0)
    if inside.rank == 0:
        packed = _gathered(collectors, packed, [sum(counts[rank] for rank in host) for host in hosts], target)
    if root in here and here[0] != root:
        if comm.rank == root:
            packed = np.empty(sum(counts.values()), np.uint8)
            inside.Recv(packed, 0)
        elif inside.rank == 0:
            inside.Send(packed, here.index(root))
    if comm.rank == root:
        _unpack(source, packed, [(rank, counts[rank]) for host in hosts for rank in host], made)


def _unpack(source: Layout, packed: NDArray[Any], counts: list[tuple[int, int]], made: NDArray[Any]) -> None:
    """Copy what each rank owns into the whole array."""
    start = 0
    for rank, count in counts:
        part = source.part(rank)
        if count and part is not None:
            shape = [sum(len(piece.whole) for piece in pieces) for pieces in part]
            owned = packed[start : start + count].view(made.dtype).reshape(shape)
            for region in regions(part, [all_of(length) for length in made.shape]):
                made[region.here] = owned[region.there]
        start += count


def _count(source: Layout, rank: int) -> int:
    part = source.part(rank)
    return 0 if part is None else math.prod(sum(len(piece.whole) for piece in pieces) for pieces in part)


def _gathered(mpi: MPI.Comm, values: NDArray[Any], counts: list[int], root: int) -> NDArray[np.uint8]:
    """Return the bytes that all ranks of a communicator have, on one of them."""
    made = np.empty(sum(counts) if mpi.rank == root else 0, np.uint8)
    starts = [sum(counts[:k]) for k in range(len(counts))]
    mpi.Gatherv([values, counts[mpi.rank], MPI.BYTE], [made, counts, starts, MPI.BYTE], root)
    return made
