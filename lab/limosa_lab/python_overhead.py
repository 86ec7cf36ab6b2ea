"""What Python costs over C: ``limosa bench python``.

One job of two processes measures a ping-pong in C, with mpi4py's upper-case and lower-case methods, and with ``import
limosa``, in turns of a few milliseconds, so that all see the same machine. The C loop is compiled into a shared object
and called from the same processes. What arrives is compared with what was sent, once for each way and each value. Times
are medians over the turns, of half a round trip.
"""

import argparse
import ctypes
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from limosa_lab import python_verbs
from limosa_lab.errors import LabError
from limosa_lab.libraries import PEERS, Library, Limosa, output_of
from limosa_lab.runner import variables
from limosa_lab.terminal import Terminal, names

_LOOP = """
#include <mpi.h>

/* Send and receive n times; give the seconds. */
double loop(char *out, char *in, int bytes, int peer, int first, long n)
{
    double start = MPI_Wtime();
    for (long i = 0; i < n; i++) {
        if (first)
            MPI_Send(out, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!first)
            MPI_Send(out, bytes, MPI_BYTE, peer, 7, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}
"""

_TURN_SECONDS = 0.02
_LIBRARIES = ("limosa", "mpich")  # those that have the standard ABI and are in the package index


@dataclasses.dataclass
class Particle:
    """An object as programs have them."""

    name: str
    position: Any
    history: list[Any]


def values(largest: int) -> dict[str, Any]:
    """Give what is sent, by name; arrays up to so many bytes."""
    arrays = {
        f"array of {bytes_} B": np.arange(bytes_ // 8, dtype=float)
        for bytes_ in (8, 1024, 8192, 65536, 1 << 20, 1 << 26, 1 << 30)
    }
    return {name: array for name, array in arrays.items() if array.nbytes <= largest} | {
        "float": 2.5,
        "dict": {"a": 1, "b": [1, 2, 3], "c": "text"},
        "list of 10 arrays of 8 KB": [np.full(1000, float(i)) for i in range(10)],
        "list of 4 arrays of 1 MB": [np.full(125_000, float(i)) for i in range(4)],
        "dataclass with array of 8 KB": Particle("p", np.zeros(1000), [1, 2]),
        "dataclass with array of 1 MB": Particle("p", np.zeros(125_000), [1, 2]),
    }


def same(a: Any, b: Any) -> bool:
    """Tell whether two of these values are equal."""
    if isinstance(a, Particle):
        return isinstance(b, Particle) and same([a.name, a.position, a.history], [b.name, b.position, b.history])
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b)


def in_python(first: Callable[[], Any], second: Callable[[], Any]) -> Callable[[int], float]:
    """Give a function that does both so many times, by turns, and returns the seconds."""

    def loop(n: int) -> float:
        start = time.perf_counter()
        for _ in range(n):
            first()
            second()
        return time.perf_counter() - start

    return loop


def measure(shared_object: str, turns: int, largest: int) -> None:
    """Do the measurement in one of the two processes; rank 0 prints a line for each value."""
    import limosa
    from mpi4py import MPI

    comm, world = MPI.COMM_WORLD, limosa.world
    rank, peer = comm.rank, 1 - comm.rank
    library = ctypes.CDLL(shared_object)
    library.loop.restype = ctypes.c_double
    library.loop.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]

    def in_c(x: Any, out: Any) -> Callable[[int], float]:
        def loop(n: int) -> float:
            seconds: float = library.loop(x.ctypes.data, out.ctypes.data, x.nbytes, peer, rank == 0, n)
            return seconds

        return loop

    def pairs(x: Any, out: Any) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
        """Give what sends and what receives, for each way; `out` is None if there is no array to receive into."""
        made: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "limosa": (lambda: world.send(x, peer), lambda: world.recv(peer)),
            "lower": (lambda: comm.send(x, peer), lambda: comm.recv(source=peer)),
        }
        if out is not None:
            made["upper"] = lambda: comm.Send(x, peer), lambda: comm.Recv(out, peer)
            made["out"] = lambda: world.send(x, peer), lambda: world.recv(peer, out=out)
        return made

    for name, x in values(largest).items():
        out = np.zeros_like(x) if isinstance(x, np.ndarray) else None
        loops = {} if out is None else {"C": in_c(x, out)}
        for way, (send, receive) in pairs(x, out).items():
            loops[way] = in_python(send, receive) if rank == 0 else in_python(receive, send)
            if rank == 0:
                send()
            else:
                arrived = receive()
                if not same(out if arrived is None else arrived, x):
                    raise LabError(f"{name} arrived wrong with {way}")
        # So many that the fastest way fills its turn; the slow ones may take longer.
        once = comm.bcast(
            min(loop(10 if way != "lower" else 1) / (10 if way != "lower" else 1) for way, loop in loops.items())
        )
        count = max(1, int(_TURN_SECONDS / once))
        times: dict[str, list[float]] = {way: [] for way in loops}
        for _ in range(turns if once < 0.05 else min(turns, 5)):
            for way, loop in loops.items():
                comm.Barrier()
                loop(max(1, count // 20))
                times[way].append(loop(count) / count / 2 * 1e6)
        if rank == 0:
            print(
                json.dumps({"value": name, "us": {way: statistics.median(samples) for way, samples in times.items()}}),
                flush=True,
            )


def run(library: Library, turns: int, largest: int) -> list[dict[str, Any]]:
    """Give the results of a job on a library."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "loop.c", Path(folder) / "loop.so"
        source.write_text(_LOOP)
        output_of([*Limosa().compiler, "-shared", "-fPIC", "-O2", str(source), "-o", str(target)])
        words = [sys.executable, "-m", "limosa_lab.python_overhead", str(target), str(turns), str(largest)]
        done = subprocess.run(
            [*library.launcher(2, 2), *words], env=variables(library), stdout=subprocess.PIPE, text=True
        )
    if done.returncode != 0:
        raise LabError(f"the job on {library.title} failed with exit code {done.returncode}; its messages are above")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(results: list[dict[str, Any]]) -> str:
    """Give the results as a table in Markdown."""
    ways = ["C", "upper", "out", "limosa", "lower"]
    lines = ["| value | C | mpi4py Send | limosa, out= | limosa | mpi4py send |", "|---|--:|--:|--:|--:|--:|"]
    for result in results:
        cells = [f"{result['us'][way]:.4g}" if way in result["us"] else "" for way in ways]
        lines.append(f"| {result['value']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says: measure and print the tables; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="limosa bench python", description="Ping-pong of two processes: C, mpi4py, import limosa."
    )
    parser.add_argument(
        "--mpi",
        type=names,
        default=["limosa"],
        metavar="NAMES",
        help=f"libraries to run on: {', '.join(_LIBRARIES)} (default limosa)",
    )
    parser.add_argument(
        "--turns", type=int, default=25, metavar="N", help="how often each way is measured, in turn (default 25)"
    )
    parser.add_argument(
        "--largest",
        type=int,
        default=1 << 26,
        metavar="BYTES",
        help="largest array (default 67108864); 1073741824 needs 10 GB of memory",
    )
    parser.add_argument(
        "--verbs", action="store_true", help="measure collective calls and messages with short values, beside mpi4py's"
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.mpi if name not in _LIBRARIES]
    if unknown or given.turns < 1:
        raise LabError(
            f"--mpi {unknown[0]}: known are {', '.join(_LIBRARIES)}"
            if unknown
            else f"--turns {given.turns}: at least one is needed"
        )
    terminal = Terminal("limosa bench python")
    for name in given.mpi:
        library = Limosa() if name == "limosa" else PEERS[name].install(terminal.say)
        if given.verbs:
            print(f"mpi4py, import limosa in microseconds, and their ratio, on {library.title}, two ranks:\n")
            print(python_verbs.table(python_verbs.run(library, 2, given.turns)), end="\n\n")
            continue
        print(f"Half a round trip in microseconds on {library.title}, median of {given.turns} turns:\n")
        print(table(run(library, given.turns, given.largest)), end="\n\n")
    return 0


if __name__ == "__main__":  # one of the two processes
    measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
