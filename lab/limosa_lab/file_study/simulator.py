"""A discrete-event simulator: processes, servers with a queue, and things to wait for.

A process is a generator that yields what it waits for: `Delay`, `Use` of a server, or a `Condition`. Time is a number
of seconds and moves only between events, so a simulation has no chance in it: the same model gives the same times.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Delay:
    """Time passes."""

    seconds: float


class Server:
    """Serves requests in the order in which they come, `width` of them at a time."""

    def __init__(self, width: int = 1) -> None:
        self.free = [0.0] * width
        self.requests = 0
        self.busy = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """Give the time at which a request that comes now is done."""
        done = max(now, heapq.heappop(self.free)) + seconds
        heapq.heappush(self.free, done)
        self.requests += 1
        self.busy += seconds
        return done


@dataclass(frozen=True)
class Use:
    """A request to a server, and how long it takes there."""

    server: Server
    seconds: float


@dataclass
class Condition:
    """Something that becomes true once."""

    is_true: bool = False
    waiting: list[Process] = field(default_factory=list)


Process = Generator["Delay | Use | Condition", None, None]


class Simulation:
    """The clock, and what happens next."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Process]] = []
        self._count = 0
        self._running = 0

    def start(self, process: Process) -> None:
        """Have a process begin now."""
        self._running += 1
        self._at(self.now, process)

    def fulfil(self, condition: Condition) -> None:
        """Let a condition become true now; the waiting processes go on in the order in which they came."""
        condition.is_true = True
        for process in condition.waiting:
            self._at(self.now, process)
        condition.waiting.clear()

    def run(self) -> float:
        """Run until nothing happens any more; give the time. Processes that wait for ever are an error."""
        while self._events:
            self.now, _, process = heapq.heappop(self._events)
            self._advance(process)
        if self._running:
            raise RuntimeError(f"{self._running} simulated processes wait for ever")
        return self.now

    def _at(self, time: float, process: Process) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, process))

    def _advance(self, process: Process) -> None:
        while True:
            try:
                wanted = next(process)
            except StopIteration:
                self._running -= 1
                return
            if isinstance(wanted, Condition):
                if not wanted.is_true:
                    wanted.waiting.append(process)
                    return
            elif isinstance(wanted, Use):
                self._at(wanted.server.serve(self.now, wanted.seconds), process)
                return
            else:
                self._at(self.now + wanted.seconds, process)
                return
