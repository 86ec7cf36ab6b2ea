"""Wrong programs with `import limosa`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import limosa
from cases import case, main

world = limosa.world
rank, size = world.rank, world.size
other = 1 - rank


@case
def send_beyond_the_end():
    world.send(1, to=size)


@case
def receive_beyond_the_end():
    world.recv(source=size)


@case
def rank_is_no_number():
    world.send(1, to="one")


@case
def tag_negative():
    world.send(1, to=other, tag=-1)


@case
def root_beyond_the_end():
    world.bcast(1, root=size)


@case
def bcast_roots_differ():
    world.bcast("x" * rank, root=int(rank == 1))
    world.barrier()


@case
def bcast_roots_differ_large():
    world.bcast(np.full(100000, rank), root=int(rank == 1))
    world.barrier()


@case
def scatter_roots_differ():
    world.scatter([1] * size, root=int(rank == 1))
    world.barrier()


@case
def gather_roots_differ():
    world.gather(rank, root=int(rank == 1))
    world.barrier()


@case
def reduce_roots_differ():
    world.reduce(rank, root=int(rank == 1))
    world.barrier()


@case
def bcast_against_barrier():
    if rank == 0:
        world.bcast(1)
    else:
        world.barrier()
    world.barrier()


@case
def scatter_against_gather():
    if rank == 0:
        world.scatter([1] * size)
    else:
        world.gather(1)
    world.barrier()


@case
def bcast_against_gather():
    if rank == 0:
        world.bcast(1)
    else:
        world.gather(1)
    world.barrier()


@case
def allgather_against_alltoall():
    if rank == 0:
        world.allgather(1)
    else:
        world.alltoall([1] * size)
    world.barrier()


@case
def reduce_against_allreduce():
    if rank == 0:
        world.reduce(1)
    else:
        world.allreduce(1)
    world.barrier()


@case
def operations_differ():
    world.allreduce(rank, "max" if rank == 1 else "sum")
    world.barrier()


@case
def operations_differ_of_arrays():
    world.allreduce(np.zeros(1000), "max" if rank == 1 else "sum")
    world.barrier()


@case
def operation_unknown():
    world.allreduce(1, "summ")


@case
def shapes_differ():
    world.allreduce(np.zeros((2, 3) if rank == 1 else (3, 2)))


@case
def dtypes_differ():
    world.allreduce(np.zeros(4, "f4" if rank == 1 else "f8"))


@case
def array_against_number():
    world.allreduce(np.zeros(4) if rank == 0 else 1)


@case
def out_has_the_wrong_shape():
    world.allreduce(np.zeros(4), out=np.zeros(5))


@case
def out_has_the_wrong_dtype():
    if rank == 0:
        world.send(np.zeros(4), to=1)
    else:
        world.recv(source=0, out=np.zeros(4, int))


@case
def out_is_read_only():
    target = np.zeros(4)
    target.flags.writeable = False
    world.sendrecv(np.zeros(4), to=other, source=other, out=target)


@case
def out_too_short():
    if rank == 0:
        world.send(np.arange(10), to=1)
    else:
        world.recv(source=0, out=np.zeros(3, int))


@case
def scatter_list_too_short():
    world.scatter([1] * (size - 1) if rank == 0 else None)


@case
def scatter_without_values():
    world.scatter(None)


@case
def alltoall_list_too_long():
    world.alltoall([1] * (size + 1))


@case
def value_cannot_be_pickled():
    world.allgather((lambda: 1) if rank == 0 else 1)


@case
def value_cannot_be_pickled_in_send():
    world.send(threading.Lock(), to=other)


@case
def value_cannot_be_opened():
    if rank == 0:
        world.send(Broken(), to=1)
    else:
        world.recv(source=0)


class Broken:
    def __reduce__(self):
        return fail, ()


def fail():
    raise ValueError("cannot be opened")


@case
def function_raises():
    def combine(a, b):
        raise ZeroDivisionError("in the function")

    world.allreduce(1, combine)


@case
def exception_on_one_rank():
    if rank == 1:
        raise ValueError("something is wrong")
    world.allreduce(1)


@case
def mpi4py_name():
    world.Allreduce(1)


@case
def mpi4py_keyword():
    world.send(1, dest=other)


@case
def freed_communicator():
    half = world.dup()
    half.free()
    half.barrier()


@case
def grid_too_large():
    world.cart((size + 1, 2))


@case
def both_receive_first():
    world.recv(source=other)
    world.send(1, to=other)


@case
def wrong_tag():
    if rank == 0:
        world.send(1, to=1, tag=6)
    else:
        world.recv(source=0, tag=5)
    world.barrier()


@case
def one_rank_missing():
    if rank == 0:
        world.allreduce(1)


@case
def both_send_large():
    world.send(np.zeros(1 << 20), to=other)
    world.recv(source=other)


@case
def request_never_waited_for():
    world.isend(np.zeros(1 << 20), to=other)


@case
def irecv_never_served():
    world.irecv(source=other).wait()


@case
def iprobe_loop():
    while rank == 1 and world.iprobe(source=0) is None:
        pass
    world.barrier()


@case
def test_loop():
    request = world.irecv(source=other)
    while not request.test():
        pass


@case
def barrier_inside_if():
    if rank == 0:
        world.barrier()
    else:
        world.recv(source=0)


@case
def result_of_irecv_not_waited_for():
    """The value is used before it is there: a request is no array."""
    request = world.irecv(source=other)
    world.send(np.ones(3), to=other)
    request + 1


@case
def neighbour_that_is_no_rank():
    world.graph([9])


@case
def neighbour_that_does_not_expect_it():
    world.graph([1] if rank == 0 else [])


@case
def shared_arrays_differ():
    world.shared_array(3 + rank)


@case
def window_of_a_list():
    world.window(["a", "b"])


@case
def window_beyond_the_end():
    with world.window(np.zeros(4)) as window, window.lock(other) as there:
        there[7] = 1


@case
def window_of_no_rank():
    with world.window(np.zeros(4)) as window, window.lock(5) as there:
        there[0] = 1


if __name__ == "__main__":
    main()
