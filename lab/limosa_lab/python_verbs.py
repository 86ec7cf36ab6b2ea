"""What the verbs of ``import limosa`` cost beside mpi4py's: ``limosa bench python --verbs``.

One job measures each verb with short values, with mpi4py's method and with that of `limosa.world`, in turns of a few
milliseconds, so that both see the same machine. Arrays are compared with mpi4py's upper-case methods, all else with the
lower-case ones. Times are medians over the turns, on rank 0, per call; of `send` and `recv` half a round trip.
"""

import dataclasses
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from limosa_lab.errors import LabError
from limosa_lab.libraries import Library
from limosa_lab.runner import variables

_TURN_SECONDS = 0.005
_SIDES = ("mpi4py", "limosa")

Call = Callable[[], Any]


@dataclasses.dataclass
class Point:
    """A small object as programs have them."""

    name: str
    x: float
    y: float


VALUES: dict[str, Any] = {
    "array of 8 B": np.array([2.5]),
    "float": 2.5,
    "int": 7,
    "dict": {"a": 1, "b": [1, 2, 3], "c": "text"},
    "dataclass": Point("p", 1.0, 2.0),
}


def array_calls(comm: Any, world: Any, x: Any) -> dict[str, tuple[Call, Call]]:
    """Give mpi4py's call for memory and ours, by verb."""
    size = comm.size
    row, rows, many = np.zeros_like(x), np.zeros((size, *x.shape), x.dtype), np.arange(float(size))
    return {
        "barrier": (comm.Barrier, world.barrier),
        "bcast": (lambda: comm.Bcast(x), lambda: world.bcast(x)),
        "scatter": (lambda: comm.Scatter(many, row), lambda: world.scatter(many)),
        "gather": (lambda: comm.Gather(x, rows), lambda: world.gather(x)),
        "allgather": (lambda: comm.Allgather(x, rows), lambda: world.allgather(x)),
        "alltoall": (lambda: comm.Alltoall(many, rows), lambda: world.alltoall(many)),
        "reduce": (lambda: comm.Reduce(x, row), lambda: world.reduce(x)),
        "allreduce": (lambda: comm.Allreduce(x, row), lambda: world.allreduce(x)),
        "scan": (lambda: comm.Scan(x, row), lambda: world.scan(x)),
        "reduce_scatter": (lambda: comm.Reduce_scatter_block(many, row), lambda: world.reduce_scatter(many)),
        "send, recv": (
            there_and_back(comm.rank, lambda peer: comm.Send(x, peer), lambda peer: comm.Recv(row, peer)),
            there_and_back(comm.rank, lambda peer: world.send(x, peer), world.recv),
        ),
    }


def object_calls(comm: Any, world: Any, x: Any) -> dict[str, tuple[Call, Call]]:
    """Give mpi4py's call for objects and ours, by verb; reductions for numbers only."""
    items = [x] * comm.size
    calls: dict[str, tuple[Call, Call]] = {
        "bcast": (lambda: comm.bcast(x), lambda: world.bcast(x)),
        "scatter": (lambda: comm.scatter(items), lambda: world.scatter(items)),
        "gather": (lambda: comm.gather(x), lambda: world.gather(x)),
        "allgather": (lambda: comm.allgather(x), lambda: world.allgather(x)),
        "alltoall": (lambda: comm.alltoall(items), lambda: world.alltoall(items)),
        "send, recv": (
            there_and_back(comm.rank, lambda peer: comm.send(x, peer), lambda peer: comm.recv(source=peer)),
            there_and_back(comm.rank, lambda peer: world.send(x, peer), world.recv),
        ),
    }
    if isinstance(x, (int, float)):
        calls |= {
            "reduce": (lambda: comm.reduce(x), lambda: world.reduce(x)),
            "allreduce": (lambda: comm.allreduce(x), lambda: world.allreduce(x)),
            "scan": (lambda: comm.scan(x), lambda: world.scan(x)),
        }
    return calls


def there_and_back(rank: int, send: Callable[[int], Any], receive: Callable[[int], Any]) -> Call:
    """Give a function that sends a value from rank 0 to rank 1 and one back."""

    def first() -> None:
        send(1)
        receive(1)

    def second() -> None:
        receive(0)
        send(0)

    return first if rank == 0 else second if rank == 1 else lambda: None


def seconds(call: Call, times: int) -> float:
    """Call so many times; give the time of one call."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def measure(turns: int) -> None:
    """Do the measurement in one of the processes; rank 0 prints a line for each value and verb."""
    import limosa
    from mpi4py import MPI

    comm, world = MPI.COMM_WORLD, limosa.world
    for name, x in VALUES.items():
        calls = array_calls if isinstance(x, np.ndarray) else object_calls
        for verb, pair in calls(comm, world, x).items():
            once = comm.bcast(max(seconds(call, 50) for call in pair))
            count = max(10, int(_TURN_SECONDS / once))
            samples: list[list[float]] = [[], []]
            for _ in range(turns):
                for call, found in zip(pair, samples, strict=True):
                    comm.Barrier()
                    seconds(call, count // 10)
                    found.append(seconds(call, count) * 1e6 / (2 if verb == "send, recv" else 1))
            if comm.rank == 0:
                us = dict(zip(_SIDES, map(statistics.median, samples), strict=True))
                print(json.dumps({"value": name, "verb": verb, "us": us}), flush=True)


def run(library: Library, ranks: int, turns: int) -> list[dict[str, Any]]:
    """Give the results of a job on a library."""
    words = [sys.executable, "-m", "limosa_lab.python_verbs", str(turns)]
    done = subprocess.run(
        [*library.launcher(ranks, ranks), *words], env=variables(library), stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise LabError(f"the job on {library.title} failed with exit code {done.returncode}; its messages are above")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(results: list[dict[str, Any]]) -> str:
    """Give the results as a table in Markdown: mpi4py's time, ours, and the ratio."""
    values = list(dict.fromkeys(result["value"] for result in results))
    cells = {(result["verb"], result["value"]): result["us"] for result in results}
    lines = [f"| verb | {' | '.join(values)} |", "|---|" + "--:|" * len(values)]
    for verb in dict.fromkeys(result["verb"] for result in results):
        row = []
        for value in values:
            us = cells.get((verb, value))
            row.append("" if us is None else f"{us['mpi4py']:.2f} {us['limosa']:.2f} {us['limosa'] / us['mpi4py']:.2f}")
        lines.append(f"| {verb} | {' | '.join(row)} |")
    return "\n".join(lines)


if __name__ == "__main__":  # one of the processes
    measure(int(sys.argv[1]))
