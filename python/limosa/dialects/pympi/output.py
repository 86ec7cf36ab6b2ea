"""Text of several ranks in a fixed order, or out of the way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from mpi4py import MPI

__all__ = ["flush", "in_turn", "redirect", "trace", "traceln"]

_originals: dict[str, TextIO] = {}


def flush() -> None:
    """Show what Python still holds back."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def in_turn(comm: MPI.Intracomm, action: Callable[[], Any]) -> None:
    """Do something on each rank in turn."""
    token = bytearray(1)
    ring = comm.Dup()
    ring.Recv(token, ring.rank - 1 if ring.rank else MPI.PROC_NULL)
    action()
    ring.Send(token, ring.rank + 1 if ring.rank + 1 < ring.size else MPI.PROC_NULL)
    ring.Free()


def redirect(stream: str, name: str | None, ending: str) -> None:
    """Let ``sys.stdout`` or ``sys.stderr`` write to a file, or where it wrote at first.

    Parameters
    ----------
    stream
        ``stdout`` or ``stderr``.
    name
        Name of the file without its ending, ``/dev/null``, or None for the place of old.
    ending
        What follows the name and a dot.
    """
    present: TextIO = getattr(sys, stream)
    original = _originals.setdefault(stream, present)
    if present is not original:
        present.close()
        setattr(sys, stream, original)
    if name is not None:
        path = Path(name if name == "/dev/null" else f"{name}.{ending}")
        setattr(sys, stream, path.open("w", buffering=1))


def trace(*args: Any) -> None:
    """Write the arguments, joined with spaces, to stderr, on rank 0 only."""
    if MPI.COMM_WORLD.rank == 0:
        sys.stderr.write(" ".join(map(str, args)))
        sys.stderr.flush()


def traceln(*args: Any) -> None:
    """As `trace`, and end the line."""
    trace(*args[:-1], *(f"{arg}\n" for arg in args[-1:])) if args else trace("\n")
