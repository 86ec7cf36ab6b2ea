"""pyMPI's exception, and how errors of the library become it."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import NoReturn

from mpi4py import MPI

__all__ = ["AbsentCommunicator", "MPIError", "translated"]


class MPIError(Exception):
    """MPI reports an error; the text ends with the place in the script."""


class translated:
    """Context in which errors of mpi4py become `MPIError`."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, MPI.Exception):
            raise_translated(error)


def raise_translated(error: MPI.Exception) -> NoReturn:
    """Raise an error of mpi4py as `MPIError`, with the place in the script that called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("limosa.dialects"):
        frame = frame.f_back
    raise MPIError(f"{error} ({frame.f_code.co_filename}:{frame.f_lineno})") from None


class AbsentCommunicator:
    """Stands for the MPI communicator where there is none: whatever is tried with it is a RuntimeError."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(self._why)
