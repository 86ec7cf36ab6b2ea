"""Programs linked with Limosa in a Slurm of two hosts: by srun, and by `limosa submit`."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Callable, Iterator

import pytest
import slurm
from cluster import ROOT, Cluster
from jobs import PATIENCE, Job, Outcome

PYTHON = ROOT / ".venv" / "bin" / "python"

HEAD = """
import os, signal, sys
from mpi4py import MPI

world = MPI.COMM_WORLD
assert MPI.Get_library_version().startswith("Limosa")
"""

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def cluster(hosts: Cluster) -> Cluster:
    """Two hosts with a Slurm."""
    reason = slurm.missing()
    if reason is not None:
        pytest.skip(reason)
    slurm.start(hosts)
    return hosts


@pytest.fixture
def run(cluster: Cluster) -> Iterator[Run]:
    """Runs a command on the first host; a program given as text is the last word of its command."""
    started: list[Job] = []

    def run(*words: object, program: str = "", env: dict[str, str] | None = None) -> Outcome:
        if program:
            script = cluster.shared / "program.py"
            script.write_text(HEAD + textwrap.dedent(program))
            words = (*words, PYTHON, script)
        variables = {name: value for name, value in slurm.variables(cluster).items() if not name.startswith("LIMOSA_")}
        variables |= {"XDG_STATE_HOME": str(cluster.shared / "state"), **(env or {})}
        command = cluster.hosts[0].command(words, folder=cluster.shared)
        started.append(Job(command, env=variables))
        return started[-1].wait(40)

    yield run
    for job in started:
        job.kill()


WHO = """
    here = world.Split_type(MPI.COMM_TYPE_SHARED).size
    total = world.allreduce(world.rank)
    line = f"<{world.rank} of {world.size} on {MPI.Get_processor_name()}, {here} here, {total}>"
    for line in world.gather(line) or []:
        print(line)
"""


def test_srun_starts_one_job_on_a_host(run: Run) -> None:
    done = run("srun", "--mpi=pmi2", "-N1", "-n3", program=WHO)
    assert done.code == 0, done.text
    assert re.findall("<.*>", done.out) == [f"<{rank} of 3 on node1, 3 here, 3>" for rank in range(3)]


@pytest.fixture(params=["pmi2", "pmix"])
def plugin(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """What srun speaks with its tasks."""
    tried = cluster.hosts[0].run("srun", f"--mpi={request.param}", "-n1", "true", env=slurm.variables(cluster))
    if tried.returncode != 0:
        pytest.skip(f"srun cannot use its plugin {request.param} (apt-get install libpmix-dev): {tried.stderr}")
    return request.param


@pytest.mark.parametrize("device", ["file", "fabric"])
def test_srun_starts_one_job_over_hosts(run: Run, cluster: Cluster, plugin: str, device: str) -> None:
    messages = cluster.shared / "messages"
    choice = f"file:{messages}" if device == "file" else device
    srun = ["srun", f"--mpi={plugin}", "-N2", "-n4", "--ntasks-per-node=2"]
    done = run(*srun, program=WHO, env={"LIMOSA_DEVICE": choice})
    assert done.code == 0, done.text
    places = [(0, "node1"), (1, "node1"), (2, "node2"), (3, "node2")]
    assert re.findall("<.*>", done.out) == [f"<{rank} of 4 on {host}, 2 here, 6>" for rank, host in places]


def test_ranks_that_alternate_between_hosts_work(run: Run) -> None:
    srun = ["srun", "--mpi=pmi2", "-N2", "-n4", "--ntasks-per-node=2", "--distribution=cyclic"]
    done = run(*srun, program=WHO, env={"LIMOSA_DEVICE": "fabric"})
    assert done.code == 0, done.text
    found = re.findall("<.*>", done.out)
    assert found == [f"<{rank} of 4 on node{rank % 2 + 1}, 1 here, 6>" for rank in range(4)]


def test_without_a_device_between_hosts_the_program_says_so(run: Run) -> None:
    done = run("srun", "--mpi=pmi2", "-N2", "-n2", program=WHO)
    assert done.code != 0 and "set LIMOSA_DEVICE" in done.err, done.text


def test_plain_srun_says_what_to_do(run: Run) -> None:
    done = run("srun", "-N1", "-n2", program=WHO)
    assert done.code != 0 and "<" not in done.out, done.text
    assert "Slurm's srun as one of 2 processes" in done.err and "`srun --mpi=pmi2`" in done.err


def test_one_process_of_srun_is_a_job_of_its_own(run: Run) -> None:
    done = run("srun", "-N1", "-n1", program=WHO)
    assert done.code == 0 and "<0 of 1 on node1, 1 here, 0>" in done.out, done.text


def test_the_exit_code_of_a_rank_is_that_of_srun(run: Run, plugin: str) -> None:
    program = """
        world.barrier()
        sys.exit(7 if world.rank == 1 else 0)
    """
    done = run("srun", f"--mpi={plugin}", "-N2", "-n2", program=program, env={"LIMOSA_DEVICE": "fabric"})
    assert done.code == 7, done.text


def test_an_abort_ends_the_ranks_of_all_hosts(run: Run, cluster: Cluster) -> None:
    program = """
        if world.rank == 0:
            world.Abort(7)
        signal.pause()
    """
    done = run("srun", "--mpi=pmi2", "-N2", "-n2", program=program, env={"LIMOSA_DEVICE": "fabric"})
    assert done.code != 0 and "limosa: rank 0 aborted the job with code 7" in done.err, done.text
    end = time.monotonic() + 20 * PATIENCE
    while any("program.py" in line for host in cluster.hosts for line in host.processes()):
        assert time.monotonic() < end, "a rank is left"
        time.sleep(0.1)


def test_limosa_run_takes_the_hosts_and_the_tasks_of_an_allocation(run: Run) -> None:
    # Logins are not what is tested: the other host cannot be reached.
    allocation = ["salloc", "--quiet", "-N2", "--ntasks-per-node=2"]
    words = [*allocation, slurm.limosa(), "run", "--show-map", "--device", "fabric"]
    done = run(*words, program=WHO, env={"LIMOSA_SSH": "false"})
    places = [("0", "node1"), ("1", "node1"), ("2", "node2"), ("3", "node2")]
    assert re.findall(r"rank (\d) on (\w+):", done.err) == places, done.text
    assert done.code == 3 and "cannot start ranks on the host node2" in done.err, done.text


def test_limosa_run_in_an_allocation_of_one_host_has_its_tasks(run: Run) -> None:
    done = run("salloc", "--quiet", "-N1", "-n3", slurm.limosa(), "run", program=WHO)
    assert done.code == 0, done.text
    assert len(re.findall("<. of 3 on node1, 3 here, 3>", done.out)) == 3, done.text


def test_a_job_is_submitted_followed_and_its_exit_code_kept(run: Run, cluster: Cluster) -> None:
    (cluster.shared / "job.py").write_text(
        HEAD + "print(f'<{world.rank} of {world.size}>', flush=True); world.barrier(); sys.exit(5)"
    )
    submitted = run(slurm.limosa(), "submit", "-n", "2", "job.py")
    assert submitted.code == 0, submitted.text
    number = submitted.out.strip()
    assert number.isdecimal()
    log = run(slurm.limosa(), "log", "-f", number)
    assert sorted(re.findall("<.*>", log.out)) == ["<0 of 2>", "<1 of 2>"], log.text
    row = run(slurm.limosa(), "status", number).out.splitlines()[1].split()
    assert row[:4] == [number, "job.py", "failed", "5"]


def test_a_submitted_job_is_cancelled(run: Run) -> None:
    number = run(slurm.limosa(), "submit", "sleep", "600").out.strip()
    assert number.isdecimal()
    assert run(slurm.limosa(), "cancel", number).code == 0
    end = time.monotonic() + 20 * PATIENCE
    while "cancelled" not in (table := run(slurm.limosa(), "status", number).out):
        assert time.monotonic() < end, table
        time.sleep(0.2)


def test_a_job_that_slurm_refuses_says_why(run: Run) -> None:
    done = run(slurm.limosa(), "submit", "--option=--partition=none", "true")
    assert done.code == 3 and "sbatch refuses the job" in done.err and "partition" in done.err, done.text
