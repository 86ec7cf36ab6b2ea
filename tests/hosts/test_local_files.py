"""Messages as files between two hosts that share no folder for them: ssh carries the files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import ROOT, Cluster, Host
from jobs import Job
from runner import Runner, wait_until

#: Each host has its own /tmp.
DEVICE = "file:local"


def courier_connections(host: Host) -> set[str]:
    """The processes of ssh over which the courier of a host calls others."""
    listed = host.run("ps", "-e", "-o", "pid=,args=").stdout.splitlines()
    found = [line.split() for line in listed if " courier " in line]
    return {words[0] for words in found if words[1] == "ssh"}


def errors_of_both(job: Job) -> list[str]:
    """What both ranks of `numbered` say about the first error, which they must have."""
    said: list[str] = []
    while len(said) < 2:
        line = job.read_lines(1)[0]
        assert line, job.wait(20).text
        said += [line] if line.startswith("rank ") else []
    job.kill()
    return sorted(said)


@pytest.fixture
def stop(hosts: Cluster) -> Iterator[Path]:
    """A file that ends `numbered` when it is made."""
    file = hosts.shared / "stop"
    yield file
    file.unlink(missing_ok=True)


def test_the_map_says_that_files_are_local(run: Runner) -> None:
    done = run("--show-map", "-host", "node1:1,node2:1", "true").wait(20)
    says = [f"limosa: rank {rank} on node{rank + 1}: shm on this host, file:local to others" for rank in range(2)]
    assert (done.code, done.err.splitlines()) == (0, says)


def test_ranks_exchange_messages_and_nothing_stays(run: Runner, program) -> None:
    done = run("-host", "node1:2,node2:2", program("around")).wait(30)
    assert (done.code, done.err) == (0, "")
    assert done.out == "4 ranks on 2 hosts: all data came\n"
    run.nothing_stays()


def test_each_host_uses_the_folder_that_is_named_and_keeps_messages_if_asked_to(run: Runner, program) -> None:
    options = ["--device", "file:local:/run", "--keep-messages", "-host", "node1:1,node2:1"]
    done = run(*options, program("around")).wait(30)
    assert done.code == 0, done.err
    for number, host in enumerate(run.cluster.hosts):
        listed = host.run(ROOT / ".venv/bin/limosa", "messages", "/run").stdout.splitlines()
        messages = [line.split() for line in listed if line.split()[3:4] == ["received"]]
        assert messages and all(words[:2] == [str(1 - number), str(number)] for words in messages), listed
        host.run("sh", "-c", "rm -r /run/limosa-*")


def test_a_broken_connection_resumes_and_nothing_is_lost_or_doubled(run: Runner, program, stop: Path) -> None:
    caller = run.cluster.hosts[0]
    job = run("-host", "node1:1,node2:1", program("numbered"), stop)
    for _ in range(4):
        job.read_lines(5)
        old = courier_connections(caller)
        assert len(old) == 1
        assert caller.run("kill", "-KILL", *old).returncode == 0
        # What comes now came over another connection, but for what was under way.
        wait_until(lambda old=old: courier_connections(caller) - old, "no other connection is made")
        job.read_lines(5)
    stop.touch()
    done = job.wait(60)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("all came\n")
    run.nothing_stays()


def test_a_full_disk_of_the_receiver_is_told_to_both(run: Runner, program, stop: Path) -> None:
    receiver = run.cluster.hosts[1]
    for host in run.cluster.hosts:
        host.run("mkdir", "-p", "/run/small")
    assert receiver.run("mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", "/run/small").returncode == 0
    options = ["--device", "file:local:/run/small", "-host", "node1:1,node2:1"]
    said = errors_of_both(run(*options, program("numbered"), stop, "check"))
    for line in said:
        assert "class other" in line and "on node2 could not be written: No space left on device" in line, line
    receiver.run("umount", "/run/small")


def test_a_folder_that_cannot_be_used_ends_the_job_and_is_named(run: Runner) -> None:
    first = run.cluster.hosts[0]
    first.run("mkdir", "-p", "/run/here-only")
    done = run("--device", "file:local:/proc/none", "-host", "node1:1,node2:1", "true").wait(20)
    assert done.code != 0
    assert "the folder /proc/none for the files of messages cannot be used" in done.err


def test_the_folder_of_a_host_whose_agent_was_killed_goes_with_the_next_job(run: Runner) -> None:
    other = run.cluster.hosts[1]
    options = ["--device", "file:local:/run", "-host", "node1:1,node2:1"]
    job = run(*options, "sh", "-c", "echo ready; exec sleep 1000")
    job.read_lines(2)
    folders = ["sh", "-c", "ls -d /run/limosa-*"]
    left = other.run(*folders).stdout
    # Agent and guardian share a command line. Both are stopped first: neither sees the other one end.
    for signal in ("-STOP", "-KILL"):
        other.run("pkill", signal, "-f", "limosa.* agent$")
    job.wait(20)
    assert other.run(*folders).stdout == left != ""
    assert run(*options, "true").wait(20).code == 0
    assert other.run(*folders).stdout == ""


def test_a_folder_that_hosts_share_is_refused_as_a_local_one(run: Runner) -> None:
    shared = run.cluster.shared
    done = run("--device", f"file:local:{shared}", "-host", "node1:1,node2:1", "true").wait(20)
    assert done.code != 0
    assert f"two hosts share the folder {shared}: give --device file:{shared}" in done.err


@pytest.mark.skipif(not os.environ.get("FULL"), reason="a slow login takes 40 s: `make test-full` has one")
def test_logins_may_take_longer_than_a_silent_host_is_waited_for(run: Runner, program) -> None:
    ssh = run.cluster.shared / "slow-ssh"
    ssh.write_text('#!/bin/sh\nsleep 20\nexec ssh -o BatchMode=yes "$@"\n')
    ssh.chmod(0o755)
    variables = {"LIMOSA_SSH": str(ssh), "LIMOSA_LOGIN_LIMIT": "120"}
    done = run("-host", "node1:1,node2:1", program("around"), variables=variables).wait(60)
    assert (done.code, done.out) == (0, "2 ranks on 2 hosts: all data came\n"), done.err
    said = "limosa: still waiting for the login on node2; it may take 120 s (LIMOSA_LOGIN_LIMIT)"
    assert done.err.splitlines() == [said]
    run.nothing_stays()


@pytest.mark.parametrize("root", [0, 2])
def test_spawned_processes_have_couriers(run: Runner, program, root: int) -> None:
    done = run("-n", "3", "-host", "node1:2,node2:3", program("later"), "spawn", root, "4").wait(40)
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == ["3 and 4: node2 node2 node1 node2", "room for 5"]
    run.nothing_stays()


def test_a_host_that_the_other_one_cannot_call_is_named(run: Runner, program, stop: Path) -> None:
    # The launcher reaches it, the courier does not.
    ssh = run.cluster.shared / "ssh-without-courier"
    ssh.write_text(
        '#!/bin/sh\ncase "$2" in *" courier "*) echo "the road is closed" >&2; exit 1;; esac\nexec ssh "$@"\n'
    )
    ssh.chmod(0o755)
    options = ["-host", "node1:1,node2:1"]
    variables = {"LIMOSA_SSH": str(ssh), "LIMOSA_LOGIN_LIMIT": "20"}
    said = errors_of_both(run(*options, program("numbered"), stop, "check", variables=variables))
    assert "node2 cannot be reached from node1: the road is closed" in said[0], said
    assert "node1 cannot be reached from node2: there was no call from it" in said[1], said
