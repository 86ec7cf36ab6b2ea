"""Strangers at the sockets of a job over two hosts: other users, wrong keys, other versions, nonsense.

None is let in, the job of the right user goes on, and nothing stays on any host.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import Cluster, Host
from runner import BIN, wait_until
from test_faults_between import NOBODY, Talk

HERE = Path(__file__).resolve().parent

#: Connections to each socket, and bytes over each: a few MB, or 10^8 bytes over 1,000.
CONNECTIONS, BYTES = (1000, 100_000) if os.environ.get("FULL") else (40, 50_000)

#: By how much the memory of a process may grow meanwhile, in MB.
GROWTH = 64


@pytest.fixture
def talk_with(hosts: Cluster) -> Iterator[Callable[..., Talk]]:
    """Starts such a job, which ends with the test."""
    started: list[Talk] = []

    def talk_with(device: str, **variables: str) -> Talk:
        started.append(Talk(hosts, device, **variables))
        return started[-1]

    yield talk_with
    for talk in started:
        talk.job.kill()


def listening(host: Host) -> list[str]:
    """The addresses at which processes of a host can be reached by the network, but its sshd's."""
    lines = host.run("sh", "-c", "cat /proc/net/tcp /proc/net/tcp6").stdout.splitlines()
    words = [line.split() for line in lines]
    ports = {int(word[1].rpartition(":")[2], 16) for word in words if len(word) > 3 and word[3] == "0A"}
    return [f"{host.address}:{port}" for port in sorted(ports - {22})]


def memory(host: Host) -> dict[str, int]:
    """By process the most memory that it has had, in MB, of the programs of a job."""
    show = 'for p in /proc/[0-9]*; do echo "$p $(tr "\\0" " " < $p/cmdline) $(grep VmHWM $p/status)"; done'
    found = {}
    for line in host.run("sh", "-c", show).stdout.splitlines():
        peak = re.fullmatch(r"(\S+) (.*/limosa (?:run|agent)|\S*/talk) .*VmHWM:\s+(\d+) kB", line)
        if peak:
            found[peak[1]] = int(peak[3]) // 1024
    return found


def disturb(host: Host, targets: list[str], user: list[str]) -> dict[str, list[int]]:
    """What `strangers` does as this user on a host."""
    words = [*user, sys.executable, HERE / "strangers.py", CONNECTIONS, BYTES, *targets]
    done = host.run(*words, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_random_bytes_of_strangers_disturb_nobody(hosts: Cluster, talk_with, device: str) -> None:
    talk = talk_with(device)
    before = [memory(host) for host in hosts.hosts]
    assert all(len(peaks) >= 3 for peaks in before), before
    first, second = hosts.hosts
    for host, other in [(first, second), (second, first)]:
        addresses = listening(other)
        assert (device == "fabric") == bool(addresses), addresses
        told = disturb(host, addresses, NOBODY)
        local = {name: answer for name, answer in told.items() if name.startswith("limosa-")}
        assert any(name.startswith("limosa-job-") for name in local), told
        # A refused program gets no word.
        assert all(answered == 0 for _, answered in local.values()), told
    for host, peaks in zip(hosts.hosts, before, strict=True):
        after = memory(host)
        grown = {process: after[process] - peak for process, peak in peaks.items()}
        assert all(growth < GROWTH for growth in grown.values()), grown
    talk.goes_on()


def test_strangers_at_the_couriers_are_refused_and_mentioned_once(hosts: Cluster, talk_with) -> None:
    talk = talk_with("file", LIMOSA_DEVICE="file:local")
    told = disturb(hosts.hosts[0], [], NOBODY)
    assert {name.split("-")[1] for name in told} == {"job", "courier"}, told
    assert all(answered == 0 for _, answered in told.values()), told
    talk.sign.touch()
    done = talk.job.wait(30)
    assert (done.code, done.out) == (0, "all messages came\n"), done.err
    warning = "limosa: warning: the courier of this host was called by a stranger: it belongs to another user"
    assert done.err.splitlines() == [warning]
    talk.nothing_stays()


def test_nonsense_of_the_same_user_disturbs_nobody(hosts: Cluster, talk_with) -> None:
    talk = talk_with("file")
    for host in hosts.hosts:
        assert disturb(host, [], []) != {}
    talk.goes_on()


def door(host: Host, job: str, user: list[str]) -> subprocess.CompletedProcess[str]:
    """Brings a connection, which ends at once, to the courier of a job on a host."""
    return host.run(*user, BIN / "limosa", "courier", job, "0", input="")


def test_a_courier_is_found_only_with_the_id_of_its_job_and_by_its_user(hosts: Cluster, talk_with) -> None:
    talk_with("file", LIMOSA_DEVICE="file:local")
    host = hosts.hosts[1]
    names = host.run("grep", "-o", "limosa-courier-.*", "/proc/net/unix").stdout.split()
    job = names[0].rpartition("-")[2]
    wrong = f"{int(job, 16) ^ 1:016x}"
    refused = door(host, wrong, [])
    assert refused.returncode == 1 and f"no courier of job {wrong} is on this host: " in refused.stderr
    refused = door(host, "secret", [])
    assert refused.returncode == 1 and "this is no job's id" in refused.stderr
    refused = door(host, job, NOBODY)
    assert refused.returncode == 1 and "it belongs to another user" in refused.stderr


@pytest.mark.parametrize("said", ["limosa-agent 99 7.6.5", "no Limosa at all"])
def test_an_agent_ends_when_its_head_talks_nonsense(hosts: Cluster, said: str) -> None:
    host = hosts.hosts[1]
    done = host.run(BIN / "limosa", "agent", input=f"{said}\n" + "\x7f" * 4096)
    assert done.returncode != 0 and done.stdout.startswith("limosa-agent ")
    wait_until(lambda: host.processes() == [], "the agent is left")
