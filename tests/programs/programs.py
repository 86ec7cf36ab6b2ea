"""Wrong and correct programs, and what becomes of each: reads the tables, runs cases, judges them.

`wrong.toml` and `right.toml` have one table per file of `wrong/` and `right/`, and in it one row per case of that file.
`np`, `limit` and `missing` may also stand at the beginning of a table, for all its rows. The keys of a row:

np        number of ranks (default: that of the file, or 2)
error     the class of the error that ends the job: of MPI, or in Python the name of the exception; a part is enough
report    a part of what must be on standard error: of a hang report, or, with `code = 0`, of a report at the end
told      the same, of an error or a hang report, whichever comes first
accepted  why the program may pass: the standard allows it, or it cannot be known
text      a part of the error's sentence, or a list of parts
ranks     the ranks that must get the error when it is returned: a list, "all" or "any". Such a case runs once more,
          with an error handler (in Python: an `except`) that records
check     whether it runs with LIMOSA_CHECK=1, and only so
on        a list of "messages", "hosts" and "check": the case runs there too, with LIMOSA_DEVICE=messages,
          LIMOSA_HOSTS=2 or LIMOSA_CHECK=1; "here" is the name of the ordinary way
missing   why Limosa does not do it yet: a reason, or a table of reasons by `on`
code      the exit code, if it is the program's business (a signal that it sends itself, the code of MPI_Abort)
limit     seconds after which the case counts as a hang (default 30)
env       variables of the job's environment

A row of `right.toml` needs none of them: a correct program ends with exit code 0 and is silent on standard error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from jobs import Job, Outcome, sleeping_yield

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
HANG_CODE = 86
ENVIRONMENTS = {
    "here": {},
    "messages": {"LIMOSA_DEVICE": "messages"},
    "hosts": {"LIMOSA_HOSTS": "2"},
    "check": {"LIMOSA_CHECK": "1"},
}
FOR_ALL = ("np", "limit", "missing")  # keys that a file may have, for all its cases
EXPECTATIONS = {"error": ["error"], "report": ["report"], "told": ["error", "report"], "accepted": ["accepted"]}


@dataclass(frozen=True)
class Case:
    """One program, in one environment."""

    folder: str
    theme: str
    name: str
    on: str
    row: dict = field(hash=False, compare=False)

    @property
    def id(self) -> str:
        return f"{self.folder}/{self.theme}:{self.name}" + ("" if self.on == "here" else f"@{self.on}")

    @property
    def source(self) -> Path:
        found = [path for suffix in (".c", ".py") if (path := HERE / self.folder / (self.theme + suffix)).exists()]
        return found[0]

    @property
    def language(self) -> str:
        if self.source.suffix == ".c":
            return "C"
        return self.theme.removeprefix("with_")

    @property
    def expected(self) -> str:
        """What must become of it: a key of `EXPECTATIONS`."""
        return next((kind for kind in EXPECTATIONS if kind in self.row), "accepted")

    @property
    def missing(self) -> str | None:
        reason = self.row.get("missing")
        return reason.get(self.on) if isinstance(reason, dict) else reason


@dataclass(frozen=True)
class Verdict:
    """What became of a case: the outcome's kind, and what is wrong with it ("" if nothing is)."""

    kind: str
    fault: str


def cases(folder: str) -> list[Case]:
    """All cases of a folder, in the order of the table."""
    table = tomllib.loads((HERE / f"{folder}.toml").read_text())
    return [
        Case(folder, theme, name, on, row)
        for theme, name, row in rows(table)
        for on in as_list(row.get("on", "here"), first="here")
    ]


def rows(table: dict) -> Iterator[tuple[str, str, dict]]:
    """Theme, name and row of each case; what is said for a file as a whole is put into its rows."""
    for theme, entries in table.items():
        common = {key: value for key, value in entries.items() if key in FOR_ALL}
        for name, row in entries.items():
            if name not in FOR_ALL:
                yield theme, name, common | row


def as_list(value: str | list[str], first: str | None = None) -> list[str]:
    listed = [value] if isinstance(value, str) else list(value)
    return listed if first is None or first in listed else [first, *listed]


def tool(name: str) -> str:
    """A tool of the environment that runs this."""
    local = Path(sys.executable).parent / name
    found = str(local) if local.exists() else shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} not found; hint: make venv")
    return found


class Runner:
    """Compiles the programs into a folder and runs cases."""

    def __init__(self, folder: Path, mpi: str = "") -> None:
        self.folder = folder
        self.mpi = mpi  # another library, on which cases run with its checks
        self._environment = {"LD_PRELOAD": str(sleeping_yield(folder))} if mpi else {}

    def build(self) -> None:
        for folder in ("wrong", "right"):
            for source in sorted((HERE / folder).glob("*.c")):
                flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", f"-I{HERE}"]
                flags += ["-Wno-nonnull", "-Wno-stringop-overread"]  # MPI_UNWEIGHTED points to nothing
                target = self.folder / f"{folder}-{source.stem}"
                subprocess.run([tool("mpicc"), *flags, source, "-o", target, "-lpthread"], check=True)

    def program(self, folder: str, source: Path) -> list[str]:
        if source.suffix == ".py":
            return [sys.executable, str(source)]
        return [str(self.folder / f"{folder}-{source.stem}")]

    def names(self, folder: str, source: Path) -> list[str]:
        """The names of the cases in a file."""
        listed = subprocess.run([*self.program(folder, source), "--list"], capture_output=True, text=True, check=True)
        return listed.stdout.split()

    def run(self, case: Case, *options: str) -> Outcome | None:
        """Run a case as a job; None if it had to be killed."""
        environment = {**os.environ, **self._environment, **ENVIRONMENTS[case.on], **case.row.get("env", {})}
        if case.row.get("check"):
            environment |= ENVIRONMENTS["check"]
        where = ["--mpi", self.mpi, "--check"] if self.mpi else ["--on-hang=abort"]
        command = [tool("limosa"), "run", *where, "-n", str(case.row.get("np", 2))]
        job = Job([*command, *self.program(case.folder, case.source), *options, case.name], env=environment)
        try:
            return job.outcome(case.row.get("limit", 30))
        except subprocess.TimeoutExpired:
            job.kill()
            return None

    def judge(self, case: Case) -> Verdict:
        """Run a case in all its ways."""
        outcome = self.run(case)
        kind = kind_of(outcome)
        if kind == "crash" and outcome.code == case.row.get("code"):
            kind = "error"  # the program's own, which the table expects
        fault = fault_as_written(case, kind, outcome)
        if not fault and "ranks" in case.row:
            fault = fault_as_recorded(case, self.run(case, "--record"))
        return Verdict(kind, fault)


def kind_of(outcome: Outcome | None) -> str:
    """What became of a job, in one word."""
    if outcome is None:
        return "hang"
    if outcome.code == HANG_CODE:
        return "report"
    if outcome.code < 0 or outcome.code >= 128:
        return "crash"
    if outcome.code != 0:
        return "error" if outcome.err else "silent end"
    return "report" if outcome.err else "accepted"


def lacking(case: Case, text: str) -> str:
    """The first expected part that a text does not have."""
    parts = [part for key in ("text", "report", "told") for part in as_list(case.row.get(key, []))]
    return next((part for part in parts if part not in text), "")


def fault_as_written(case: Case, kind: str, outcome: Outcome | None) -> str:
    """What is wrong with a job whose error handlers are those that MPI sets."""
    shown = f"\n{outcome.code=}\n{outcome.text}" if outcome else ""
    if kind not in EXPECTATIONS[case.expected]:
        return f"{case.expected} expected, but it was: {kind}{shown}"
    if outcome.code != case.row.get("code", outcome.code):
        return f"exit code {outcome.code} instead of {case.row['code']}{shown}"
    if part := lacking(case, outcome.err):
        return f"`{part}` is not in what was said{shown}"
    if case.language == "C" and case.expected == "error" and case.row["error"] not in outcome.err:
        return f"the error class is not {case.row['error']}{shown}"
    return ""


def fault_as_recorded(case: Case, outcome: Outcome | None) -> str:
    """What is wrong with a job whose error handlers record and return."""
    kind = kind_of(outcome)
    if kind != "accepted":
        return f"with errors returned: {kind}" + (f"\n{outcome.text}" if outcome else "")
    np = case.row.get("np", 2)
    lines = re.findall(r"^recorded (\d+) (\S+) (.*)", outcome.out, re.MULTILINE)
    told = {int(rank) for rank, name, text in lines if case.row["error"] in name and not lacking(case, text)}
    ranks = case.row["ranks"]
    wanted = set(range(np)) if ranks == "all" else set() if ranks == "any" else set(ranks)
    if not told or not wanted <= told:
        return f"{case.row['error']} on ranks {ranks} expected, but only ranks {sorted(told)} got it:\n{outcome.out}"
    if case.row.get("usable", True) and outcome.out.split("\n").count("usable") != np:
        return f"MPI_COMM_WORLD does not work any more:\n{outcome.out}"
    return ""
