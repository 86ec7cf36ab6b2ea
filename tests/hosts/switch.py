"""The process that holds a cluster's bridge and starts its hosts: `cluster.py` runs it in a network namespace.

Arguments: the number of hosts, the cluster's folder, and the size of a disk for the shared folder, or nothing. It
prints one line when all hosts are there: for each the numbers of its first process and of the one that holds it. It
ends when its standard input does, and removes the folder.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from cluster import HERE, ROOT, find_tool


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def write_settings(count: int, folder: Path) -> None:
    """A key for this cluster, names and addresses of its hosts, and how ssh uses the key."""
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "limosa tests", "-f", str(folder / "key"))
    names = "".join(f"10.77.0.{number} node{number}\n" for number in range(1, count + 1))
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
    key_type, key = (folder / "key.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"* {key_type} {key}\n")
    options = {
        "IdentityFile": folder / "key",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": folder / "known_hosts",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
    }
    (folder / "ssh_config").write_text("Host *\n" + "".join(f"    {key} {value}\n" for key, value in options.items()))
    (folder / "stage").mkdir()


def start_host(number: int, folder: Path) -> tuple[subprocess.Popen[str], int]:
    """Starts a host and connects its cable; the process that holds it, and its first process."""
    # It ends with this process, and the host with it.
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount", "--pid", "--ipc"]
    words += ["--fork", "--kill-child", "setsid", str(HERE / "start-host")]
    words += [f"node{number}", f"10.77.0.{number}", str(folder), str(ROOT), find_tool("sshd") or "sshd"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    holder = subprocess.Popen(words, text=True, **pipes)
    assert holder.stdin is not None and holder.stdout is not None
    if holder.stdout.readline() != "made\n":
        sys.exit(f"node{number} could not be made")
    children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
    init = int(children[0])
    cable = f"cable{number}"
    run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(init))
    run("ip", "link", "set", cable, "master", "bridge", "up")
    holder.stdin.write("connected\n")
    holder.stdin.close()
    return holder, init


def main() -> None:
    count, folder, room = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    try:
        run("mount", "--make-rprivate", "/")
        if room:
            run("mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(folder / "shared"))
        write_settings(count, folder)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "address", "add", "10.77.0.254/24", "dev", "bridge")
        run("ip", "link", "set", "bridge", "up")
        started = [start_host(number, folder) for number in range(1, count + 1)]
        for holder, _ in started:
            assert holder.stdout is not None
            if holder.stdout.readline() != "ready\n":
                sys.exit("the sshd of a host does not start")
        print(json.dumps([[init, holder.pid] for holder, init in started]), flush=True)
        sys.stdin.read()
        for holder, _ in started:
            holder.kill()
            holder.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
