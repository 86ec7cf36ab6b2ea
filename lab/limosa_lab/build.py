"""Compiling the programs, with a cache of binaries in ``${XDG_CACHE_HOME:-~/.cache}/limosa/bench``.

A binary's folder is named after everything it is made of: the source, its headers, the command, the library's version
and, for Limosa, its own header. The file has the plain name of the program, by which programs call themselves.
"""

import hashlib
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from limosa._peers import cache_folder

from limosa_lab.catalogue import Program, headers
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.libraries import COMPILER_FLAGS, Library


def compiled(program: Program, library: Library, version: str, flags: Sequence[str] = COMPILER_FLAGS) -> Path:
    """Give the program compiled with a library of this version, from the cache or else compiled now."""
    header = library.prefix / "include" / "mpi.h"
    command = [*library.compiler, *flags, str(program.source)]
    digest = _digest(program.source, [*command, *library.link, version], [header] if header.exists() else [])
    return _compiled(program.name, command, library.link, f"{library.name}-{digest}", f" with {library.title}")


def compiled_without_mpi(source: Path) -> Path:
    """Give a program that needs no MPI library, from the cache or else compiled now."""
    command = ["cc", *COMPILER_FLAGS, str(source)]
    return _compiled(source.stem, command, [], f"plain-{_digest(source, command, [])}", "")


def _compiled(name: str, command: list[str], link: list[str], key: str, how: str) -> Path:
    folder = cache_folder() / "bench" / key
    target = folder / name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{name}.new"
    command = [*command, "-o", str(unfinished), *link]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError(
            f"{command[0]} is not installed", hint="on Debian: apt-get install gcc libc6-dev", code=ENVIRONMENT
        ) from None
    if done.returncode != 0:
        raise LabError(
            f"{name} cannot be compiled{how}: `{shlex.join(command)}` says:\n{done.stderr.strip()}",
            code=ENVIRONMENT,
        )
    return unfinished.replace(target)


def _digest(source: Path, words: list[str], more: list[Path]) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for file in [source, *headers(source), *more]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
