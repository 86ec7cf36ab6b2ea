"""A stranger, which is no process of a job: connects to all that listens on a host, and sends random bytes there.

Arguments: how many connections to each socket, how many bytes over each, and addresses `HOST:PORT` to connect to as
well. The local sockets are those whose names begin with `limosa-`. All connections stay open until each has sent what
its partner takes. Prints one JSON object: by the name of a socket how many bytes went there, and how many came back.
"""

from __future__ import annotations

import json
import random
import resource
import socket
import sys
from pathlib import Path

#: Names of kinds of sockets in /proc/net/unix, and the mark of those that listen.
KINDS = {"0001": socket.SOCK_STREAM, "0005": socket.SOCK_SEQPACKET}
LISTENS = "00010000"

#: Most bytes of one write: a packet must not be longer.
CHUNK = 16 * 1024


def local_sockets() -> list[tuple[str, int]]:
    """Name and kind of each local socket of a job that listens."""
    found = set()
    for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]:
        words = line.split()
        if words[3] == LISTENS and words[-1].startswith("@limosa-"):
            found.add((words[-1][1:], KINDS[words[4]]))
    return sorted(found)


def connect(target: tuple[str, int] | str) -> socket.socket:
    """A connection whose calls give up after a moment."""
    if isinstance(target, str):
        host, _, port = target.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=2)
    made = socket.socket(socket.AF_UNIX, target[1])
    made.settimeout(2)
    made.connect(f"\0{target[0]}")
    return made


def disturb(target: tuple[str, int] | str, count: int, size: int) -> tuple[int, int]:
    """Bytes that went to a socket, and those that came back."""
    generator = random.Random(str(target))
    connections, sent, answered = [], 0, 0
    for _ in range(count):
        try:
            connections.append(connect(target))
        except OSError:
            continue
        left = size
        # The far end may refuse to take it.
        try:
            while left > 0:
                connections[-1].settimeout(0.05)
                taken = connections[-1].send(generator.randbytes(min(left, CHUNK)))
                left -= taken
                sent += taken
        except OSError:
            pass
    for connection in connections:
        connection.settimeout(0.05)
        try:
            while got := len(connection.recv(CHUNK)):
                answered += got
        except OSError:
            pass
        connection.close()
    return sent, answered


def main() -> None:
    count, size, addresses = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    targets: list[tuple[str, int] | str] = [*local_sockets(), *addresses]
    print(json.dumps({str(t if isinstance(t, str) else t[0]): disturb(t, count, size) for t in targets}))


if __name__ == "__main__":
    main()
