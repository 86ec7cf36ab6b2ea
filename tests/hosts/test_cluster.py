"""The cluster itself: its hosts are apart, ssh goes between them, and nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from cluster import Cluster, environment
from runner import wait_until

HERE = Path(__file__).resolve().parent

#: How long an end may take that takes milliseconds on an idle machine.
PATIENCE = 60


def is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_each_host_has_a_name_processes_and_temporary_files_of_its_own(hosts: Cluster) -> None:
    for host in hosts.hosts:
        assert host.run("hostname").stdout == f"{host.name}\n"
        assert host.processes() == []
        for folder in ("/tmp", "/dev/shm", "/run"):
            assert host.run("touch", f"{folder}/mark-{host.name}").returncode == 0
            assert host.run("sh", "-c", f"ls {folder} | grep mark-").stdout == f"mark-{host.name}\n"
            assert not Path(folder, f"mark-{host.name}").exists()


def test_a_folder_is_shared(hosts: Cluster) -> None:
    first, second = hosts.hosts
    assert first.run("sh", "-c", f"echo seen > {hosts.shared}/mark").returncode == 0
    assert second.run("cat", hosts.shared / "mark").stdout == "seen\n"
    assert (hosts.shared / "mark").read_text() == "seen\n"


def test_ssh_goes_from_each_host_to_each_other(hosts: Cluster) -> None:
    for source in hosts.hosts:
        for target in hosts.hosts:
            reached = source.run("ssh", target.name, "hostname")
            assert (reached.stdout, reached.stderr) == (f"{target.name}\n", "")


def test_a_cable_can_be_cut_and_mended(needs_hosts: None) -> None:
    with Cluster(2) as made:
        first, second = made.hosts
        ask = ["ssh", "-o", "ConnectTimeout=2", second.name, "hostname"]
        made.cable(second, "down")
        assert first.run(*ask).returncode == 255
        made.cable(second, "up")
        wait_until(lambda: first.run(*ask).stdout == f"{second.name}\n", "the mended cable carries nothing")


def test_a_relay_delays_drops_and_cuts(needs_hosts: None) -> None:
    with Cluster(2) as made:
        first, second = made.hosts
        ask = ["ssh", "-o", "ConnectTimeout=2", second.name, "hostname"]
        with made.relay(second) as relay:
            assert first.run("ssh", second.name, "hostname").stdout == f"{second.name}\n"
            relay.set(delay=0.1)
            begin = time.monotonic()
            assert first.run("ssh", second.name, "hostname").stdout == f"{second.name}\n"
            # A connection and a login are more than two round trips.
            assert time.monotonic() - begin > 0.4
            relay.set(drop=0.01)
            sent = first.run("ssh", second.name, "head -c 3000000 /dev/zero | cksum")
            assert sent.stdout == first.run("sh", "-c", "head -c 3000000 /dev/zero | cksum").stdout
            relay.set(cut=True)
            assert first.run(*ask).returncode == 255
            relay.set()
            wait_until(lambda: first.run(*ask).stdout == f"{second.name}\n", "the relay carries nothing any more")
        assert first.run("ssh", second.name, "hostname").stdout == f"{second.name}\n"


def test_a_host_that_is_killed_takes_its_processes_with_it(needs_hosts: None) -> None:
    with Cluster(2) as made:
        first, second = made.hosts
        sleeper = subprocess.Popen(second.command(["sleep", "1000"]), env=environment())
        wait_until(lambda: "sleep 1000" in second.processes(), "the program has not started")
        second.kill()
        assert sleeper.wait(PATIENCE) != 0
        assert first.run("ssh", "-o", "ConnectTimeout=2", second.name, "true").returncode == 255
        assert first.run("hostname").returncode == 0


def test_nothing_stays_when_the_process_that_made_the_cluster_is_killed(needs_hosts: None) -> None:
    code = (
        "import sys, time; from cluster import Cluster\n"
        "with Cluster(2) as made:\n"
        "    print(made.shared, made.switch, *[p for h in made.hosts for p in (h.init, h.holder)], flush=True)\n"
        "    time.sleep(1000)\n"
    )
    maker = subprocess.Popen([sys.executable, "-c", code], cwd=HERE, stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    shared, *processes = maker.stdout.readline().split()
    assert len(processes) == 5 and all(is_there(int(process)) for process in processes)
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    wait_until(lambda: not any(is_there(int(process)) for process in processes), "processes of the cluster live on")
    wait_until(lambda: not Path(shared).parent.exists(), "the folder of the cluster is still there")


def test_the_folder_of_a_killed_cluster_is_deleted_by_the_next_one(needs_hosts: None) -> None:
    code = "from cluster import make_folder; print(make_folder()[0], flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], cwd=HERE, text=True, **pipes) as maker:
        assert maker.stdout is not None
        left = Path(maker.stdout.readline().strip())
        with Cluster(1):
            assert left.is_dir()
        maker.kill()
    with Cluster(1) as made:
        assert made.shared.is_dir() and not left.exists()


def test_the_command_for_developers_runs_on_the_first_host(needs_hosts: None) -> None:
    command = [sys.executable, HERE / "shell", "2", "sh", "-c", "hostname; ssh node2 hostname; exit 7"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "node1\nnode2\n"), done.stderr
