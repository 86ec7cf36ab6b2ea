"""Messages as files in a shared folder that shows late what the other host has changed, as file systems of several
machines do: each host has remembered what it has seen."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import ROOT, Cluster, Host, environment
from jobs import Job

HERE = Path(__file__).resolve().parent

#: Where each host sees the folder, in a folder of its own.
MOUNT = "/run/late"


@contextlib.contextmanager
def late(host: Host, folder: Path, *options: object) -> Iterator[None]:
    """Shows a folder at `MOUNT` on a host."""
    host.run("mkdir", "-p", MOUNT)
    command = host.command([sys.executable, HERE / "late.py", folder, MOUNT, *options])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), text=True, **pipes) as server:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        if server.stdout.readline() != "mounted\n":
            pytest.skip(f"no file system can be mounted from /dev/fuse: {server.stderr.read().strip()}")
        try:
            yield
        finally:
            server.stdin.close()


@pytest.fixture(params=[("1000",), ("0.2", "listings")], ids=["names", "names-and-listings"])
def folder(request: pytest.FixtureRequest, hosts: Cluster) -> Iterator[Path]:
    """A folder that two hosts see late: names for good, or names and listings for a while."""
    shared = hosts.shared / "late"
    shared.mkdir(exist_ok=True)
    with contextlib.ExitStack() as mounts:
        for host in hosts.hosts:
            mounts.enter_context(late(host, shared, *request.param))
        yield shared


def run(cluster: Cluster, *words: object) -> Job:
    env = {**environment(), "LIMOSA_DEVICE": f"file:{MOUNT}"}
    return Job(cluster.hosts[0].command([ROOT / ".venv/bin/limosa", "run", *words], folder=cluster.shared), env=env)


def test_a_name_that_was_absent_stays_so_and_a_listing_shows_it(hosts: Cluster, needs_hosts: None) -> None:
    shared = hosts.shared / "names"
    shared.mkdir()
    first, second = hosts.hosts
    with late(first, shared, 1000), late(second, shared, 1000):
        assert first.run("test", "-e", f"{MOUNT}/new").returncode == 1
        assert second.run("sh", "-c", f"echo seen > {MOUNT}/new").returncode == 0
        assert second.run("cat", f"{MOUNT}/new").stdout == "seen\n"
        assert first.run("test", "-e", f"{MOUNT}/new").returncode == 1
        assert first.run("ls", MOUNT).stdout == "new\n"


def test_all_messages_come_and_nothing_stays(hosts: Cluster, folder: Path, program) -> None:
    done = run(hosts, "-host", "node1:2,node2:2", program("around")).wait(60)
    assert (done.code, done.out, done.err) == (0, "4 ranks on 2 hosts: all data came\n", "")
    assert list(folder.iterdir()) == []
