#!/usr/bin/env pyMPI
import mpi

numproc = mpi.size
myrank = mpi.rank
proc_name = mpi.name
print("Hello, world! I'm process %d of %d." % (myrank, numproc))
