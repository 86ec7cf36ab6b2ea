#!/usr/bin/env python
import sys

import mpi

sys.argv = mpi.mpi_init(len(sys.argv), sys.argv)
comm = mpi.MPI_COMM_WORLD
numproc = mpi.mpi_comm_size(comm)
myrank = mpi.mpi_comm_rank(comm)
print("Hello, world! I'm process %d of %d." % (myrank, numproc))
mpi.mpi_finalize()
