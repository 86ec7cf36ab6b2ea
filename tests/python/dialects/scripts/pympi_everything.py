"""Every call of pyMPI, on any number of processes."""

import os
import pathlib
import sys
import tempfile

import mpi
import numpy as np

r, n = mpi.rank, mpi.size
right, left = (r + 1) % n, (r - 1) % n
big = np.arange(100000.0) + r


def raises(kind, call, *args, **kw):
    try:
        call(*args, **kw)
    except kind as error:
        return str(error)
    raise AssertionError("no " + kind.__name__)


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all())
    return a == b


# --- what there is
assert (
    mpi.procs == n == mpi.WORLD.size == mpi.comm_size()
    and mpi.comm_rank() == r
    and mpi.initialized()
    and not mpi.finalized()
)
assert isinstance(mpi.name, str) and mpi.COLOR == 3 and isinstance(mpi.SUM, int) and mpi.persistent
assert mpi.configuration.PYMPI_MAJOR == "2" and not mpi.COMM_NULL and mpi.COMM_WORLD
t, w = mpi.stopwatch(), mpi.wtime()
assert t >= 0 and mpi.time() >= w and mpi.tick() == mpi.wtick() > 0

# --- messages: what comes out is what went in, whatever it is
things = [
    3,
    2.5,
    1j,
    "text",
    b"\0bytes",
    None,
    {"a": [1, (2, 3)]},
    "long" * 10000,
    list(range(30000)),
    np.float32(2),
    np.arange(3, dtype="i2"),
]
things += [
    np.zeros(()),
    np.zeros((0, 2)),
    np.arange(100000.0),
    np.arange(60000.0).reshape(100, 600)[:, ::2],
    np.array(["a", "b"]),
    np.arange(4, dtype=">i4"),
]
for thing in things:
    got, status = mpi.sendrecv(thing, right, left, 4)
    assert same(got, thing.copy() if isinstance(thing, np.ndarray) else thing), (got, thing)
    assert (
        (status.source, status.tag, status.error) == (left, 4, 0) == tuple(status)
        and len(status) == 3
        and status[1] == 4
    )
    assert repr(status).startswith("<MPI_Status")
    pending = mpi.irecv(left, 5)
    sent = mpi.isend(thing, right, 5)
    assert pending.wait().tag == 5 and same(pending.message, got) and sent.message is thing
    assert pending.test[0] and pending.test()[0] and pending.ready and pending.status.source == left and sent.wait()
    assert not pending.test_cancelled
    assert same(mpi.bcast(thing if r == n - 1 else None, root=n - 1), got) and same(
        mpi.bcast(thing) if r == 0 else mpi.bcast(), got
    )
assert mpi.bcast(big, 0) is big or r

# --- several requests; large and small messages may finish in any order
for number in range(2):
    requests = [mpi.irecv(left, tag) for tag in (1, 2, 3)]
    assert (
        mpi.testany(requests) == (None, None)
        and mpi.testsome(*requests) == ([], [])
        and mpi.testall(requests) == []
        and not mpi.test(requests[0])[0]
    )
    mpi.barrier()
    for tag in (3, 2, 1):
        mpi.isend(big * tag, right, tag)
    if number == 0:
        assert [status.tag for status in mpi.waitall(*requests)] == [1, 2, 3] and len(mpi.testall(requests)) == 3
    else:
        found = {mpi.waitany(requests)[0]}
        while len(found) < 3:
            found |= set(mpi.waitsome(requests)[0])
    assert [request.message[1] for request in requests] == [tag * (left + 1) for tag in (1, 2, 3)]
raises(ValueError, mpi.waitany)
hopeless = mpi.irecv(left, 77)
hopeless.cancel()
hopeless.wait()
assert mpi.test_cancelled(hopeless)
mpi.barrier()

# --- cut and join
items = list(range(2 * n + 1))
parts = [items[:3]] + [items[2 * i + 1 : 2 * i + 3] for i in range(1, n)]
assert (
    mpi.scatter(items) == parts[r]
    and mpi.scatter(tuple(items), n - 1) == tuple(parts[r])
    and mpi.scatter("x" * n) == "x"
)
assert mpi.scatter(42) is None and same(mpi.scatter(np.array(items)), np.array(parts[r])) and mpi.scatter([]) == []
assert mpi.gather([r]) == (list(range(n)) if r == 0 else None)
assert mpi.gather("ab", root=n - 1) == (list("ab" * n) if r == n - 1 else None)
assert mpi.allgather([r] * 5, r) == [i for i in range(n) for _ in range(i)] and mpi.allgather(
    np.array([r, r]), count=1
) == list(range(n))
raises(RuntimeError, mpi.allgather, [1, 2], 3)
if r == 0:
    raises(ValueError, mpi.gather, 5)
else:
    raises(ValueError, mpi.gather, 5)

# --- reductions
ranks = range(n)
assert mpi.allreduce(r, mpi.SUM) == sum(ranks) and mpi.reduce(r + 1.0, mpi.PROD) == (
    float(np.prod(np.arange(1.0, n + 1))) if r == 0 else None
)
assert mpi.allreduce([r], mpi.SUM) == list(ranks) and mpi.allreduce("a%d" % r, mpi.MAX) == "a%d" % (n - 1)
assert mpi.allreduce(r, mpi.MAXLOC) == (n - 1, n - 1) and mpi.allreduce("same", mpi.MINLOC) == ("same", 0)
assert (
    mpi.allreduce(1 << r, mpi.BOR) == 2**n - 1
    and mpi.allreduce(7, mpi.BAND) == 7
    and mpi.allreduce(5, mpi.BXOR) == 5 * (n % 2)
)
assert (
    mpi.allreduce(r, mpi.LAND) == 0 and mpi.allreduce(r, mpi.LOR) == (n > 1) and mpi.allreduce(True, mpi.LXOR) == n % 2
)
assert mpi.allreduce(r, mpi.SUM, ground=100) == 100 + sum(ranks) and mpi.scan(r, mpi.SUM) == sum(range(r + 1))
assert (
    mpi.allreduce(r, mpi.SUM, type=float) == float(sum(ranks)) and type(mpi.allreduce(r, mpi.SUM, type=float)) is float
)
assert mpi.allreduce(2.9, mpi.SUM, type=int) == 2 * n and mpi.allreduce(-r, mpi.MINLOC, type=int) == (1 - n, n - 1)
assert mpi.scan(1, mpi.SUM, type=int) == r + 1 and mpi.reduce(r, mpi.MAX, n - 1, None, float) == (
    n - 1.0 if r == n - 1 else None
)
join = lambda a, b: "(%s%s)" % (a, b)  # noqa: E731 - neither commutative nor associative
left_fold = lambda count: "0" if count == 1 else "(%s%d)" % (left_fold(count - 1), count - 1)  # noqa: E731
assert mpi.allreduce(str(r), join) == left_fold(n) and mpi.scan(str(r), join) == left_fold(r + 1)
assert mpi.reduce(str(r), join, root=n - 1) == (left_fold(n) if r == n - 1 else None)
assert same(mpi.allreduce(np.array([r, 1]), mpi.SUM), np.array([sum(ranks), n])) and same(mpi.scan(big, mpi.MAX), big)
assert same(mpi.allreduce(big[::2], mpi.MIN), np.arange(0, 100000.0, 2)) and same(
    mpi.allreduce(big, max if n == 1 else np.maximum), big - r + n - 1
)
if n > 1:  # a number on one process, large arrays on the others
    assert same(mpi.allreduce(big if r else 1.0, mpi.SUM), np.arange(100000.0) * (n - 1) + sum(ranks) + 1)
assert len(mpi.allreduce(list(range(1000)), mpi.SUM)) == 1000 * n and same(
    mpi.allreduce(big > 5, mpi.LAND), np.arange(100000.0) > 5
)
raises(ZeroDivisionError, mpi.allreduce, r, lambda a, b: 1 // 0) if n > 1 else None
raises(ZeroDivisionError, mpi.scan, r, lambda a, b: 1 // 0) if n > 1 else None
assert "function" in raises(TypeError, mpi.reduce, 1, "sum") and "operation" in raises(
    ValueError, mpi.allreduce, 1, 12345
)
raises(TypeError, mpi.allreduce, "text" if r else 1, mpi.SUM) if n > 1 else None

# --- communicators
even = mpi.WORLD.comm_create(mpi.WORLD[::2])
assert (even is None) == (r % 2 == 1) and mpi.comm_create(None) is None and not mpi.comm_create([])
if even:
    assert (
        list(even) == list(range(len(even))) == even[...]
        and even.allreduce(r, mpi.SUM) == sum(range(0, n, 2))
        and int(even) != int(mpi.WORLD)
    )
    got, status = even.sendrecv(big, (even.rank + 1) % even.size, (even.rank - 1) % even.size)
    assert got[0] == 2 * ((even.rank - 1) % even.size) and status.source == (even.rank - 1) % even.size
    even.comm_free()
    raises(RuntimeError, even.barrier)
alone = mpi.comm_create(n - 1)
assert (alone is None) == (r != n - 1)
assert "twice" in raises(ValueError, mpi.comm_create, [0, 0]) and "exist" in raises(ValueError, mpi.comm_create, [n])
raises(RuntimeError, mpi.comm_free), raises(RuntimeError, mpi.COMM_NULL.barrier), raises(TypeError, mpi.barrier, 1)
twin = mpi.communicator(mpi.WORLD.comm_dup())
assert mpi.communicator(int(twin)) == twin and raises(ValueError, mpi.communicator, 99999)
assert twin.size == n and twin.procs == n
ring = mpi.cart_create()
assert (
    (ring.dims, ring.ndims, ring.periods) == ((n,), 1, (1,))
    and ring.coords() == (ring.rank,)
    and ring.shift() == ((ring.rank - 1) % n, (ring.rank + 1) % n)
)
flat = mpi.cartesian_communicator(mpi.WORLD, [n, 1], [0, 1], 0)
below, above = flat.shift(0, 1)
flat.send("up", above)
assert flat.recv(below)[0] == ("up" if r else None) and flat.coords(n - 1) == (n - 1, 0)

# --- output
mpi.trace("traced", 1)
mpi.traceln("and", r)
mpi.synchronizedWrite("[", r, "]")
mpi.synchronizedWriteln("line", r, file=sys.stdout)
folder = mpi.bcast(tempfile.mkdtemp() if r == 0 else None)
mpi.synchronizeQueuedOutput(stdout=os.path.join(folder, "out"))
if r:
    print("hidden", r)
mpi.synchronizeQueuedOutput(stdout=None)
mpi.synchronizeQueuedOutput()
if r == 0:
    assert sorted(os.listdir(folder)) == ["out.out.%d" % i for i in range(1, n)]
    assert all(pathlib.Path(folder, name).read_text() == "hidden %s\n" % name[-1] for name in os.listdir(folder))
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    os.rmdir(folder)

# --- errors
assert os.path.basename(__file__) in raises(mpi.MPIError, mpi.send, 1, n)
(
    raises(ValueError, mpi.bcast, 1, n),
    raises(ValueError, mpi.scatter, [1], -1),
    raises(NotImplementedError, mpi.map),
    raises(NotImplementedError, mpi.RemoteObject),
)
raises(TypeError, mpi.wait, 3), raises(AttributeError, getattr, mpi.isend(1, right), "ready")
mpi.recv(left)
print("processor %d of %d is content" % (r, n))
mpi.finalize()
assert (
    mpi.finalized()
    and "finalized" in raises(RuntimeError, mpi.send, 1, 0)
    and "finalized" in raises(RuntimeError, mpi.WORLD.barrier)
)
