"""Files that the laboratory writes: whole, or not at all and with a sentence."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limosa_lab.errors import ENVIRONMENT, LabError


@contextmanager
def writing(file: Path) -> Iterator[Path]:
    """Give a name beside a file, under which it is written; after that it has its own name. Folders are made.

    Raises
    ------
    LabError
        If the disk is full, a limit is reached, or the folder cannot be written to. What lay there before remains.

    """
    # The ending remains: it says what format is written.
    unfinished = file.with_name(f".unfinished-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield unfinished
        unfinished.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise cannot_write(file, error) from None


def write(file: Path, content: str | bytes) -> Path:
    """Write a file, as `writing`; give it."""
    with writing(file) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def cannot_write(file: Path, error: OSError) -> LabError:
    """Give the sentence about a file that cannot be written."""
    return LabError(
        f"cannot write {file}: {error.strerror or error}",
        hint="make room there, or name another folder with --output where the command has that option",
        code=ENVIRONMENT,
    )
