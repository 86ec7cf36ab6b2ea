#!/usr/bin/env python
import pypar

numproc = pypar.size()
myrank = pypar.rank()
print("Hello, world! I'm process %d of %d." % (myrank, numproc))
pypar.finalize()
