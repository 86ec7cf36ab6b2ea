"""What the Python programs of this folder share: one file has many small programs, its cases.

python program.py --list          prints the names of the cases
python program.py CASE            runs one
python program.py --record CASE   runs one, and prints the exception that ends it on a rank:
                                  `recorded RANK CLASS sentence`. Afterwards the ranks must be able to communicate
                                  as before: the last line is `usable`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def compute(seconds: float) -> None:
    """Compute without a call of MPI."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(10000))


def put_line(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def main() -> None:
    if sys.argv[1] == "--list":
        print(*CASES)
    elif sys.argv[1] == "--record":
        record(CASES[sys.argv[2]])
    else:
        CASES[sys.argv[1]]()


def record(function: Callable[[], None]) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    try:
        function()
    except MPI.Exception as error:
        name = MPI.Get_error_string(error.Get_error_class()).partition(":")[0]
        put_line(f"recorded {world.rank} {name} {first_line(error)}")
    except Exception as error:
        put_line(f"recorded {world.rank} {type(error).__name__} {first_line(error)}")
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    if world.allreduce(1) == world.size and world.sendrecv(world.rank, right, 32001, source=left) == left:
        put_line("usable")


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
