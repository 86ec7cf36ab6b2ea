"""A wave on a string in pieces; the ends of the pieces are exchanged with requests."""

import boostmpi
import numpy as np

N, STEPS, C2 = 60, 50, 0.25
world = boostmpi.world
left = world.rank - 1 if world.rank > 0 else None
right = world.rank + 1 if world.rank < world.size - 1 else None
mine = np.array_split(np.sin(np.linspace(0, np.pi, N)) ** 4, world.size)[world.rank]


def step(old, u):
    new = 2 * u - old
    new[1:-1] += C2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return new


def solve(u, exchange):
    u = np.concatenate([[0.0], u, [0.0]])
    old = u.copy()
    for _ in range(STEPS):
        exchange(u)
        old, u = u, step(old, u)
    return u[1:-1]


def exchange(u):
    requests = boostmpi.RequestList()
    for neighbour, own in [(left, 1), (right, -2)]:
        if neighbour is not None:
            requests.append(world.isend(neighbour, 0, float(u[own])))
    ghosts = {n: world.irecv(n, 0) for n in (left, right) if n is not None}
    for neighbour, request in ghosts.items():
        u[0 if neighbour == left else -1] = request.wait()[0]
    if len(requests):
        boostmpi.wait_all(requests)


pieces = boostmpi.gather(world, solve(mine, exchange), 0)
if world.rank == 0:
    whole = solve(np.sin(np.linspace(0, np.pi, N)) ** 4, lambda u: None)
    assert np.array_equal(np.concatenate(pieces), whole)
    print("same as on one process")
