"""ssh connections of agents that end while a job runs: the launcher logs in again, and the job does not notice."""

from __future__ import annotations

import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import Cluster, Host
from jobs import PATIENCE, Job
from runner import Runner, wait_until
from test_faults_between import Talk
from test_launch import SOON, limosa_of
from test_tree import CHAIN, READY


@pytest.fixture(scope="module")
def hosts(needs_hosts: None) -> Iterator[Cluster]:
    with Cluster(3) as made:
        yield made


def processes(host: Host, begin: str, *words: str) -> list[str]:
    """The processes of a host whose command lines begin so and contain these words."""
    lines = [line.strip().partition(" ") for line in host.run("ps", "-e", "-o", "pid=,args=").stdout.splitlines()]
    return [pid for pid, _, args in lines if args.startswith(begin) and all(word in args for word in words)]


def logins(cluster: Cluster, source: int = 1, target: int = 2) -> list[str]:
    """The ssh processes on one host that have logged in to the agent of a second host."""
    return processes(cluster.hosts[source - 1], "ssh ", f" node{target} ", " agent")


def kill(host: Host, found: list[str]) -> None:
    for process in found:
        host.run("kill", "-KILL", process)


def cut(cluster: Cluster, source: int = 1, target: int = 2) -> None:
    """Kills ssh, and waits until another login is there."""
    before = logins(cluster, source, target)
    assert before
    kill(cluster.hosts[source - 1], before)
    wait_until(lambda: bool(set(logins(cluster, source, target)) - set(before)), "the launcher does not log in again")


def command(run: Runner, text: str) -> dict[str, str]:
    """A command instead of ssh."""
    file: Path = run.cluster.shared / "login"
    file.write_text(f'#!/bin/sh\n{text}\nexec ssh -T "$@"\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {"LIMOSA_SSH": str(file)}


def test_messages_go_on(hosts: Cluster, device: str) -> None:
    talk = Talk(hosts, device)
    cut(hosts)
    talk.goes_on()


def test_the_server_may_end_a_connection(hosts: Cluster) -> None:
    talk = Talk(hosts, "file")
    before = logins(hosts)
    kill(hosts.hosts[1], processes(hosts.hosts[1], "sshd", "@notty"))
    wait_until(lambda: bool(set(logins(hosts)) - set(before)), "the launcher does not log in again")
    talk.goes_on()


def collect(job: Job) -> Callable[[], list[str]]:
    """Reads the output of a job from now on; what is returned gives all lines when the job has ended."""
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(job.process.stdout))
    reader.start()

    def all_lines() -> list[str]:
        reader.join()
        return lines

    return all_lines


@pytest.mark.parametrize("ways", [[(1, 2)], [(1, 2), (2, 3)]], ids=["launcher", "tree"])
def test_no_output_is_lost_or_doubled(run: Runner, ways: list[tuple[int, int]]) -> None:
    sign = run.cluster.shared / "enough"
    sign.unlink(missing_ok=True)
    last = len(ways)
    count = f'n=0; while test ! -e {sign}; do n=$((n+1)); echo "number $n"; done; echo "$n in all"'
    listed = ",".join(f"node{number}:1" for number in range(1, last + 2))
    job = run("-host", listed, "sh", "-c", f"test $LIMOSA_RANK = {last} || exit 0; {count}", variables=CHAIN)
    assert job.read_lines(10) == [f"number {number}" for number in range(1, 11)]
    rest = collect(job)
    for way in ways * 3:
        cut(run.cluster, *way)
    sign.touch()
    assert (job.process.wait(60 * PATIENCE), job.process.stderr.read()) == (0, "")
    out = rest()
    assert out.pop() == f"{len(out) + 10} in all\n"
    assert out == [f"number {number}\n" for number in range(11, len(out) + 11)]
    run.nothing_stays()


def test_no_input_is_lost_or_doubled(run: Runner) -> None:
    parts = ["".join(f"line {number}\n" for number in range(first, first + 50_000)) for first in (0, 50_000, 100_000)]
    job = run("-host", "node2:1", "cat", stdin=subprocess.PIPE)
    out = collect(job)
    for part in parts:
        job.process.stdin.write(part)
        job.process.stdin.flush()
        wait_until(lambda: bool(processes(run.cluster.hosts[1], "cat")), "the program does not start")
        cut(run.cluster)
    job.process.stdin.close()
    assert (job.process.wait(60 * PATIENCE), job.process.stderr.read()) == (0, "")
    assert "".join(out()) == "".join(parts)
    run.nothing_stays()


def test_a_job_starts_though_a_connection_ends_before(run: Runner) -> None:
    mark, sign = run.cluster.shared / "called", run.cluster.shared / "go"
    sign.unlink(missing_ok=True)
    slow = command(run, f"case $1 in node3) touch {mark}; while test ! -e {sign}; do sleep 0.1; done;; esac")
    job = run("-host", "node1:1,node2:1,node3:1", "hostname", variables=slow)
    wait_until(lambda: mark.exists() and bool(logins(run.cluster)), "there is no login")
    sockets = ("cat", "/proc/net/unix")
    wait_until(lambda: "@limosa-agent-" in run.cluster.hosts[1].run(*sockets).stdout, "the agent was told nothing")
    cut(run.cluster)
    sign.touch()
    done = job.wait(60)
    assert (done.code, sorted(done.out.splitlines()), done.err) == (0, ["node1", "node2", "node3"], "")
    run.nothing_stays()


@pytest.mark.parametrize("code", [0, 7])
def test_the_end_of_a_rank_is_told_by_the_next_connection(run: Runner, code: int) -> None:
    sign, go = run.cluster.shared / "end", run.cluster.shared / "again"
    for file in (sign, go):
        file.unlink(missing_ok=True)
    slow = command(run, f'case "$*" in *--again*) while test ! -e {go}; do sleep 0.1; done;; esac')
    script = f"echo ready; while test ! -e {sign}; do sleep 0.1; done; echo last; exit {code}"
    job = run("-host", "node2:1", "sh", "-c", script, variables=slow)
    assert job.read_lines(1) == ["ready"]
    kill(run.cluster.hosts[0], logins(run.cluster))
    sign.touch()
    wait_until(lambda: not processes(run.cluster.hosts[1], "sh -c"), "the rank does not end")
    go.touch()
    done = job.wait(60)
    assert (done.code, done.out) == (code, "last\n"), done.err
    run.nothing_stays()


def begin(run: Runner) -> Job:
    """A job with a host to which ssh does not log in again."""
    never = {**SOON, **command(run, 'case "$*" in *--again*) exit 255;; esac')}
    job = run("-host", "node1:1,node2:1", *READY, variables=never)
    job.read_lines(2)
    return job


def test_a_host_that_cannot_be_reached_again_is_lost(run: Runner) -> None:
    job = begin(run)
    kill(run.cluster.hosts[0], logins(run.cluster))
    done = job.wait(60)
    assert done.code == 3 and "the host node2 is lost, with rank 1: nothing has been heard of it" in done.err
    run.nothing_stays()


@pytest.mark.parametrize("killed", ["launcher", "agent"])
def test_nothing_stays_if_both_ends_are_lost(run: Runner, killed: str) -> None:
    begin(run)
    host, word = {"launcher": (run.cluster.hosts[0], "run"), "agent": (run.cluster.hosts[1], "agent")}[killed]
    process = limosa_of(host, word)
    kill(run.cluster.hosts[0], logins(run.cluster))
    # On a busy machine it may have ended by itself.
    host.run("kill", "-KILL", process)
    run.nothing_stays()


def test_a_launcher_that_is_killed_ends_its_agents_at_once(run: Runner) -> None:
    job = run("-host", "node1:1,node2:1", *READY, variables={"LIMOSA_HOST_LIMIT": "1000"})
    job.read_lines(2)
    cut(run.cluster)
    host = run.cluster.hosts[0]
    host.run("kill", "-KILL", limosa_of(host, "run"))
    assert job.wait(30).code == -signal.SIGKILL
    run.nothing_stays()


def test_the_number_of_a_job_opens_nothing_to_another_user(run: Runner) -> None:
    job = run("-host", "node1:1,node2:1", *READY)
    job.read_lines(2)
    host = run.cluster.hosts[1]
    sockets = host.run("cat", "/proc/net/unix").stdout
    name = next(line.rsplit("@", 1)[1] for line in sockets.splitlines() if "@limosa-agent-" in line)
    code = (
        f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{name}'); s.settimeout(150); print(s.recv(9))"
    )
    said = host.run("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "python3", "-c", code)
    assert said.stdout == "b''\n", said
    assert job.process.poll() is None
    job.kill()
    run.nothing_stays()
