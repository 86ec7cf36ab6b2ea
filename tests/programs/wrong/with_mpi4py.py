"""Wrong programs with mpi4py."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cases import case, main
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank


@case
def send_beyond_the_end():
    world.send("hello", dest=size)


@case
def receive_beyond_the_end():
    world.recv(source=size)


@case
def tag_negative():
    world.send("hello", dest=other, tag=-5)


@case
def root_beyond_the_end():
    world.bcast(1, root=size)


@case
def truncated():
    if rank == 0:
        world.Send(np.zeros(8), dest=1)
    else:
        world.Recv(np.zeros(4), source=0)


@case
def truncated_irecv():
    request = world.Irecv(np.zeros(4), source=other)
    world.Send(np.zeros(8), dest=other)
    request.Wait()


@case
def freed_communicator():
    dup = world.Dup()
    dup.Free()
    dup.Barrier()


@case
def null_communicator():
    MPI.COMM_NULL.Barrier()


@case
def split_part_is_null():
    part = world.Split(MPI.UNDEFINED if rank else 0)
    if rank == 1:
        part.bcast(1)
    else:
        part.Free()


@case
def same_buffer():
    values = np.ones(4)
    world.Allreduce(values, values)


@case
def in_place_in_send():
    world.Send([MPI.IN_PLACE, 4, MPI.INT], dest=other)


@case
def uncommitted_type():
    pair = MPI.INT.Create_contiguous(2)
    world.Send([np.zeros(2, "i"), 1, pair], dest=other)


@case
def operation_not_for_type():
    world.Allreduce(np.zeros(4), np.zeros(4), MPI.BAND)


@case
def scatter_list_too_short():
    world.scatter([1] if rank == 0 else None)


@case
def scatter_list_missing():
    world.scatter(None)


@case
def object_cannot_be_pickled():
    world.send(lambda: 1, dest=other)


@case
def exception_before_collective():
    if rank == 1:
        raise ValueError("something is wrong")
    world.Barrier()


@case
def exception_while_others_receive():
    if rank == 0:
        raise KeyError("missing")
    world.recv(source=0)


@case
def exit_with_a_code():
    if rank == 1:
        sys.exit(7)
    world.Barrier()


@case
def syntax_error_on_one_rank():
    if rank == 1:
        exec("x = = 1")
    world.Barrier()


@case
def abort():
    if rank == 1:
        world.Abort(9)
    world.Barrier()


@case
def roots_differ():
    world.Bcast(np.zeros(4), root=int(rank == 1))
    world.Barrier()


@case
def roots_differ_pickled():
    world.bcast({"a": rank}, root=int(rank == 1))
    world.Barrier()


@case
def operations_differ():
    world.Allreduce(np.zeros(4), np.zeros(4), MPI.MAX if rank == 1 else MPI.SUM)
    world.Barrier()


@case
def lengths_differ():
    n = 4 if rank == 1 else 8
    world.Allreduce(np.zeros(n), np.zeros(n))
    world.Barrier()


@case
def gather_room_too_small():
    world.Gather(np.zeros(4), np.zeros(3) if rank == 0 else None)


@case
def types_differ():
    if rank == 0:
        world.Send(np.array([1.5]), dest=1)
    else:
        world.Recv(np.zeros(1, np.int64), source=0)


@case
def pickled_against_buffer():
    """The lower-case `send` and the upper-case `Recv` do not go together."""
    if rank == 0:
        world.send(list(range(1000)), dest=1)
    else:
        world.Recv(np.zeros(4, "i"), source=0)


@case
def both_receive_first():
    world.recv(source=other, tag=3)
    world.send(1, dest=other, tag=3)


@case
def wrong_tag():
    if rank == 0:
        world.send(1, dest=1, tag=6)
    else:
        world.recv(source=0, tag=5)
    world.Barrier()


@case
def both_send_large():
    world.Send(np.zeros(1 << 20), dest=other)
    world.Recv(np.zeros(1 << 20), source=other)


@case
def one_rank_missing():
    if rank == 0:
        world.allreduce(1)


@case
def barrier_against_bcast():
    if rank == 0:
        world.Barrier()
    else:
        world.Bcast(np.zeros(4), root=0)
    world.Barrier()


@case
def request_never_waited_for():
    world.isend(1, dest=other, tag=9)


@case
def irecv_never_served():
    world.irecv(source=other, tag=9).wait()


@case
def iprobe_loop():
    while rank == 1 and not world.iprobe(source=0):
        pass
    world.Barrier()


@case
def join_of_a_thread_that_waits():
    thread = threading.Thread(target=world.recv, kwargs={"source": other, "tag": 4})
    thread.start()
    thread.join()


@case
def alone_after_an_exception_in_a_thread():
    """The thread that would send has died: its traceback is shown, and the main thread waits for ever."""

    def die():
        raise ValueError("the thread has died")

    threading.Thread(target=die).start()
    world.recv(source=rank)


@case
def lock_held_while_receiving():
    lock = threading.Lock()

    def receive():
        with lock:
            world.recv(source=rank, tag=1)

    thread = threading.Thread(target=receive)
    thread.start()
    threading.Event().wait(0.2)
    with lock:
        world.send(1, dest=rank, tag=1)
    thread.join()


@case
def recv_that_nobody_serves():
    world.recv(source=other, tag=7)


@case
def sendrecv_with_another_tag():
    world.sendrecv(rank, dest=other, sendtag=1, source=other, recvtag=2)


@case
def ibarrier_against_barrier():
    world.Barrier()
    if rank == 0:
        world.Barrier()
    else:
        request = world.Ibarrier()
        time.sleep(2)
        request.Wait()


@case
def intercommunicator_of_overlapping_groups():
    world.Dup().Create_intercomm(0, world, 1, 0)


@case
def window_accessed_outside_an_epoch():
    window = MPI.Win.Create(np.zeros(4), 8, comm=world)
    try:
        window.Put(np.ones(1), other)
    finally:
        window.Free()


@case
def window_accessed_beyond_the_end():
    window = MPI.Win.Create(np.zeros(4), 8, comm=world)
    try:
        window.Fence()
        window.Put(np.ones(3), other, (2, 3, MPI.DOUBLE))
    finally:
        window.Fence()
        window.Free()


@case
def file_missing():
    MPI.File.Open(world, "/tmp/limosa-program-never/a", MPI.MODE_RDONLY)


@case
def program_missing():
    world.Spawn("/no/such/program", maxprocs=1)


@case
def partition_beyond_the_end():
    buffer = np.zeros(4)
    request = world.Psend_init(buffer, 2, other) if rank == 0 else world.Precv_init(buffer, 2, other)
    request.Start()
    try:
        if rank == 0:
            request.Pready(2)
    finally:
        if rank == 0:
            request.Pready_range(0, 1)
        request.Wait()
        request.Free()


@case
def puts_that_overlap():
    window = MPI.Win.Create(np.zeros(8), 8, comm=world)
    window.Fence()
    window.Put(np.ones(4), other)
    window.Put(np.ones(4), other, target=2)
    window.Fence()
    window.Free()


@case
def puts_of_two_ranks_that_overlap():
    window = MPI.Win.Create(np.zeros(8), 8, comm=world)
    window.Fence()
    if rank > 0:
        window.Put(np.ones(4), 0, target=2 * rank)
    window.Fence()
    window.Free()


if __name__ == "__main__":
    main()
