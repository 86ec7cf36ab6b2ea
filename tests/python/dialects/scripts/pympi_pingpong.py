"""Ping-pong of arrays and other objects."""

import mpi
import numpy

assert mpi.size == 2, "run me on two processes"
other = 1 - mpi.rank
for n in [0, 1, 128, 513, 10000, 131072]:
    data = numpy.arange(n, dtype="d") + 1
    if mpi.rank == 0:
        mpi.send(data, other)
        back, status = mpi.recv(other)
        assert numpy.all(back == 2 * data) and (status.source, status.tag) == (1, 7)
        print("%8d bytes ok" % (8 * n))
    else:
        message, status = mpi.recv()
        mpi.send(2 * message, status.source, 7)
for thing in [3, 2.5, "text", ["a", ("b", {"c": None})], "long text " * 10000, list(range(20000))]:
    if mpi.rank == 0:
        mpi.send(thing, 1, 5)
        assert mpi.recv(1, 6)[0] == [thing]
    else:
        mpi.send([mpi.recv(0, 5)[0]], 0, 6)
