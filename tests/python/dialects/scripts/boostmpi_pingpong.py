"""Ping-pong of values of any kind and length."""

import boostmpi as mpi
import numpy

world = mpi.world
assert world.size == 2
timer = mpi.Timer()
arrays = [numpy.arange(3), numpy.zeros((300, 400))]
for value in [1, 2.5, True, None, 10**30, "text", b"\x00", ["list", {"of": 1}], list(range(20000)), *arrays]:
    for _ in range(3):
        if world.rank == 0:
            world.send(1, 0, value)
            back = world.recv(1, 0)
            assert type(back) is type(value)
            assert numpy.array_equal(back, value) if isinstance(value, numpy.ndarray) else back == value
        else:
            world.send(0, 0, world.recv(0, 0))
assert timer.elapsed > 0 and timer.elapsed_min > 0 and timer.elapsed_max > 1e9 and timer.time_is_global in (True, False)
timer.restart()
if world.rank == 0:
    print("all came back")
