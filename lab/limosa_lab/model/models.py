"""Models of the time of an operation with n bytes among p processes. Microseconds, bytes."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Protocol

from limosa_lab.model.growth import Growth


class Model(Protocol):
    """What all models offer."""

    @property
    def name(self) -> str:
        """The model's name in tables."""
        ...

    @property
    def parameters(self) -> int:
        """How many numbers were fitted, growths with p counted as two."""
        ...

    def time(self, n: float, p: float = 2) -> float:
        """Give the predicted time."""
        ...


def _count(growth: Growth) -> int:
    return 1 if growth.kind == "constant" else 2


@dataclass(frozen=True)
class Hockney:
    """``t0(p) + tb(p) n``: the time of an empty message, and a time per byte."""

    t0: Growth
    tb: Growth
    name = "Hockney"

    @property
    def parameters(self) -> int:
        """How many numbers were fitted."""
        return _count(self.t0) + _count(self.tb)

    def time(self, n: float, p: float = 2) -> float:
        """Give the predicted time."""
        return self.t0(p) + self.tb(p) * n


@dataclass(frozen=True)
class LinearProtocol:
    """Hockney's model with a term for the protocols of longer messages.

    ``T_H + i w`` where ``T_H = t0 + tb n`` is Hockney's time, i the intercept of the regression line of all
    measurements, and ``w = tb n / T_H`` the share of the transfer. With `to_line` the term is ``(i - t0) w``: then long
    messages tend to the regression line itself.
    """

    t0: Growth
    intercept: Growth
    tb: Growth
    to_line: bool = False

    @property
    def name(self) -> str:
        """The model's name in tables."""
        return "protocol term to the line" if self.to_line else "protocol term"

    @property
    def parameters(self) -> int:
        """How many numbers were fitted."""
        return _count(self.t0) + _count(self.intercept) + _count(self.tb)

    def time(self, n: float, p: float = 2) -> float:
        """Give the predicted time.

        Where Hockney's time is not positive, which extrapolation to other p can bring about, it is taken as it is.
        """
        startup, transfer = self.t0(p), self.tb(p) * n
        hockney = startup + transfer
        if hockney <= 0:
            return hockney
        term = self.intercept(p) - (startup if self.to_line else 0.0)
        return hockney + term * transfer / hockney


@dataclass(frozen=True)
class LogGP:
    """LogGP for one message: ``L + 2o + (n - 1) G``, and ``L + 2o`` without bytes.

    `latency_and_overheads` is L + 2o: a ping-pong alone cannot tell L from o. `gap` is g, the least time between two
    messages, where a message rate was measured; it plays no part in the time of one message.
    """

    latency_and_overheads: float
    gap_per_byte: float
    gap: float | None = None
    name = "LogGP"

    @property
    def parameters(self) -> int:
        """How many numbers were fitted."""
        return 2

    def time(self, n: float, p: float = 2) -> float:
        """Give the predicted time of one message."""
        return self.latency_and_overheads + max(n - 1, 0) * self.gap_per_byte

    def time_of_many(self, messages: int, n: float) -> float:
        """Give the time until the last of several messages, sent in sequence, has arrived."""
        gap = max(self.gap or 0.0, max(n - 1, 0) * self.gap_per_byte)
        return (messages - 1) * gap + self.time(n)


@dataclass(frozen=True)
class Line:
    """``a(p) + b(p) n``."""

    a: Growth
    b: Growth


@dataclass(frozen=True)
class Piecewise:
    """A line for each protocol: ``lines[k]`` holds from ``starts[k]`` bytes on. The first start is 0."""

    starts: tuple[int, ...]
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        """The model's name in tables."""
        return "line" if len(self.lines) == 1 else f"{len(self.lines)} lines"

    @property
    def parameters(self) -> int:
        """How many numbers were fitted, limits between protocols included."""
        return len(self.lines) - 1 + sum(_count(line.a) + _count(line.b) for line in self.lines)

    def time(self, n: float, p: float = 2) -> float:
        """Give the predicted time."""
        line = self.lines[bisect.bisect_right(self.starts, n) - 1]
        return line.a(p) + line.b(p) * n


@dataclass(frozen=True)
class PerProcesses:
    """A model of its own for each number of processes that was measured.

    Between two of them it is interpolated; with fewer or more than were measured, the nearest one holds.
    """

    processes: tuple[int, ...]
    models: tuple[Piecewise, ...]

    @property
    def name(self) -> str:
        """The model's name in tables."""
        counts = sorted({len(model.lines) for model in self.models})
        return f"{counts[0]} to {counts[-1]} lines for each p" if len(counts) > 1 else f"{counts[0]} lines for each p"

    @property
    def parameters(self) -> int:
        """How many numbers were fitted."""
        return sum(model.parameters for model in self.models)

    def time(self, n: float, p: float = 2) -> float:
        """Give the predicted time."""
        above = bisect.bisect_left(self.processes, p)
        if above == len(self.processes):
            return self.models[-1].time(n, p)
        if above == 0 or self.processes[above] == p:
            return self.models[above].time(n, p)
        low, high = self.processes[above - 1], self.processes[above]
        before, after = self.models[above - 1].time(n, low), self.models[above].time(n, high)
        return before + (after - before) * (p - low) / (high - low)
