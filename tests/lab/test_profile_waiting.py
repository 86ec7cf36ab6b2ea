"""Which rank waited for which: in `waiting.c` rank 1 waits in each way that a program can, for ranks held up."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from jobs import Job, run_job, sleeping_yield, until_rank_waits_in
from limosa_lab.profile import files, waiting
from test_profile import recording

BIN = Path(sysconfig.get_path("scripts"))
EVENTS = 200_000

# For each way of waiting: the call in which rank 1 waits (none: it asks again and again), and what is said of it: the
# kind, and the function that has begun the operation.
WAYS = {
    "any_source": ("MPI_Wait", waiting.LATE_SENDER, "MPI_Irecv"),
    "any_source_elsewhere": ("MPI_Wait", waiting.LATE_SENDER, "MPI_Irecv"),
    "wait_all": ("MPI_Waitall", waiting.LATE_SENDER, "MPI_Irecv"),
    "wait_any": ("MPI_Waitany", waiting.LATE_SENDER, "MPI_Irecv"),
    "wait_some": ("MPI_Waitsome", waiting.LATE_SENDER, "MPI_Irecv"),
    "test_one": (None, waiting.LATE_SENDER, "MPI_Irecv"),
    "test_all": (None, waiting.LATE_SENDER, "MPI_Irecv"),
    "test_any": (None, waiting.LATE_SENDER, "MPI_Irecv"),
    "test_some": (None, waiting.LATE_SENDER, "MPI_Irecv"),
    "persistent_receive": ("MPI_Wait", waiting.LATE_SENDER, "MPI_Recv_init"),
    "persistent_send": ("MPI_Waitall", waiting.LATE_RECEIVER, "MPI_Ssend_init"),
    "exchange": ("MPI_Sendrecv", waiting.LATE_SENDER, "MPI_Sendrecv"),
    "matched": ("MPI_Mprobe", waiting.LATE_SENDER, "MPI_Mprobe"),
    "matched_later": (None, waiting.LATE_SENDER, "MPI_Improbe"),
    "cancelled": ("MPI_Wait", waiting.LATE_SENDER, "MPI_Irecv"),
    "collective": ("MPI_Wait", waiting.IMBALANCE, "MPI_Ibarrier"),
    "collective_asked": (None, waiting.IMBALANCE, "MPI_Iallreduce"),
    "collective_persistent": ("MPI_Wait", waiting.IMBALANCE, "MPI_Barrier_init"),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("program") / "waiting"
    source = Path(__file__).with_name("waiting.c")
    subprocess.run([BIN / "mpicc", "-g", "-Wall", "-Wextra", "-Werror", source, "-o", made], check=True)
    return made


def waits_of_rank_1(folder):
    """Kind, function and awaited rank of its waits; each message has been matched."""
    found = waiting.find(files.read(folder))
    assert found.unmatched == 0
    assert all(0 < wait.seconds <= wait.of for wait in found.waits)
    return {(wait.kind, wait.function, wait.awaited) for wait in found.waits if wait.rank == 1}


@pytest.mark.parametrize("way", WAYS)
def test_who_waited_for_whom(program, way, tmp_path):
    call, kind, function = WAYS[way]
    options = recording(tmp_path / "made", EVENTS)
    command = [BIN / "limosa", "run", *options, "-n", "3", "--stdin", "all", program, way]
    job = Job(command, stdin=subprocess.PIPE, cwd=tmp_path)

    try:
        for _ in range(2):
            # The late rank goes on when rank 1 waits for it.
            assert sorted(job.read_lines(1 if call else 2)) == (["late"] if call else ["asks", "late"])
            if call:
                until_rank_waits_in(job.process.pid, 1, call)
            job.process.stdin.write("\n")
            job.process.stdin.flush()
        done = job.wait(60)
    finally:
        job.kill()
    assert done.code == 0, done.err
    assert waits_of_rank_1(tmp_path / "made") >= {(kind, function, 0), (kind, function, 2)}


def test_who_waited_for_whom_on_another_library(program, tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    preloaded = ["-x", f"LD_PRELOAD={sleeping_yield(tmp_path)}"]
    options = ["--mpi", "mpich", *preloaded, "--profile=made", "--profile-events", str(EVENTS), "-n", "3"]
    command = [BIN / "limosa", "run", *options, program, "all", "alone"]
    done = run_job(command, 60, cwd=tmp_path, env=env)
    assert done.code == 0, done.text
    assert "3 ranks ran for" in done.err
    assert "Waiting for other ranks" in done.err
    found = waits_of_rank_1(tmp_path / "made")
    assert found >= {(kind, function, late) for _, kind, function in WAYS.values() for late in (0, 2)}
