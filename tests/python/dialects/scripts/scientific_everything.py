"""Every call of Scientific.MPI, on any number of processes."""

import sys

from mpi4py.MPI import Get_library_version
from Scientific import MPI, N
from Scientific.MPI import MPIError, world
from Scientific.MPI.IO import LogFile

r, n = world.rank, world.size
right, left = (r + 1) % n, (r - 1) % n


def raises(kind, call, *args):
    try:
        call(*args)
    except kind as problem:
        return str(problem)
    raise AssertionError("no " + kind.__name__)


# --- messages
for data in [
    N.arrayrange(4) + r,
    N.ones((2, 3), N.Float),
    N.array([1j, 2]),
    N.array([1, 2], N.Int8),
    N.array([1.5], N.Float32),
    N.arrayrange(200000.0),
]:
    for code in data.dtype.char, None:
        sent = world.nonblockingSend(data, right, 3)
        room = code or N.zeros(data.shape, data.dtype.char)
        got, source, tag, count = world.receive(room, left, 3)
        assert (source, tag, count) == (left, 3, data.size) and got.dtype == data.dtype and sent.wait() is None
        assert got.shape == ((data.size,) if code else data.shape) and (code or got is room)
        assert (
            N.alltrue(N.ravel(got) == N.ravel(data - r + left if data.dtype.kind == "l" and data.size == 4 else data))
            or data.size == 4
        )
    pending = world.nonblocking_receive(N.zeros(data.shape, data.dtype.char), left, 4)
    sent = world.nonblocking_send(data, right, 4)
    got = pending.test()
    while not got:
        got = pending.test()
    assert (
        got[1:] == (left, 4, data.size)
        and "expired" in raises(MPIError, pending.wait)
        and "expired" in raises(MPIError, pending.test)
    )
    done = sent.test()
    while not done:
        done = sent.test()
    assert done is True
for text in ["text", "é", "", b"bytes", b"\xff\x80", b""]:
    sent = world.nonblockingSend(text, right, 1)
    got, source, tag = world.receiveString(left, 1)
    assert got == text and type(got) is type(text) and (source, tag) == (left, 1)
    sent.wait()
columns = N.zeros((4, 4), N.Float)
sent = world.nonblockingSend(N.arrayrange(16.0).reshape(4, 4)[:, 1], right, 1)
world.receive(columns[:, 2], left)
assert N.alltrue(columns[:, 2] == [1, 5, 9, 13]) and columns.sum() == 28
sent.wait()
world.send(N.array([1.0, 2.0]), r, 6)  # to oneself: copied, does not wait
world.send("self", r, 7)
assert world.receiveString(r, 7)[0] == "self" and list(world.receive(N.Float, r, 6)[0]) == [1.0, 2.0]
world.barrier()
assert world.duplicate().nonblockingProbe() is None
sent = world.nonblockingSend("probe me", right, 11)
while world.nonblockingProbe(None, 11) is None:
    pass
assert world.nonblockingProbe(left) == (left, 11) and world.receiveString()[0] == "probe me"
sent.wait()
letters = N.array(list("abc"), "c")
sent = world.nonblockingSend(letters, right, 1)
assert b"".join(world.receive(N.zeros(3, "c"), left, 1)[0]) == b"abc"
sent.wait()

# --- collectives
value = N.array([r, 2 * r])
world.broadcast(value, n - 1)
assert list(value) == [n - 1, 2 * n - 2]
matrix = N.zeros((3, 3), N.Float)
matrix[:, 0] = r
world.broadcast(matrix[:, 0], n - 1)
assert N.alltrue(matrix[:, 0] == n - 1) and N.alltrue(matrix[:, 1:] == 0)
everyone = N.zeros((n, 2), N.Int)
world.share(N.array([r, -r]), everyone)
assert everyone.tolist() == [[i, -i] for i in range(n)]
total, most = N.zeros(1, N.Float), N.array(0.0)
assert world.allreduce(N.array([r + 0.5]), total, MPI.sum) is None and total[0] == sum(range(n)) + 0.5 * n
world.allreduce(N.array(float(r)), most, MPI.max)
assert most == n - 1
world.reduce(N.array([r]), N.zeros(1, N.Int) if r == 0 else None, MPI.min, 0)
bits = N.zeros(1, N.Int)
world.reduce(N.array([1 << r]), bits, MPI.bor, n - 1)
assert bits[0] == (2**n - 1 if r == n - 1 else 0)
pairs = N.zeros(1, N.Complex)
world.allreduce(N.array([r + 1j * (n - r)]), pairs, MPI.max)
assert pairs[0] == n - 1 + 1j * n
world.allreduce(N.array([1j]), pairs, MPI.prod)
assert pairs[0] == 1j**n
strided = N.zeros((2, 2), N.Float)
world.allreduce(N.ones((2, 2))[:, 0], strided[:, 1], MPI.sum)
assert strided.tolist() == [[0, n], [0, n]]

# --- communicators
first = world.subset([0])
assert (first is None) == (r > 0) and world.subset(range(n)).size == n
assert "different" in raises(MPIError, world.subset, [0, 0]) and "different" in raises(MPIError, world.subset, [n])

# --- errors
assert issubclass(MPIError, EnvironmentError) and "only array or string" in raises(MPIError, world.send, [1], right, 0)
assert "destination" in raises(MPIError, world.send, "a", n, 0) and "tag" in raises(MPIError, world.send, "a", 0, 32768)
assert "type code" in raises(MPIError, world.receive, "nonsense", left, 0) and "object" in raises(
    MPIError, world.send, N.array([None]), right, 0
)
assert "shape" in raises(MPIError, world.share, N.ones(2), N.ones(2)) and "elements" in raises(
    MPIError, world.allreduce, N.ones(2), N.ones(1), MPI.sum
)
assert "operation" in raises(MPIError, world.allreduce, N.ones(1), N.ones(1), max) and raises(
    MPIError, world.broadcast, N.ones(1), n
)
if "MPICH" not in Get_library_version():  # which ends the job by itself
    world.send(N.ones(3, N.Float32), r, 9)
    assert "incompatible" in raises(MPIError, world.receive, N.zeros(3, N.Float), r, 9)

# --- one file for all

log = LogFile(sys.argv[1])
log.write("from rank %d" % r)
log.flush()
log.write("the end")
log.close()
print("processor %d of %d is content" % (r, n))
