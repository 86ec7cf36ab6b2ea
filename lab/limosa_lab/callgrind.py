"""Counting instructions with valgrind's tool callgrind: the command, and what it leaves.

A program that is counted ends each case with a dump (``CALLGRIND_DUMP_STATS_AT``) named after the case; see
``instructions.c``. Nothing here needs more than Python itself: the tests of performance use it, too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("instructions.c")
FLAGS = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra"]


@dataclass(frozen=True)
class Count:
    """What a case took at best: instructions, and the file in which callgrind keeps where they went."""

    instructions: int
    dump: Path


def missing() -> str | None:
    """Say in one sentence what this machine lacks for counting, and the remedy; None if nothing."""
    header = ["cc", "-E", "-"]
    try:
        found = subprocess.run(header, input="#include <valgrind/callgrind.h>\n", capture_output=True, text=True)
    except FileNotFoundError:
        return "there is no C compiler `cc`; on Debian:  sudo apt-get install gcc libc6-dev"
    if shutil.which("valgrind") is None or found.returncode != 0:
        return "valgrind or its header callgrind.h is not here; on Debian:  sudo apt-get install valgrind"
    return None


def command(folder: Path) -> list[str]:
    """Give the words before a program that is to be counted; its dumps go into the folder."""
    # Each of the many dumps must be readable by itself, hence no compressed names.
    return ["valgrind", "-q", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={folder}/dump.%p"]


def counts(folder: Path) -> dict[str, Count]:
    """Give for each case the repetition that took least, from the dumps in a folder."""
    best: dict[str, Count] = {}
    for dump in sorted(folder.glob("dump.*")):
        text = dump.read_text()
        case = re.search(r"^desc: Trigger: Client Request: (\w+)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if case and total:
            count = Count(int(total[1]), dump)
            best[case[1]] = min(best.get(case[1], count), count, key=lambda each: each.instructions)
    return best
