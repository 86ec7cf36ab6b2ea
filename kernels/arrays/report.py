"""What the programs with distributed arrays share: timing, and telling whether the result is right."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

import limosa


def timed(call: Callable[[], Any], repetitions: int = 1) -> tuple[Any, float]:
    """Return what a call returns, and the seconds that it takes: of the slowest rank, the best of some repetitions."""
    best = float("inf")
    made = None
    for _ in range(repetitions):
        limosa.world.barrier()
        start = time.perf_counter()
        made = call()
        best = min(best, limosa.world.allreduce(time.perf_counter() - start, max))
    return made, best


def finish(measured: str, error: float, most: float) -> NoReturn:
    """Print what was measured and whether the error is small enough, and end the program."""
    right = error <= most
    if limosa.world.rank == 0:
        print(f"{measured}; {limosa.world.size} ranks; error {error:.1e}: {'right' if right else 'WRONG'}")
    sys.exit(0 if right else 1)
