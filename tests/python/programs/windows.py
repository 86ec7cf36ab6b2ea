"""Shared arrays and windows, against arrays that one rank could compute alone. Any number of ranks."""

from __future__ import annotations

import random
import sys

import cases
import limosa
import numpy as np
from limosa import errors

world = limosa.world
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size
apart = "apart" in sys.argv  # the ranks do not share memory


def case_ranks_are_numbered_on_their_host():
    for comm in (world, world.split(rank % 2)):
        with comm.split_by_host() as host:
            assert (comm.local_rank, comm.local_size) == (host.rank, host.size)


def case_one_memory():
    with world.split_by_host() as host, host.shared_array((host.size, 5), dtype="i4", fill=-1) as table:
        assert table.array.shape == (host.size, 5) and table.array.dtype == np.int32
        assert (table.array == -1).all()
        table.fence()
        table[host.rank] = host.rank
        table.fence()
        assert (np.asarray(table) == np.arange(host.size)[:, None]).all()
        assert np.sum(table) == 5 * sum(range(host.size)) and len(table) == host.size
        assert repr(table) == f"<limosa.SharedArray: shape ({host.size}, 5), int32, of {host.size} ranks>"


def case_the_lock_of_a_shared_array():
    with world.split_by_host() as host, host.shared_array(1, int) as counter:
        for _ in range(50):
            with counter.lock() as array:
                array[0] += 1
        counter.fence()
        assert counter[0] == 50 * host.size


def case_shared_arrays_of_all_shapes():
    with world.split_by_host() as host:
        for shape, dtype in (((), float), (0, "f4"), ((2, 0), int), ([3, 4], complex), (np.int64(5), "S3"), (7, bool)):
            with host.shared_array(shape, dtype) as made:
                assert not made.array.any() and made.array.dtype == np.dtype(dtype)


def case_memory_in_use_stays():
    """A slice that outlives the block can be used, and its memory is freed later."""
    with world.split_by_host() as host:
        kept = []
        for round_ in range(20):
            with host.shared_array(100_000, fill=round_) as made:
                kept.append(made.array[10:])
            with cases.raises(errors.WindowError, "freed"):
                made.array  # noqa: B018
        assert [one[5] for one in kept] == list(range(20))
        kept.clear()
        host.shared_array(1).free()


def case_shared_arrays_that_cannot_be():
    if apart and size > 1:
        with cases.raises(errors.RmaSharedError, "several hosts", "split_by_host"):
            world.shared_array(3)
        return
    for arguments, kind in (
        ((-1,), errors.ArgumentError),
        (("text",), errors.ArgumentError),
        ((3, "nonsense"), errors.ArgumentError),
        ((3, object), errors.DatatypeError),
    ):
        with cases.raises(kind if rank == 0 else errors.PeerError):
            world.shared_array(*(arguments if rank == 0 else (3,)))
    if size > 1:
        with cases.raises(errors.MismatchError, "shape=(1,)", "shape=(2,)"):
            world.shared_array(1 if rank == 0 else 2)
        with world.shared_array(3) as made, cases.raises(errors.MismatchError, "fence()", "barrier()"):
            made.fence() if rank == 0 else world.barrier()


INDICES = (
    0,
    -1,
    (1, 2),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    (slice(None), 1),
    (slice(0, 3, 2), slice(None, None, 3)),
    (Ellipsis, -1),
    (None, 2),
    slice(2, 2),
    np.int64(1),
    (slice(None, None, -2), slice(3, 0, -1)),
)


def case_indexing_is_that_of_numpy():
    for dtype in ("f8", "i2", "c16", "S5", "?"):
        for shape in ((4, 5), (3, 4, 6)):
            model = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)
            with world.window(model.copy()) as window:
                for index in INDICES:
                    with window.lock(right) as there:
                        got = there[index]
                        assert np.array_equal(got, model[index]) and type(got) is type(model[index]), (index, got)
                        there[index] = model[index]
                    new = np.zeros_like(model[index])
                    world.barrier()
                    with window.lock(right) as there:
                        there[index] = new
                    window.fence()
                    expected = model.copy()
                    expected[index] = new
                    assert np.array_equal(window.array, expected), (dtype, index)
                    window.array[...] = model
                    window.fence()
    with world.window(np.array(5.0)) as window, window.lock(right) as there:
        assert there[()] == 5 and there[...] == 5 and there.shape == ()


def case_indices_that_select_nothing():
    with world.window(np.zeros((3, 4))) as window, window.lock(right) as there:
        for index in (3, (0, 4), (0, 0, 0), [1, 2], np.array([True, False, True]), "a", 1.5, True):
            with cases.raises(IndexError):
                there[index]
            with cases.raises(IndexError):
                there[index] = 1
        with cases.raises(ValueError):
            there[0] = [1, 2]
        assert len(there) == 3


def case_nothing_is_lost_in_accumulate():
    with world.window(np.zeros((2, 3), np.int64) if rank == 0 else None) as window:
        seen = []
        for _ in range(100):
            with window.lock(0, shared=True) as there:
                there.accumulate(0, [1, 2, 3])
                seen.append(there.get_accumulate((1, 0), 1))
                there.accumulate((1, 1), rank, "max")
        window.fence()
        tickets = world.gather(seen)
        if rank == 0:
            assert window.array[0].tolist() == [100 * size, 200 * size, 300 * size]
            assert window.array[1].tolist() == [100 * size, size - 1, 0]
            assert sorted(ticket for one in tickets for ticket in one) == list(range(100 * size))


def case_accumulate_on_slices():
    model = np.arange(24.0).reshape(4, 6)
    with world.window(model.copy()) as window:
        with window.lock(right) as there:
            old = there.get_accumulate((slice(None, None, 2), slice(None, None, -2)), 10)
            there.accumulate((slice(None), 0), [1, 2, 3, 4], np.multiply)
            there.accumulate(0, 0.0, "min")
        window.fence()
        assert np.array_equal(old, model[::2, ::-2])
        model[::2, ::-2] += 10
        model[:, 0] *= [1, 2, 3, 4]
        model[0] = np.minimum(model[0], 0)
        assert np.array_equal(window.array, model)


def case_a_lock_is_exclusive():
    """Ranks that read, compute and write in a block do not disturb each other."""
    with world.window(np.zeros(1000, int) if rank == size - 1 else None) as window:
        for _ in range(20):
            with window.lock(size - 1) as there:
                there[:] = there[:] + 1
        window.fence()
        if rank == size - 1:
            assert (window.array == 20 * size).all()


def case_random_transfers():
    """Each rank writes random slices of its own rows of all arrays; a model on each rank does the same."""
    chooser = random.Random(7)
    with world.window(np.zeros((size, 300))) as window:
        model = np.zeros((size, 300))
        for step in range(60):
            start, stop, stride = chooser.randrange(300), chooser.randrange(300), chooser.randrange(1, 9)
            target = chooser.randrange(size)
            index = slice(min(start, stop), max(start, stop), stride)
            with window.lock(target, shared=True) as there:
                there[rank, index] = step + rank
                assert (there[rank, index] == step + rank).all()
            if target == rank:
                for row in range(size):
                    model[row, index] = step + row
        window.fence()
        assert np.array_equal(window.array, model)


def case_arrays_of_different_shapes():
    mine = np.full((rank + 1, 2), rank, "f4" if rank % 2 else "f8")
    with world.window(mine) as window:
        for other in range(size):
            with window.lock(other, shared=True) as there:
                assert there.shape == (other + 1, 2) and there.dtype == ("f4" if other % 2 else "f8")
                assert (there[:] == other).all()
        assert window.array is mine


def case_wrong_use_of_windows():
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    for bad, kind in (
        (5, errors.BufferError),
        (read_only, errors.BufferError),
        (np.zeros((4, 4))[:, ::2], errors.BufferError),
        (np.array([None]), errors.DatatypeError),
    ):
        with cases.raises(kind if rank == 0 else errors.PeerError):
            world.window(bad if rank == 0 else np.zeros(3))
    with world.window(np.zeros(3) if rank == 0 else None) as window:
        with cases.raises(errors.RankError, f"rank={size}"), window.lock(size):
            pass
        with cases.raises(errors.RankError), window.lock(None):
            pass
        if size > 1:
            with cases.raises(errors.RankError, "given no array"), window.lock(1):
                pass
        if rank == 1:
            with cases.raises(errors.WindowError, "given no array"):
                window.array  # noqa: B018
        with window.lock(0, shared=True) as there:
            with cases.raises(errors.OpError, "average"):
                there.accumulate(0, 1, "average")
            with cases.raises(errors.OpError, "band"):
                there.accumulate(0, 1, "band")
        with cases.raises(errors.RmaSyncError, "has ended"):
            there[0]
        with cases.raises(ZeroDivisionError), window.lock(0) as there:
            there[0] = 1 / 0
        with window.lock(0) as there:
            assert there[0] == 0
    window.free()
    assert repr(window) == "<limosa.Window: freed>"


def case_long_transfers():
    x = np.arange(2_000_000.0) + rank
    with world.window(x.copy()) as window:
        with window.lock(right, shared=True) as there:
            assert np.array_equal(there[:], np.arange(2_000_000.0) + right)
            there[::3] = x[::3]
        window.fence()
        expected = x.copy()
        expected[::3] = x[::3] - rank + left
        assert np.array_equal(window.array, expected)


if __name__ == "__main__":
    cases.run()
