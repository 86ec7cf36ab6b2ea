"""The jobs of the study, in turns; everything that was measured goes into `results.json`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from limosa_lab import catalogue, machine, output
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.libraries import Limosa
from limosa_lab.study_results import reason
from limosa_lab.terminal import Terminal

HERE = Path(__file__).parent
RESULTS = "results.json"
PICTURE = "mandelbrot.bytes"
MODERN, MPITB = "Limosa's functions", "MPITB"
#: MatlabMPI's ways, by the name that `matlabmpi.m` gives them.
MATLABMPI = {
    "memory": "MatlabMPI, memory",
    "files": "MatlabMPI, files",
    "original": "MatlabMPI's original scheme",
    "bare": "the same, names of files given",
}
#: Programs with distributed arrays, by the name that `arrays.m` and `beside_octave.py` give them.
ARRAYS = {"pmatlab": "Octave, pMatlab", "modern": "Octave, limosa_gather", "python": "Python, limosa.arrays"}
PROGRAMS = ("stream", "hpl", "fft", "agg")
LIMIT = 600.0


@dataclass(frozen=True)
class Size:
    """How much is run: lengths in bytes, numbers of ranks, samples of each, turns, points of the Mandelbrot set.

    Of the programs with distributed arrays: elements of STREAM, rows of HPL, elements of FFT, bytes of agg.
    """

    lengths: tuple[int, ...]
    ranks: tuple[int, ...]
    samples: int
    rounds: int
    points: int
    arrays: tuple[tuple[int, ...], ...]


QUICK = Size((8, 1 << 10, 1 << 16, 1 << 20), (2, 4), 10, 1, 600, ((1 << 20,), (480,), (1 << 16,), (1 << 20,)))
NORMAL = Size(
    *((8, *(4**power << 10 for power in range(8))), (2, 3, 4, 6, 8), 30, 2, 2400),
    arrays=((10_000_000,), (960,), (1 << 20,), (1 << 20, 1 << 26)),
)
FULL = Size(
    *((8, *(4**power << 10 for power in range(10))), (2, 3, 4, 6, 8, 12, 16), 30, 3, 4800),
    arrays=((10_000_000,), (1920,), (1 << 22,), (1 << 20, 1 << 30)),
)
SIZES = {"quick": QUICK, "normal": NORMAL, "full": FULL}


def measure(size: Size, folder: Path, terminal: Terminal) -> None:
    """Run everything; write what was found into the folder.

    Raises
    ------
    LabError
        If Octave or a C compiler is missing.

    """
    for program, package in {"octave-cli": "octave", "mkoctfile": "octave-dev"}.items():
        if shutil.which(program) is None:
            hint = f"on Debian:  sudo apt-get install {package}"
            raise LabError(f"{program} is not installed", hint=hint, code=ENVIRONMENT)
    library = Limosa()
    folder.mkdir(parents=True, exist_ok=True)
    environment = machine.record([library], {"study": "octave"})
    found: list[dict[str, object]] = []
    others: list[float] = []
    with tempfile.TemporaryDirectory(prefix="limosa-study-") as scratch:
        bounce = Path(scratch) / "bounce"
        subprocess.run([library.prefix / "bin" / "mpicc", "-O2", HERE / "bounce.c", "-o", bounce], check=True)
        jobs = list(_jobs(size, bounce, folder.absolute()))
        with terminal.progress(size.rounds * len(jobs)):
            for number, job in enumerate(job for _ in range(size.rounds) for job in jobs):
                terminal.running(number, f"{job.bench}, {job.series}, {job.ranks} ranks")
                watch = machine.Others()
                found += run(library, job)
                others.append(watch.percent())
    results = {"study": "octave", "environment": environment, "others": others, "samples": found}
    output.write(folder / RESULTS, json.dumps(results, default=str) + "\n")


@dataclass(frozen=True)
class Job:
    """One job: what the launcher is given after the number of ranks, and variables."""

    bench: str
    series: str
    ranks: int
    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()


def _jobs(size: Size, bounce: Path, folder: Path) -> list[Job]:
    lengths = [str(length) for length in size.lengths]
    programs = {
        "C": [str(bounce)],
        MPITB: ["--dialect", "mpitb", str(HERE / "mpitb.m")],
        MODERN: [str(HERE / "modern.m")],
    }
    jobs = [
        Job("pingpong", series, 2, (*words, "pingpong", str(size.samples), *lengths))
        for series, words in programs.items()
    ]
    shorter = " ".join(length for length in lengths if int(length) <= 1 << 24)
    variables = (("MATLABMPI_STUDY_BYTES", shorter), ("MATLABMPI_STUDY_ROUNDS", str(max(2, size.samples // 10))))
    jobs.append(Job("pingpong", "MatlabMPI", 2, ("--dialect", "matlabmpi", str(HERE / "matlabmpi.m")), variables))
    for ranks in size.ranks:
        jobs += [
            Job("bcast", series, ranks, (*words, "bcast", str(size.samples), "1024"))
            for series, words in programs.items()
        ]
    for ranks in (1, *size.ranks):
        if ranks <= 2 * (os.cpu_count() or 1):
            picture = str(folder / PICTURE)
            jobs.append(Job("mandelbrot", MODERN, ranks, (str(HERE / "mandelbrot.m"), str(size.points), picture)))
    return [*jobs, *_programs(size)]


def _programs(size: Size) -> Iterator[Job]:
    """Give the programs with distributed arrays: on one rank, and on as many as there are processors for."""
    most = max((ranks for ranks in size.ranks if ranks <= (os.cpu_count() or 1)), default=1)
    languages = {
        "pmatlab": ("--dialect", "pmatlab", str(HERE / "arrays.m")),
        "python": (sys.executable, str(catalogue.kernels_folder() / "arrays" / "beside_octave.py")),
    }
    for program, sizes in zip(PROGRAMS, size.arrays, strict=True):
        for ranks in sorted({1, most}):
            for name, words in languages.items():
                given = (*words, program, str(min(size.samples, 10)), *map(str, sizes))
                yield Job(program, ARRAYS[name], ranks, given)


def run(library: Limosa, job: Job) -> list[dict[str, object]]:
    """Run a job; one that fails or takes too long gives what it printed, and says so."""
    command = [str(library.prefix / "bin" / "limosa"), "run", "-n", str(job.ranks), "--timeout", str(LIMIT), *job.words]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | dict(job.variables))
    found: list[dict[str, object]] = []
    facts: dict[str, object]
    for line in done.stdout.splitlines():
        first, length, *values = line.split()
        series = (MATLABMPI | ARRAYS).get(first, job.series)
        facts = {"bench": job.bench, "series": series, "ranks": job.ranks, "bytes": int(length)}
        if values and values[0].startswith("="):
            facts["check"] = float(values.pop(0)[1:])
        found.append(facts | {"seconds": [float(value) for value in values]})
    if done.returncode != 0:
        trouble = reason(done.stderr)
        found.append({"bench": job.bench, "series": job.series, "ranks": job.ranks, "trouble": trouble})
    return found
