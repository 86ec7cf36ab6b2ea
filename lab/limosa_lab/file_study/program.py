"""What the ranks of a job run; prints lines of JSON.

======== ===========================================================================
name     what
======== ===========================================================================
pingpong messages between the first and the last rank
bcast    broadcasts, until the last rank has the message; all ranks share a clock
apart    broadcasts and a barrier, by the clock of rank 0: ranks of several hosts
agg      an array in equal parts is gathered on rank 0, by a binary tree over ranks
gather   the same by MPI_Gather
wait     rank 0 sends to the last rank after so many seconds; nothing is printed
======== ===========================================================================
"""

import functools
import json
import sys
from collections.abc import Callable
from time import perf_counter, sleep

import numpy as np
from mpi4py import MPI


def ping_pong(comm: MPI.Comm, size: int, trips: int) -> None:
    """Print half of the time of each round trip."""
    me, last = comm.Get_rank(), comm.Get_size() - 1
    data = np.zeros(size, dtype=np.uint8)
    seconds = []
    for trip in range(trips + 1):
        value = trip % 256
        if me == 0:
            data.fill(value)
            begin = perf_counter()
            comm.Send(data, dest=last)
            comm.Recv(data, source=last)
            seconds.append((perf_counter() - begin) / 2)
        elif me == last:
            comm.Recv(data, source=0)
            comm.Send(data, dest=0)
        if me in (0, last) and not (data == value).all():
            raise SystemExit(f"rank {me}: a message of {size} bytes has arrived with other bytes")
    if me == 0:
        # The first trip sets up what the others use.
        print(json.dumps({"bench": "pingpong", "bytes": size, "seconds": seconds[1:]}), flush=True)


def broadcast(comm: MPI.Comm, size: int, repetitions: int) -> None:
    """Print how long broadcasts took until the last rank had the message, a barrier before each."""
    me = comm.Get_rank()
    data = np.zeros(size, dtype=np.uint8)
    seconds = []
    for repetition in range(repetitions + 1):
        if me == 0:
            data.fill(repetition % 256)
        comm.Barrier()
        begin = perf_counter()
        comm.Bcast(data, root=0)
        end = perf_counter()
        if not (data == repetition % 256).all():
            raise SystemExit(f"rank {me}: a broadcast of {size} bytes has brought other bytes")
        # All ranks share this machine's clock.
        seconds.append(comm.allreduce(end, op=MPI.MAX) - comm.bcast(begin))
    if me == 0:
        print(json.dumps({"bench": "bcast", "bytes": size, "seconds": seconds[1:]}), flush=True)


def broadcast_apart(comm: MPI.Comm, size: int, repetitions: int) -> None:
    """Print how long a broadcast and a barrier took on rank 0."""
    data = np.zeros(size, dtype=np.uint8)
    seconds = []
    for repetition in range(repetitions + 1):
        if comm.Get_rank() == 0:
            data.fill(repetition % 256)
        comm.Barrier()
        begin = perf_counter()
        comm.Bcast(data, root=0)
        comm.Barrier()
        seconds.append(perf_counter() - begin)
        if not (data == repetition % 256).all():
            raise SystemExit(f"rank {comm.Get_rank()}: a broadcast of {size} bytes has brought other bytes")
    if comm.Get_rank() == 0:
        print(json.dumps({"bench": "apart", "bytes": size, "seconds": seconds[1:]}), flush=True)


def _tree(comm: MPI.Comm, whole: np.ndarray, part: int) -> None:
    """Gather by a binary tree: in each round half of those that still have data send all of it to their partner."""
    me, size, step = comm.Get_rank(), comm.Get_size(), 1
    held = part
    while step < size:
        if me & step:
            comm.Send(whole[:held], dest=me - step)
            return
        if me + step < size:
            more = min(step, size - me - step) * part
            comm.Recv(whole[held : held + more], source=me + step)
            held += more
        step *= 2


def gather(comm: MPI.Comm, total: int, repetitions: int, by_tree: bool) -> None:
    """Print how long it took until rank 0 had the whole array of `total` bytes, a barrier before each."""
    me, size = comm.Get_rank(), comm.Get_size()
    part = total // size
    # As much as a rank ever holds, in a tree over a power of two.
    whole = np.zeros(total if me == 0 else part * ((me & -me) if by_tree else 1), dtype=np.uint8)
    seconds = []
    for repetition in range(repetitions + 1):
        whole[:part] = (me + repetition) % 256
        comm.Barrier()
        begin = perf_counter()
        if by_tree:
            _tree(comm, whole, part)
        else:
            own = MPI.IN_PLACE if me == 0 else whole[:part]
            comm.Gather(own, whole[: part * size] if me == 0 else None, root=0)
        seconds.append(perf_counter() - begin)
        ends = whole[part - 1 : part * size : part]
        if me == 0 and not (ends == (np.arange(size) + repetition) % 256).all():
            raise SystemExit(f"an array of {total} bytes was gathered with other bytes")
    if me == 0:
        bench = "agg" if by_tree else "gather"
        print(json.dumps({"bench": bench, "bytes": total, "seconds": seconds[1:]}), flush=True)


def wait(comm: MPI.Comm, _: int, seconds: int) -> None:
    """Have the last rank wait so long for a message."""
    data = np.zeros(1, dtype=np.uint8)
    comm.Barrier()
    if comm.Get_rank() == 0:
        sleep(seconds)
        comm.Send(data, dest=comm.Get_size() - 1)
    elif comm.Get_rank() == comm.Get_size() - 1:
        comm.Recv(data, source=0)


#: What is run with a number of bytes and of repetitions.
BENCHES: dict[str, Callable[[MPI.Comm, int, int], None]] = {
    "pingpong": ping_pong,
    "bcast": broadcast,
    "apart": broadcast_apart,
    "agg": functools.partial(gather, by_tree=True),
    "gather": functools.partial(gather, by_tree=False),
    "wait": wait,
}


def main() -> None:
    """Do what the arguments say: name, repetitions, sizes."""
    what, repetitions, *sizes = sys.argv[1:]
    for size in map(int, sizes):
        BENCHES[what](MPI.COMM_WORLD, size, int(repetitions))


if __name__ == "__main__":
    main()
