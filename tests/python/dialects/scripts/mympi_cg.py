"""Conjugate gradients, rows of the mesh shared out. There is no allreduce: a reduce and a broadcast."""

import sys

import mpi
import numerics
from numpy import array

sys.argv = mpi.mpi_init(len(sys.argv), sys.argv)
comm = mpi.MPI_COMM_WORLD
p, P = mpi.mpi_comm_rank(comm), mpi.mpi_comm_size(comm)
first, last = numerics.share(numerics.MESH, p, P)
row = numerics.MESH + 2


def exchange(padded):
    for parity in (0, 1):
        if p % 2 == parity:
            if p > 0:
                mpi.mpi_send(padded[1], row, mpi.MPI_DOUBLE, p - 1, 0, comm)
            if p < P - 1:
                mpi.mpi_send(padded[-2], row, mpi.MPI_DOUBLE, p + 1, 0, comm)
        else:
            if p < P - 1:
                padded[-1] = mpi.mpi_recv(row, mpi.MPI_DOUBLE, p + 1, 0, comm)
            if p > 0:
                padded[0] = mpi.mpi_recv(row, mpi.MPI_DOUBLE, p - 1, 0, comm)


def total(a2s):
    a2s = array(a2s, "d")
    a2 = mpi.mpi_reduce(a2s, 1, mpi.MPI_DOUBLE, mpi.MPI_SUM, 0, comm)
    a2 = mpi.mpi_bcast(a2, 1, mpi.MPI_DOUBLE, 0, comm)
    return a2[0]


steps = numerics.conjugate_gradients(first, last, exchange, total)
print("process %d converged after %d steps" % (p, steps))
mpi.mpi_finalize()
