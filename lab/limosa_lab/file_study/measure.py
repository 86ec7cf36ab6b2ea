"""The runs of the study, one after the other; everything that was measured goes into `results.json`."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from limosa_lab import machine
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.file_study import costs
from limosa_lab.libraries import Limosa
from limosa_lab.terminal import Terminal

HERE = Path(__file__).parent
RESULTS = "results.json"
#: How often the reference looks for a lock, in microseconds.
REFERENCE_INTERVAL = 1000
#: Names of the two kinds of folder.
DISK, MEMORY = "disk", "memory"


@dataclass(frozen=True)
class Size:
    """How much is run."""

    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    trips: int
    rounds: int
    broadcasts: int


QUICK = Size((32, 4096, 65536, 1 << 20), (2, 4, 8), 30, 2, 10)
NORMAL = Size((*(32 * 8**power for power in range(7)), 16 << 20), (2, 4, 8, 16, 32), 60, 3, 20)
FULL = dataclasses.replace(NORMAL, ranks=(2, 4, 8, 16, 32, 64), trips=200, rounds=5)


@dataclass(frozen=True)
class Run:
    """One job."""

    bench: str
    series: str
    ranks: int
    variables: dict[str, str]
    #: Bytes, and how often.
    sizes: tuple[int, ...]
    repetitions: int


def plan(size: Size, folders: dict[str, Path]) -> list[Run]:
    """Give all jobs of a round."""
    runs = [Run("pingpong", "shared memory", 2, {}, size.sizes, size.trips)]
    for kind, folder in folders.items():
        device = {"LIMOSA_DEVICE": f"file:{folder}"}
        runs.append(Run("pingpong", f"files, {kind}", 2, device, size.sizes, size.trips))
        clock = {**device, "LIMOSA_FILE_NOTIFY": "clock"}
        runs.append(Run("pingpong", f"files, {kind}, no notices", 2, clock, size.sizes, size.trips))
    device = {"LIMOSA_DEVICE": f"file:{folders[MEMORY]}"}
    for ranks in size.ranks:
        hosts = {**device, "LIMOSA_HOSTS": str(max(2, ranks // 4))}
        for series, algorithm in (("plain", "linear"), ("node-aware", "leaders")):
            variables = {**hosts, "LIMOSA_COLL_BCAST": algorithm}
            runs.append(Run("bcast", series, ranks, variables, (32,), size.broadcasts))
    return runs


def per_host(ranks: int) -> int:
    """Give the number of ranks on each imitated host."""
    hosts = max(2, ranks // 4)
    return -(-ranks // hosts)


def measure(size: Size, folder: Path, disk: Path, terminal: Terminal) -> None:
    """Run everything; write what was found into the folder."""
    library = Limosa()
    folder.mkdir(parents=True, exist_ok=True)
    memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else disk
    with (
        tempfile.TemporaryDirectory(dir=disk, prefix="limosa-study-") as on_disk,
        tempfile.TemporaryDirectory(dir=memory, prefix="limosa-study-") as in_memory,
    ):
        folders = {DISK: Path(on_disk).absolute(), MEMORY: Path(in_memory)}
        reference = build_reference(folders[MEMORY])
        runs = plan(size, folders)
        found: list[dict[str, object]] = []
        with terminal.progress(size.rounds * (len(runs) + len(folders))):
            number = 0
            for _ in range(size.rounds):
                for kind, where in folders.items():
                    terminal.running(number, f"reference, {kind}")
                    number += 1
                    found += run_reference(reference, where, kind, size)
                for run in runs:
                    terminal.running(number, f"{run.bench}, {run.series}, {run.ranks} ranks")
                    number += 1
                    found += run_job(library, run)
        measured = costs.measure(folders[MEMORY])
        operations = count_operations(library, folders[MEMORY])
    results = {
        "study": "files",
        "environment": machine.record([library], {"study": "files", "disk": str(disk), "memory": str(memory)}),
        "samples": found,
        "costs": {name: dataclasses.asdict(cost) for name, cost in {**measured, **costs.ASSUMED}.items()},
        "operations": operations,
    }
    (folder / RESULTS).write_text(json.dumps(results, default=str) + "\n")


def build_reference(folder: Path) -> Path:
    """Compile the program with plain message and lock files."""
    made = folder / "reference"
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise LabError("there is no C compiler for the reference", hint="install gcc", code=ENVIRONMENT)
    subprocess.run([compiler, "-O2", str(HERE / "reference.c"), "-o", str(made)], check=True)
    return made


def run_reference(program: Path, folder: Path, kind: str, size: Size) -> list[dict[str, object]]:
    """Run the reference in a folder."""
    found: list[dict[str, object]] = []
    for length in size.sizes:
        command = [str(program), str(folder), str(length), str(size.trips), str(REFERENCE_INTERVAL)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise LabError(f"the reference failed in {folder}: {done.stderr.strip()}", code=ENVIRONMENT)
        seconds = [float(line) for line in done.stdout.split()]
        sample = {"bench": "pingpong", "series": f"reference, {kind}", "ranks": 2, "bytes": length}
        found.append({**sample, "seconds": seconds[1:]})
    return found


def run_job(library: Limosa, run: Run) -> list[dict[str, object]]:
    """Run a job; one that fails or takes too long gives what it printed, and says so."""
    command = [str(library.prefix / "bin" / "limosa"), "run", "-n", str(run.ranks), "--timeout", "300"]
    command += [sys.executable, str(HERE / "program.py"), run.bench, str(run.repetitions), *map(str, run.sizes)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **run.variables})
    found: list[dict[str, object]] = []
    for line in done.stdout.splitlines():
        found.append({**json.loads(line), "series": run.series, "ranks": run.ranks})
    if done.returncode != 0:
        trouble = (done.stderr.strip().splitlines() or ["no message"])[-1]
        found.append({"bench": run.bench, "series": run.series, "ranks": run.ranks, "trouble": trouble})
    return found


def count_operations(library: Limosa, folder: Path) -> dict[str, float]:
    """Count the system calls about files per message of a ping-pong; empty where strace is missing."""
    strace = shutil.which("strace")
    if strace is None:
        return {}
    counts = []
    for trips in (50, 250):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            log = Path(name) / "log"
            command = [strace, "-f", "-qq", "-o", str(log), "-e", "trace=%file,read,write,close,fstat"]
            command += [str(library.prefix / "bin" / "limosa"), "run", "-n", "2", sys.executable]
            command += [str(HERE / "program.py"), "pingpong", str(trips), "32"]
            variables = {"LIMOSA_DEVICE": f"file:{folder}"}
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, **variables})
            calls: dict[str, int] = {}
            for line in log.read_text(errors="replace").splitlines():
                call = line.split(maxsplit=1)[-1].split("(", 1)[0]
                if call.isidentifier():
                    calls[call] = calls.get(call, 0) + 1
            counts.append(calls)
    few, many = counts
    messages = 2 * (250 - 50)
    per_message = {call: (number - few.get(call, 0)) / messages for call, number in many.items()}
    return {call: number for call, number in sorted(per_message.items()) if number >= 0.05}
