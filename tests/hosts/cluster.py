"""A cluster on one machine: hosts made of namespaces, which a test or a developer starts programs on.

Each host has network, UTS, mount, PID and IPC namespaces of its own: its own name (`node1`, `node2`, ...), address
(10.77.0.N, on a bridge), processes, /tmp, /dev/shm and /run, and an sshd, which takes one key made for this cluster.
All see the same files elsewhere, so the project's environment and `Cluster.shared`. The user's ~/.ssh and
what shells start with are hidden.

Everything belongs to processes: one holds the bridge (`switch.py`), one holds each host. Namespaces, bridge and cables
are gone when these have ended. The switch ends when the process that made the cluster does, however that ends, and
the hosts end with the switch.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

#: Where programs of the system are that are not in every PATH.
SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

#: What a cluster is made with, and the Debian packages that have it.
TOOLS = {
    "ip": "iproute2",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
}


def find_tool(name: str) -> str | None:
    """The path of a program of the system."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_FOLDERS}")


def missing() -> str | None:
    """What a cluster needs and is not here, as a sentence; `None` if all is here."""
    absent = [name for name in TOOLS if find_tool(name) is None]
    if absent:
        packages = " ".join(sorted({TOOLS[name] for name in absent}))
        return f"a cluster of hosts needs {', '.join(absent)}: sudo apt-get install {packages}"
    if os.geteuid() != 0:
        return "a cluster of hosts is made of namespaces, which needs root: run as root"
    # A container may have no right to make namespaces, or no bridges.
    trial = "ip link add br0 type bridge && ip link add v1 type veth peer name v2"
    command = [find_tool("unshare") or "", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "sh", "-c", trial]
    tried = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if tried.returncode != 0:
        return f"a cluster of hosts needs the right to make namespaces and a bridge: {tried.stderr.strip()}"
    return None


def missing_fabric() -> str | None:
    """What the fabric device needs and is not here, as a sentence; `None` if all is here."""
    library = os.environ.get("LIMOSA_FABRIC_LIBRARY")
    try:
        ctypes.CDLL(library or "libfabric.so.1")
    except OSError as error:
        if library:
            return f"LIMOSA_FABRIC_LIBRARY names no libfabric: {error}"
        return "libfabric is not installed: sudo apt-get install libfabric1"
    return None


def environment() -> dict[str, str]:
    """The variables of this process, with the folders of the system in PATH.

    On a busy machine a login takes so long that it would be mentioned, were its limit not far away.
    """
    path = f"{os.environ.get('PATH', '')}:{SYSTEM_FOLDERS}"
    return {"LIMOSA_LOGIN_LIMIT": "1200", **os.environ, "PATH": path}


class Host:
    """One host of a cluster."""

    def __init__(self, number: int, init: int, holder: int) -> None:
        self.number = number
        self.name = f"node{number}"
        self.address = f"10.77.0.{number}"
        #: The first process of the host, and the one outside that holds it, as numbered outside.
        self.init = init
        self.holder = holder

    def command(self, words: Sequence[object], folder: Path | None = None) -> list[str]:
        """The command that runs a given one on this host, in a folder that all hosts share."""
        enter = [find_tool("nsenter") or "nsenter", "--target", str(self.init)]
        enter += ["--net", "--uts", "--mount", "--pid", "--ipc", f"--wd={folder or ROOT}", "--"]
        return [*enter, *map(str, words)]

    def run(self, *words: object, **options) -> subprocess.CompletedProcess[str]:
        """Runs a command on this host and waits for it."""
        options = {"capture_output": True, "text": True, "env": environment(), "timeout": 120, **options}
        return subprocess.run(self.command(words), **options)

    def processes(self) -> list[str]:
        """The command lines of all programs of this host, but those that belong to it and that of this look itself."""
        listed = self.run("ps", "-e", "-o", "args=").stdout.splitlines()
        own = (f"/bin/bash {HERE / 'start-host'}", "host-sleeps", "sshd:", "ps -e")
        return sorted(line for line in listed if not line.startswith(own))

    def kill(self) -> None:
        """Ends the host at once, as a power failure would."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.holder, signal.SIGKILL)


class Relay:
    """What a relay on the cable of a host is told to do."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def expect(self, answer: str) -> None:
        """Waits until it says this."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == f"{answer}\n", line

    def set(self, delay: float = 0.0, drop: float = 0.0, cut: bool = False) -> None:
        """From now on: seconds that each frame takes in each direction, share that is lost, whether all are."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"delay": delay, "drop": drop, "cut": cut}) + "\n")
        self.process.stdin.flush()
        self.expect("done")


#: Where the folders of clusters are, not below /tmp, of which each host has its own; and a file in each that its owner
#: has locked.
PLACE = Path("/var/tmp")
PREFIX = "limosa-hosts-"
OWNER = "owner"


def make_folder() -> tuple[Path, int]:
    """A folder for a cluster, and the descriptor that keeps it from being taken for one of a dead owner."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
    before = folder / f"{OWNER}.new"
    lock = os.open(before, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    before.rename(folder / OWNER)
    return folder, lock


def delete_left_folders() -> None:
    """Deletes the folders of clusters whose owners were killed."""
    for owner in PLACE.glob(f"{PREFIX}*/{OWNER}"):
        with contextlib.suppress(OSError), owner.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(owner.parent, ignore_errors=True)


class Cluster:
    """Several hosts. A context manager: they are there inside `with`.

    With `room` (`16m`) the shared folder is on a disk of this size, which only the hosts see.
    """

    def __init__(self, count: int, room: str = "") -> None:
        if not 1 <= count <= 250:
            raise ValueError(f"a cluster has 1 to 250 hosts, not {count}")
        self.count = count
        self.room = room
        self.hosts: list[Host] = []
        #: A folder that all hosts see under the same name.
        self.shared = Path()
        self._folder = Path()
        self._lock = -1
        self._switch: subprocess.Popen[str] | None = None

    def __enter__(self) -> Cluster:
        reason = missing()
        if reason is not None:
            raise RuntimeError(reason)
        delete_left_folders()
        self._folder, self._lock = make_folder()
        self.shared = self._folder / "shared"
        self.shared.mkdir()
        command = [find_tool("unshare") or "unshare", "--net", "--mount", sys.executable]
        command += [str(HERE / "switch.py"), str(self.count), str(self._folder), self.room]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        # In a session of its own: an interrupt from the keyboard is for the programs in the hosts.
        self._switch = subprocess.Popen(command, text=True, env=environment(), start_new_session=True, **pipes)
        assert self._switch.stdout is not None
        line = self._switch.stdout.readline()
        if not line:
            self.__exit__()
            raise RuntimeError("the hosts could not be made; the reason stands above")
        self.hosts = [Host(number, init, holder) for number, (init, holder) in enumerate(json.loads(line), 1)]
        return self

    def __exit__(self, *_: object) -> None:
        if self._switch is not None:
            assert self._switch.stdin is not None
            self._switch.stdin.close()
            try:
                self._switch.wait(20)
            except subprocess.TimeoutExpired:
                self._switch.kill()
                self._switch.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    @property
    def switch(self) -> int:
        """The process that holds the bridge."""
        assert self._switch is not None
        return self._switch.pid

    def cable(self, host: Host, state: str) -> None:
        """Cuts (`down`) or mends (`up`) the cable of a host."""
        enter = [find_tool("nsenter") or "nsenter", "--target", str(self.switch), "--net", "--"]
        command = [*enter, "ip", "link", "set", f"cable{host.number}", state]
        subprocess.run(command, check=True, env=environment())

    @contextlib.contextmanager
    def relay(self, host: Host) -> Iterator[Relay]:
        """Puts a relay on the cable of a host, which delays, loses or cuts what it is told to (`relay.py`)."""
        cable, back, front = f"cable{host.number}", f"back{host.number}", f"front{host.number}"
        enter = [find_tool("nsenter") or "nsenter", "--target", str(self.switch), "--net", "--"]
        change = (
            f"ip link add {front} type veth peer name {back} && ip link set {cable} nomaster && "
            f"ip link set {front} master bridge up && ip link set {back} up"
        )
        command = [*enter, sys.executable, str(HERE / "relay.py"), cable, back, str(host.number)]
        subprocess.run([*enter, "sh", "-c", change], check=True, env=environment())
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(command, text=True, env=environment(), start_new_session=True, **pipes) as process:
            try:
                made = Relay(process)
                made.expect("ready")
                yield made
            finally:
                process.kill()
                restore = f"ip link delete {front}; ip link set {cable} master bridge"
                subprocess.run([*enter, "sh", "-c", restore], check=True, env=environment())

    def list_of_hosts(self, slots: int) -> str:
        """All hosts with so many ranks on each, as a launcher's option takes them."""
        return ",".join(f"{host.name}:{slots}" for host in self.hosts)

    def variables(self) -> dict[str, str]:
        """The variables of programs on its hosts, and of `LAUNCHER`."""
        names = ",".join(host.name for host in self.hosts)
        return {**environment(), "SHARED": str(self.shared), "HOSTS": names}


def shell(made: Cluster, command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
    """A command, or an interactive shell, on the first host. Its exit code."""
    words = command or [os.environ.get("SHELL", "/bin/sh")]
    return subprocess.run(made.hosts[0].command(words), env={**made.variables(), **(variables or {})}).returncode


#: How ranks on different hosts exchange messages, for test runners inside a cluster that start jobs by `LAUNCHER`.
DEVICES: dict[str, dict[str, str]] = {
    "device=file": {"BETWEEN_HOSTS": "file:{folder}"},
    "device=file:local": {"BETWEEN_HOSTS": "file:local:/tmp"},
    "device=fabric": {"BETWEEN_HOSTS": "fabric"},
}
LAUNCHER = HERE / "mpiexec"


def is_inside() -> bool:
    """True in a program that runs on a host of a cluster."""
    return "SHARED" in os.environ


#: Size of the shared folder of test runners. It is in memory: a busy disk makes messages by files ten times slower.
ROOM = "4g"


def quick_folder() -> str | None:
    """Where a test runner puts the files of messages: in memory, if that is large enough; `None`: the usual place."""
    memory = Path("/dev/shm")
    enough = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    return str(memory) if enough and not is_inside() else None


def run_inside(count: int, command: Sequence[str]) -> int:
    """Runs a command on the first host of a new cluster, with temporary files where all hosts see them. Its exit code;
    0 where no cluster can be made, with a sentence that says what is missing."""
    reason = missing()
    if reason is not None:
        print(f"not run: {reason}")
        return 0
    with Cluster(count, ROOM) as made:
        return shell(made, command, {"TMPDIR": str(made.shared)})
