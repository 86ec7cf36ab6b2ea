"""What the operations cost that the simulator counts with: measured on this machine, or assumed and labelled so."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from limosa_lab.file_study.schemes import Costs

LARGE = 16 << 20


@dataclass(frozen=True)
class Cost:
    """A time in seconds, and where it comes from."""

    seconds: float
    origin: str


#: What cannot be measured on one machine: a file system that many hosts share, a copy to another host, a network. A
#: shared file system is taken to serve so many requests per second, as one metadata server of a Lustre system does. How
#: many looks it serves was not published; it is fitted to the one published ratio, and the ratio at 2048 processes
#: (34 times) then tests the model.
ASSUMED = {
    "central_create": Cost(1 / 1000, "assumed: 1,000 new files per second"),
    "central_look": Cost(1 / 8000, "fitted: 8,000 looks per second give the published advantage at 1024 processes"),
    "central_byte": Cost(1 / 1e9, "assumed: 1 GB/s"),
    "copy": Cost(0.2, "assumed: scp over a new connection"),
    "copy_byte": Cost(1 / 1e8, "assumed: 100 MB/s, encrypted"),
    "latency": Cost(20e-6, "assumed: TCP in one rack"),
    "overhead": Cost(5e-6, "assumed"),
    "network_byte": Cost(1 / 1e9, "assumed: 10 Gbit/s"),
    "interval": Cost(0.01, "assumed: a look every 10 ms"),
}


def measure(folder: Path, times: int = 200) -> dict[str, Cost]:
    """Measure the file system of a folder."""
    create, look, byte = [], [], []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for index in range(times):
            path = Path(name, str(index))
            begin = perf_counter()
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            created = perf_counter()
            path.exists()
            looked = perf_counter()
            create.append(created - begin)
            look.append(looked - created)
        data = bytes(LARGE)
        for _ in range(5):
            begin = perf_counter()
            (Path(name) / "large").write_bytes(data)
            byte.append((perf_counter() - begin) / LARGE)
    origin = f"measured in {folder}, the median of {times}"
    return {
        "local_create": Cost(statistics.median(create), origin),
        "local_look": Cost(statistics.median(look), origin),
        "byte": Cost(statistics.median(byte), f"measured in {folder}: {LARGE >> 20} MB written, the median of 5"),
    }


def measure_copies(host: str, times: int = 5) -> dict[str, Cost]:
    """Measure what it takes to copy a file to a host, over a new connection of ssh each time, as scp does."""
    found: dict[int, list[float]] = {}
    for length in (32, LARGE):
        for _ in range(times):
            begin = perf_counter()
            subprocess.run(["ssh", host, "cat > /dev/null"], check=True, input=bytes(length))
            found.setdefault(length, []).append(perf_counter() - begin)
    small, large = (statistics.median(seconds) for seconds in found.values())
    origin = f"measured: a copy to {host} by ssh over a new connection, the median of {times}"
    return {"copy": Cost(small, origin), "copy_byte": Cost(max(large - small, 0.0) / LARGE, origin)}


def costs(found: dict[str, Cost]) -> Costs:
    """Give the costs of a simulation."""
    return Costs(**{name: cost.seconds for name, cost in found.items()}, central_width=1)
