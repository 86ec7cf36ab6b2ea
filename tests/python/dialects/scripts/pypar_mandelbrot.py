"""The Mandelbrot set by rows, shared out blockwise, cyclically or dynamically.  usage: pypar_mandelbrot.py WAY"""

import sys

import numpy
import pypar

M, N, KMAX = 40, 30, 50
P, p = pypar.size(), pypar.rank()


def row(i):
    c = numpy.linspace(-2, 1, M) + 1j * (-1.2 + 2.4 * i / (N - 1))
    z, count = numpy.zeros_like(c), numpy.zeros(M, "l")
    for _ in range(KMAX):
        inside = abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        count += inside
    return count


way = sys.argv[1]
expected = numpy.array([row(i) for i in range(N)])
A = numpy.zeros((N, M), "l")
if way == "blockwise":
    lo, hi = pypar.balance(N, P, p)
    A[lo:hi] = [row(i) for i in range(lo, hi)]
    if p == 0:
        for source in range(1, P):
            lo, hi = pypar.balance(N, P, source)
            pypar.receive(source, buffer=A[lo:hi])
    else:
        pypar.send(A[lo:hi], 0, use_buffer=True)
elif way == "cyclic":
    for i in range(p, N, P):
        A[i] = row(i)
    total = numpy.zeros_like(A)
    pypar.reduce(A, pypar.SUM, 0, buffer=total)
    A = total
elif way == "dynamic":
    if p == 0:
        i, working = 0, P - 1
        while working:
            (number, counts), status = pypar.receive(pypar.any_source, return_status=True)
            if number is not None:
                A[number] = counts
            pypar.send(i if i < N else None, status.source)
            working -= i >= N
            i += 1
    else:
        pypar.send((None, None), 0)
        while (i := pypar.receive(0)) is not None:
            pypar.send((i, row(i)), 0)
else:
    sys.exit("blockwise, cyclic or dynamic?")
if p == 0:
    assert numpy.array_equal(A, expected)
    print("picture ok")
pypar.finalize()
