"""Measuring the flag's time: how long a cache line takes from one processor to another (see `placement`)."""

import subprocess
from pathlib import Path

from limosa_lab import build

SOURCE = Path(__file__).with_name("flag_time.c")
# Seconds. A measurement takes some 20 ms; where the two processes must share processors with others it may take much
# longer.
_LIMIT = 10.0


class FlagTime:
    """Measures the flag's time; the program is compiled when this is made."""

    def __init__(self) -> None:
        self.program = build.compiled_without_mpi(SOURCE)

    def measure(self) -> float | None:
        """Give the microseconds for one way; None if there are no two processors, or if it takes too long."""
        try:
            done = subprocess.run(
                [str(self.program)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT
            )
        except subprocess.TimeoutExpired:
            return None
        return float(done.stdout) if done.returncode == 0 else None


def pair(before: float | None, after: float | None) -> list[float] | None:
    """Give what is recorded of a run: both times, or nothing unless both are known."""
    return None if before is None or after is None else [before, after]
