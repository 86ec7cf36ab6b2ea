"""Background jobs through Slurm: sbatch, squeue, sacct, scontrol and scancel.

The batch script leaves the command's exit code in the job's folder, so that it is known where Slurm keeps no accounts.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from limosa._jobs_local import JobError, State, ended

_RUNNING = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"}
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}


def _ask(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Slurm."""
    if shutil.which(words[0]) is None:
        raise JobError(
            f"Slurm's {words[0]} is not in PATH",
            'log in where Slurm is, or pass --on local (`where="local"`) to run the job on this machine',
        )
    try:
        return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JobError(
            f"Slurm does not answer: {error}", "try again later; `sinfo` shows whether it is there"
        ) from None


def submit(
    record: Path, words: Sequence[str], name: str, n: int, folder: Path, output: Path, options: Sequence[str]
) -> str:
    """Submit a job; give Slurm's number for it."""
    code = shlex.quote(str(record / "code"))
    script = record / "script"
    script.write_text(
        f"#!/bin/sh\n{shlex.join(words)}\ncode=$?\necho $code > {code}.new && mv {code}.new {code}\nexit $code\n"
    )
    command = ["sbatch", "--parsable", f"--job-name={name}", f"--ntasks={n}", f"--chdir={folder}"]
    done = _ask(*command, f"--output={str(output).replace('%', '%%')}", *options, str(script))
    # The number, and behind a semicolon the cluster.
    number = re.match(r"\d+", done.stdout.strip())
    if done.returncode != 0 or number is None:
        raise JobError(
            f"sbatch refuses the job: {(done.stderr or done.stdout).strip()}",
            '`sinfo` shows what Slurm has; --on local (`where="local"`) runs the job on this machine',
        )
    return number.group()


def state(record: Path, number: str) -> State:
    """Give what has become of a job."""
    done = ended(record)
    if done is not None:
        return done
    queue = _ask("squeue", "--noheader", f"--jobs={number}", "--states=all", "--format=%T|%r")
    line = queue.stdout.strip().splitlines()[:1] if queue.returncode == 0 else []
    if line:
        name, _, reason = line[0].partition("|")
        return _named(record, name, None, "" if reason == "None" else reason)
    # The script may have ended since the first look.
    return ended(record) or _remembered(record, number)


def _remembered(record: Path, number: str) -> State:
    """Give what Slurm's accounts say of a job that is not in the queue any more."""
    for words in (
        ("sacct", "--noheader", "--allocations", "--parsable2", f"--jobs={number}", "--format=State,ExitCode"),
        ("scontrol", "--oneliner", "show", "job", number),
    ):
        told = _ask(*words).stdout if shutil.which(words[0]) else ""
        found = re.search(r"JobState=(\w+).*?ExitCode=(\d+):(\d+)", told) or re.match(
            r"(\w+)[^|\n]*\|(\d+):(\d+)", told
        )
        if found:
            code, by = int(found.group(2)), int(found.group(3))
            return _named(record, found.group(1), 128 + by if by else code, "")
    if (record / "cancelled").exists():
        return State("cancelled")
    return State("lost", None, "Slurm does not know it any more")


def _named(record: Path, name: str, code: int | None, reason: str) -> State:
    """Give a state by Slurm's name for it."""
    name = name.rstrip("+").split(" ")[0]
    if name in _WAITING:
        return State("waiting", None, reason)
    if name in _RUNNING:
        return State("running")
    if name == "COMPLETED":
        return State("done", 0)
    if name == "CANCELLED" or (record / "cancelled").exists():
        return State("cancelled", code)
    return State("failed", code or 1, name.lower().replace("_", " ") if name != "FAILED" else "")


def cancel(record: Path, number: str) -> None:
    """End a job."""
    done = _ask("scancel", number)
    if done.returncode != 0 and "already complet" not in done.stderr:
        raise JobError(f"scancel refuses: {done.stderr.strip()}")
