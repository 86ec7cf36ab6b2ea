#!/usr/bin/env mpipython
from Scientific import MPI

comm = MPI.world.duplicate()
numproc = comm.size
myrank = comm.rank
print("Hello, world! I'm process %d of %d." % (myrank, numproc))
