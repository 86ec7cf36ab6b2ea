"""What the ranks of a job run: ping-pong between the first and the last rank, and broadcasts; prints lines of JSON."""

import json
import sys
from time import perf_counter

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


def main() -> None:
    """Do what the arguments say: `pingpong` or `bcast`, repetitions, sizes."""
    what, repetitions, *sizes = sys.argv[1:]
    for size in map(int, sizes):
        {"pingpong": ping_pong, "bcast": broadcast}[what](MPI.COMM_WORLD, size, int(repetitions))


if __name__ == "__main__":
    main()
