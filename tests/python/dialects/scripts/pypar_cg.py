"""Conjugate gradients for the Poisson equation in a square, rows of the mesh shared out. pypar has no allreduce: inner
products are reduced to processor 0 and broadcast from there."""

import numpy
import pypar

n = 14
myid, numproc = pypar.rank(), pypar.size()
lo, hi = pypar.balance(n, numproc, myid)


def inner(x, y):
    part = numpy.array(numpy.vdot(x, y), "d")
    total = numpy.array(0.0, "d")
    pypar.reduce(part, pypar.SUM, 0, buffer=total)
    pypar.bcast(total, 0)
    return float(total)


def multiply(x):
    """The five-point star; rows of the neighbours come as messages."""
    padded = numpy.zeros((hi - lo + 2, n + 2))
    padded[1:-1, 1:-1] = x
    for parity in (0, 1):
        if myid % 2 == parity:
            if myid > 0:
                pypar.send(x[0], myid - 1, use_buffer=True)
            if myid < numproc - 1:
                pypar.send(x[-1], myid + 1, use_buffer=True)
        else:
            row = numpy.zeros(n)
            if myid < numproc - 1:
                padded[-1, 1:-1] = pypar.receive(myid + 1, buffer=row)
            if myid > 0:
                padded[0, 1:-1] = pypar.receive(myid - 1, buffer=row)
    return 4 * x - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]


solution = numpy.zeros((hi - lo, n))
r = numpy.add.outer(numpy.arange(lo, hi), numpy.arange(n)) / n
p, rho = r.copy(), inner(r, r)
rho0, k = rho, 0
while rho > 1e-8 * rho0:
    v = multiply(p)
    a = rho / inner(p, v)
    solution += a * p
    r -= a * v
    rho, previous = inner(r, r), rho
    p = r + rho / previous * p
    k += 1

right = numpy.add.outer(numpy.arange(lo, hi), numpy.arange(n)) / n
error = right - multiply(solution)
residual = inner(error, error)
if myid == 0:
    assert k < 40 and residual < 1e-7 * rho0, (k, residual)
    print("converged after %d steps" % k)
pypar.finalize()
