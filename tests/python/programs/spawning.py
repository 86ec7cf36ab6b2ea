"""`limosa.spawn` and pools of spawned processes, on one rank or several that spawn together."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cases
import limosa
import numpy as np
from limosa import errors

WORKER = Path(__file__).parent / "spawned.py"


def multiply(factor):
    back = limosa.parent
    assert back is not None and (back.rank, back.size) == (limosa.world.rank, limosa.world.size)
    value = back.recv(source=0, tag=3)
    back.send((limosa.world.rank, limosa.world.size, factor * value), to=0, tag=4)


def join():
    with limosa.parent.merge() as everybody:
        total = everybody.allreduce(np.full(3, everybody.rank))
        assert total.tolist() == [sum(range(everybody.size))] * 3
        assert everybody.bcast(None) == "from the first"


def square(x):
    return x * x


def broken(x):
    raise KeyError(f"{x} is not there")


def place(_):
    return os.getpid()


def case_a_function_is_called():
    for n in (1, 2):
        with limosa.spawn(multiply, [3], n=n) as workers:
            assert (workers.remote_size, workers.size, workers.rank) == (n, 1, 0)
            for rank in range(n):
                workers.send(np.arange(2), to=rank, tag=3)
            status = limosa.Status()
            for rank in range(n):
                here, size, value = workers.recv(rank, status=status)
                assert (here, size, value.tolist()) == (rank, n, [0, 3])
                assert (status.source, status.tag) == (rank, 4)
        assert repr(workers) == "<limosa.Intercomm, disconnected>"


def case_both_groups_become_one():
    with limosa.spawn(join, n=2) as workers, workers.merge() as everybody:
        assert (everybody.rank, everybody.size) == (0, 3)
        assert everybody.allreduce(np.zeros(3, int)).tolist() == [3, 3, 3]
        everybody.bcast("from the first")


def case_ranks_spawn_together():
    world = limosa.world
    with limosa.spawn(multiply, [2], n=2, comm=world) as workers:
        assert (workers.size, workers.rank) == (world.size, world.rank)
        if world.rank == 0:
            for rank in range(2):
                workers.send(5, to=rank, tag=3)
            assert sorted(workers.recv() for _ in range(2)) == [(0, 2, 10), (1, 2, 10)]


def case_a_script_is_run(folder="/"):
    with limosa.spawn(WORKER, ["a word"], n=2, wdir=folder) as workers:
        assert [workers.recv(source=rank) for rank in range(2)] == [(["a word"], folder, rank, 2) for rank in range(2)]


def case_a_pool_of_processes_makes_calls():
    if "limosa" not in sys.argv:
        with cases.raises(errors.UnsupportedOperationError, "needs the library Limosa"):
            limosa.Executor(2, spawn=True)
        return
    with limosa.Executor(2, spawn=True) as pool:
        assert pool.is_root
        assert list(pool.map(square, range(20))) == [x * x for x in range(20)]
        assert os.getpid() not in set(pool.map(place, range(20)))
        with cases.raises(KeyError, "7 is not there") as caught:
            pool.submit(broken, 7).result()
        assert "in broken" in str(caught[0].__cause__)
        assert pool.submit(int, "ff", base=16).result() == 255
    with cases.raises(RuntimeError, "after shutdown"):
        pool.submit(square, 1)


def case_what_cannot_be_started_is_said():
    for program, words in (
        ("/no/such/program", "there is no program /no/such/program"),
        ("no_such_program", "there is no program no_such_program"),
        ("no_such_script.py", f"there is no script {Path.cwd()}/no_such_script.py"),
        ("/etc/passwd", "the program /etc/passwd is not executable"),
    ):
        with cases.raises(errors.SpawnError, "spawn", words) as caught:
            limosa.spawn(program)
        assert isinstance(caught[0], OSError)
    with cases.raises(errors.ArgumentError, "n=0 is not a number from 1"):
        limosa.spawn(square, n=0)
    with cases.raises(errors.ArgumentError, "pickle"):
        limosa.spawn(lambda: 1)
    with cases.raises(errors.ArgumentError, "exclude each other"):
        limosa.Executor(comm=limosa.world, spawn=True)
    with cases.raises(errors.ArgumentError, "max_workers"):
        limosa.Executor(0, spawn=True)


def case_ranks_of_the_other_group_are_checked():
    with limosa.spawn(multiply, [1]) as workers:
        with cases.raises(errors.RankError, "to=1 is not in the other group"):
            workers.send(1, to=1)
        with cases.raises(errors.TagError, "send"):
            workers.send(1, to=0, tag=-4)
        workers.send(1, tag=3)
        assert workers.recv() == (0, 1, 1)


def case_a_pool_that_is_not_waited_for_makes_its_calls():
    if "limosa" in sys.argv:
        pool = limosa.Executor(spawn=True)
        future = pool.submit(square, 4)
        pool.shutdown(wait=False)
        assert future.result() == 16


def case_with_limosa_more_is_said():
    if "limosa" not in sys.argv:
        return
    for program, words in ((("false",), "exited with code 1 before MPI_Init"), (("sleep", ["60"], 5000), "no room")):
        with cases.raises(errors.SpawnError, words):
            limosa.spawn(*program)
    with cases.raises(errors.SpawnError, "cannot use the working directory /no/such"):
        limosa.spawn(square, wdir="/no/such")
    with cases.raises(errors.SpawnError, "`mars` is not this machine"):
        limosa.spawn(square, host="mars")


if __name__ == "__main__":
    cases.run()
