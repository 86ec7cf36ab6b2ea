"""Counts the instructions that calls of the library execute, with valgrind's tool callgrind.

`python tests/performance/counting.py` measures all cases of the laboratory's instructions.c, and what the profiler adds
and the translations of other ABIs add to the calls in profiled.c, and prints them as ceilings.toml has them.
"""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "python" / "limosa")]

import _peers  # noqa: E402
from limosa_lab import callgrind  # noqa: E402
from limosa_lab.callgrind import Count  # noqa: E402

# A ceiling is this much above what was measured: room for another compiler, not for more work.
ROOM = 1.15
# A run under valgrind takes some seconds on an idle machine; this only ends one that hangs.
PATIENCE = 900


def tool(name: str) -> Path | None:
    """A tool of the library under test: in the folder PERFORMANCE_BIN, the project's .venv, or on the PATH."""
    given = os.environ.get("PERFORMANCE_BIN")
    folders = [given] if given else [str(ROOT / ".venv" / "bin"), *os.environ.get("PATH", "").split(os.pathsep)]
    found = shutil.which(name, path=os.pathsep.join(folders))
    return Path(found) if found else None


def missing() -> str | None:
    """What this machine lacks for counting, in one sentence with the remedy; None if nothing."""
    if tool("mpicc") is None or tool("mpiexec") is None:
        return "mpicc and mpiexec are not here; make them with:  make venv"
    return callgrind.missing()


def compiled(source: Path, folder: Path, *words: str, compiler: str | None = None) -> Path:
    """Compile a C file."""
    program = folder / source.stem
    command = [compiler or str(tool("mpicc")), *callgrind.FLAGS, str(source), "-o", str(program), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def measure(folder: Path) -> dict[str, Count]:
    """Run the laboratory's instructions.c on 2 ranks under callgrind; give the least count of each case."""
    program = compiled(callgrind.SOURCE, folder)
    # A partner that polls is awake when it is needed, so that no wake-up is counted.
    environment = {**os.environ, "LIMOSA_WAIT": "poll"}
    command = [str(tool("mpiexec")), "-n", "2", *callgrind.command(folder), str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return callgrind.counts(folder)


def measure_profiler(folder: Path) -> dict[str, Count]:
    """Run profiled.c on one rank under callgrind; give what the profiler adds to each call, at best."""
    program = compiled(HERE / "profiled.c", folder)
    found = []
    for words in ([], [f"--profile={folder / 'profile'}"]):
        dumps = folder / f"dumps{len(found)}"
        dumps.mkdir()
        command = [str(tool("limosa")), "run", *words, "-n", "1", *callgrind.command(dumps), str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(callgrind.counts(dumps))
    return added(*found)


def added(plain: dict[str, Count], more: dict[str, Count]) -> dict[str, Count]:
    """By how much the counts of the second run exceed those of the first."""
    return {case: Count(more[case].instructions - plain[case].instructions, more[case].dump) for case in plain}


def measure_translation(name: str, folder: Path) -> dict[str, Count]:
    """Run profiled.c, compiled for both ABIs, on one rank under callgrind; give what the translation adds to each call.

    The package with the other library's header is downloaded once.
    """
    other = _peers.install(name, name, name, print)
    # Open MPI's library names others, which are not needed to link.
    link = ["-lmpi", "-Wl,--unresolved-symbols=ignore-in-shared-libs"]
    words = {"standard": [], name: [f"-I{other}/include", f"-L{other}/lib", *link]}
    found = []
    for abi, options in words.items():
        dumps = folder / abi
        dumps.mkdir()
        program = compiled(HERE / "profiled.c", dumps, "-DWITH_SEND", *options, compiler="cc" if options else None)
        command = [str(tool("limosa")), "run", "-n", "1", *callgrind.command(dumps), str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(callgrind.counts(dumps))
    return added(*found)


def main() -> None:
    """Print what is measured now as tables of ceilings.toml."""
    lack = missing()
    if lack:
        sys.exit(lack)
    today = datetime.date.today()
    machine = platform.machine()
    tables = {machine: measure, f"profiler.{machine}": measure_profiler}
    tables |= {f"{name}.{machine}": partial(measure_translation, name) for name in ("mpich", "openmpi")}
    for table, measured in tables.items():
        with tempfile.TemporaryDirectory() as folder:
            print(f"[{table}]")
            for case, count in measured(Path(folder)).items():
                ceiling = round(count.instructions * ROOM)
                print(f"{case} = {{ ceiling = {ceiling}, measured = {count.instructions}, date = {today} }}")


if __name__ == "__main__":
    main()
