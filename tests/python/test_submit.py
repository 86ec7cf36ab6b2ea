"""`limosa submit`, `status`, `log` and `cancel`, on this machine and with commands that act as Slurm's do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import PATIENCE

Limosa = Callable[..., "subprocess.CompletedProcess[str]"]

#: Commands that act as Slurm's do: a job is a process in the background; what they know is in files beside them.
SLURM = {
    "sbatch": """
        number=$(cat "$0.next" 2>/dev/null || echo 41); number=$((number + 1)); echo $number > "$0.next"
        echo "$@" > "$home/$number.options"
        for word; do case $word in
            --output=*) output=${word#--output=} ;; --chdir=*) folder=${word#--chdir=} ;;
            --partition=none) echo "sbatch: error: invalid partition specified: none" >&2; exit 1 ;;
            -*) ;; *) script=$word ;;
        esac; done
        cd "$folder"
        setsid sh "$script" > "$output" 2>&1 < /dev/null &
        echo $! > "$home/$number.pid"
        echo "$number;cluster"
    """,
    "squeue": """
        for word; do case $word in --jobs=*) number=${word#--jobs=} ;; esac; done
        [ -e "$home/$number.waits" ] && { echo "PENDING|Resources"; exit; }
        kill -0 "$(cat "$home/$number.pid")" 2>/dev/null && echo "RUNNING|None" ||
            { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
    """,
    "scontrol": 'echo "JobId=$4 JobState=$(cat "$home/state") Reason=None ExitCode=0:15"',
    "scancel": """
        kill -TERM "-$(cat "$home/$1.pid")"
        while kill -0 "-$(cat "$home/$1.pid")" 2>/dev/null; do sleep 0.05; done
        echo CANCELLED > "$home/state"
    """,
}


@pytest.fixture(scope="session")
def without_slurm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A search path with all commands of this machine but those of a Slurm that is there."""
    tools = tmp_path_factory.mktemp("tools")
    for folder in map(Path, os.environ["PATH"].split(":")):
        for command in folder.iterdir() if folder.is_dir() else ():
            if command.name not in {"sbatch", "squeue", "sacct", "scontrol", "scancel"}:
                with contextlib.suppress(FileExistsError):
                    (tools / command.name).symlink_to(command)
    return str(tools)


@pytest.fixture
def surroundings(without_slurm: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Variables with a state folder of their own and without Slurm. What runs at the end is cancelled."""
    made = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": without_slurm}
    yield made
    for record in (tmp_path / "state").glob("limosa/jobs/job-*"):
        keeper = record / "keeper"
        if keeper.exists() and not (record / "code").exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(keeper.read_text()), signal.SIGTERM)


@pytest.fixture
def limosa(surroundings: dict[str, str], tmp_path: Path) -> Limosa:
    """Runs `limosa WORDS` and waits for it."""

    def run(*words: object, code: int = 0, **options) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).parent / "limosa", *map(str, words)]
        options = {"env": surroundings, "cwd": tmp_path, "timeout": 30 * PATIENCE, **options}
        done = subprocess.run(command, capture_output=True, text=True, **options)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def slurm(surroundings: dict[str, str], tmp_path: Path) -> Path:
    """The folder of the commands of a Slurm, which are in PATH."""
    home = tmp_path / "slurm"
    home.mkdir()
    for name, text in SLURM.items():
        (home / name).write_text(f"#!/bin/sh\nhome={home}\n{textwrap.dedent(text)}")
        (home / name).chmod(0o755)
    surroundings["PATH"] = f"{home}:{surroundings['PATH']}"
    return home


def state_of(limosa: Limosa, number: str) -> dict:
    return json.loads(limosa("status", "--format=json", number).stdout)[0]["state"]


def until(limosa: Limosa, number: str, *names: str) -> dict:
    end = time.monotonic() + 30 * PATIENCE
    while time.monotonic() < end:
        state = state_of(limosa, number)
        if state["name"] in names:
            return state
        time.sleep(0.1)
    pytest.fail(f"job {number} is {state}, not {names}")


def test_a_job_runs_in_the_background_and_its_output_and_exit_code_are_kept(limosa: Limosa) -> None:
    number = limosa("submit", "sh", "-c", "echo hello; exit 7").stdout.strip()
    assert number == "local-1"
    assert until(limosa, number, "failed", "done") == {"name": "failed", "code": 7, "reason": ""}
    assert limosa("log", number).stdout == "hello\n"
    assert limosa("log", "-f", number).stdout == "hello\n"
    assert limosa("log").stdout == "hello\n"
    row = limosa("status").stdout.splitlines()[1]
    assert row.split()[:4] == ["local-1", "sh", "failed", "7"], row


def test_submit_can_wait_and_ends_with_the_code_of_the_job(limosa: Limosa, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from mpi4py import MPI; print(f'<{MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size}>', flush=True)")
    number = limosa("submit", "--wait", "-n", 2, "-o", "out.txt", "program.py").stdout.strip()
    assert sorted((tmp_path / "out.txt").read_text().split("\n"))[-2:] == ["<0 of 2>", "<1 of 2>"]
    assert state_of(limosa, number)["name"] == "done"
    limosa("submit", "--wait", "sh", "-c", "exit 9", code=9)
    limosa("submit", "--wait", "sh", "-c", "kill -KILL $$", code=137)


def test_a_job_survives_the_end_of_the_session_that_has_submitted_it(
    limosa: Limosa, surroundings: dict[str, str], tmp_path: Path
) -> None:
    words = [Path(sys.executable).parent / "limosa", "submit"]
    job = ["sh", "-c", "until [ -e go ]; do sleep 0.1; done; echo lives"]
    session = subprocess.Popen(
        [*words, *job], cwd=tmp_path, env=surroundings, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    number = session.communicate(timeout=30 * PATIENCE)[0].strip()
    # What a terminal does that is closed.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session.pid, signal.SIGHUP)
    (tmp_path / "go").touch()
    assert until(limosa, number, "done")["code"] == 0
    assert limosa("log", number).stdout == "lives\n"


def test_cancel_ends_a_job_with_all_its_processes(limosa: Limosa, tmp_path: Path) -> None:
    number = limosa("submit", "-n", 2, "sh", "-c", "echo $$ >> pids; exec sleep 600").stdout.strip()
    end = time.monotonic() + 30 * PATIENCE
    pids = tmp_path / "pids"
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert time.monotonic() < end, limosa("log", number).stdout
        time.sleep(0.05)
    assert state_of(limosa, number)["name"] == "running"
    limosa("cancel", number)
    assert state_of(limosa, number)["name"] == "cancelled"
    left = [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}/cmdline").exists()]
    left = [pid for pid in left if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert left == []
    limosa("cancel", number)  # a job that has ended stays as it is


def test_what_cannot_be_started_or_found_says_why(limosa: Limosa, tmp_path: Path) -> None:
    assert "cannot be started" in limosa("submit", "/nowhere/program", code=3).stderr
    assert "neither in" in limosa("submit", "-n", 2, "nothere.py", code=3).stderr
    assert "no job was submitted" in limosa("log", code=3).stderr
    assert "there is no folder" in limosa("submit", "-D", "/nowhere", "true", code=3).stderr
    assert "a command is needed" in limosa("submit", code=2).stderr
    missing = limosa("submit", "--on", "slurm", "true", code=3).stderr
    assert "Slurm's sbatch is not in PATH" in missing and "--on local" in missing
    unknown = limosa("log", "local-99", code=3).stderr
    assert "no job local-99" in unknown and "limosa submit" in unknown
    assert "mean nothing" in limosa("submit", "--option=--time=1", "true", code=3).stderr
    assert list((tmp_path / "state" / "limosa" / "jobs").glob("job-*")) == []


def test_a_job_whose_keeper_was_killed_is_lost(limosa: Limosa, tmp_path: Path) -> None:
    number = limosa("submit", "sh", "-c", "until [ -e go ]; do sleep 0.1; done").stdout.strip()
    (record,) = (tmp_path / "state" / "limosa" / "jobs").glob("job-*")
    os.kill(int((record / "keeper").read_text()), signal.SIGKILL)
    assert "killed" in until(limosa, number, "lost")["reason"]
    (tmp_path / "go").touch()


def test_python_submits_and_waits(limosa: Limosa, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import limosa
        job = limosa.jobs.submit(["sh", "-c", "echo from the job; exit 3"], where="local", name="trial")
        print(job.wait(60), job.state().name, job.log().strip(), limosa.jobs.get(job.id) == job)
        try:
            limosa.jobs.submit("a text")
        except limosa.jobs.JobError as error:
            print(error, "-", error.hint)
        sleeps = limosa.jobs.submit(["sleep", "600"], where="local")
        try:
            sleeps.wait(0.1)
        except TimeoutError as error:
            print(error)
        sleeps.cancel()
        print(sleeps.state().name)
        """)
    )
    done = limosa("submit", "--wait", "--on", "local", "-o", "out", "program.py")
    assert done.stdout.strip() == "local-1"
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[0] == "3 failed from the job True"
    assert "a job needs a command" in lines[1] and "list of words" in lines[1]
    assert "has not ended within 0.1 s" in lines[2]
    assert lines[3] == "cancelled"


def test_with_slurm_a_job_goes_through_sbatch(limosa: Limosa, slurm: Path, tmp_path: Path) -> None:
    number = limosa(
        "submit", "-n", 3, "--name", "wave", "--option=--time=10", "sh", "-c", "echo hi; exit 4"
    ).stdout.strip()
    assert number == "42"
    options = (slurm / "42.options").read_text()
    for option in ("--parsable", "--job-name=wave", "--ntasks=3", f"--chdir={tmp_path}", "--time=10"):
        assert option in options.split(), options
    assert until(limosa, number, "failed")["code"] == 4
    assert limosa("log", "-f", number).stdout.startswith("hi\n")


def test_a_job_of_slurm_waits_runs_and_is_cancelled(limosa: Limosa, slurm: Path) -> None:
    number = limosa("submit", "sleep", 600).stdout.strip()
    (slurm / f"{number}.waits").touch()
    assert state_of(limosa, number) == {"name": "waiting", "code": None, "reason": "Resources"}
    (slurm / f"{number}.waits").unlink()
    assert state_of(limosa, number)["name"] == "running"
    limosa("cancel", number)
    assert state_of(limosa, number)["name"] == "cancelled"


def test_a_refusal_of_sbatch_is_shown(limosa: Limosa, slurm: Path) -> None:
    refused = limosa("submit", "--option=--partition=none", "true", code=3).stderr
    assert "sbatch refuses the job" in refused and "invalid partition specified: none" in refused
    assert limosa("status").stdout == ""
