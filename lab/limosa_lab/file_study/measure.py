"""The runs of the study, in sequence; everything that was measured goes into `results.json`."""

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

from limosa_lab import machine, output
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.file_study import costs, operations
from limosa_lab.libraries import Limosa
from limosa_lab.study_results import reason
from limosa_lab.terminal import Terminal

HERE = Path(__file__).parent
RESULTS = "results.json"
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
    #: Bytes of arrays that are gathered.
    arrays: tuple[int, ...]
    #: Numbers of ranks that gather.
    gathering: tuple[int, ...]


QUICK = Size((32, 4096, 65536, 1 << 20), (2, 4, 8), 30, 2, 10, (1 << 20,), (2, 4))
NORMAL = Size(
    (*(32 * 8**power for power in range(7)), 16 << 20), (2, 4, 8, 16, 32, 64), 60, 3, 20, (1 << 20, 1 << 30), (2, 4, 8)
)
FULL = dataclasses.replace(NORMAL, trips=200, rounds=5, gathering=(2, 4, 8, 16))
SIZES = {"quick": QUICK, "normal": NORMAL, "full": FULL}


@dataclass(frozen=True)
class Cluster:
    """Hosts that ssh reaches, and a folder that all of them share; with fewer than two hosts nothing is run there."""

    hosts: tuple[str, ...] = ()
    shared: Path = Path()

    def options(self, ranks: int) -> tuple[str, ...]:
        """Give the options of the launcher for so many ranks, in equal numbers on hosts; the first host first."""
        used = min(len(self.hosts), max(2, ranks // 4))
        each = [ranks // used + (at < ranks % used) for at in range(used)]
        return ("-host", ",".join(f"{host}:{count}" for host, count in zip(self.hosts, each)))


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
    #: Options of the launcher.
    options: tuple[str, ...] = ()


def plan(size: Size, folders: dict[str, Path], cluster: Cluster = Cluster()) -> list[Run]:
    """Give all jobs of a round."""
    runs = [Run("pingpong", "shared memory", 2, {}, size.sizes, size.trips)]
    for kind, folder in folders.items():
        device = {"LIMOSA_DEVICE": f"file:{folder}"}
        runs.append(Run("pingpong", f"files, {kind}", 2, device, size.sizes, size.trips))
        clock = {**device, "LIMOSA_FILE_NOTIFY": "clock"}
        runs.append(Run("pingpong", f"files, {kind}, no notices", 2, clock, size.sizes, size.trips))
    device = {"LIMOSA_DEVICE": f"file:{folders[MEMORY]}"}
    for ranks in size.ranks:
        hosts = {**device, "LIMOSA_HOSTS": str(imitated(ranks))}
        for series, algorithm in (("plain", "linear"), ("node-aware", "leaders")):
            variables = {**hosts, "LIMOSA_COLL_BCAST": algorithm}
            runs.append(Run("bcast", series, ranks, variables, (32,), size.broadcasts))
    for ranks in size.gathering:
        hosts = {**device, "LIMOSA_HOSTS": str(imitated(ranks))}
        runs += gatherings(size, ranks, "imitated hosts, files", hosts)
    return runs + (plan_of_hosts(size, cluster) if len(cluster.hosts) > 1 else [])


def gatherings(size: Size, ranks: int, series: str, variables: dict[str, str], *options: str) -> list[Run]:
    """Give the jobs that gather arrays; long ones few times."""
    return [
        Run(bench, series, ranks, variables, (total,), 2 if total > 1 << 24 else size.broadcasts, options)
        for total in size.arrays
        for bench in ("agg", "gather")
    ]


def plan_of_hosts(size: Size, cluster: Cluster) -> list[Run]:
    """Give the jobs of a round on several hosts: files in the folder that they share, and in a folder of each."""
    runs = []
    for series, device in (("central files", f"file:{cluster.shared}"), ("local files", "file:local")):
        variables = {"LIMOSA_DEVICE": device}
        between = cluster.options(2)
        runs.append(Run("pingpong", f"between hosts, {series}", 2, variables, size.sizes, size.trips, between))
        for ranks in size.ranks:
            for name, algorithm in (("plain", "linear"), ("node-aware", "leaders")):
                chosen = {**variables, "LIMOSA_COLL_BCAST": algorithm}
                options = cluster.options(ranks)
                runs.append(Run("apart", f"{series}, {name}", ranks, chosen, (32,), size.broadcasts, options))
        for ranks in size.gathering:
            runs += gatherings(size, ranks, f"hosts, {series}", variables, *cluster.options(ranks))
    return runs


def imitated(ranks: int) -> int:
    """Give the number of imitated hosts: two to eight."""
    return min(8, max(2, ranks // 4))


def per_host(ranks: int) -> int:
    """Give the number of ranks on each imitated host."""
    return -(-ranks // imitated(ranks))


def measure(size: Size, folder: Path, disk: Path, cluster: Cluster, terminal: Terminal) -> None:
    """Run everything; write what was found into the folder."""
    library = Limosa()
    folder.mkdir(parents=True, exist_ok=True)
    memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else disk
    settings = {"study": "files", "disk": str(disk), "memory": str(memory), "hosts": list(cluster.hosts)}
    environment = machine.record([library], settings)
    others: list[float] = []
    with (
        tempfile.TemporaryDirectory(dir=disk, prefix="limosa-study-") as on_disk,
        tempfile.TemporaryDirectory(dir=memory, prefix="limosa-study-") as in_memory,
    ):
        folders = {DISK: Path(on_disk).absolute(), MEMORY: Path(in_memory)}
        reference = build_reference(folders[MEMORY])
        runs = plan(size, folders, cluster)
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
                    watch = machine.Others()
                    found += run_job(library, run)
                    others.append(watch.percent())
        measured = costs.measure(folders[MEMORY])
        copies = costs.measure_copies(cluster.hosts[1]) if len(cluster.hosts) > 1 else {}
        counted = operations.count(library, reference, folders[MEMORY])
    results = {
        "study": "files",
        "environment": environment,
        "others": others,
        "samples": found,
        "costs": {name: dataclasses.asdict(cost) for name, cost in {**measured, **costs.ASSUMED}.items()},
        "copies": {name: dataclasses.asdict(cost) for name, cost in copies.items()},
        "operations": counted,
    }
    output.write(folder / RESULTS, json.dumps(results, default=str) + "\n")


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
        command = [str(program), str(folder), str(length), str(size.trips), str(operations.REFERENCE_INTERVAL)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise LabError(f"the reference failed in {folder}: {done.stderr.strip()}", code=ENVIRONMENT)
        seconds = [float(line) for line in done.stdout.split()]
        sample = {"bench": "pingpong", "series": f"reference, {kind}", "ranks": 2, "bytes": length}
        found.append({**sample, "seconds": seconds[1:]})
    return found


def run_job(library: Limosa, run: Run) -> list[dict[str, object]]:
    """Run a job; one that fails or takes too long gives what it printed, and says so."""
    command = [str(library.prefix / "bin" / "limosa"), "run", "-n", str(run.ranks), "--timeout", "300", *run.options]
    command += [sys.executable, str(HERE / "program.py"), run.bench, str(run.repetitions), *map(str, run.sizes)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **run.variables})
    found: list[dict[str, object]] = []
    for line in done.stdout.splitlines():
        found.append({**json.loads(line), "series": run.series, "ranks": run.ranks})
    if done.returncode != 0:
        trouble = reason(done.stderr)
        found.append({"bench": run.bench, "series": run.series, "ranks": run.ranks, "trouble": trouble})
    return found
