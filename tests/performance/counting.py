"""Counts the instructions that calls of the library execute, with valgrind's tool callgrind.

`python tests/performance/counting.py` measures all cases of calls.c and prints them as ceilings.toml has them.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# A ceiling is this much above what was measured: room for another compiler, not for more work.
ROOM = 1.15
# A run under valgrind takes some seconds; this only ends one that hangs.
PATIENCE = 120


@dataclass(frozen=True)
class Count:
    """What a case took at best: instructions, and the file in which callgrind keeps where they went."""

    instructions: int
    dump: Path


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
    header = subprocess.run(
        ["cc", "-E", "-"], input="#include <valgrind/callgrind.h>\n", capture_output=True, text=True
    )
    if shutil.which("valgrind") is None or header.returncode != 0:
        return "valgrind or its header callgrind.h is not here; on Debian:  sudo apt-get install valgrind"
    return None


def compiled(name: str, folder: Path) -> Path:
    """Compile a C file of this folder."""
    program = folder / name
    flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra"]
    done = subprocess.run(
        [str(tool("mpicc")), *flags, str(HERE / f"{name}.c"), "-o", str(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return program


def measure(folder: Path) -> dict[str, Count]:
    """Run calls.c on 2 ranks under callgrind; give for each case the repetition that took least."""
    program = compiled("calls", folder)
    # A partner that polls is awake when it is needed, so that no wake-up is counted.
    environment = {**os.environ, "LIMOSA_WAIT": "poll"}
    # Each of the many dumps must be readable by itself, hence no compressed names.
    callgrind = [
        "valgrind",
        "-q",
        "--tool=callgrind",
        "--compress-strings=no",
        f"--callgrind-out-file={folder}/dump.%p",
    ]
    command = [str(tool("mpiexec")), "-n", "2", *callgrind, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    best: dict[str, Count] = {}
    for dump in sorted(folder.glob("dump.*")):
        text = dump.read_text()
        case = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if case and total:
            count = Count(int(total[1]), dump)
            best[case[1]] = min(best.get(case[1], count), count, key=lambda each: each.instructions)
    return best


def main() -> None:
    """Print what is measured now as a table of ceilings.toml."""
    lack = missing()
    if lack:
        sys.exit(lack)
    today = datetime.date.today()
    with tempfile.TemporaryDirectory() as folder:
        print(f"[{platform.machine()}]")
        for case, count in measure(Path(folder)).items():
            print(
                f"{case} = {{ ceiling = {round(count.instructions * ROOM)}, measured = {count.instructions}, date = "
                f"{today} }}"
            )


if __name__ == "__main__":
    main()
