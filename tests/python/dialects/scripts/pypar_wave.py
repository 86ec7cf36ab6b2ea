"""The wave equation in a box, cut into slabs along x. Ghost layers are exchanged in two rounds: the processes of odd
number send first, then those of even number."""

import numpy as np
import pypar

NX, NY, NZ, STEPS, DT = 24, 7, 9, 20, 0.4


def start(nx):
    x, y, z = np.meshgrid(np.arange(nx) / (nx - 1), np.linspace(0, 1, NY), np.linspace(0, 1, NZ), indexing="ij")
    return 2 * np.cos(np.pi * x) * np.cos(np.pi * y) * np.cos(np.pi * z)


def reflect(u):
    for axis in (1, 2):
        v = np.moveaxis(u, axis, 0)
        v[0], v[-1] = v[2], v[-3]


def step(old, u):
    new = np.zeros_like(u)
    c = u[1:-1, 1:-1, 1:-1]
    laplace = u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
    laplace = laplace + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6 * c
    new[1:-1, 1:-1, 1:-1] = 2 * c - old[1:-1, 1:-1, 1:-1] + DT**2 * laplace
    return new


def solve(first, number, exchange):
    """Layers first to first + number of the box, with a ghost layer on every side."""
    u = np.zeros((number + 2, NY + 2, NZ + 2))
    u[1:-1, 1:-1, 1:-1] = start(NX)[first : first + number]
    old = u.copy()
    for k in range(STEPS):
        reflect(u)
        exchange(u)
        new = step(old, u)
        if k == 0:
            new[1:-1, 1:-1, 1:-1] = (new + old)[1:-1, 1:-1, 1:-1] / 2
        old, u = u, new
    return u[1:-1, 1:-1, 1:-1]


def mirror(u):
    u[0], u[-1] = u[2], u[-3]


p, P = pypar.rank(), pypar.size()
lo, hi = pypar.balance(NX, P, p)
buf = np.zeros((NY + 2, NZ + 2))


def send_up(u):
    if p + 1 < P:
        pypar.send(u[-2], p + 1, use_buffer=True, bypass=True)


def send_down(u):
    if p > 0:
        pypar.send(u[1], p - 1, use_buffer=True, bypass=True)


def receive_up(u):
    if p + 1 < P:
        u[-1] = pypar.receive(p + 1, buffer=buf, bypass=True)


def receive_down(u):
    if p > 0:
        u[0] = pypar.receive(p - 1, buffer=buf, bypass=True)


def exchange(u):
    if p == 0:
        u[0] = u[2]
    if p == P - 1:
        u[-1] = u[-3]
    if p % 2 == 1:
        send_up(u), send_down(u), receive_down(u), receive_up(u)
    else:
        receive_down(u), receive_up(u), send_up(u), send_down(u)


mine = np.ascontiguousarray(solve(lo, hi - lo, exchange))
if p == 0:
    parts = [mine] + [pypar.receive(source) for source in range(1, P)]
    difference = abs(np.concatenate(parts) - solve(0, NX, mirror)).max()
    assert difference == 0, difference
    print("same as on one process")
else:
    pypar.send(mine, 0)
pypar.finalize()
