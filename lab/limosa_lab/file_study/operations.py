"""What messages cost a file system: operations on the folder of the messages, counted by strace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from limosa_lab.libraries import Limosa

HERE = Path(__file__).parent
#: How often the reference looks for a lock, in microseconds.
REFERENCE_INTERVAL = 1000
#: Numbers of round trips, and seconds of waiting, whose difference is counted.
TRIPS = (50, 250)
WAITS = (1, 3)
REFERENCE = "reference"
#: Ways of noticing files, and their variables.
WAYS = {"files": {}, "files, no notices": {"LIMOSA_FILE_NOTIFY": "clock"}}
#: Calls of the system about a file or a folder, by name or by descriptor.
CALLS = "trace=%file,read,write,pread64,pwrite64,close,fstat,getdents64"

Counts = dict[str, dict[str, float]]


def count(library: Limosa, reference: Path, folder: Path) -> dict[str, Counts]:
    """Count operations per message of 32 bytes, and per second of waiting for one; empty where strace is missing."""
    strace = shutil.which("strace")
    if strace is None:
        return {}
    run = [str(library.prefix / "bin" / "limosa"), "run", "-n", "2", sys.executable, str(HERE / "program.py")]
    plain = [str(reference), str(folder), "32"]
    messages: Counts = {}
    waiting: Counts = {}
    few, many = (_calls(strace, [*plain, str(trips), str(REFERENCE_INTERVAL)], folder, {}) for trips in TRIPS)
    messages[REFERENCE] = _difference(few, many, 2 * (TRIPS[1] - TRIPS[0]))
    # The pauses of a single trip; the second process waits while the first one does.
    few, many = (_calls(strace, [*plain, "1", "1000", str(seconds * 10**6)], folder, {}) for seconds in WAITS)
    waiting[REFERENCE] = _difference(few, many, WAITS[1] - WAITS[0])
    for name, variables in WAYS.items():
        device = {"LIMOSA_DEVICE": f"file:{folder}", **variables}
        few, many = (_calls(strace, [*run, "pingpong", str(trips), "32"], folder, device) for trips in TRIPS)
        messages[name] = _difference(few, many, 2 * (TRIPS[1] - TRIPS[0]))
        few, many = (_calls(strace, [*run, "wait", "1", str(seconds)], folder, device) for seconds in WAITS)
        waiting[name] = _difference(few, many, WAITS[1] - WAITS[0])
    return {"message": messages, "waiting": waiting}


def _calls(strace: str, command: list[str], folder: Path, variables: dict[str, str]) -> Counter[str]:
    """Count the calls of a program, and of those that it starts, that name something in the folder."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        log = Path(name) / "log"
        traced = [strace, "-f", "-y", "-qq", "-o", str(log), "-e", CALLS, *command]
        subprocess.run(traced, check=True, capture_output=True, env={**os.environ, **variables})
        return counted(log.read_text(errors="replace"), folder)


def counted(log: str, folder: Path) -> Counter[str]:
    """Count the calls in a log of strace that name something in a folder."""
    found: Counter[str] = Counter()
    for line in log.splitlines():
        call, parenthesis, _ = line.split(maxsplit=1)[-1].partition("(")
        if parenthesis and call.isidentifier() and f"{folder}/" in line:
            found[call] += 1
    return found


def _difference(few: Counter[str], many: Counter[str], per: int) -> dict[str, float]:
    found = {call: (number - few[call]) / per for call, number in many.items()}
    return {call: number for call, number in sorted(found.items()) if number >= 0.05}
