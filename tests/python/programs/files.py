"""Files of all ranks. Any number of ranks."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from pathlib import Path

import limosa
import numpy as np
from cases import raises, run

world = limosa.world
rank, size = world.rank, world.size


@contextlib.contextmanager
def folder():
    """A folder of all ranks, with the name of a file in it."""
    name = world.bcast(tempfile.mkdtemp() if rank == 0 else None)
    yield f"{name}/data"
    world.barrier()
    if rank == 0:
        shutil.rmtree(name)


def case_pieces():
    with folder() as path:
        for kind in ("f8", "i2", "c16"):
            with limosa.open(path, "w") as file:
                mine = np.arange(6).astype(kind).reshape(2, 3) + rank
                file.write(mine, at=rank * mine.nbytes)
                file.sync()
                assert file.size == size * mine.nbytes
                back = file.read((2, 3), kind, at=(size - 1 - rank) * mine.nbytes)
                assert np.array_equal(back, mine - rank + size - 1 - rank)
            assert np.array_equal(np.fromfile(path, kind)[6 * rank :][:6], mine.ravel())
        with limosa.open(path) as file:
            out = np.zeros((2, 3), "c16")
            assert file.read((2, 3), "c16", out=out, at=0) is out
            assert out[0, 1] == 1
            assert file.read(0).shape == (0,)
            with raises(EOFError, "ends after"):
                file.read(7, "c16", at=(size - 1) * 96)


def case_slices_and_some_ranks_only():
    with folder() as path, limosa.open(path, "x") as file:
        table = np.arange(20.0).reshape(4, 5)
        file.write(table[:, ::2] if rank == size - 1 else np.empty(0))
        wide = np.zeros((4, 6))
        file.read((4, 3), out=wide[:, ::2])
        assert np.array_equal(wide[:, ::2], table[:, ::2])


def case_blocks():
    with folder() as path:
        whole = (4, 3 * size)
        with limosa.open(path, "w") as file:
            file.write(np.array([7]) if rank == 0 else np.empty(0))
            file.write_block(np.full((4, 3), rank, "i4"), (0, 3 * rank), whole, at=8)
            row = file.read_block((2, 0), (1, 3 * size), whole, "i4", at=8)
            assert row.ravel().tolist() == np.repeat(np.arange(size), 3).tolist()
            corner = np.zeros((2, 1), "i4")
            file.read_block((0, 3 * size - 1), (2, 1), whole, "i4", at=8, out=corner)
            assert (corner == size - 1).all()
            assert file.read_block((0, 0), (0, 3), whole, "i4").shape == (0, 3)
            assert file.read(1, int).tolist() == [7]
        assert Path(path).stat().st_size == 8 + 4 * 12 * size


def case_modes_and_sizes():
    with folder() as path:
        with limosa.open(path, "w") as file:
            file.resize(100)
            with raises((ValueError, limosa.errors.PeerError)):
                file.resize(-1 if rank == 0 else 100)
            if size > 1:
                with raises(limosa.errors.MismatchError, "resize(99 bytes)", "resize(100 bytes)"):
                    file.resize(99 if rank == 0 else 100)
            assert (file.size, file.name, file.mode) == (100, path, "w")
        with limosa.open(path, "r+") as file:
            file.write(np.ones(1), at=8 * rank)
            file.sync()
            assert file.size == 100
        file.close()
        with raises(limosa.errors.FileError, "has been closed"):
            file.read(1)
        with limosa.open(path, "w") as file:
            assert file.size == 0


def case_errors_of_the_system():
    with folder() as path:
        for _ in range(2):
            with raises(FileNotFoundError, path) as caught:
                limosa.open(path)
            assert (caught[0].errno, caught[0].filename) == (errno.ENOENT, path)
            assert isinstance(caught[0], limosa.errors.NoSuchFileError)
        limosa.open(path, "w").close()
        with raises(FileExistsError) as caught:
            limosa.open(path, "x")
        assert caught[0].errno == errno.EEXIST
        with limosa.open(path) as file, raises(limosa.errors.Error):
            file.write(np.ones(1))
        with raises(OSError):
            limosa.open(str(Path(path).parent), "w")


def case_wrong_arguments_are_told_to_all():
    with folder() as path, limosa.open(path, "w") as file:
        for wrong in (
            lambda: file.write(np.ones(1), at=-1),
            lambda: file.write(np.array([object()])),
            lambda: file.write_block(np.ones(2), (1,), (2,)),
        ):
            with raises((limosa.errors.Error, TypeError, ValueError)) as caught:
                wrong() if rank == 0 else file.write(np.ones(1))
            assert rank == 0 or isinstance(caught[0], (limosa.errors.PeerError, limosa.errors.MismatchError))
        with raises(TypeError):
            file.read(1, object)
        if size > 1:
            with raises(limosa.errors.MismatchError):
                limosa.open(path, "r" if rank else "w")
            with raises(limosa.errors.MismatchError, "write", "barrier"):
                file.write(np.ones(1)) if rank else world.barrier()
        file.write(np.ones(1))
        assert file.size == 8
    with raises((ValueError, limosa.errors.PeerError)):
        limosa.open("x", "q")


def case_a_rank_alone():
    with folder() as path:
        own = f"{path}{rank}"
        for turn in range(rank + 1):  # the ranks do different things
            with limosa.open(own, "w", collective=False) as file:
                file.write(np.arange(4) + turn, at=8)
                file.write_block(np.zeros(1, int), (0,), (5,))
                assert (file.size, file.read(2, int, at=16).tolist()) == (40, [1 + turn, 2 + turn])
                file.resize(24)
                file.sync()
        assert np.fromfile(own, int).tolist() == [0, rank, 1 + rank]
        world.barrier()
        with limosa.open(f"{path}{(rank + 1) % size}", collective=False) as file:
            assert file.read(3, int)[1] == (rank + 1) % size
        if rank == size - 1:
            with raises(FileNotFoundError, f"open on rank {rank}: ") as caught:
                limosa.open(path, collective=False)
            assert (caught[0].errno, caught[0].filename) == (errno.ENOENT, path)
            with raises(limosa.errors.FileError, f"read on rank {rank}: ", "has been closed"):
                file.read(1)
            with raises(ValueError, "mode='q'"):
                limosa.open(path, "q", collective=False)
            with limosa.open(own, collective=False) as file, raises(EOFError):
                file.read(9)
            with raises(limosa.errors.ArgumentError, "exclude each other"):
                limosa.open(own, comm=world, collective=False)


def case_a_part_of_the_ranks():
    with folder() as path, world.split(rank % 2) as half:
        name = f"{path}{rank % 2}"
        with limosa.open(name, "w", half) as file:
            file.write(np.array([half.rank]), at=8 * half.rank)
        assert np.fromfile(name, int).tolist() == list(range(half.size))
        half.barrier()
        if half.rank == 0:
            Path(name).unlink()


run()
