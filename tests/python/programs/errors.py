"""Wrong input: a clear error, and the communicator is usable afterwards. Two ranks or more."""

from __future__ import annotations

import pickle
import threading

import cases
import limosa
import numpy as np
from limosa import errors
from mpi4py import MPI

world = limosa.world
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size


class BoomError(Exception):
    pass


class Unpicklable:
    def __reduce__(self):
        raise BoomError("cannot be pickled")


def explode():
    raise BoomError("cannot be made again")


class Unloadable:
    def __reduce__(self):
        return explode, ()


class Unreadable:
    """An array on a device that this process cannot read."""

    def __dlpack__(self, **options):
        raise BufferError("the device is not the CPU")

    def __dlpack_device__(self):
        return 2, 0


def usable():
    """Assert that messages and collective calls still work."""
    assert world.sendrecv(np.arange(5000.0) + rank, to=right, source=left)[0] == left
    assert world.allreduce(1) == size


def case_ranks_and_tags():
    for bad in (size, -1, -3, 10**12):
        with cases.raises(errors.RankError, "to=", f"0 to {size - 1}") as caught:
            world.send(1, to=bad)
        assert (caught[0].call, caught[0].rank, caught[0].error_class) == ("send", rank, "MPI_ERR_RANK")
        for call in (world.recv, world.irecv, world.probe, world.iprobe):
            with cases.raises(errors.RankError, "source="):
                call(source=bad)
        with cases.raises(errors.RankError):
            world.isend(1, to=bad)
        with cases.raises(errors.RankError):
            world.sendrecv(1, to=right, source=bad)
        for call in (world.bcast, world.gather, world.scatter):
            with cases.raises(errors.RootError, "root="):
                call([1] * size, root=bad)
        with cases.raises(errors.RootError):
            world.reduce(1, root=bad)
    for bad in ("0", 1.5, [0]):
        with cases.raises(errors.RankError, "integer"):
            world.send(1, to=bad)
        with cases.raises(errors.RankError, "integer"):
            world.recv(source=bad)
        with cases.raises(errors.TagError, "integer"):
            world.send(1, to=right, tag=bad)
        with cases.raises(errors.RootError):
            world.bcast(1, root=bad)
    with cases.raises(ValueError, "tag=-1 is negative"):
        world.send(1, to=right, tag=-1)
    with cases.raises(errors.TagError, "negative"):
        world.recv(tag=-5)
    assert world.sendrecv(rank, to=np.int64(right), source=np.int32(left), tag=np.int8(3)) == left
    usable()


def case_out_does_not_fit_and_nothing_is_lost():
    for length in (3, 5000):
        sent = np.arange(float(length))
        for out, kind, word in (
            (np.zeros(length - 1), errors.TruncateError, "shape"),
            (np.zeros(length + 1), errors.ArgumentError, "shape"),
            (np.zeros((length, 2)), errors.ArgumentError, "shape"),
            (np.zeros((length, 1)), errors.ArgumentError, "shape"),
            (np.zeros(length, "f4"), errors.DatatypeError, "float32"),
            (bytearray(8 * length), errors.DatatypeError, "uint8"),
            (np.zeros((length - 1, 2))[:, 0], errors.TruncateError, "shape"),
        ):
            before = bytes(memoryview(np.array(out)))
            with cases.raises(kind, word) as caught:
                world.sendrecv(sent, to=right, source=left, out=out)
            assert np.array_equal(caught[0].value, sent)
            assert bytes(memoryview(np.array(out))) == before
            request = world.isend(sent, to=right)
            with cases.raises(kind, word, "recv on rank") as caught:
                world.recv(source=left, out=out)
            assert np.array_equal(caught[0].value, sent)
            request.wait()
            request = world.irecv(source=left, out=out)
            world.isend(sent, to=right)
            with cases.raises(kind, word):
                request.wait()
    for value in ("text", {"a": np.zeros(30_000)}, 1):
        with cases.raises(errors.DatatypeError, "arrays only") as caught:
            world.sendrecv(value, to=right, source=left, out=np.zeros(3))
        assert str(caught[0].value) == str(value)
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    for bad in (read_only, b"123", np.broadcast_to(np.zeros(1), 3), [1, 2], "text", 3):
        with cases.raises(errors.BufferError, "out"):
            world.recv(source=left, out=bad)
        with cases.raises(errors.BufferError):
            world.allreduce(1, out=bad)
    usable()


def case_values_that_cannot_be_sent():
    for bad, kind in (
        (Unpicklable(), BoomError),
        (lambda: 0, (AttributeError, pickle.PicklingError)),
        (threading.Lock(), TypeError),
        (world, TypeError),
    ):
        for call in (
            lambda x: world.send(x, to=right),
            lambda x: world.isend(x, to=right),
            lambda x: world.sendrecv(x, to=right, source=left),
        ):
            with cases.raises(kind):
                call([bad])
        for call in (
            world.allgather,
            world.allreduce,
            world.scan,
            lambda x: world.bcast(x, root=size - 1),
            lambda x: world.gather(x, 0),
            lambda x: world.scatter([1] * (size - 1) + [x], size - 1),
            lambda x: world.alltoall([x] * size),
        ):
            worst = rank == size - 1
            try:
                call([bad] if worst else [1] * size if call is world.alltoall else 1)
            except kind:
                assert worst
            except errors.PeerError as error:
                assert not worst and f"rank {size - 1} could not take part" in str(error), error
    with cases.raises(errors.BufferError, "not the CPU", "copy it"):
        world.send(Unreadable(), to=right)
    usable()


def case_a_value_that_cannot_be_loaded():
    request = world.isend(Unloadable(), to=right)
    with cases.raises(BoomError):
        world.recv(source=left)
    request.wait()
    request = world.isend([Unloadable(), np.zeros(30_000)], to=right)
    with cases.raises(BoomError):
        world.irecv(source=left).wait()
    request.wait()
    usable()


def case_arrays_that_do_not_match():
    for x in (
        np.zeros(3 + rank),
        np.zeros(3, "f4" if rank else "f8"),
        np.zeros(5000 + rank),
        np.zeros(3) if rank else 1,
    ):
        for call in (world.allreduce, world.reduce, world.scan, world.exscan):
            with cases.raises(errors.MismatchError, "different arrays: rank 0: "):
                call(x)
    with cases.raises(errors.MismatchError, "op=max", "op=min"):
        world.allreduce(np.zeros(3), "max" if rank else "min")
    usable()


def case_different_calls():
    verbs = {
        "barrier()": world.barrier,
        "bcast(root=0)": lambda: world.bcast(np.ones(2)),
        "bcast(root=1)": lambda: world.bcast("text", 1),
        "gather(root=0)": lambda: world.gather(rank),
        "gather(root=1)": lambda: world.gather(np.ones(3), 1),
        "scatter(root=0)": lambda: world.scatter(np.ones((size, 5000)) if rank == 0 else None),
        "scatter(root=1)": lambda: world.scatter(["text"] * size if rank == 1 else None, 1),
        "allgather()": lambda: world.allgather(np.ones(5000)),
        "alltoall()": lambda: world.alltoall(["text"] * size),
        "reduce(root=0, op=sum)": lambda: world.reduce(np.ones(3)),
        "reduce(root=1, op=sum)": lambda: world.reduce(np.ones(3), root=1),
        "reduce(root=0, op=max)": lambda: world.reduce(np.ones(3), "max"),
        "allreduce(op=sum)": lambda: world.allreduce(np.ones(3)),
        "allreduce(op=min)": lambda: world.allreduce(np.ones(3), "min"),
        "scan(op=sum)": lambda: world.scan(np.ones(3)),
        "exscan(op=sum)": lambda: world.exscan(np.ones(3)),
        "split()": lambda: world.split(0),
        "dup()": world.dup,
        "cart()": lambda: world.cart(1),
    }
    others = "rank 1" if size == 2 else f"ranks 1-{size - 1}"
    for a, first in verbs.items():
        for b, second in verbs.items():
            if a != b:
                told = f"on rank {rank}: the ranks called different things: rank 0: {a}, {others}: {b}"
                with cases.raises(errors.MismatchError, told):
                    (second if rank else first)()
    usable()


def case_roots_and_targets_that_one_rank_has_wrong():
    read_only = np.zeros((size, 3))
    read_only.flags.writeable = False
    worst = size - 1
    for call in (
        lambda bad: world.bcast(1, -1 if bad else 0),
        lambda bad: world.gather(1, size if bad else 0),
        lambda bad: world.scatter([1] * size, "0" if bad else 0),
        lambda bad: world.reduce(1, root=None if bad else 0),
        lambda bad: world.bcast(1, out=read_only if bad else None),
        lambda bad: world.gather(1, worst, out=read_only if bad else None),
        lambda bad: world.scatter([1] * size, out=read_only if bad else None),
        lambda bad: world.cart(-1 if bad else 1),
    ):
        if rank == worst:
            with cases.raises((errors.RootError, errors.BufferError, errors.DimsError)):
                call(True)
        else:
            with cases.raises(errors.PeerError, f"rank {worst} could not take part"):
                call(False)
    usable()


def case_different_grids():
    with cases.raises(errors.MismatchError, f"rank 0: cart(dims=[{size}, 1]", f"cart(dims=[1, {size}]"):
        world.cart((1, size) if rank else (size, 1))
    with cases.raises(errors.MismatchError, "periodic=[True]"):
        world.cart(1, periodic=rank == 0)
    grid = world.cart(2)
    with cases.raises(errors.MismatchError, "sub(axes=(0,))", "sub(axes=(1,))"):
        grid.sub(1 if rank else 0)
    usable()


def case_counts():
    for values in ([1] * (size + 1), [], np.zeros(size + 1), np.float64(1), None, 5, {0: 1}):
        with cases.raises(
            errors.CountError if rank == 0 else errors.PeerError, "ranks" if rank == 0 else "rank 0 could not"
        ):
            world.scatter(values if rank == 0 else None)
        with cases.raises(errors.CountError if rank == 0 else errors.PeerError):
            world.alltoall(values if rank == 0 else [1] * size)
    usable()


def case_functions_that_raise():
    def raises_everywhere(a, b):
        raise BoomError("everywhere")

    def raises_on_1(a, b):
        if rank == 1:
            raise BoomError("only here")
        return a

    for x in (1, np.zeros(2), np.zeros(5000), ["x" * 50_000]):
        try:
            world.allreduce(x, raises_everywhere)
        except (BoomError, errors.PeerError) as error:
            assert "everywhere" in str(error)
        else:
            raise AssertionError
        try:
            world.allreduce(x, raises_on_1)
        except (BoomError, errors.PeerError) as error:
            assert "only here" in str(error)
        for call in (world.reduce, world.scan, world.exscan):
            try:
                call(x, raises_everywhere)
            except (BoomError, errors.PeerError) as error:
                assert "everywhere" in str(error)
        usable()
    for bad in ("average", 3, None):
        with cases.raises(errors.OpError):
            world.allreduce(1, bad)
    with cases.raises(errors.OpError if rank == 1 else errors.PeerError):
        world.allreduce(1, "average" if rank == 1 else "sum")
    with cases.raises(TypeError):
        world.allreduce(np.zeros(2), "band")
    usable()


def case_splits_and_grids():
    for color, key in ((-1, 0), ("a", 0), (0, "a")):
        with cases.raises(errors.ArgumentError, "split", "rank 1"):
            world.split(*((color, key) if rank == 1 else (0, 0)))
    for dims in ((size + 1,), (0, size + 1), (-1,), (), "a"):
        with cases.raises(errors.DimsError, "cart"):
            world.cart(dims)
    with cases.raises(errors.DimsError, "periodic"):
        world.cart(2, [True])
    line = world.cart(1)
    with cases.raises(errors.DimsError, "no axis 1"):
        line.shift(1)
    with cases.raises(errors.DimsError):
        line.rank_at((0, 0))
    with cases.raises(errors.RankError):
        line.coords_of(size)
    gone = world.dup()
    gone.free()
    with cases.raises(errors.CommError):
        gone.send(1, to=right)
    with cases.raises(errors.CommError):
        gone.barrier()
    usable()


def case_what_the_library_says_is_said_once():
    try:
        MPI.COMM_WORLD.send(1, dest=size)
    except MPI.Exception as error:
        found = errors.from_mpi(error, call="send", rank=rank, tried=f"to={size}")
    assert type(found) is errors.RankError
    start, end = f"send on rank {rank}: ", f" (to={size})"
    assert str(found).startswith(start) and str(found).endswith(end)
    if MPI.Get_library_version().startswith("Limosa"):
        sentence = f"the destination rank is {size}, but MPI_COMM_WORLD has ranks 0 to {size - 1}"
        assert str(found) == start + sentence + end


def case_errors_are_values():
    with cases.raises(errors.RankError) as caught:
        world.send(1, to=size)
    copy = pickle.loads(pickle.dumps(caught[0]))
    assert str(copy) == str(caught[0]) and type(copy) is errors.RankError and copy.call == "send"
    for name, kind in errors.BY_CLASS.items():
        assert (
            issubclass(kind, errors.Error)
            and kind.error_class == f"MPI_ERR_{name}"
            and getattr(errors, kind.__name__) is kind
        )
        assert str(kind("message", call="send", rank=1)) == "send on rank 1: message"


if __name__ == "__main__":
    cases.run()
