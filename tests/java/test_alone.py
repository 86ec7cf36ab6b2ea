"""Java programs without an MPI library, or with a broken one: one rank runs in Java, a rank of a job says why not."""

import os
import subprocess

import pytest
from jobs import run_job

HELLO = """
import mpi.*;
class Hello {
    public static void main(String[] args) {
        MPI.Init(args);
        int[] sum = {5};
        MPI.COMM_WORLD.Allreduce(sum, 0, sum, 0, 1, MPI.INT, MPI.SUM);
        System.out.println("rank " + MPI.COMM_WORLD.Rank() + " of " + MPI.COMM_WORLD.Size() + ": " + sum[0]);
        MPI.Finalize();
        org.limosa.World.run(world -> System.out.println("world of " + world.size()));
    }
}
"""
LAUNCHERS = ["LIMOSA_", "PMI_", "PMIX_", "OMPI_", "SLURM_", "LD_LIBRARY_PATH"]
ALONE = ["rank 0 of 1: 5", "world of 1"]


@pytest.fixture
def classes(java, javac):
    from limosa import _java

    subprocess.run([javac, "-cp", _java.jar(), "-d", java.folder, java.write(HELLO, "Hello")], check=True)
    return f"{_java.jar()}:{java.folder}"


@pytest.fixture
def plain(jdk, classes):
    """Run the program with Java alone: no launcher, and no library where the system looks."""

    def run(*options, env=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(tuple(LAUNCHERS))}
        line = [jdk.with_name("java"), "--enable-native-access=ALL-UNNAMED", *options, "-cp", classes, "Hello"]
        return run_job([str(word) for word in line], 60, env=clean | (env or {}))

    return run


@pytest.mark.parametrize("env", [{}, {"PMI_SIZE": "1", "PMI_RANK": "0"}])
def test_one_rank_runs_in_java_and_says_so_once(plain, env):
    outcome = plain(env=env)
    assert (outcome.code, outcome.out.splitlines()) == (0, ALONE), outcome.text
    (line,) = outcome.err.splitlines()
    assert line.startswith("limosa: there is no MPI library (libmpi_abi.so.1: ")
    assert "this program runs as one rank, in Java" in line


@pytest.mark.parametrize(
    ("env", "variable"),
    [
        ({"LIMOSA_RANK": "1", "LIMOSA_SIZE": "2"}, "LIMOSA_RANK"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "PMI_SIZE"),
        ({"PMIX_RANK": "0"}, "PMIX_RANK"),
        ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2"}, "SLURM_STEP_NUM_TASKS"),
    ],
)
def test_a_rank_of_a_job_does_not_become_a_job_of_one(plain, env, variable):
    outcome = plain(env=env)
    assert outcome.code == 1
    assert outcome.out == ""
    assert "there is no MPI library: libmpi_abi.so.1" in outcome.err
    assert f"the variable {variable} says that this process is one of a job" in outcome.err


@pytest.mark.parametrize("by", ["variable", "property"])
def test_a_library_that_was_chosen_must_be_there(plain, by):
    name = "/nowhere/libmpi.so"
    outcome = plain(env={"JAVA_LIMOSA_LIBRARY": name}) if by == "variable" else plain(f"-Dlimosa.library={name}")
    assert (outcome.code, outcome.out) == (1, "")
    assert f"there is no MPI library: {name}" in outcome.err
    assert "name a different file in JAVA_LIMOSA_LIBRARY, or none" in outcome.err


def test_a_library_that_is_not_one_of_mpi(plain):
    outcome = plain(env={"JAVA_LIMOSA_LIBRARY": "libm.so.6"})
    assert (outcome.code, outcome.out) == (1, "")
    assert "libm.so.6 is no MPI library with the standard ABI: it has no function MPI_" in outcome.err


@pytest.mark.parametrize("damage", [b"", b"\x7fELF" + 4000 * b"x"])
def test_limosa_run_with_a_damaged_library(java, classes, damage):
    library = java.folder / "libmpi_abi.so.1"
    library.write_bytes(damage)
    outcome = java.run("-cp", classes, "Hello", env={"JAVA_LIMOSA_LIBRARY": str(library)}, succeeds=False)
    assert outcome.code == 1
    assert outcome.out == ""
    assert f"there is no MPI library: {library}: " in outcome.err
    outcome = java.run("-cp", classes, "Hello", options=["--mpi", java.folder], succeeds=False)
    assert outcome.code != 0
    assert outcome.out == ""
    assert str(java.folder) in outcome.err
