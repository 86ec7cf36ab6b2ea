"""The operations of which models are made, called from Python: the twin of ``primitives.c``, with the same lines.

``primitives.py [--module mpi4py|limosa] [--only NAME,...] --sizes N,... [--samples N]``. Each call is timed by itself
after a barrier, and the slowest rank counts. mpi4py's methods for memory are used, and those of `limosa.world` with
arrays. Every operation is verified at every size. Exit code 1: something that was transferred was wrong.

``primitives.py --plan OPERATION=N,...;... [--seconds S]`` follows a plan as ``primitives.c`` does, with mpi4py.
"""

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Call = Callable[[], Any]
# For each operation a call, and what gives the memory that it leaves.
Calls = dict[str, tuple[Call, Call]]

PATIENCE = 0.25  # seconds for the samples of one case
WARM_UP = 5
# Of a plan, which is followed in several rounds.
PLAN_PATIENCE = 0.05
PLAN_SAMPLES = 60
LOOP_SECONDS = 2e-4
LOOP_CALLS = (10, 1000)
# glibc's parameter and its usual value: longer blocks are mapped by themselves. It rises when one is freed.
M_MMAP_THRESHOLD, USUAL_THRESHOLD = -3, 128 << 10


def calls_of_mpi4py(n: int, p: int, rank: int, root: int = 0) -> tuple[Call, Calls]:
    """Give the barrier and, for each operation, a call and what it leaves; n bytes as in models."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    b = Buffers(n, p, rank, root)
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
        "bcast": (lambda: comm.Bcast(b.shared, root), lambda: b.shared),
        "scatter": (lambda: comm.Scatter(b.whole_blocks, b.block_into, root), lambda: b.block_into),
        "scatterv": (lambda: comm.Scatterv(b.some_blocks, b.block_into, root), lambda: b.block_into),
        "gather": (lambda: comm.Gather(b.block, b.blocks_into, root), lambda: b.blocks_into),
        "gatherv": (lambda: comm.Gatherv(b.block, b.some_into, root), lambda: b.blocks_into),
        "allgather": (lambda: comm.Allgather(b.block, b.blocks_into), lambda: b.blocks_into),
        "allgatherv": (lambda: comm.Allgatherv(b.block, b.some_into), lambda: b.blocks_into),
        "alltoall": (lambda: comm.Alltoall(b.whole_blocks, b.blocks_into), lambda: b.blocks_into),
        "alltoallv": (lambda: comm.Alltoallv(b.some_blocks, b.some_into), lambda: b.blocks_into),
        "reduce": (lambda: comm.Reduce(b.numbers, b.sums, root=root), lambda: b.sums),
        "allreduce": (lambda: comm.Allreduce(b.numbers, b.sums), lambda: b.sums),
        "reduce_scatter": (lambda: comm.Reduce_scatter(b.rows, b.row, b.shares), lambda: b.row),
        "reduce_scatter_block": (lambda: comm.Reduce_scatter_block(b.rows, b.row), lambda: b.row),
        "scan": (lambda: comm.Scan(b.numbers, b.sums), lambda: b.sums),
        "exscan": (lambda: comm.Exscan(b.numbers, b.sums), lambda: b.sums),
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

    def __init__(self, n: int, p: int, rank: int, root: int = 0) -> None:
        block, elements = max(n // p, 1), max(n // 8, 1)
        share = max(-(-elements // p), 1)
        self.whole = pattern(n, 0)
        self.into = np.zeros(n, np.uint8)
        self.shared = pattern(n, 0) if rank == root else np.zeros(n, np.uint8)
        self.whole_blocks = np.stack([pattern(block, p * rank + to) for to in range(p)])
        self.block = pattern(block, rank)
        self.block_into = np.zeros(block, np.uint8)
        self.blocks_into = np.zeros((p, block), np.uint8)
        self.numbers = np.arange(elements) % 97 + rank + 0.0
        self.sums = np.zeros(elements)
        self.rows = np.arange(p * share).reshape(p, share) % 97 + rank + 0.0
        self.row = np.zeros(share)
        # Of the forms with counts: the same blocks.
        self.shares = [share] * p
        parts = ([block] * p, [block * other for other in range(p)])
        self.some_blocks, self.some_into = [self.whole_blocks, parts], [self.blocks_into, parts]


def pattern(n: int, seed: int) -> Any:
    """Give n bytes that differ from seed to seed."""
    return ((np.arange(n) * 7 + 31 * seed + 1) % 251).astype(np.uint8)


def expected(name: str, n: int, p: int, rank: int, root: int = 0) -> Any:
    """Give what an operation leaves at this rank; None if nothing is said."""
    block, elements = max(n // p, 1), max(n // 8, 1)
    first = np.arange(elements) % 97
    if name in {"send", "bcast"}:
        return pattern(n, 0)
    if name in {"scatter", "scatterv"}:
        return pattern(block, p * root + rank)
    if name in {"allgather", "allgatherv"} or (name in {"gather", "gatherv"} and rank == root):
        return np.stack([pattern(block, other) for other in range(p)])
    if name in {"alltoall", "alltoallv"}:
        return np.stack([pattern(block, p * other + rank) for other in range(p)])
    if name in {"reduce_scatter", "reduce_scatter_block"}:
        share = max(-(-elements // p), 1)
        return p * (np.arange(p * share).reshape(p, share)[rank] % 97) + p * (p - 1) / 2.0
    if name == "allreduce" or (name == "reduce" and rank == root):
        return p * first + p * (p - 1) / 2.0
    if name == "scan":
        return (rank + 1) * first + rank * (rank + 1) / 2.0
    if name == "exscan" and rank > 0:
        return rank * first + rank * (rank - 1) / 2.0
    return None


def main() -> None:
    """Measure as the command line says."""
    made = argparse.ArgumentParser()
    made.add_argument("--module", choices=("mpi4py", "limosa"), default="mpi4py")
    made.add_argument("--only", default="")
    wanted = made.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--sizes")
    wanted.add_argument("--plan")
    made.add_argument("--samples", type=int, default=150)
    made.add_argument("--seconds", type=float, default=float("inf"))
    made.add_argument("--forms", choices=("hot",), help="as of the program in C")
    made.add_argument("--quick", action="store_true", help="as of the program in C: without effect on a plan")
    given = made.parse_args()
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, USUAL_THRESHOLD)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    well = follow(comm, given.plan, given.seconds) if given.plan else all_operations(comm, given)
    sys.exit(0 if well else 1)


def all_operations(comm: Any, given: argparse.Namespace) -> bool:
    """Measure all operations, or those of the command line; tell whether all transfers were right."""
    calls_of = calls_of_mpi4py if given.module == "mpi4py" else calls_of_limosa
    well = True
    for n in map(int, given.sizes.split(",")):
        barrier, calls = calls_of(n, comm.size, comm.rank)
        for name, (call, left) in calls.items():
            wanted = not given.only or name in given.only.split(",")
            if not wanted or (name == "barrier" and n) or (name == "send" and comm.size != 2):
                continue
            verified = verify(comm, call, left, expected(name, n, comm.size, comm.rank))
            well = well and verified
            times = measure(comm, barrier, [call], given.samples)
            tell(comm, name, n, times, verified, {"language": given.module})
    return well


def follow(comm: Any, plan: str, seconds: float) -> bool:
    """Measure what a plan names, in its order; tell whether all transfers were right."""
    end = time.perf_counter() + seconds
    well = True
    for case, n in cases_of(plan):
        if comm.bcast(time.perf_counter() > end):
            break
        name, *suffixes = case.split("@")
        if name == "send" and comm.size != 2:
            continue
        roots = range(comm.size if "turns" in suffixes else 1)
        turns, verified = [], True
        for root in roots:
            barrier, calls = calls_of_mpi4py(n, comm.size, comm.rank, root)
            call, left = calls[name]
            verified = verify(comm, call, left, expected(name, n, comm.size, comm.rank, root)) and verified
            turns.append(call)
        well = well and verified
        times = measure(comm, barrier, turns, PLAN_SAMPLES, PLAN_PATIENCE, in_loops="loop" in suffixes)
        x = {"roots": "turns"} if "turns" in suffixes else {}
        tell(comm, name, n, times, verified, x | ({"calls": "loop"} if "loop" in suffixes else {}))
    return well


def cases_of(plan: str) -> Iterator[tuple[str, int]]:
    """Give the cases of a plan such as ``bcast=0,16;scan@loop=8``."""
    for part in plan.split(";"):
        case, _, sizes = part.partition("=")
        for n in sizes.split(","):
            yield case, int(n)


def tell(comm: Any, name: str, n: int, times: list[float], verified: bool, x: dict[str, str]) -> None:
    """Print the line of a case, on rank 0."""
    factor = 0.5e6 if name == "send" else 1e6
    if comm.rank == 0:
        line = {"bench": name, "form": "hot", "bytes": n, "ranks": comm.size, "metric": "time", "unit": "us"}
        values = {"samples": [round(time * factor, 4) for time in times], "verified": verified}
        print(json.dumps({**line, **values, "x": x}), flush=True)


def verify(comm: Any, call: Call, left: Call, right: Any) -> bool:
    """Call once; tell whether what is left is right on all ranks."""
    call()
    return all(comm.allgather(right is None or bool(np.array_equal(left(), right))))


def measure(
    comm: Any, barrier: Call, turns: list[Call], samples: int, patience: float = PATIENCE, *, in_loops: bool = False
) -> list[float]:
    """Time calls by turns, each after a barrier or in loops; give the slowest rank's times."""
    from mpi4py import MPI

    begin = time.perf_counter()
    for i in range(WARM_UP * len(turns)):
        barrier()
        turns[i % len(turns)]()
    each = comm.allreduce(time.perf_counter() - begin, MPI.MAX) / (WARM_UP * len(turns))
    low, high = LOOP_CALLS if in_loops else (1, 1)
    loops = -(-max(low, min(high, int(LOOP_SECONDS / each))) // len(turns))
    calls = turns * loops if in_loops else []
    mine = np.empty(max(3, min(samples, int(patience / (each * max(len(calls), 1))))))
    for i in range(len(mine)):
        sample = calls or [turns[i % len(turns)]]
        barrier()
        start = time.perf_counter()
        for call in sample:
            call()
        mine[i] = (time.perf_counter() - start) / len(sample)
    slowest = np.empty_like(mine)
    comm.Allreduce(mine, slowest, MPI.MAX)
    return [float(seconds) for seconds in slowest]


if __name__ == "__main__":
    main()
