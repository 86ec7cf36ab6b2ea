"""Every call of MYMPI, on any number of processes."""

import sys

import mpi
import numpy as np
from mpi import *

sys.argv = mpi.mpi_init(len(sys.argv), sys.argv)
assert isinstance(sys.argv, tuple) and mpi_init(0, []) == ()
W = MPI_COMM_WORLD
r, n = mpi_comm_rank(W), mpi_comm_size(W)
right, left = (r + 1) % n, (r - 1) % n


def raises(kind, call, *args):
    try:
        call(*args)
    except kind as problem:
        return str(problem)
    raise AssertionError("no " + kind.__name__)


def shift(data, count, datatype, room, tag=5):
    """Send to the right, receive from the left: even ones first (an odd number of processes needs a third turn)."""
    last = n % 2 == 1 and r == n - 1
    if r % 2 == 0 and not last:
        assert n == 1 or mpi_send(data, count, datatype, right, tag, W) == 0
    got = mpi_recv(room, datatype, left, tag, W) if n > 1 else None
    if r % 2 == 1 or last:
        assert n == 1 or mpi_send(data, count, datatype, right, tag, W) == 0
    return got


# --- messages
for data, count, datatype, wanted in [
    ([1, 2, 3], 3, MPI_INT, np.array([1, 2, 3], "i")),
    (1.5, 1, MPI_FLOAT, np.array([1.5], "f")),
    (np.arange(12.0).reshape(3, 4)[:, ::2], 6, MPI_DOUBLE, np.arange(0.0, 12, 2)),
    (np.arange(24).reshape(2, 3, 4), 24, MPI_DOUBLE, np.arange(24.0)),
    ([1, 2, 3, 4], 2, MPI_INT, np.array([1, 2], "i")),
    ("text", 4, MPI_CHAR, np.array(list("text"), "S1")),
    (["a", "b"], 2, MPI_CHAR, np.array([b"a", b"b"], "S1")),
    (b"more than said", 2, MPI_CHAR, np.frombuffer(b"more than said", "S1")),
    (2**40, 1, MPI_LONG, np.array([2**40], "l")),
    ([-1, 5], 2, MPI_BYTE, np.array([-1, 5], "b")),
    ([[7, 1]], 1, MPI_2INT, np.array([7, 1], "i")),
    (np.arange(200000.0), 200000, MPI_DOUBLE, np.arange(200000.0)),
]:
    got = shift(data, count, datatype, len(wanted) + 3 if datatype != MPI_2INT else 2)
    if got is not None:
        assert got.ndim == 1 and got.dtype == wanted.dtype and (got[: len(wanted)] == wanted).all(), (got, wanted)
        assert (got[len(wanted) :] == np.zeros((), got.dtype)).all() and list(mpi_status()) == [left, 5, 0]
        assert mpi_get_count(datatype) == (len(wanted) if datatype != MPI_2INT else 1) and mpi_error() == 0
if n > 1:
    if r == 0:
        mpi_send([1, 2, 3], 3, MPI_INT, 1, 9, W)
    if r == 1:
        assert (
            mpi_probe(MPI_ANY_SOURCE, MPI_ANY_TAG, W) == 0
            and list(mpi_status())[:2] == [0, 9]
            and mpi_get_count(MPI_INT) == 3
        )
        assert mpi_iprobe(0, 9, W) == 1 and mpi_iprobe(0, 8, W) == 0
        assert list(mpi_recv(mpi_get_count(MPI_INT), MPI_INT, 0, 9, W)) == [1, 2, 3]
assert mpi_send([1], 1, MPI_INT, MPI_PROC_NULL, 0, W) == 0 and list(mpi_recv(2, MPI_INT, MPI_PROC_NULL, 0, W)) == [0, 0]
for name in "mpi_isend", "mpi_irecv", "mpi_test", "mpi_wait":
    assert name in raises(NotImplementedError, getattr(mpi, name), 1, 2)

# --- collectives
assert mpi_barrier(W) == 0
mine = np.arange(3) + r
assert list(mpi_bcast(mine, 3, MPI_INT, 0, W)) == [0, 1, 2]
own = np.arange(3.0)
assert not np.may_share_memory(mpi_bcast(own, 3, MPI_DOUBLE, r and 0, W), own)
result = mpi_bcast(b"pickle", 6, MPI_CHAR, 0, W)
assert result == 0 if r == 0 else b"".join(result) == b"pickle"
held = [mpi_bcast(np.full(100000, float(k)), 100000, MPI_DOUBLE, 0, W) for k in range(4)]  # results stay what they are
assert [array[-1] for array in held] == [0, 1, 2, 3]
total = mpi_reduce(r, 1, MPI_INT, MPI_SUM, 0, W)
assert len(total) == (r == 0) and (r or int(total[0]) == sum(range(n)))
pair = mpi_reduce([-r, r], 1, MPI_2INT, MPI_MINLOC, n - 1, W)
assert list(pair) == ([1 - n, n - 1] if r == n - 1 else [])
assert list(mpi_scatter(range(2 * n) if r == 0 else 0, 2, MPI_INT, 2, MPI_INT, 0, W)) == [2 * r, 2 * r + 1]
all_of_it = mpi_gather([r, r], 2, MPI_INT, 2, MPI_INT, 0, W)
assert list(all_of_it) == ([i for i in range(n) for _ in range(2)] if r == 0 else [])
counts, displs = [i + 1 for i in range(n)], [i * (i + 1) // 2 for i in range(n)]
staircase = mpi_gatherv([r] * (r + 1), r + 1, MPI_INT, counts, displs, MPI_INT, 0, W)
assert list(staircase) == ([i for i in range(n) for _ in range(i + 1)] if r == 0 else [])
assert list(mpi_scatterv(staircase, counts, displs, MPI_INT, r + 1, MPI_INT, 0, W)) == [r] * (r + 1)
assert list(mpi_alltoall([10 * r + i for i in range(n)], 1, MPI_INT, 1, MPI_INT, W)) == [10 * i + r for i in range(n)]
out = [10 * r + i for i in range(n) for _ in range(i + 1)]
back = mpi_alltoallv(out, counts, displs, MPI_INT, [r + 1] * n, [i * (r + 1) for i in range(n)], MPI_INT, W)
assert list(back) == [10 * i + r for i in range(n) for _ in range(r + 1)]

# --- groups and communicators
row = mpi_comm_split(W, r % 2, -r)
assert mpi_comm_size(row) == (n + 1 - r % 2) // 2 and mpi_comm_free(row) == 0
world_group = mpi_comm_group(W)
group = mpi_group_incl(world_group, 1, [n - 1, 0])
assert mpi_group_rank(group) == (0 if r == n - 1 else MPI_UNDEFINED) and mpi_group_rank(world_group) == r
last = mpi_comm_create(W, group)
assert (last == MPI_COMM_NULL) == (r != n - 1)
twin = mpi_comm_dup(W)
assert (
    twin != W
    and mpi_comm_rank(twin) == r
    and mpi_comm_size(mpi_comm_split_type(W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL)) == n
)
assert mpi_attr_get(W, MPI_TAG_UB) >= 32767 and mpi_wtime() > 0 < mpi_wtick() and mpi_get_processor_name()
assert mpi_comm_get_parent() == MPI_COMM_NULL and len(mpi_array_of_errcodes()) == 0
assert list(mpi_start(2, "program argument")) == [r, n]
assert mpi.ARRAY_LIBRARY == "NUMPY" and mpi.pydusa_version() == mpi.VERSION and mpi.copywrite()

# --- errors
assert "group" in raises(mpi.error, mpi_group_rank, 999)
assert "rank" in raises(mpi.error, mpi_send, 1, 1, MPI_INT, n, 0, W).lower()
mpi_comm_set_errhandler(W, 1)
assert mpi_send(1, 1, MPI_INT, n, 0, W) == mpi_error() > 0
mpi_comm_set_errhandler(W, 2)
assert list(mpi_recv(1, MPI_INT, n, 0, W)) == [0] and mpi_error() > 0  # prints
mpi_comm_set_errhandler(W, 0)
assert "5 elements" in raises(mpi.error, mpi_send, [1], 5, MPI_INT, 0, 0, W)
assert "data type" in raises(mpi.error, mpi_recv, 1, 12345, 0, 0, W) and "operation" in raises(
    mpi.error, mpi_reduce, 1, 1, MPI_INT, 999, 0, W
)
assert "communicator" in raises(mpi.error, mpi_comm_rank, 99999) and "bytes" in raises(
    mpi.error, mpi_send, b"abc", 1, MPI_INT, 0, 0, W
)
raises(mpi.error, mpi_comm_set_errhandler, W, 7), raises(mpi.error, mpi_attr_get, W, MPI_UNIVERSE_SIZE + 1000)
assert (
    "2 entries" in raises(mpi.error, mpi_alltoallv, [1], [1, 1][:2], [0, 0], MPI_INT, [1, 1], [0, 0], MPI_INT, W)
    if n > 2
    else True
)
print("processor %d of %d is content" % (r, n))
mpi_finalize()
assert "mpi_finalize" in raises(mpi.error, mpi_barrier, W)
