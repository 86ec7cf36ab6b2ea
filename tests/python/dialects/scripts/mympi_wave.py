"""The wave equation in a box, in slabs. Even processes send first; what is received has to be given its shape."""

import sys

import mpi
import numerics
from numpy import array

sys.argv = mpi.mpi_init(len(sys.argv), sys.argv)
comm = mpi.MPI_COMM_WORLD
p, P = mpi.mpi_comm_rank(comm), mpi.mpi_comm_size(comm)
first, last = numerics.share(numerics.NX, p, P)
rows, columns = numerics.NY + 2, numerics.NZ + 2
size_x = rows * columns


def exchange(u):
    if p == 0:
        u[0] = u[2]
    if p == P - 1:
        u[-1] = u[-3]
    for turn in (0, 1):
        if p % 2 == turn:
            if p + 1 < P:
                mpi.mpi_send(u[-2], size_x, mpi.MPI_DOUBLE, p + 1, 10, comm)
            if p > 0:
                mpi.mpi_send(u[1], size_x, mpi.MPI_DOUBLE, p - 1, 20, comm)
        else:
            if p > 0:
                u[0] = array(mpi.mpi_recv(size_x, mpi.MPI_DOUBLE, p - 1, 10, comm)).reshape(rows, columns)
            if p + 1 < P:
                u[-1] = array(mpi.mpi_recv(size_x, mpi.MPI_DOUBLE, p + 1, 20, comm)).reshape(rows, columns)


mine = numerics.wave(first, last, exchange)
layer = numerics.NY * numerics.NZ
ranges = [numerics.share(numerics.NX, rank, P) for rank in range(P)]
counts = [layer * (stop - start) for start, stop in ranges]
displs = [layer * start for start, stop in ranges]
all_layers = mpi.mpi_gatherv(mine, mine.size, mpi.MPI_DOUBLE, counts, displs, mpi.MPI_DOUBLE, 0, comm)
if p == 0:
    whole = numerics.wave(0, numerics.NX, numerics.mirror)
    assert (all_layers.reshape(whole.shape) == whole).all()
    print("same as on one process")
else:
    assert len(all_layers) == 0
mpi.mpi_finalize()
