"""Conjugate gradients for a chain of springs; inner products are summed by all_reduce with a lambda."""

import numpy as np
from boost import mpi

n = 60
lo, hi = mpi.rank * n // mpi.size, (mpi.rank + 1) * n // mpi.size
matrix = 3 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
right = np.linspace(-1, 2, n)


def inner(a, b):
    return mpi.all_reduce(mpi.world, np.inner(a, b), lambda x, y: x + y)


def multiply(p):
    return matrix[lo:hi] @ np.concatenate(mpi.all_gather(mpi.world, p))


x, r = np.zeros(hi - lo), right[lo:hi].copy()
p, rho, k = r, inner(r, r), 0
rho0 = rho
while rho > 1e-16 * rho0:
    v = multiply(p)
    a = rho / inner(p, v)
    x, r = x + a * p, r - a * v
    rho, previous = inner(r, r), rho
    p, k = r + rho / previous * p, k + 1

solution = mpi.gather(mpi.world, x, root=0)
if mpi.rank == 0:
    assert np.allclose(np.concatenate(solution), np.linalg.solve(matrix, right))
    print("converged after %d steps" % k)
