"""Our mpifort, and programs that it has compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import Job

BIN = Path(sys.executable).parent
PROGRAMS = Path(__file__).parent / "programs"


class Fortran:
    """Compiles with our mpifort and runs programs with ``limosa run``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mpifort(self, *words: object, succeeds=True, env=None) -> str:
        """Give what mpifort says; the test fails if it fails, or if it should fail and does not."""
        line = [str(BIN / "mpifort"), *map(str, words)]
        done = subprocess.run(
            line, cwd=self.folder, env=os.environ | (env or {}), capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        if (done.returncode == 0) != succeeds:
            pytest.fail(f"{' '.join(line)}: exit code {done.returncode}\n{said}")
        return said

    def compile(self, source: Path, name: str, *options: object) -> Path:
        """Compile a program that uses the module checks; warnings are errors."""
        if not (self.folder / "checks.o").exists():
            self.mpifort("-c", PROGRAMS / "checks.f90")
        flags = ["-g", "-Wall", "-Werror", "-Wno-unused-dummy-argument", f"-I{PROGRAMS}", "-I."]
        self.mpifort(*flags, *options, source, "checks.o", "-o", name)
        return self.folder / name

    def run(self, program: Path, ranks: int, *options: str) -> None:
        """Run a program, which must say that it is done."""
        line = [str(BIN / "limosa"), "run", *options, "-n", str(ranks), str(program)]
        job = Job(line, env=dict(os.environ), cwd=self.folder)
        outcome = job.wait(60)
        assert (outcome.code, outcome.text.split()) == (0, ["done"]), outcome.text
