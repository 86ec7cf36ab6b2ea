"""A picture in rows, handed out by process 0 to processes that are free."""

import mpi

WIDTH, HEIGHT, DEPTH = 60, 24, 60


def row(y):
    line = []
    for x in range(WIDTH):
        z, c, k = 0j, complex(3.0 * x / WIDTH - 2.2, 2.4 * y / HEIGHT - 1.2), 0
        while k < DEPTH and abs(z) < 2:
            z, k = z * z + c, k + 1
        line.append(" .:-=+*#%@"[k % 10])
    return "".join(line)


picture = {}
if mpi.size == 1:
    picture = {y: row(y) for y in range(HEIGHT)}
elif mpi.rank == 0:
    todo, busy = list(range(HEIGHT)), mpi.size - 1
    while busy:
        result, status = mpi.recv()
        if result is not None:
            picture[result[0]] = result[1]
        job = todo.pop() if todo else None
        mpi.send(job, status.source)
        busy -= job is None
else:
    mpi.send(None, 0)
    y, status = mpi.recv(0)
    while y is not None:
        mpi.send((y, row(y)), 0)
        y, status = mpi.recv(0)
if mpi.rank == 0:
    assert [picture[y] for y in range(HEIGHT)] == [row(y) for y in range(HEIGHT)]
    print("picture ok")
