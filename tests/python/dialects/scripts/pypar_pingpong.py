"""Ping-pong of growing arrays, in pypar's three ways of sending them."""

import numpy
import pypar

myid = pypar.rank()
assert pypar.size() == 2, "run me on two processors"
other = 1 - myid

for n in [0, 1, 128, 513, 10000, 131072]:
    data = numpy.arange(n, dtype="d") + 1
    space = numpy.zeros(n, "d")
    for i in range(3):
        if myid == 0:
            pypar.send(data, other)
            back = pypar.receive(other)
            assert numpy.all(back == 2 * data)
            pypar.send(data, other, use_buffer=True)
            same = pypar.receive(other, buffer=space)
            assert same is space and numpy.all(space == 2 * data)
            t0 = pypar.time()
            pypar.send(data, other, use_buffer=True, bypass=True)
            pypar.receive(other, buffer=space, bypass=True)
            elapsed = pypar.time() - t0
            assert numpy.all(space == 2 * data)
        else:
            pypar.send(2 * pypar.receive(other), other)
            pypar.receive(other, buffer=space)
            pypar.send(2 * space, other, use_buffer=True)
            space[...] = 0
            pypar.receive(other, buffer=space, bypass=True)
            pypar.send(2 * space, other, use_buffer=True, bypass=True)
    if myid == 0:
        assert elapsed > 0
        print("%8d bytes ok" % (8 * n))
pypar.finalize()
