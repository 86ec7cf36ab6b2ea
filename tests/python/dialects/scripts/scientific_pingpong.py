"""Ping-pong of arrays, filled in place or allocated by the receive."""

from Scientific import N
from Scientific.MPI import world

assert world.size == 2, "run me on two processes"
other = 1 - world.rank
for n in [0, 1, 128, 513, 10000, 131072]:
    data = N.arrayrange(n) + 1.0
    room = N.zeros((n,), N.Float)
    if world.rank == 0:
        world.send(data, other, 1)
        back, source, tag, count = world.receive(room, other, 2)
        assert back is room and N.alltrue(room == 2 * data) and (source, tag, count) == (1, 2, n)
        print("%8d bytes ok" % (8 * n))
    else:
        data, source, tag, count = world.receive(N.Float, None, 1)
        world.send(2 * data, source, 2)
