"""What the wave and conjugate gradient programs of pyMPI, MYMPI and Scientific.MPI compute.

Each brings its own communication.
"""

import numpy as np

NX, NY, NZ, STEPS, DT = 24, 7, 9, 20, 0.4
MESH = 14


def share(length, rank, size):
    """First and last + 1 of the items of one process."""
    each, extra = divmod(length, size)
    first = rank * each + min(rank, extra)
    return first, first + each + (rank < extra)


def wave(first, last, exchange):
    """Solve the wave equation in layers `first` to `last` of a box; `exchange(u)` fills u[0] and u[-1]."""
    x, y, z = np.meshgrid(np.arange(NX) / (NX - 1), np.linspace(0, 1, NY), np.linspace(0, 1, NZ), indexing="ij")
    u = np.zeros((last - first + 2, NY + 2, NZ + 2))
    u[1:-1, 1:-1, 1:-1] = (2 * np.cos(np.pi * x) * np.cos(np.pi * y) * np.cos(np.pi * z))[first:last]
    old = u.copy()
    for k in range(STEPS):
        for axis in (1, 2):
            v = np.moveaxis(u, axis, 0)
            v[0], v[-1] = v[2], v[-3]
        exchange(u)
        c = u[1:-1, 1:-1, 1:-1]
        laplace = u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
        laplace = laplace + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6 * c
        new = np.zeros_like(u)
        new[1:-1, 1:-1, 1:-1] = 2 * c - old[1:-1, 1:-1, 1:-1] + DT**2 * laplace
        if k == 0:
            new[1:-1, 1:-1, 1:-1] = (new + old)[1:-1, 1:-1, 1:-1] / 2
        old, u = u, new
    return np.ascontiguousarray(u[1:-1, 1:-1, 1:-1])


def mirror(u):
    """What `exchange` does on a single process."""
    u[0], u[-1] = u[2], u[-3]


def conjugate_gradients(first, last, exchange, total):
    """Solve Poisson's equation in rows `first` to `last` of a square mesh.

    `exchange(padded)` fills the rows padded[0] and padded[-1]; `total(x)` sums a number over the processes. Gives the
    number of steps.
    """

    def inner(x, y):
        return float(total(np.vdot(x, y)))

    def multiply(x):
        padded = np.zeros((last - first + 2, MESH + 2))
        padded[1:-1, 1:-1] = x
        exchange(padded)
        return 4 * x - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]

    right = np.add.outer(np.arange(first, last), np.arange(MESH)) / MESH
    solution, r, p, k = np.zeros_like(right), right.copy(), right.copy(), 0
    rho = rho0 = inner(r, r)
    while rho > 1e-8 * rho0:
        v = multiply(p)
        a = rho / inner(p, v)
        solution += a * p
        r -= a * v
        rho, previous = inner(r, r), rho
        p = r + rho / previous * p
        k += 1
    error = right - multiply(solution)
    assert k < 40 and inner(error, error) < 1e-7 * rho0
    return k
