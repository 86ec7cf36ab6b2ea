"""The environment record: everything about the machine and its state that may explain a number."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from limosa_lab.libraries import Library, output_of

# Below this, what others use of the processors is the usual background of a system.
QUIET_PERCENT = 5.0


def processors() -> int:
    """Give the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def record(libraries: Sequence[Library], options: dict[str, Any]) -> dict[str, Any]:
    """Give the environment record for a measurement of these libraries."""
    memory = psutil.virtual_memory()
    return {
        "format": 1,
        "time": now(),
        "load": os.getloadavg(),
        "busy_percent": busy_percent(),
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "processors": processors(),
        "processors_of_the_machine": os.cpu_count(),
        "cores": psutil.cpu_count(logical=False),
        "caches": caches(),
        "frequency_governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "virtual_machine": "hypervisor" in _cpuinfo("flags").split(),
        "memory_mb": memory.total >> 20,
        "memory_available_mb": memory.available >> 20,
        "huge_pages": _text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "shm_mb": _free_mb("/dev/shm"),
        "kernel": platform.release(),
        "system": _os_name(),
        "ptrace_scope": _text("/proc/sys/kernel/yama/ptrace_scope"),
        "mitigations": mitigations(),
        "compiler": output_of(["cc", "--version"]).splitlines()[0],
        "python": platform.python_version(),
        "superuser": os.geteuid() == 0,
        "variables": variables(),
        "options": options,
        "libraries": [library.describe() for library in libraries],
    }


def busy_percent() -> float:
    """Give how much of all processors others use, measured for a second in which this process sleeps."""
    return psutil.cpu_percent(interval=1.0)


def doubts(busy: float, others: Sequence[float]) -> list[str]:
    """Say what others used of the processors at the start, and during each of some runs, if that was much."""
    found = []
    if busy > QUIET_PERCENT:
        found.append(f"Other programs used {busy:.0f} % of the processors at the start.")
    noisy = [percent for percent in others if percent > QUIET_PERCENT]
    if noisy:
        found.append(
            f"Other programs used more than {QUIET_PERCENT:.0f} % of the processors during {len(noisy)} of "
            f"{len(others)} runs, up to {max(noisy):.0f} %."
        )
    return found


class Others:
    """Measures what other programs use of the processors while this one runs jobs and waits for them."""

    def __init__(self) -> None:
        self._before = self._times()

    @staticmethod
    def _times() -> tuple[float, float, float]:
        """Give the seconds since some time, the processor time used by all, and by this program and its jobs."""
        all_of_them = psutil.cpu_times()
        used = sum(all_of_them) - all_of_them.idle - all_of_them.iowait - all_of_them.guest - all_of_them.guest_nice
        mine = sum(os.times()[:4])
        return time.monotonic(), used, mine

    def percent(self) -> float:
        """Give the others' share of all processors since this was made."""
        seconds, used, mine = (now - before for now, before in zip(self._times(), self._before, strict=True))
        share = (used - mine) / max(seconds * (os.cpu_count() or 1), 1e-9)
        return round(100 * min(max(share, 0.0), 1.0), 1)


def end() -> dict[str, Any]:
    """Give the record that closes a measurement."""
    return {"time": now(), "load": os.getloadavg(), "busy_percent": busy_percent()}


def now() -> str:
    """Give the time in the local zone, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S %z")


def cpu_model() -> str:
    """Give the name of the processor."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def caches() -> list[str]:
    """List the caches of the first processor, such as ``L2 Unified 1024K, processors 0-1``."""
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size, shared = (_text(index / name) for name in ("level", "type", "size", "shared_cpu_list"))
        found.append(f"L{level} {kind} {size}, processors {shared}")
    return found


def mitigations() -> dict[str, str]:
    """Give what the kernel says about each weakness of processors, without those that do not concern this one."""
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    states = {file.name: _text(file) for file in sorted(folder.glob("*"))}
    return {name: state for name, state in states.items() if state != "Not affected"}


def variables() -> dict[str, str]:
    """Give the variables of this process that change how one of the libraries works."""
    prefixes = ("LIMOSA_", "MPICH_", "MPIR_", "OMPI_", "PRTE_", "I_MPI_", "FI_", "UCX_", "LD_PRELOAD")
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(prefixes)}


def _cpuinfo(field: str) -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == field:
            return value.strip()
    return ""


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _free_mb(folder: str) -> int | None:
    try:
        return psutil.disk_usage(folder).free >> 20
    except OSError:
        return None
