"""Logins in a tree: each host logs in to the next one, and the launcher on node1 to node2 alone."""

from __future__ import annotations

import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster
from runner import Runner, wait_until
from test_launch import SILENCE, SOON, limosa_of

HOSTS = "node1:1,node2:1,node3:1,node4:1"
CHAIN = {"LIMOSA_LOGINS": "1"}
READY = ("sh", "-c", "echo ready; exec sleep 1000")


@pytest.fixture(scope="module")
def hosts(needs_hosts: None) -> Iterator[Cluster]:
    with Cluster(4) as made:
        yield made


def command(run: Runner, text: str) -> str:
    """A command instead of ssh."""
    file: Path = run.cluster.shared / "login"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def callers(run: Runner, *options: str, **variables: str) -> tuple[list[str], str]:
    """The hosts from which those of the ranks 1 to 3 were logged in to; and what the launcher said."""
    script = 'test "$(hostname)" = node1 || echo "$LIMOSA_RANK ${SSH_CONNECTION%% *}"'
    done = run(*options, "-host", HOSTS, "sh", "-c", script, variables={**CHAIN, **variables}).wait(60)
    assert done.code == 0, done.err
    addresses = [line.split() for line in sorted(done.out.splitlines())]
    assert [rank for rank, _ in addresses] == ["1", "2", "3"]
    return [f"node{address.removeprefix('10.77.0.')}" for _, address in addresses], done.err


def test_each_host_logs_in_to_the_next(run: Runner) -> None:
    assert callers(run) == (["node1", "node2", "node3"], "")
    run.nothing_stays()


@pytest.mark.usefixtures("needs_fabric")
def test_hosts_behind_others_learn_of_all_processes_and_of_their_ends(run: Runner, program) -> None:
    fabric = {**CHAIN, "LIMOSA_DEVICE": "fabric"}
    done = run("-host", HOSTS, program("around"), variables=fabric).wait(60)
    assert (done.code, done.out) == (0, "4 ranks on 4 hosts: all data came\n"), done.err
    # A send to a process that has left on the last host ends where that is known.
    done = run("-host", HOSTS, program("later"), "leave", "node4", variables=fabric).wait(60)
    assert (done.code, done.err) == (0, "") and "has ended by MPI_Finalize" in done.out
    run.nothing_stays()


def test_few_hosts_are_logged_in_to_by_the_launcher(run: Runner) -> None:
    assert callers(run, LIMOSA_LOGINS="3") == (["node1", "node1", "node1"], "")


def test_the_launcher_logs_in_where_hosts_cannot(run: Runner) -> None:
    ssh = command(run, 'test "$(hostname)" = node1 || { echo no key >&2; exit 255; }\nexec ssh -T "$@"')
    assert callers(run, LIMOSA_SSH=ssh) == (["node1", "node1", "node1"], "")
    _, said = callers(run, "-v", LIMOSA_SSH=ssh)
    assert "node2 cannot log in to node3, so the launcher does (no key)" in said
    run.nothing_stays()


def test_ranks_of_all_hosts_work_together(run: Runner, program) -> None:
    done = run("-host", HOSTS, program("around"), variables=CHAIN).wait(60)
    assert (done.code, done.err) == (0, "")
    run.nothing_stays()


def test_a_hang_is_reported_with_all_ranks(run: Runner, program) -> None:
    done = run("--on-hang=abort", "-host", HOSTS, program("around"), "hang", variables=CHAIN).wait(60)
    assert done.code == 86
    assert all(f"rank {rank}: MPI_" in done.err for rank in range(4)), done.err


def test_the_exit_code_of_a_rank_ends_the_job(run: Runner) -> None:
    script = 'test "$(hostname)" = node4 && exit 7; exec sleep 1000'
    done = run("-host", HOSTS, "sh", "-c", script, variables=CHAIN).wait(30)
    assert done.code == 7 and "rank 3" in done.err and "on node4" in done.err
    run.nothing_stays()


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_killed_agent_ends_the_job_and_is_named(run: Runner, number: int) -> None:
    job = run("-host", HOSTS, *READY, variables=CHAIN)
    job.read_lines(4)
    host = run.cluster.hosts[number - 1]
    host.run("kill", "-KILL", limosa_of(host, "agent"))
    done = job.wait(30)
    assert done.code == 3 and f"the host {host.name} is lost, with rank {number - 1}: " in done.err
    run.nothing_stays()


def test_a_killed_launcher_leaves_nothing(run: Runner) -> None:
    job = run("-host", HOSTS, *READY, variables=CHAIN)
    job.read_lines(4)
    run.cluster.hosts[0].run("kill", "-KILL", limosa_of(run.cluster.hosts[0], "run"))
    run.nothing_stays()


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_host_that_is_not_there_is_named(run: Runner, at: int) -> None:
    names = ["node1", "node2", "node3"]
    names.insert(at, "nowhere")
    listed = ",".join(f"{name}:1" for name in names)
    done = run("-host", listed, "sleep", "1000", variables=CHAIN).wait(60)
    assert done.code == 3 and "cannot start ranks on the host nowhere: ssh: " in done.err, done.err
    run.nothing_stays()


@pytest.mark.parametrize("slow", ["node2", "node4"])
def test_an_interrupt_does_not_wait_for_a_login(run: Runner, slow: str) -> None:
    mark = run.cluster.shared / f"called-{slow}"
    ssh = command(run, f'if [ "$1" = {slow} ]; then touch {mark}; sleep 1000; fi\nexec ssh -T "$@"')
    job = run("-host", HOSTS, "sleep", "1000", variables={**CHAIN, "LIMOSA_SSH": ssh})
    wait_until(mark.exists, "there is no login")
    run.cluster.hosts[0].run("kill", "-INT", limosa_of(run.cluster.hosts[0], "run"))
    # Sooner than the limit of a login.
    assert job.wait(60).code == 128 + signal.SIGINT
    run.nothing_stays()


def test_a_host_that_is_gone_is_named_and_not_those_behind_it(needs_hosts: None) -> None:
    with Cluster(4) as made:
        run = Runner(made, f"file:{made.shared}/messages")
        job = run("-host", HOSTS, *READY, variables={**CHAIN, **SOON})
        job.read_lines(4)
        made.hosts[1].kill()
        done = job.wait(SILENCE + 20)
        assert done.code == 3 and "the host node2 is lost, with rank 1" in done.err, done.err
        for host in made.hosts[:1] + made.hosts[2:]:
            wait_until(lambda host=host: host.processes() == [], f"processes are left on {host.name}")
