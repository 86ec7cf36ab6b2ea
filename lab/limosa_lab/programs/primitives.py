"""The operations of which models are made, called from Python: the twin of ``primitives.c``, with the same lines.

``primitives.py --module mpi4py|limosa [--only NAME,...] --sizes N,... [--samples N]``. Each call is timed by itself
after a barrier, and the slowest rank counts. mpi4py's methods for memory are used, and those of `limosa.world` with
arrays. Every operation is verified at every size. Exit code 1: something that was transferred was wrong.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]
# For each operation a call, and what gives the memory that it leaves.
Calls = dict[str, tuple[Call, Call]]

PATIENCE = 0.25  # seconds for the samples of one case
WARM_UP = 5


def calls_of_mpi4py(n: int, p: int, rank: int) -> tuple[Call, Calls]:
    """Give the barrier and, for each operation, a call and what it leaves; n bytes as in models."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    b = Buffers(n, p, rank)
    peer = 1 - rank

    def ping_pong() -> None:
        if rank == 0:
            comm.Send(b.whole, peer)
            comm.Recv(b.into, peer)
        else:
            comm.Recv(b.into, peer)
            comm.Send(b.into, peer)

    return comm.Barrier, {
        "send": (ping_pong, lambda: b.into),
        "bcast": (lambda: comm.Bcast(b.shared), lambda: b.shared),
        "scatter": (lambda: comm.Scatter(b.whole_blocks, b.block_into), lambda: b.block_into),
        "gather": (lambda: comm.Gather(b.block, b.blocks_into), lambda: b.blocks_into),
        "allgather": (lambda: comm.Allgather(b.block, b.blocks_into), lambda: b.blocks_into),
        "alltoall": (lambda: comm.Alltoall(b.whole_blocks, b.blocks_into), lambda: b.blocks_into),
        "reduce": (lambda: comm.Reduce(b.numbers, b.sums), lambda: b.sums),
        "allreduce": (lambda: comm.Allreduce(b.numbers, b.sums), lambda: b.sums),
        "reduce_scatter_block": (lambda: comm.Reduce_scatter_block(b.rows, b.row), lambda: b.row),
        "scan": (lambda: comm.Scan(b.numbers, b.sums), lambda: b.sums),
        "barrier": (comm.Barrier, lambda: None),
    }


def calls_of_limosa(n: int, p: int, rank: int) -> tuple[Call, Calls]:
    """Give the same with `limosa.world`."""
    from limosa import world

    b = Buffers(n, p, rank)
    peer = 1 - rank

    def ping_pong() -> None:
        if rank == 0:
            world.send(b.whole, peer)
            world.recv(peer, out=b.into)
        else:
            world.recv(peer, out=b.into)
            world.send(b.into, peer)

    at_root = rank == 0
    return world.barrier, {
        "send": (ping_pong, lambda: b.into),
        "bcast": (lambda: world.bcast(b.shared, out=b.shared), lambda: b.shared),
        "scatter": (
            lambda: world.scatter(b.whole_blocks if at_root else None, out=b.block_into),
            lambda: b.block_into,
        ),
        "gather": (lambda: world.gather(b.block, out=b.blocks_into if at_root else None), lambda: b.blocks_into),
        "allgather": (lambda: world.allgather(b.block, out=b.blocks_into), lambda: b.blocks_into),
        "alltoall": (lambda: world.alltoall(b.whole_blocks, out=b.blocks_into), lambda: b.blocks_into),
        "reduce": (lambda: world.reduce(b.numbers, out=b.sums if at_root else None), lambda: b.sums),
        "allreduce": (lambda: world.allreduce(b.numbers, out=b.sums), lambda: b.sums),
        "reduce_scatter_block": (lambda: world.reduce_scatter(b.rows, out=b.row), lambda: b.row),
        "scan": (lambda: world.scan(b.numbers, out=b.sums), lambda: b.sums),
        "barrier": (world.barrier, lambda: None),
    }


class Buffers:
    """Arrays for n bytes among p ranks: whole messages, blocks of n / p bytes, and doubles."""

    def __init__(self, n: int, p: int, rank: int) -> None:
        block, elements = max(n // p, 1), max(n // 8, 1)
        share = max(-(-elements // p), 1)
        self.whole = pattern(n, 0)
        self.into = np.zeros(n, np.uint8)
        self.shared = pattern(n, 0) if rank == 0 else np.zeros(n, np.uint8)
        self.whole_blocks = np.stack([pattern(block, p * rank + to) for to in range(p)])
        self.block = pattern(block, rank)
        self.block_into = np.zeros(block, np.uint8)
        self.blocks_into = np.zeros((p, block), np.uint8)
        self.numbers = np.arange(elements) % 97 + rank + 0.0
        self.sums = np.zeros(elements)
        self.rows = np.arange(p * share).reshape(p, share) % 97 + rank + 0.0
        self.row = np.zeros(share)


def pattern(n: int, seed: int) -> Any:
    """Give n bytes that differ from seed to seed."""
    return ((np.arange(n) * 7 + 31 * seed + 1) % 251).astype(np.uint8)


def expected(name: str, n: int, p: int, rank: int) -> Any:
    """Give what an operation leaves at this rank; None if nothing is said."""
    block, elements = max(n // p, 1), max(n // 8, 1)
    first = np.arange(elements) % 97
    if name in {"send", "bcast"}:
        return pattern(n, 0)
    if name == "scatter":
        return pattern(block, rank)
    if name in {"gather", "allgather"}:
        return np.stack([pattern(block, other) for other in range(p)]) if name == "allgather" or rank == 0 else None
    if name == "alltoall":
        return np.stack([pattern(block, p * other + rank) for other in range(p)])
    if name == "reduce_scatter_block":
        share = max(-(-elements // p), 1)
        return p * (np.arange(p * share).reshape(p, share)[rank] % 97) + p * (p - 1) / 2.0
    if name in {"reduce", "allreduce"}:
        return p * first + p * (p - 1) / 2.0 if name == "allreduce" or rank == 0 else None
    if name == "scan":
        return (rank + 1) * first + rank * (rank + 1) / 2.0
    return None


def main() -> None:
    """Measure as the command line says."""
    made = argparse.ArgumentParser()
    made.add_argument("--module", choices=("mpi4py", "limosa"), required=True)
    made.add_argument("--only", default="")
    made.add_argument("--sizes", required=True)
    made.add_argument("--samples", type=int, default=150)
    given = made.parse_args()
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    calls_of = calls_of_mpi4py if given.module == "mpi4py" else calls_of_limosa
    well = True
    for n in map(int, given.sizes.split(",")):
        barrier, calls = calls_of(n, comm.size, comm.rank)
        for name, (call, left) in calls.items():
            wanted = not given.only or name in given.only.split(",")
            if not wanted or (name == "barrier" and n) or (name == "send" and comm.size != 2):
                continue
            right = expected(name, n, comm.size, comm.rank)
            verified = all(comm.allgather(verify(call, left, right)))
            well = well and verified
            times = measure(comm, barrier, call, given.samples)
            factor = 0.5e6 if name == "send" else 1e6
            if comm.rank == 0:
                line = {"bench": name, "form": "hot", "bytes": n, "ranks": comm.size, "metric": "time", "unit": "us"}
                values = {"samples": [round(time * factor, 4) for time in times], "verified": verified}
                print(json.dumps({**line, **values, "x": {"language": given.module}}), flush=True)
    sys.exit(0 if well else 1)


def verify(call: Call, left: Call, right: Any) -> bool:
    """Call once; tell whether what is left is right."""
    call()
    return right is None or bool(np.array_equal(left(), right))


def measure(comm: Any, barrier: Call, call: Call, samples: int) -> list[float]:
    """Time single calls, each after a barrier; give the slowest rank's times."""
    from mpi4py import MPI

    begin = time.perf_counter()
    for _ in range(WARM_UP):
        barrier()
        call()
    each = comm.allreduce(time.perf_counter() - begin, MPI.MAX) / WARM_UP
    mine = np.empty(max(3, min(samples, int(PATIENCE / each))))
    for i in range(len(mine)):
        barrier()
        start = time.perf_counter()
        call()
        mine[i] = time.perf_counter() - start
    slowest = np.empty_like(mine)
    comm.Allreduce(mine, slowest, MPI.MAX)
    return [float(seconds) for seconds in slowest]


if __name__ == "__main__":
    main()
