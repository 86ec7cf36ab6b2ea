"""Start an Octave script as a rank: ``python -m limosa._octave SCRIPT ARGUMENTS...`` becomes Octave.

``limosa run script.m`` starts this for every rank, and ``limosa run octave-cli ARGUMENTS...`` starts
``python -m limosa._octave --program octave-cli ARGUMENTS...``: an Octave that finds the same functions. They are
compiled once for each Octave and each installation of Limosa, into ``${XDG_CACHE_HOME:-~/.cache}/limosa/octave/``; the
first rank does it, the others wait. ``LIMOSA_DIALECT`` names a toolbox of the past (`TOOLBOXES`) to be put on Octave's
path.

``python -m limosa._octave --path matlabmpi`` prints the statement that makes a toolbox known to any other Octave.

For work on the package: ``OCTAVE_LIMOSA_PACKAGE`` names its folder, ``OCTAVE_LIMOSA_MODULES`` one in which ``make`` has
compiled its modules.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import time
from functools import cache
from pathlib import Path

from limosa import _peers

TYPE_CHECKING = False  # each rank starts with this module, so it imports little: not `typing`
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["OctaveError", "command", "modules", "package", "statement"]

#: Toolboxes of the past, and what each needs: folders of the package, and compiled modules. The last is found first.
TOOLBOXES = {"matlabmpi": ["matlabmpi"], "mpi": ["mpi"], "mpitb": ["mpitb"], "pmatlab": ["matlabmpi", "pmatlab"]}

#: No windows, no greeting, no file with the history of commands.
_OPTIONS = ["--no-gui", "--quiet", "--no-history", "--no-window-system"]


_TIME_TO_END = 2.0
"""How long a rank that cannot start waits for the first one to say why, in seconds."""


class OctaveError(Exception):
    """Octave or a part of it is missing or does not work; the text says what to do."""


def package() -> Path:
    """Give the folder of the Octave package: in the wheel, or in the sources."""
    if given := os.environ.get("OCTAVE_LIMOSA_PACKAGE"):
        return Path(given)
    here = Path(__file__).resolve().parent
    return here / "octave" if (here / "octave").is_dir() else here.parents[1] / "octave"


def command(script: str, arguments: list[str], dialect: str = "") -> tuple[list[str], dict[str, str]]:
    """Give the command that runs a script, and the variables it needs.

    Raises
    ------
    OctaveError
        If Octave or what compiles for it is missing.
    """
    octave = _program("octave-cli", "octave")
    start = str(package() / "run" / "start.m")
    variables = _variables(octave, [*_folders(octave, dialect), package() / "run" / "path"])
    variables |= {"OCTAVE_LIMOSA_SCRIPT": str(Path(script).absolute()), "OCTAVE_LIMOSA_START": start}
    return [octave, *_OPTIONS, start, *arguments], variables


def program_variables(dialect: str) -> dict[str, str]:
    """Give the variables by which an Octave with a command line of its own finds the functions.

    There are none if they cannot be compiled and no dialect asks for them: this Octave may need none.

    Raises
    ------
    OctaveError
        If what the dialect needs cannot be compiled.
    """
    try:
        octave = _program("octave-cli", "octave")
        variables = _variables(octave, [*_folders(octave, dialect), package() / "run" / "program"])
    except OctaveError:
        if dialect:
            raise
        return {}
    places = [variables["OCTAVE_LIMOSA_PATH"], os.environ.get("OCTAVE_PATH", "")]
    return variables | {"OCTAVE_PATH": os.pathsep.join(filter(None, places))}


def _variables(octave: str, folders: list[Path]) -> dict[str, str]:
    """Give the variables of every rank in Octave."""
    # Octave's own handlers of SIGTERM would write a file; see octave/src/default_signals.c.
    before = os.environ.get("LD_PRELOAD", "")
    built = modules(octave, ["limosa"])
    silent = str(built / "libdefault_signals.so")
    return {
        "LD_PRELOAD": f"{silent}:{before}" if before else silent,
        "OCTAVE_LIMOSA_MODULE": str(built / "limosa" / "limosa.oct"),
        "OCTAVE_LIMOSA_PRELOAD": before,
        "OCTAVE_LIMOSA_PATH": os.pathsep.join(map(str, folders)),
    }


def _folders(octave: str, dialect: str) -> list[Path]:
    """Give the folders of the package and of a dialect's toolboxes, the first one to be found first."""
    if dialect not in {"", "auto", *TOOLBOXES}:
        raise OctaveError(f"--dialect {dialect} is not for Octave; for Octave there are {', '.join(TOOLBOXES)}")
    names = ["limosa", *TOOLBOXES.get(dialect, [])]
    built, folder = modules(octave, names), package()
    folders = [folder / "inst"]
    for name in names:
        folders[:0] = [place for place in (folder / name, built / name) if place.is_dir()]
    return folders


def statement(dialect: str) -> str:
    """Give the statement that makes a toolbox known to an Octave that is no rank.

    Raises
    ------
    OctaveError
        If there is no such toolbox, or Octave or what compiles for it is missing.
    """
    if dialect not in TOOLBOXES:
        raise OctaveError(f"there is no toolbox {dialect!r}; there are {', '.join(TOOLBOXES)}")
    folders = _folders(_program("octave-cli", "octave"), dialect)
    quoted = ("'" + str(folder).replace("'", "''") + "'" for folder in folders)
    return f"addpath ({', '.join(quoted)});"


def modules(octave: str, names: list[str]) -> Path:
    """Give the folder with the compiled modules for this Octave; those named are compiled if they are not there yet.

    Raises
    ------
    OctaveError
        If they cannot be compiled.
    """
    if given := os.environ.get("OCTAVE_LIMOSA_MODULES"):
        return Path(given)
    key = _digest(octave)
    built = _peers.cache_folder() / "octave" / key
    if _are_in(built, names):
        return built
    built = _writable_cache() / key
    built.mkdir(parents=True, exist_ok=True)
    with (built / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _are_in(built, names):
            _compile(names, built)
            for name in names:
                _stamp(built, name).touch()
    return built


@cache
def _digest(octave: str) -> str:
    """Give a digest of all that compiled modules depend on."""
    program = Path(octave).resolve()
    told = hashlib.sha256(f"{program} {program.stat().st_mtime_ns} {_library()}".encode())
    for file in sorted((package() / "src").iterdir()):
        told.update(file.name.encode() + b"\0" + file.read_bytes())
    return told.hexdigest()[:16]


def _library() -> Path:
    return Path(sys.prefix) / "lib" / "limosa"


def _are_in(built: Path, names: list[str]) -> bool:
    """Tell whether a folder has these modules, compiled to the end."""
    return all(_stamp(built, name).exists() for name in names)


def _stamp(built: Path, name: str) -> Path:
    return built / f"{name}.complete"


def _compile(names: list[str], built: Path) -> None:
    """Compile modules."""
    import subprocess
    import tempfile

    compiler = _program("mkoctfile", "octave-dev")
    make = _program("make", "make")
    _say(f"compiling Limosa's functions for Octave, once, into {built}")
    variables = [
        f"MPI_INCLUDE={Path(sys.prefix) / 'include/limosa'}",
        f"MPI_LIB={_library()}",
        f"OUT={built}",
        f"MKOCTFILE={compiler}",
    ]
    jobs = min(4, len(os.sched_getaffinity(0)))
    line = [make, f"-j{jobs}", "-C", str(package() / "src"), f"MODULES={' '.join(names)}", *variables]
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment)
        output.seek(0)
        if done.returncode:
            raise OctaveError(f"Limosa's functions for Octave cannot be compiled:\n{output.read()}")


def _writable_cache() -> Path:
    """Give the folder for compiled modules; a temporary one, for this user, if the cache cannot be written."""
    import tempfile

    folder = _peers.cache_folder() / "octave"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"limosa-octave-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise OctaveError(
                f"the folder {folder} belongs to another user; set XDG_CACHE_HOME to one of yours"
            ) from None
        return folder


def _program(name: str, debian: str) -> str:
    import shutil

    found = shutil.which(name)
    if found is None:
        raise OctaveError(f"Octave scripts need {name}, which is not in PATH; on Debian: sudo apt-get install {debian}")
    return found


def _say(text: str) -> None:
    """Tell the user something."""
    print(f"limosa: {text}", file=sys.stderr, flush=True)


def main() -> NoReturn:
    """Become Octave."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m limosa._octave SCRIPT [ARGUMENTS]... | --program OCTAVE ... | --path TOOLBOX")
    dialect = os.environ.get("LIMOSA_DIALECT", "")
    try:
        if sys.argv[1] == "--path":
            print(statement(" ".join(sys.argv[2:])))
            sys.exit()
        if sys.argv[1] == "--program":
            line, variables = sys.argv[2:], program_variables(dialect)
        else:
            line, variables = command(sys.argv[1], sys.argv[2:], dialect)
    except OctaveError as error:
        # All ranks have the same reason. The first says it, and the launcher ends those that wait.
        if os.environ.get("LIMOSA_RANK", "0") == "0":
            _say(str(error))
        else:
            time.sleep(_TIME_TO_END)
        sys.exit(3)
    os.environ |= variables
    os.execv(line[0], line)  # noqa: S606 - Octave takes the place of this process


if __name__ == "__main__":
    main()
