"""Faults between two hosts while their ranks exchange messages all the time, by files and by a network.

Either the job goes on and no message is lost or comes twice, or it ends and says why; nothing stays on any host.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, Host, environment
from jobs import PATIENCE, Job, Outcome
from runner import BIN, wait_until
from test_launch import SILENCE, SOON, limosa_of

HERE = Path(__file__).resolve().parent

#: Four ranks, two on each host.
RANKS = ["-host", "node1:2,node2:2"]

#: A user without rights: not that of the tests.
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class Talk:
    """A job whose ranks exchange messages all the time. It ends with `stop`."""

    def __init__(self, made: Cluster, device: str, program: Path | None = None, **variables: str) -> None:
        self.cluster = made
        self.before = self.files()
        #: Seen by all hosts, but not in `shared`, which may be on a disk of its own.
        self.sign = made.shared.parent / "stop"
        self.sign.unlink(missing_ok=True)
        self.messages = made.shared / "messages"
        words = [BIN / "limosa", "run", *RANKS, program or build(made, "talk"), self.sign]
        device = f"file:{self.messages}" if device == "file" else device
        env = {**environment(), "LIMOSA_DEVICE": device, **variables}
        # Each host has a /tmp of its own, where `file:local` puts its folder.
        env.pop("TMPDIR", None)
        self.job = Job(made.hosts[0].command(words, folder=made.shared), env=env)
        #: Their processes, as numbered on their hosts, by rank.
        self.processes = dict(line.split()[1:] for line in self.job.read_lines(4) if line.startswith("rank "))
        if len(self.processes) < 4:
            pytest.fail(f"the ranks do not start: {self.job.wait(20).text}")

    def files(self) -> set[tuple[str, str]]:
        """All that is in the folders that belong to one host, but what sshd writes when it has begun to serve.

        The project is there, too, if it lies below /tmp, and other tests write into it.
        """
        words = ["find", "/tmp", "/dev/shm", "/run", "-path", str(HERE.parents[1]), "-prune", "-o", "-print"]
        found = [(host.name, host.run(*words).stdout) for host in self.cluster.hosts]
        return {(name, path) for name, paths in found for path in paths.splitlines() if path != "/run/sshd.pid"}

    def goes_on(self) -> None:
        """It does, and no message is lost or comes twice."""
        self.sign.touch()
        done = self.job.wait(30)
        assert (done.code, done.out, done.err) == (0, "all messages came\n", "")
        self.nothing_stays()

    def ends(self, limit: float = 20) -> Outcome:
        done = self.job.wait(limit)
        assert "all messages came" not in done.out
        return done

    def nothing_stays(self) -> None:
        hosts = self.cluster.hosts
        wait_until(lambda: not any(host.processes() for host in hosts), "processes are left")
        wait_until(lambda: self.files() <= self.before, "files are left")
        assert hosts[0].run("sh", "-c", f"test ! -e {self.messages} || ls -A {self.messages}").stdout == ""


def build(made: Cluster, name: str, *options: str) -> Path:
    """Compiles a program of this folder where all hosts see it."""
    target = made.shared.parent / name
    if not target.exists():
        command = [BIN / "mpicc", "-std=c11", "-O1", "-Wall", "-Wextra", *options, HERE / f"{name}.c", "-o", target]
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
    return target


@pytest.fixture
def talk(hosts: Cluster, device: str) -> Iterator[Talk]:
    """Such a job on the hosts that the tests of this file share."""
    job = Talk(hosts, device)
    yield job
    job.job.kill()


@pytest.fixture
def apart(needs_hosts: None) -> Iterator[Cluster]:
    """Hosts that a test may take down."""
    with Cluster(2) as made:
        yield made


def kill(host: Host, process: str) -> None:
    assert host.run("kill", "-KILL", process).returncode == 0


def test_messages_come_when_nothing_happens(talk: Talk) -> None:
    talk.goes_on()


def test_a_killed_rank_ends_the_job(talk: Talk) -> None:
    kill(talk.cluster.hosts[1], talk.processes["3"])
    done = talk.ends()
    # Other ranks may see that the connection has ended before the launcher hears of the death from node2.
    assert done.code == 128 + signal.SIGKILL, done.text
    assert f"rank 3 (process {talk.processes['3']} on node2, " in done.err, done.text
    talk.nothing_stays()


def test_a_killed_agent_ends_the_job(talk: Talk) -> None:
    kill(talk.cluster.hosts[1], limosa_of(talk.cluster.hosts[1], "agent"))
    done = talk.ends()
    assert done.code == 3 and "the host node2 is lost, with ranks 2, 3: " in done.err
    talk.nothing_stays()


def test_a_killed_launcher_leaves_nothing(talk: Talk) -> None:
    kill(talk.cluster.hosts[0], limosa_of(talk.cluster.hosts[0], "run"))
    assert talk.ends().code == -signal.SIGKILL
    talk.nothing_stays()


def test_a_host_that_is_gone_ends_the_job(apart: Cluster, device: str) -> None:
    talk = Talk(apart, device, **SOON)
    apart.hosts[1].kill()
    done = talk.ends(SILENCE + 20)
    assert done.code == 3 and "the host node2 is lost, with ranks 2, 3: " in done.err
    wait_until(lambda: apart.hosts[0].processes() == [], "processes are left on node1")
    wait_until(lambda: {path for path in talk.files() if path[0] == "node1"} <= talk.before, "files are left on node1")
    wait_until(lambda: not talk.messages.exists() or list(talk.messages.iterdir()) == [], "messages are left")


def test_a_cable_that_is_cut_for_13_seconds_does_no_harm(apart: Cluster, needs_fabric: None) -> None:
    talk = Talk(apart, "fabric")
    apart.cable(apart.hosts[1], "down")
    # TCP tries again 12.6 and 25.4 seconds after the cut.
    time.sleep(13)
    apart.cable(apart.hosts[1], "up")
    talk.goes_on()


def test_another_user_sees_nothing_of_a_job(talk: Talk, device: str) -> None:
    host, process = talk.cluster.hosts[1], talk.processes["2"]
    # The way to the job's own folder is free.
    talk.cluster.shared.parent.chmod(0o711)
    attempts = [f"cat /proc/{process}/environ", f"head -c 1 /proc/{process}/fd/3", f"ls /proc/{process}/fd"]
    if device == "file":
        job = next(talk.messages.iterdir())
        attempts += [f"ls {job}", f"ls {job}/2", f"touch {job}/2/0/1000000.lock", f"rm -r {job}"]
    for attempt in [*attempts, f"kill -9 {process}"]:
        refused = host.run(*NOBODY, "sh", "-c", attempt)
        assert refused.returncode != 0 and "ermi" in refused.stderr, (attempt, refused)
    # The same looks succeed for the user.
    for attempt in attempts[: 5 if device == "file" else 3]:
        seen = host.run("sh", "-c", attempt)
        assert seen.returncode == 0 and seen.stdout, (attempt, seen)
    assert "no job of yours" in host.run(*NOBODY, "env", "HOME=/", BIN / "limosa", "ps").stderr
    talk.goes_on()


def test_clocks_may_differ_by_an_hour(hosts: Cluster, device: str) -> None:
    skewed = build(hosts, "skewed", "-shared", "-fPIC")
    program = hosts.shared.parent / "skewed-talk"
    load = f'test "$(hostname)" = node1 || export LD_PRELOAD={skewed}'
    program.write_text(f'#!/bin/sh\n{load}\ndate +%s > /tmp/clock\nexec {build(hosts, "talk")} "$@"\n')
    program.chmod(0o755)
    talk = Talk(hosts, device, program)
    first, second = (int(host.run("cat", "/tmp/clock").stdout) for host in hosts.hosts)
    assert 3000 < second - first < 4200
    for host in hosts.hosts:
        host.run("rm", "/tmp/clock")
    talk.goes_on()


def test_a_full_disk_ends_the_job_and_is_named(needs_hosts: None) -> None:
    with Cluster(2, room="16m") as made:
        talk = Talk(made, "file")
        # Files that were read make room: until the job has ended, everything is taken.
        fill = f"dd if=/dev/zero bs=4k 2>/dev/null >> {made.shared}/filling"
        look = f"ls -d {talk.messages}/limosa-* >/dev/null 2>&1"
        filler = made.hosts[1].command(["sh", "-c", f"while {look}; do {fill}; sleep 0.01; done"])
        with subprocess.Popen(filler, env=environment()) as filling:
            done = talk.ends()
            assert filling.wait(30 * PATIENCE) == 0
        assert done.code == 1
        pattern = r"the message file \S+/\d/\d/\d+\.msg could not be written: No space left on device"
        assert re.search(pattern, done.err), done.err
        talk.nothing_stays()


def test_a_full_disk_does_no_harm_to_messages_by_the_network(needs_hosts: None, needs_fabric: None) -> None:
    with Cluster(2, room="16m") as made:
        talk = Talk(made, "fabric")
        # The job runs in a folder on this disk.
        filled = made.hosts[1].run("dd", "if=/dev/zero", f"of={made.shared}/filling", "bs=4k")
        assert filled.returncode != 0 and "No space left on device" in filled.stderr
        talk.goes_on()
