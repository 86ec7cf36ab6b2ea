"""A relay on the cable of a host: `relay.py CABLE BACK SEED`, in the network namespace of a cluster's bridge.

It carries what comes from the interface CABLE to BACK, and the other way. Each line of its standard input says how from
then on, as JSON: `{"delay": seconds in each direction, "drop": share of the frames that are lost, "cut": whether all
are}`. It answers each line with one, and ends when its standard input does.

A frame is what the kernel hands over: several segments of TCP together, at times, which are then lost together.
"""

from __future__ import annotations

import collections
import json
import random
import select
import socket
import sys
import time

SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
ETH_P_ALL = 3
#: A frame of the largest size that segments of TCP can have together, and what the kernel says of it.
LONGEST = 65536 + 4096


def opened(interface: str) -> socket.socket:
    """The frames that come from an interface. With the header for virtual networks the kernel hands over segments and
    sums that a network card would make; the other side takes them so."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    made.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    made.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    made.bind((interface, ETH_P_ALL))
    made.setblocking(False)
    return made


def read_frame(source: socket.socket) -> bytes | None:
    """The next frame, if there is one."""
    try:
        return source.recv(LONGEST)
    except OSError:
        return None


class Relay:
    """Frames on their way in both directions."""

    def __init__(self, ends: list[socket.socket], seed: int) -> None:
        self.ends = ends
        self.chance = random.Random(seed)
        self.delay, self.drop, self.cut = 0.0, 0.0, False
        #: When a frame is due, to which end, and the frame; in this order they have come.
        self.waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()

    def obey(self, line: str) -> None:
        said = {"delay": 0.0, "drop": 0.0, "cut": False, **json.loads(line)}
        self.delay, self.drop, self.cut = said["delay"], said["drop"], said["cut"]

    def take(self, source: socket.socket) -> None:
        to = self.ends[1 - self.ends.index(source)]
        while (frame := read_frame(source)) is not None:
            if not self.cut and self.chance.random() >= self.drop:
                self.waiting.append((time.monotonic() + self.delay, to, frame))

    def send_due(self) -> float | None:
        """Sends what is due; how long nothing else is, or `None` if nothing waits."""
        while self.waiting:
            due, to, frame = self.waiting[0]
            remains = due - time.monotonic()
            if remains > 0:
                return remains
            self.waiting.popleft()
            try:
                to.send(frame)
            except OSError:
                # As a full network does, it loses what it cannot carry.
                continue
        return None


def main() -> None:
    cable, back, seed = sys.argv[1:]
    relay = Relay([opened(cable), opened(back)], int(seed))
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([*relay.ends, sys.stdin], [], [], relay.send_due())
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                return
            relay.obey(line)
            print("done", flush=True)
        for end in relay.ends:
            if end in ready:
                relay.take(end)


main()
