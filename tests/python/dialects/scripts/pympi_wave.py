"""The wave equation in a box, in slabs. Even processes send first."""

import mpi
import numerics

p, P = mpi.rank, mpi.size
first, last = numerics.share(numerics.NX, p, P)


def exchange(u):
    if p == 0:
        u[0] = u[2]
    if p == P - 1:
        u[-1] = u[-3]
    for turn in (0, 1):
        if p % 2 == turn:
            if p + 1 < P:
                mpi.send(u[-2], p + 1)
            if p > 0:
                mpi.send(u[1], p - 1)
        else:
            if p > 0:
                u[0], status = mpi.recv(p - 1)
            if p + 1 < P:
                u[-1], status = mpi.recv(p + 1)


def exchange_both(u):
    """The same with sendrecv, on a row of processes whose ends have no neighbour."""
    below, above = row.shift()
    got, status = row.sendrecv(u[-2], above, below)
    u[0] = u[2] if got is None else got
    got, status = row.sendrecv(u[1], below, above)
    u[-1] = u[-3] if got is None else got


row = mpi.WORLD.cart_create(periods=[0], reorder=0)
for way in exchange, exchange_both:
    layers = mpi.gather(list(numerics.wave(first, last, way)))
    if p == 0:
        whole = numerics.wave(0, numerics.NX, numerics.mirror)
        assert len(layers) == numerics.NX and all((mine == right).all() for mine, right in zip(layers, whole))
        print("same as on one process")
