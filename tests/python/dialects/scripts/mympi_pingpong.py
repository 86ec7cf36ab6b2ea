"""Ping-pong in the style of C."""

import sys

import numpy
from mpi import *

sys.argv = mpi_init(len(sys.argv), sys.argv)
myid = mpi_comm_rank(MPI_COMM_WORLD)
assert mpi_comm_size(MPI_COMM_WORLD) == 2, "run me on two processes"
other = 1 - myid
for n in [0, 1, 128, 513, 10000, 131072]:
    data = numpy.arange(n, dtype="d") + 1
    if myid == 0:
        mpi_send(data, n, MPI_DOUBLE, other, 1, MPI_COMM_WORLD)
        back = mpi_recv(n, MPI_DOUBLE, other, 2, MPI_COMM_WORLD)
        assert numpy.all(back == 2 * data) and len(back) == n
        print("%8d bytes ok" % (8 * n))
    else:
        data = mpi_recv(n, MPI_DOUBLE, other, 1, MPI_COMM_WORLD)
        mpi_send(2 * data, n, MPI_DOUBLE, other, 2, MPI_COMM_WORLD)
mpi_finalize()
