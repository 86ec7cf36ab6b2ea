import boostmpi as mpi

print("Hello, world! I'm process %d of %d." % (mpi.rank, mpi.size))
