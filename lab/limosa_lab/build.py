"""Compiling the programs, with a cache of binaries in ``${XDG_CACHE_HOME:-~/.cache}/limosa/bench``.

A binary's folder is named after everything it is made of: the source, its headers, the command, the library's version and,
for Limosa, its own header. The file has the plain name of the program, by which programs call themselves.
"""

import hashlib
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from limosa._peers import cache_folder

from limosa_lab.catalogue import Program
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.libraries import COMPILER_FLAGS, Library


def compiled(program: Program, library: Library, version: str, flags: Sequence[str] = COMPILER_FLAGS) -> Path:
    """Give the program compiled with a library of this version, from the cache or else compiled now."""
    command = [*library.compiler, *flags, str(program.source)]
    folder = cache_folder() / "bench" / f"{library.name}-{_digest(program, library, [*command, *library.link, version])}"
    target = folder / program.name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{program.name}.new"
    command += ["-o", str(unfinished), *library.link]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise LabError(f"{command[0]} is not installed", hint="on Debian: apt-get install gcc libc6-dev", code=ENVIRONMENT) from None
    if done.returncode != 0:
        raise LabError(
            f"{program.name} cannot be compiled with {library.title}: `{shlex.join(command)}` says:\n{done.stderr.strip()}",
            code=ENVIRONMENT,
        )
    return unfinished.replace(target)


def _digest(program: Program, library: Library, words: list[str]) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    header = library.prefix / "include" / "mpi.h"
    for file in [program.source, *_headers(program.source), *([header] if header.exists() else [])]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _headers(source: Path) -> list[Path]:
    """Give the headers beside a source that it includes, directly or through others, each once."""
    found: dict[Path, None] = {}
    waiting = [source]
    while waiting:
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', waiting.pop().read_text(), re.MULTILINE):
            header = source.parent / name
            if header.exists() and header not in found:
                found[header] = None
                waiting.append(header)
    return sorted(found)
