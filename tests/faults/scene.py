"""The programs of the fault tests of Python jobs.  usage: scene.py WHAT

Each function below is one scene. A scene that can end normally prints "rank N done" at its end.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import subprocess
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
CHILD_CODE = 5


def ring() -> None:
    """Passes a large message around the ring and checks it, then a small collective."""
    size, rank = comm.size, comm.rank
    out, into = bytearray([rank]) * 1_000_000, bytearray(1_000_000)
    comm.Sendrecv(out, (rank + 1) % size, 0, into, (rank - 1) % size, 0)
    assert into == bytearray([(rank - 1) % size]) * 1_000_000
    assert comm.allreduce(rank) == size * (size - 1) // 2


def square(x: int) -> int:
    return x * x


def expect(child: int, code: int) -> None:
    """Communicates while the child runs, then looks how it ended."""
    ring()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == code, f"the child ended with {ended} instead of {code}"


def fork_and_exit() -> None:
    """The child ends as Python programs end: with everything that is registered for the end of the interpreter."""
    child = os.fork()
    if child == 0:
        sys.exit(CHILD_CODE if sum(map(square, range(1000))) else 0)
    expect(child, CHILD_CODE)


def fork_and_fall_through() -> None:
    """The child reaches the end of the program without a word."""
    child = os.fork()
    if child == 0:
        sys.argv[1] = "silent"
        return
    expect(child, 0)


def fork_with_objects() -> None:
    """The child inherits communicators and requests, and frees them."""
    dup, buffer = comm.Dup(), bytearray(10)
    request = dup.Irecv(buffer, source=comm.rank)
    child = os.fork()
    if child == 0:
        del request, dup
        gc.collect()
        sys.exit(CHILD_CODE)
    expect(child, CHILD_CODE)
    dup.Send(bytearray(b"0123456789"), dest=comm.rank)
    request.Wait()
    assert buffer == b"0123456789"


def fork_and_call() -> None:
    """Whatever the child calls is an error, also aborting."""
    child = os.fork()
    if child == 0:
        calls = [
            lambda: comm.send(1, dest=0),
            comm.recv,
            comm.Barrier,
            comm.Dup,
            comm.Get_size,
            lambda: MPI.INT.Create_contiguous(2),
        ]
        for call in calls:
            try:
                call()
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_OTHER
            else:
                os._exit(1)
        assert MPI.Is_finalized()
        sys.exit(CHILD_CODE)
    expect(child, CHILD_CODE)


def fork_and_abort() -> None:
    """A child that aborts ends itself only."""
    child = os.fork()
    if child == 0:
        comm.Abort(CHILD_CODE)
    expect(child, CHILD_CODE)


def programs() -> None:
    """Other programs, one of them with MPI."""
    assert subprocess.check_output(["echo", "hello"]) == b"hello\n"
    child = subprocess.Popen([sys.executable, "-c", "print(6 * 7)"], stdout=subprocess.PIPE, start_new_session=True)
    ring()
    assert child.communicate()[0] == b"42\n"
    alone = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
    assert subprocess.check_output([sys.executable, "-c", alone]) == b"1\n"


def pool(method: str) -> None:
    context = multiprocessing.get_context(method)
    with context.Pool(2) as workers:
        answers = workers.map_async(square, range(20))
        ring()
        assert answers.get() == [x * x for x in range(20)]
    process = context.Process(target=square, args=(2,))
    process.start()
    ring()
    process.join()
    assert process.exitcode == 0


def raise_an_exception() -> None:
    if comm.rank == 1:
        raise ValueError("something is wrong")
    comm.Barrier()


def raise_with_a_message_under_way() -> None:
    """Finalising at the exit of the interpreter would wait for the message for ever."""
    if comm.rank == 1:
        comm.Isend(bytearray(1_000_000), dest=0)
        raise ValueError("something is wrong")
    comm.Barrier()


def name_a_rank_that_is_not_there() -> None:
    if comm.rank == 1:
        comm.send("hello", dest=4711)
    comm.Barrier()


class OnDevice:
    """An array at an address where nothing is mapped, as that of a graphics card's memory."""

    def __init__(self, length: int) -> None:
        data = {"data": (0x10_0000_0000, False), "stream": None}
        self.__cuda_array_interface__ = {"version": 3, "shape": (length,), "typestr": "|u1", **data}


def pass_memory_of_a_device() -> None:
    """Every call says which buffer the processor cannot read, and the communicator stays usable."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for length in (8, 1_000_000):
        there, here = OnDevice(length), bytearray(length)
        calls = [
            (comm.Send, there, right),
            (comm.Isend, there, right),
            (comm.Recv, there, left),
            (comm.Irecv, there, left),
            (comm.Sendrecv, there, right, 0, here, left),
            (comm.Bcast, there, 0),
            (comm.Allreduce, MPI.IN_PLACE, there),
            (comm.Allgather, there, bytearray(comm.size * length)),
        ]
        for call, *arguments in calls:
            try:
                call(*arguments)
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_BUFFER, error
                assert "at 0x1000000000 is memory that the processor cannot read" in str(error), error
            else:
                raise AssertionError(f"{call} says nothing")


def read_errors() -> None:
    """Every exception has its own sentence, also when others were raised since."""
    calls = {
        r"MPI_Send(_c)?: the destination rank is 4711, but .*": (MPI.ERR_RANK, lambda: comm.send(1, dest=4711)),
        r"MPI_Bcast(_c)?: the root is 99, but .*": (MPI.ERR_ROOT, lambda: comm.Bcast(bytearray(1), root=99)),
        r"MPI_Recv(_c)?: .*\b1000\b.*": (MPI.ERR_TRUNCATE, receive_too_much),
        r"MPI_Waitall: .*\b1000\b.*": (MPI.ERR_IN_STATUS, lambda: MPI.Request.Waitall([too_long()])),
    }
    caught = []
    for text, (error_class, call) in calls.items():
        try:
            call()
        except MPI.Exception as error:
            caught.append((text, error_class, error))
    assert len(caught) == len(calls)
    for text, error_class, error in caught:
        assert re.fullmatch(text, str(error)), str(error)
        assert error.Get_error_class() == error_class


def too_long() -> MPI.Request:
    """Give a receive for a message that does not fit."""
    request = MPI.COMM_SELF.Irecv(bytearray(10), source=0)
    MPI.COMM_SELF.Send(bytearray(1000), dest=0)
    return request


def receive_too_much() -> None:
    sent = MPI.COMM_SELF.Isend(bytearray(1000), dest=0)
    try:
        MPI.COMM_SELF.Recv(bytearray(10), source=0)
    finally:
        sent.Wait()


def exit_with_a_code() -> None:
    if comm.rank == 1:
        sys.exit(7)
    comm.Barrier()


def abort_with_zero() -> None:
    if comm.rank == 1:
        comm.Abort(0)
    comm.Barrier()


def close_stdout() -> None:
    sys.stdout.close()
    os.close(1)
    ring()
    sys.stdout = sys.stderr


SCENES = {
    "fork-exit": fork_and_exit,
    "fork-fall": fork_and_fall_through,
    "fork-objects": fork_with_objects,
    "fork-call": fork_and_call,
    "fork-abort": fork_and_abort,
    "programs": programs,
    "pool-fork": lambda: pool("fork"),
    "pool-spawn": lambda: pool("spawn"),
    "pool-forkserver": lambda: pool("forkserver"),
    "raise": raise_an_exception,
    "wrong-rank": name_a_rank_that_is_not_there,
    "error-texts": read_errors,
    "device-memory": pass_memory_of_a_device,
    "raise-busy": raise_with_a_message_under_way,
    "exit": exit_with_a_code,
    "abort-zero": abort_with_zero,
    "close-stdout": close_stdout,
}

if __name__ == "__main__":
    SCENES[sys.argv[1]]()
    if sys.argv[1] != "silent":
        ring()
        print(f"rank {comm.rank} done")
