"""Records made by hand, for the tests of statistics, budgets and reports."""

import json

LIBRARIES = {"limosa": "Limosa", "mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI"}
TITLES = LIBRARIES | {"before": "Limosa before"}


def write(folder, records):
    """Write records into a new folder as a measurement does; give the folder."""
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def environment(libraries=tuple(LIBRARIES), **changes):
    """An environment record with what a report reads."""
    data = {
        "kind": "environment",
        "format": 1,
        "time": "2030-01-01 12:00:00 +0000",
        "load": [0.02, 0.1, 0.1],
        "busy_percent": 0.5,
        "cpu": "Test Processor 9000",
        "processors": 2,
        "processors_of_the_machine": 2,
        "caches": ["L1 Data 32K, processors 0"],
        "virtual_machine": False,
        "memory_mb": 8000,
        "huge_pages": "madvise",
        "system": "Test OS 1",
        "kernel": "6.1",
        "mitigations": {},
        "compiler": "cc 1.0",
        "variables": {"LIMOSA_WAIT": "auto"},
        "options": {"rounds": 2},
        "libraries": [{"name": name, "title": TITLES[name], "version": "1.0", "settings": []} for name in libraries],
    }
    return data | changes


def sample(library, bench, values, **changes):
    """A sample record: a latency of 8 bytes between 2 ranks unless said otherwise."""
    data = {
        "kind": "sample",
        "library": library,
        "program": changes.get("program", bench),
        "round": 0,
        "bench": bench,
        "form": "hot",
        "bytes": 8,
        "ranks": 2,
        "metric": "latency",
        "unit": "us",
        "samples": values,
        "verified": True,
        "x": {},
    }
    return data | changes


def run(library, program, outcome="ok", **changes):
    """A run record."""
    data = {
        "kind": "run",
        "library": library,
        "program": program,
        "ranks": 2,
        "round": 0,
        "command": ["mpiexec", "-n", "2", program],
        "outcome": outcome,
        "exit_code": 0 if outcome == "ok" else None,
        "seconds": 1.0,
        "load": 0.1,
        "left_behind": 0,
        "errors": "",
    }
    return data | changes


END = {"kind": "end", "time": "2030-01-01 13:00:00 +0000", "load": [0.5, 0.5, 0.5]}
