"""Programs linked with Limosa that the launchers of other libraries start: MPICH's by PMI, Open MPI's by PMIx."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import Outcome, run_job
from limosa_lab.errors import LabError
from limosa_lab.libraries import Library, Mpich, OpenMpi

#: Each program begins with these.
HEAD = """
import os, signal, subprocess, sys
from mpi4py import MPI

world = MPI.COMM_WORLD
assert MPI.Get_library_version().startswith("Limosa")
"""

Run = Callable[..., Outcome]


@pytest.fixture(scope="session", params=["mpich", "openmpi"])
def site(request: pytest.FixtureRequest) -> Library:
    """The library whose launcher is used, installed if it is not there yet."""
    kind = {"mpich": Mpich, "openmpi": OpenMpi}[request.param]
    try:
        return kind.install(lambda text: print(text, file=sys.stderr))
    except LabError as error:
        pytest.skip(f"{error}; hint: {error.hint}")


@pytest.fixture
def run(site: Library, tmp_path: Path) -> Run:
    """Runs a program given as text on n processes, and waits for its end."""

    def run(text: str, *options: str, n: int = 3) -> Outcome:
        script = tmp_path / "program.py"
        script.write_text(HEAD + textwrap.dedent(text))
        return run_job([*site.launcher(n, os.cpu_count() or 1), *options, sys.executable, str(script)], 30)

    return run


def test_the_processes_are_the_ranks_of_one_job_that_shares_memory(run: Run) -> None:
    done = run("""
        here = world.Split_type(MPI.COMM_TYPE_SHARED).size
        total = world.allreduce(world.rank)
        window = MPI.Win.Allocate_shared(8, 8, comm=world)
        for line in world.gather(f"<{world.rank} of {world.size}, {here} here, sum {total}>") or []:
            print(line)
        window.Free()
    """)
    assert done.code == 0, done.text
    assert re.findall("<.*>", done.out) == [f"<{rank} of 3, 3 here, sum 3>" for rank in range(3)]


def test_one_process_is_a_job_of_its_own(run: Run) -> None:
    done = run("print(world.size, world.allreduce(5))", n=1)
    assert done.code == 0 and done.out.split() == ["1", "5"], done.text


def test_an_abort_ends_all_processes_with_its_code(run: Run) -> None:
    done = run("""
        if world.rank == 1:
            world.Abort(7)
        world.barrier()
        signal.pause()
    """)
    assert done.code == 7, done.text
    assert "limosa: rank 1 aborted the job with code 7" in done.err, done.text


def test_the_death_of_a_process_ends_the_others(run: Run) -> None:
    done = run("""
        world.barrier()
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        world.recv(source=1)
    """)
    assert done.code != 0, done.text


def test_processes_that_finalize_and_go_on_end_the_job_well(run: Run) -> None:
    done = run("""
        world.barrier()
        MPI.Finalize()
        os.write(1, b"<after>")
    """)
    assert done.code == 0 and done.out.count("<after>") == 3, done.text


def test_files_of_messages_are_deleted_by_the_last_process(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = tmp_path / "messages"
    monkeypatch.setenv("LIMOSA_DEVICE", f"file:{messages}")
    done = run("""
        total = world.allreduce(world.rank)
        child = os.fork()
        if child == 0:
            sys.exit()
        os.waitpid(child, 0)
        world.barrier()
        print(f"<{total} {len(os.listdir(os.environ['LIMOSA_DEVICE'][5:]))}>")
    """)
    assert done.code == 0 and done.out.count("<3 1>") == 3, done.text
    assert list(messages.iterdir()) == []


def test_a_hang_is_reported_by_the_first_process(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMOSA_ON_HANG", "abort")
    monkeypatch.setenv("LIMOSA_HANG_GRACE", "1")
    done = run("world.recv(source=(world.rank + 1) % world.size, tag=5)")
    assert done.code == 86, done.text
    # PMIx's library has a thread of its own, of which it is not known that it will not send.
    assert re.search("limosa: this job (hangs|may hang): ranks 0-2 wait and nothing", done.err), done.text
    assert all(f"from rank {(rank + 1) % 3}, tag 5" in done.err for rank in range(3)), done.text
    assert "limosa: ending the job because of the hang (LIMOSA_ON_HANG=abort)" in done.err, done.text


def test_a_job_whose_first_process_computes_does_not_hang(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMOSA_ON_HANG", "abort")
    done = run("""
        import time
        if world.rank == 0:
            time.sleep(4)
            for rank in range(1, world.size):
                world.send(None, dest=rank)
        else:
            world.recv(source=0)
    """)
    assert done.code == 0 and "hang" not in done.err, done.text


def test_the_processes_are_listed_by_ps(run: Run) -> None:
    done = run("""
        launcher = os.path.join(os.path.dirname(sys.executable), "limosa")
        if world.rank == 2:
            # The others are in the barrier, or will be soon.
            listed = ""
            while listed.count("MPI_Barrier") < 2:
                listed = subprocess.run([launcher, "ps"], check=True, capture_output=True, text=True).stdout
            print(listed)
        world.barrier()
    """)
    assert done.code == 0 and done.out.count("MPI_Barrier") >= 2, done.text


def test_spawning_is_refused_with_a_sentence(run: Run) -> None:
    done = run("""
        world.Set_errhandler(MPI.ERRORS_RETURN)
        try:
            world.Spawn(sys.executable, ["-c", "pass"], 1)
        except MPI.Exception as error:
            os.write(1, f"<{error}>".encode())
        world.barrier()
    """)
    assert done.code == 0, done.text
    assert done.out.count("start it with `limosa run`") == 3, done.text


def test_a_program_of_a_rank_that_runs_limosa_has_a_job_of_its_own(run: Run) -> None:
    done = run(
        """
        launcher = os.path.join(os.path.dirname(sys.executable), "limosa")
        program = "from mpi4py import MPI; print(f'<{MPI.COMM_WORLD.size}>', flush=True)"
        # The launcher's own variables, of Limosa's job, count for more than those of the one outside.
        subprocess.run([launcher, "run", "-n", "2", sys.executable, "-c", program], check=True)
        world.barrier()
    """,
        n=2,
    )
    assert done.code == 0 and done.out.count("<2>") == 4, done.text


def test_processes_that_cannot_reach_their_launcher_never_think_that_they_are_alone(
    tmp_path: Path, site: Library
) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + "print(world.size)")
    wrapper = tmp_path / "wrapper.py"
    # It closes all descriptors, and with them hydra's socket. PMIx has none, but needs its library.
    wrapper.write_text(
        f"import subprocess, sys\nsys.exit(subprocess.run([sys.executable, {str(program)!r}]).returncode)"
    )
    command = [*site.launcher(2, os.cpu_count() or 1), sys.executable, str(wrapper)]
    done = run_job(command, 30, env={**os.environ, "LIMOSA_PMIX_LIBRARY": "/nowhere/libpmix.so"})
    assert done.code != 0 and done.out.split() == [], done.text
    reason = {"mpich": "what started this process has closed it", "openmpi": "LIMOSA_PMIX_LIBRARY is /nowhere/libpmix"}
    assert reason[site.name] in done.err and "unset PMI" in done.err, done.text
