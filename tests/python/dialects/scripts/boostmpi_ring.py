from boost import mpi

world = mpi.world
if world.size < 2:
    print("I need at least two processes")
    mpi.abort(3)
if world.rank == 0:
    world.send(1, value=["0"])
    print("-".join(world.recv(world.size - 1)))
else:
    msg = world.recv(source=world.rank - 1)
    world.send(dest=(world.rank + 1) % world.size, value=[*msg, str(world.rank)])
