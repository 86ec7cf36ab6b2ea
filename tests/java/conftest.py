"""Fixtures of the tests for Java: a test runs a program in a fresh job with a time limit."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import Job, Outcome, sleeping_yield
from limosa import _java

LIMOSA = Path(sys.executable).parent / "limosa"
PROGRAMS = Path(__file__).parent / "programs"
SERVER = Path(__file__).parent / "CompileServer.java"

#: The kinds of ranks, with their options of ``limosa run``.
RANKS = {
    "processes": [],
    "threads": ["--threads"],
    "machines": ["--threads", "--per-jvm", "1"],
    "threads of machines": ["--threads", "--per-jvm", "2"],
}
#: What programs run on. One machine that holds all ranks is what `threads` has.
RUNS = [
    (ranks, n) for ranks in RANKS for n in (1, 2, 3, 5) if n > {"machines": 1, "threads of machines": 2}.get(ranks, 0)
]


class Java:
    """Runs Java programs with ``limosa run``."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self._home = home
        self._bodies = folder.parent / "bodies"  # for all tests: the same text is compiled once
        self._jobs: list[Job] = []

    def start(self, *words: object, n=2, env=None, options=()) -> Job:
        """Start a program."""
        line = [str(word) for word in (LIMOSA, "run", "-n", n, *options, *words)]
        self._jobs.append(Job(line, env=os.environ | {"JAVA_HOME": str(self._home)} | (env or {}), cwd=self.folder))
        return self._jobs[-1]

    def run(self, *words: object, limit=60.0, succeeds=True, **options) -> Outcome:
        """Run a program to its end; the test fails if it takes too long or, if it should succeed, its code is not 0."""
        outcome = self.start(*words, **options).wait(limit)
        if succeeds and outcome.code != 0:
            pytest.fail(f"the job ended with exit code {outcome.code}; its output:\n{outcome.text}")
        return outcome

    def write(self, text: str, name: str = "Main") -> Path:
        """Write a source file."""
        file = self.folder / f"{name}.java"
        file.write_text(textwrap.dedent(text))
        return file

    def body(self, text: str, **options) -> Outcome:
        """Run statements, in the main method of a program that has called Init and will call Finalize."""
        code = textwrap.indent(textwrap.dedent(text), " " * 8)
        source = f"""\
import java.util.Arrays;
import mpi.*;

public class Main {{
    public static void main(String[] args) throws Exception {{
        MPI.Init(args);
        Intracomm world = MPI.COMM_WORLD;
        int rank = world.Rank();
        int size = world.Size();
{code}
        MPI.Finalize();
    }}
}}
"""
        file = self._bodies / hashlib.sha256(source.encode()).hexdigest()[:16] / "Main.java"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        return self.run(file, **options)

    def end(self) -> None:
        """Kill what still runs."""
        for job in self._jobs:
            job.kill()


@pytest.fixture(scope="session")
def jdk() -> Path:
    """The compiler of a JDK that is new enough; without one, these tests are reported as not run."""
    try:
        _java.jar()
        return _java.find("javac")
    except _java.JavaError as error:
        pytest.skip(f"not run: {error}")


#: A `javac` that leaves its words to the compile server; relative paths are those of the caller.
CLIENT = """\
#!{python} -IS
import os, socket, sys

words = [word for word in sys.argv[1:] if not word.startswith("-J")]
for i, word in enumerate(words[:-1]):
    if word == "-cp":
        words[i + 1] = ":".join(os.path.abspath(each) for each in words[i + 1].split(":"))
words[-1] = os.path.abspath(words[-1])
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{socket}")
    server.sendall(chr(0).join(map(str, words)).encode())
    server.shutdown(socket.SHUT_WR)
    code, _, said = server.makefile(encoding="utf-8").read().partition(chr(10))
sys.stderr.write(said)
sys.exit(int(code))
"""


@pytest.fixture(scope="session")
def short_lived(jdk, tmp_path_factory) -> Iterator[Path]:
    """A JDK whose programs run for a second, in which the best code and a parallel collector do not pay.

    Its `javac` is one machine for all tests; `usual_java` has the compiler that users have.
    """
    home, made = jdk.resolve().parents[1], tmp_path_factory.mktemp("jdk")
    (made / "bin").mkdir()
    (made / "release").symlink_to(home / "release")

    def write(name: str, text: str) -> Path:
        file = made / "bin" / name
        file.write_text(text)
        file.chmod(0o755)
        return file

    java = write("java", f'#!/bin/sh\nexec "{home}/bin/java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@"\n')
    write("javac", CLIENT.format(python=sys.executable, socket=made / "socket"))
    with subprocess.Popen([java, SERVER, made / "socket"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline() == "ready\n"
            yield made
        finally:
            server.kill()


@pytest.fixture(scope="session")
def javac(short_lived) -> Path:
    """The compiler, as quick as it can be started."""
    return short_lived / "bin" / "javac"


@pytest.fixture
def java(short_lived, tmp_path) -> Iterator[Java]:
    """Java with the package mpi, for tests of what is said and of how jobs end."""
    made = Java(tmp_path, short_lived)
    yield made
    made.end()


@pytest.fixture
def usual_java(jdk, tmp_path) -> Iterator[Java]:
    """Java with the package mpi as users have it, for tests of values and for long programs."""
    made = Java(tmp_path, jdk.resolve().parents[1])
    yield made
    made.end()


@pytest.fixture(scope="session")
def programs(jdk, tmp_path_factory) -> Path:
    """The folder with the classes of the programs beside the tests, compiled once."""
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run([jdk, "-cp", _java.jar(), "-d", folder, *PROGRAMS.glob("*.java")], check=True)
    return folder


@pytest.fixture(scope="session")
def on_mpich(mpich, tmp_path_factory) -> list[str]:
    """The options of ``limosa run`` for a job on MPICH."""
    return ["--mpi", "mpich", "-x", f"LD_PRELOAD={sleeping_yield(tmp_path_factory.mktemp('waits'))}"]


@pytest.fixture(scope="session")
def outcomes() -> dict[tuple[str, int], dict[str, Outcome]]:
    """What became of programs that ran in turn, by the kind and number of ranks."""
    return {}


@pytest.fixture
def outcome_of(java, usual_java, programs, outcomes, request) -> Callable[[str, str, int], Outcome]:
    """Give the outcome of a program with a kind and a number of ranks.

    The start of Java costs more than most programs, so the programs of all chosen tests with the same ranks run in turn
    in one job. One that fails ends its job; those behind it run in the next one. With 3 processes each program is a job
    of its own: only the first start of the library in a process is MPI_Init, each later one is a session, whose
    communicators stand for MPI_COMM_WORLD. Ranks that are threads have no such difference.
    """

    def run(java: Java, names: list[str], ranks: str, n: int) -> Outcome:
        job = java.start("-cp", programs, *names, n=n, options=RANKS[ranks])
        try:
            return job.outcome(120)
        except subprocess.TimeoutExpired:
            job.kill()
            return Outcome(job.process.returncode, *job.process.communicate())

    def run_in_turn(left: list[str], ranks: str, n: int) -> dict[str, Outcome]:
        found: dict[str, Outcome] = {}
        while left:
            # The compiler of the best code takes half of the time: two ranks of each kind have it.
            outcome = run(usual_java if n == 2 else java, ["InTurn", *left], ranks, n)
            lines = outcome.out.splitlines()
            done = next((i for i, line in enumerate(lines) if line != "ok"), len(lines))
            if done < len(left):
                passed, failed = left[:done], left[done : done + 1]
            elif outcome == Outcome(0, len(left) * "ok\n", ""):
                passed, failed = left, []
            else:  # any of them may have said more than it should
                passed, failed = [], left
            found |= dict.fromkeys(passed, Outcome(0, "ok\n", "")) | dict.fromkeys(failed, outcome)
            left = left[len(passed) + len(failed) :]
        return found

    def is_alone(name: str, ranks: str, n: int) -> bool:
        # WorldGroups ends without MPI.Finalize.
        return (ranks, n) == ("processes", 3) or name == "WorldGroups"

    def outcome_of(name: str, ranks: str, n: int) -> Outcome:
        if is_alone(name, ranks, n):
            return run(java, [name], ranks, n)
        if (ranks, n) not in outcomes:
            items = [item for item in request.session.items if "outcome_of" in getattr(item, "fixturenames", ())]
            chosen = [item.callspec.params for item in items]
            names = [each["name"] for each in chosen if (each["ranks"], each["n"]) == (ranks, n)]
            names = [each for each in names if not is_alone(each, ranks, n)]
            # Each number of ranks begins with another program.
            outcomes[ranks, n] = run_in_turn(names[n % len(names) :] + names[: n % len(names)], ranks, n)
        return outcomes[ranks, n][name]

    return outcome_of
