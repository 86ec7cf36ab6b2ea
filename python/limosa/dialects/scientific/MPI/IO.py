"""``Scientific.MPI.IO``: one file for the notes of all processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

__all__ = ["LogFile"]

_LINE = 75 * "=" + "\n"


class LogFile:
    """Collects what the processes write, and puts it into one file, ordered by rank.

    Until `flush` or `close`, which all processes must call, the text stays where it was written.

    Parameters
    ----------
    filename
        Name of the file; None for the terminal.
    communicator
        Whose processes write; ``world`` if not given.
    """

    def __init__(self, filename: str | None, communicator: Any = None) -> None:
        if communicator is None:
            from limosa.dialects.scientific.MPI.core import world

            communicator = world
        self.filename = filename
        self.communicator = communicator
        self.data = ""
        self.first_chunk = True

    def write(self, string: str) -> None:
        """Note a text."""
        self.data += string

    def flush(self) -> None:
        """Write everyone's notes to the file; collective."""
        if self.communicator.rank:
            self.communicator.send(self.data, 0, 0)
        else:
            texts = [
                self.data,
                *(self.communicator.receiveString(rank, 0)[0] for rank in range(1, self.communicator.size)),
            ]
            chunk = "".join(f"Rank {rank}:\n\n{text}\n\n" for rank, text in enumerate(texts))
            self._append(chunk if self.first_chunk else _LINE + chunk)
        self.data = ""
        self.first_chunk = False

    def _append(self, text: str) -> None:
        if self.filename is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with Path(self.filename).open("w" if self.first_chunk else "a") as file:
                file.write(text)

    def close(self) -> None:
        """Write what is left; collective."""
        self.flush()
