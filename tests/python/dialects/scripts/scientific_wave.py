"""The wave equation in a box, in slabs. Even processes send first."""

import numerics
from Scientific import N
from Scientific.MPI import world

comm = world.duplicate()
p, P = comm.rank, comm.size
first, last = numerics.share(numerics.NX, p, P)
buf_x = N.zeros((numerics.NY + 2, numerics.NZ + 2), N.Float)


def exchange(u):
    if p == 0:
        u[0] = u[2]
    if p == P - 1:
        u[-1] = u[-3]
    for turn in (0, 1):
        if p % 2 == turn:
            if p + 1 < P:
                comm.send(u[-2], p + 1, 100)
            if p > 0:
                comm.send(u[1], p - 1, 100)
        else:
            if p > 0:
                u[0], source, tag, count = comm.receive(buf_x, p - 1)
            if p + 1 < P:
                u[-1], source, tag, count = comm.receive(buf_x, p + 1)


def exchange_nonblocking(u):
    requests = []
    for rank, inner, ghost in (p - 1, 1, 0), (p + 1, -2, -1):
        if 0 <= rank < P:
            requests.append(comm.nonblockingReceive(u[ghost], rank, 1))
            requests.append(comm.nonblocking_send(u[inner], rank, 1))
        else:
            u[ghost] = u[2 if ghost == 0 else -3]
    for request in requests:
        request.wait()


for way in exchange, exchange_nonblocking:
    mine = numerics.wave(first, last, way)
    if p == 0:
        parts = [mine] + [
            comm.receive(N.Float, source, 5)[0].reshape(-1, numerics.NY, numerics.NZ) for source in range(1, P)
        ]
        assert (N.concatenate(parts) == numerics.wave(0, numerics.NX, numerics.mirror)).all()
        print("same as on one process")
    else:
        comm.send(mine, 0, 5)
    comm.barrier()
