"""The C conformance programs: which runs `tests.toml` asks for, and a job of each.

A run is one program with one number of ranks in one environment. Its job has passed if its exit code is 0 and the
program has printed its line PASS.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster import LAUNCHER, Cluster
from jobs import BIN, run_job

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
WARNINGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
LIBRARIES = ["-lm", "-lpthread", "-lrt"]
# What the sanitizers leave out. Leaks: the library keeps its objects until the process ends.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "TSAN_OPTIONS": f"suppressions={HERE / 'tsan.supp'}:ignore_noninstrumented_modules=1:allocator_may_return_null=1:"
    "exitcode=66",
}


@dataclass(frozen=True)
class Run:
    """One program with one number of ranks in one environment."""

    name: str
    program: str
    np: int
    limit: float
    args: Sequence[str]
    env: Mapping[str, str]
    #: Why the program is not compiled for other ABIs.
    standard: str | None


def runs_of(
    environments: Mapping[str, Mapping[str, str]] | None = None,
    full: bool = False,
    translated: bool = False,
    most: int | None = None,
) -> Iterator[Run]:
    """The runs in each of these environments, by default the library's own, with at most so many ranks.

    `full`: also the heavy runs, and the long form of the others. `translated`: also programs for other ABIs only.
    """
    table = tomllib.loads((HERE / "tests.toml").read_text())
    for entry in table["test"]:
        if (entry.get("heavy", False) and not full) or (entry.get("translated", False) and not translated):
            continue
        row = {**table["defaults"], "args": [], "env": {}, **entry}
        if full:
            row |= {key: row[f"full_{key}"] for key in ("args", "limit") if f"full_{key}" in row}
        own = "+".join(
            f"{name.removeprefix('LIMOSA_').lower()}={value.removeprefix('{tests}/')}"
            for name, value in row["env"].items()
        )
        for variant, variables in (environments or {"default": {}}).items():
            counts = row["np"] if variant == "default" else row.get("variant_np", row["np"][-1:])
            if most is not None and counts:
                counts = [np for np in counts if np <= most] or [most]
            for np in counts:
                words = [row["program"], *row["args"], f"np{np}", own, variant if variant != "default" else ""]
                name = "-".join(filter(None, words))
                env = {**row["env"], **variables}
                yield Run(name, row["program"], np, row["limit"], row["args"], env, row.get("standard"))


class Programs:
    """Compiles programs, each once, into a folder that all ranks see, and runs jobs of them."""

    def __init__(
        self,
        folder: Path,
        *,
        messages: Path | None = None,
        compiler: Sequence[object] = (BIN / "mpicc",),
        libraries: Sequence[str] = (),
        launcher: Sequence[object] = (BIN / "mpiexec",),
        env: Mapping[str, str] = os.environ,
        patience: float = 1,
    ) -> None:
        self.folder = folder
        self._places = {"folder": messages or folder, "tests": HERE}
        self._compiler, self._libraries, self._launcher = compiler, libraries, launcher
        self._env = {**SANITIZERS, **env, "LT_FOLDER": str(folder)}
        self._patience = patience
        self._compiled: set[str] = set()

    @classmethod
    def on(cls, hosts: Cluster) -> Programs:
        """Programs that are compiled and started on the first host of a cluster, on which all is slower."""
        first = hosts.hosts[0]
        return cls(
            hosts.shared,
            messages=hosts.shared / "messages",
            compiler=first.command([BIN / "mpicc"]),
            launcher=first.command([LAUNCHER]),
            env=hosts.variables() | {"TMPDIR": str(hosts.shared)},
            patience=3,
        )

    def compile(self, name: str) -> Path:
        """The compiled program; the test fails with what the compiler says."""
        __tracebackhide__ = True
        program = self.folder / name
        if name not in self._compiled:
            files = [HERE / f"{name}.c", "-o", program]
            command = [*self._compiler, *WARNINGS, *files, *LIBRARIES, *self._libraries]
            built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if built.returncode != 0:
                pytest.fail(f"{shlex.join(map(str, command))}\n{built.stdout}", pytrace=False)
            self._compiled.add(name)
        return program

    def check(self, run: Run, more: Mapping[str, str] | None = None) -> None:
        """Do a run, with further variables; the test fails with the output if it has not passed."""
        __tracebackhide__ = True
        variables = {name: value.format(**self._places) for name, value in {**run.env, **(more or {})}.items()}
        command = [*self._launcher, "-n", run.np, self.compile(run.program), *run.args]
        command = [str(word) for word in command]
        done = run_job(command, run.limit * self._patience, env=self._env | variables, stderr=subprocess.STDOUT)
        if done.code != 0 or f"PASS {run.program}" not in done.out:
            reason = "no PASS line" if done.code == 0 else f"exit code {done.code}"
            settings = [f"{name}={value}" for name, value in variables.items()]
            pytest.fail(f"{reason}: {shlex.join([*settings, *command])}\n{done.out}", pytrace=False)
