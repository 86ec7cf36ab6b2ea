"""Fixtures of the fault tests: the tools under test, compiled programs, and jobs that never outlive their test.

`FAULTS_MPICC`, `FAULTS_MPIEXEC` and `FAULTS_PYTHON` name other tools than those of the project's environment. Tests
of Limosa's launcher are skipped when
the tools are another library's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import Job

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def tool(name: str) -> str:
    """The path of a tool: from the environment, the project's .venv, or PATH."""
    override = os.environ.get(f"FAULTS_{name.upper()}")
    if override:
        return override
    local = ROOT / ".venv" / "bin" / name
    found = str(local) if local.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} not found; hint: make venv")
    return found


def is_limosa() -> bool:
    return (Path(tool("mpiexec")).parent / "limosa").exists()


@pytest.fixture
def job():
    """Starts jobs: `job(["program"], n=2, options=[...], env={...})`. They are killed at the end of the test."""
    jobs: list[Job] = []

    def start(
        command: list[str],
        n: int = 2,
        options: list[str] | None = None,
        env: dict[str, str] | None = None,
        wrapper=(),
        **popen,
    ) -> Job:
        line = [*wrapper, tool("mpiexec"), *(options or []), "-n", str(n), *map(str, command)]
        jobs.append(Job(line, env={**os.environ, **(env or {})}, **popen))
        return jobs[-1]

    yield start
    for each in jobs:
        each.kill()


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Compiles a C file of this folder once and gives the path of the program."""
    done: dict[str, Path] = {}
    folder = tmp_path_factory.mktemp("faults")

    def build(name: str) -> Path:
        if name not in done:
            target = folder / name
            include = f"-I{ROOT / 'tests' / 'conformance'}"
            flags = [
                "-std=c11",
                "-D_GNU_SOURCE",
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-Wno-nonnull",
                "-Wno-missing-field-initializers",
            ]
            command = [tool("mpicc"), *flags, include, str(HERE / f"{name}.c"), "-o", str(target), "-lpthread"]
            built = subprocess.run(command, capture_output=True, text=True)
            assert built.returncode == 0, built.stderr
            done[name] = target
        return done[name]

    return build


@pytest.fixture
def limosa() -> str:
    """The `limosa` command; skips the test with another library's launcher."""
    if not is_limosa():
        pytest.skip("needs Limosa's launcher")
    return str(Path(tool("mpiexec")).parent / "limosa")


@pytest.fixture(scope="session")
def prefix() -> Path:
    """The environment of the compiler wrapper: header and library are in it."""
    return Path(tool("mpicc")).parents[1]


@pytest.fixture
def python() -> str:
    """The Python that has mpi4py, if there is one."""
    local = ROOT / ".venv" / "bin" / "python"
    chosen = os.environ.get("FAULTS_PYTHON") or (str(local) if local.exists() else sys.executable)
    if subprocess.run([chosen, "-c", "import mpi4py"], capture_output=True).returncode != 0:
        pytest.skip("needs mpi4py")
    return chosen
