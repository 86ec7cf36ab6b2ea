"""The jobs of the study, in turns; everything that was measured goes into `results.json`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from limosa_lab import build, catalogue, machine, output
from limosa_lab.errors import LabError
from limosa_lab.java_library import needed, twin
from limosa_lab.libraries import Limosa
from limosa_lab.study_results import reason
from limosa_lab.terminal import Terminal

RESULTS = "results.json"
C, ARRAYS, DIRECT, OBJECTS = "C", "Java, arrays", "Java, direct buffers", "Java, objects"
THREADS, THREAD_OBJECTS = "Java threads, arrays", "Java threads, objects"
MPJ = "MPJ Express"
JAVA, JAVA_THREADS = "Java", "Java threads"
C_NODES, JAVA_NODES = "C, a node for each process", "Java, a node for each process"
KERNELS = {
    "Series": "Series",
    "Crypt": "Crypt",
    "SOR": "Sor",
    "SparseMatmult": "SparseMatmult",
    "LUFact": "LuFact",
}
LIMIT = 900
# What Debian's package of MPJ Express has from other packages, where its launcher does not look.
DEBIANS_JARS = [
    Path(f"/usr/share/java/{name}.jar") for name in ("log4j-1.2", "commons-cli", "commons-io", "commons-codec")
]
COMPILED = ("-std=gnu11", "-O3", "-ffp-contract=off")


@dataclass(frozen=True)
class Size:
    """How much is run: bytes, numbers of ranks, samples and rounds of operations; sizes and rounds of kernels."""

    lengths: tuple[int, ...]
    ranks: tuple[int, ...]
    samples: int
    rounds: int
    sizes: str
    processes: tuple[int, ...]


QUICK = Size((8, 1 << 10, 1 << 16, 1 << 20), (2,), 30, 1, "A", (1, 2, 4))
NORMAL = Size((0, *(4**k for k in range(1, 11))), (2, 4), 150, 3, "AB", (1, 2, 3, 4))
FULL = Size((0, *(4**k for k in range(1, 12))), (2, 3, 4), 150, 5, "ABC", (1, 2, 3, 4))
SIZES = {"quick": QUICK, "normal": NORMAL, "full": FULL}


@dataclass(frozen=True)
class Job:
    """One job: its command, and variables; `bench` is the kernel with its size, empty for the suite of operations."""

    series: str
    ranks: int
    command: tuple[str, ...]
    bench: str = ""
    variables: dict[str, str] = field(default_factory=dict)


def measure(size: Size, folder: Path, terminal: Terminal, mpj: Path | None = None) -> None:
    """Run everything; write what was found into the folder.

    Raises
    ------
    LabError
        If there is no JDK or C compiler, or no MPJ Express where it should be.

    """
    needed()
    library = Limosa()
    if mpj:
        check_mpj(mpj)
    folder.mkdir(parents=True, exist_ok=True)
    environment = machine.record([library], {"study": "java"})
    found: list[dict[str, object]] = []
    others: list[float] = []
    with tempfile.TemporaryDirectory(prefix="limosa-study-") as scratch:
        jobs = [*_operations(size, library), *_kernels(size, library)]
        if mpj:
            jobs += mpj_jobs(size, mpj.absolute(), Path(scratch))
        with terminal.progress(size.rounds * len(jobs)):
            for number, job in enumerate(job for _ in range(size.rounds) for job in jobs):
                terminal.running(number, f"{job.bench or 'operations'}, {job.series}, {job.ranks} ranks")
                watch = machine.Others()
                found += run(job)
                others.append(watch.percent())
    results = {"study": "java", "environment": environment, "others": others, "samples": found}
    output.write(folder / RESULTS, json.dumps(results, default=str) + "\n")


def _started(library: Limosa, ranks: int, *options: str) -> tuple[str, ...]:
    limosa = str(library.prefix / "bin" / "limosa")
    return (limosa, "run", "-n", str(ranks), "--timeout", str(LIMIT), *options)


def _suite(size: Size) -> tuple[str, ...]:
    """Give the options of the suite."""
    return ("--sizes", ",".join(map(str, size.lengths)), "--samples", str(size.samples))


def _operations(size: Size, library: Limosa) -> Iterator[Job]:
    """Give the suite of single operations, in C and in Java's ways."""
    program = catalogue.programs()["primitives"]
    in_c = str(build.compiled(program, library, library.version))
    in_java = str(twin(program.source))
    for ranks in size.ranks:
        yield Job(C, ranks, (*_started(library, ranks), in_c, "--forms", "hot", *_suite(size)))
        ways = {ARRAYS: "arrays", DIRECT: "direct"} | ({OBJECTS: "objects"} if ranks == 2 else {})
        for series, buffers in ways.items():
            yield Job(series, ranks, (*_started(library, ranks), in_java, "--buffers", buffers, *_suite(size)))
        ways = {THREADS: "arrays"} | ({THREAD_OBJECTS: "objects"} if ranks == 2 else {})
        for series, buffers in ways.items():
            started = _started(library, ranks, "--threads")
            yield Job(series, ranks, (*started, in_java, "--buffers", buffers, *_suite(size)))


def _kernels(size: Size, library: Limosa) -> Iterator[Job]:
    """Give the kernels: on one node, whose processes share memory, and on several, where each has a node of its own.

    Nodes are of this host; all messages between them go by the network device.
    """
    folder = catalogue.kernels_folder() / "jgf"
    for letter in size.sizes:
        for kernel, name in KERNELS.items():
            source = folder / f"{name.lower()}.c"
            in_c = str(build.compiled(catalogue.Program(source.stem, source, ()), library, library.version, COMPILED))
            in_java = str(folder / f"{name}.java")
            for ranks in size.processes:
                bench = f"{kernel} {letter}"
                started = _started(library, ranks)
                yield Job(C, ranks, (*started, in_c, letter), bench)
                yield Job(JAVA, ranks, (*started, in_java, letter), bench)
                yield Job(JAVA_THREADS, ranks, (*_started(library, ranks, "--threads"), in_java, letter), bench)
                if ranks == max(size.processes):
                    apart = _started(library, ranks, "--device", "fabric", "-x", "LIMOSA_HOSTS=4096")
                    yield Job(C_NODES, ranks, (*apart, in_c, letter), bench)
                    yield Job(JAVA_NODES, ranks, (*apart, in_java, letter), bench)


def check_mpj(mpj: Path) -> None:
    """Refuse a folder without MPJ Express."""
    for file in ("mpj.jar", "starter.jar"):
        if not (mpj / "lib" / file).is_file():
            raise LabError(
                f"{mpj} does not hold MPJ Express: there is no lib/{file}",
                hint="give with --mpj the folder that MPJ Express calls MPJ_HOME",
            )


def mpj_jobs(size: Size, mpj: Path, scratch: Path) -> list[Job]:
    """Give the suite and the kernels with MPJ Express, whose ranks are threads here; they are compiled with it."""
    kernels = catalogue.kernels_folder() / "jgf"
    sources = [twin(catalogue.programs()["primitives"].source), *sorted(kernels.glob("*.java"))]
    java = needed()
    compiler = java.resolve().with_name("javac")
    command = [str(compiler), "-cp", str(mpj / "lib" / "mpj.jar"), "-d", str(scratch), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"the programs cannot be compiled with MPJ Express in {mpj}:\n{done.stderr.strip()}")

    def started(ranks: int) -> tuple[str, ...]:
        starter = str(mpj / "lib" / "starter.jar")
        return (str(java), "-jar", starter, "-np", str(ranks), "-cp", str(scratch))

    home = {"MPJ_HOME": str(mpj), "PATH": f"{java.resolve().parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    elsewhere = [str(file) for file in DEBIANS_JARS if file.is_file()]
    if elsewhere and not list((mpj / "lib").glob("log4j*.jar")):
        home["JAVA_TOOL_OPTIONS"] = "-Xbootclasspath/a:" + os.pathsep.join(elsewhere)
    jobs = [Job(MPJ, n, (*started(n), "Primitives", *_suite(size)), variables=home) for n in size.ranks]
    for letter in size.sizes:
        for kernel, name in KERNELS.items():
            jobs += [Job(MPJ, n, (*started(n), name, letter), f"{kernel} {letter}", home) for n in size.processes]
    return jobs


def run(job: Job) -> list[dict[str, object]]:
    """Run a job; one that fails or takes too long gives what it printed, and says so."""
    facts: dict[str, object] = {"series": job.series, "ranks": job.ranks}
    code: int | None = None
    try:
        done = subprocess.run(
            job.command, capture_output=True, text=True, env=os.environ | job.variables, timeout=LIMIT + 60
        )
        code, out, errors = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        out = late.stdout.decode(errors="replace") if late.stdout else ""
        errors = "it took too long"
    found: list[dict[str, object]] = []
    for line in out.splitlines():
        result = re.match(r"Section2:\w+:Kernel:Size[ABC]\t([0-9.]+) \(s\)", line)
        if result and code == 0:
            found.append(facts | {"bench": job.bench, "bytes": 0, "seconds": [float(result[1])]})
        elif line.startswith('{"bench"'):
            data = json.loads(line)
            if data["verified"]:
                seconds = [1e-6 * min(data["samples"])]
                found.append(facts | {"bench": data["bench"], "bytes": data["bytes"], "seconds": seconds})
    if code != 0:
        bench = job.bench or "operations"
        return [*found, facts | {"bench": bench, "trouble": _reason(errors)}]
    return found


def _reason(errors: str) -> str:
    """Give the line that says best why a job has failed."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    wrong = [line for line in lines if "Validation failed" in line]
    return wrong[0] if wrong else reason(errors)
