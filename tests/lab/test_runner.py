"""One run: what happens to jobs that end well, fail, print nonsense, take too long or leave processes behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import PATIENCE, until

LINE = '{"bench":"b","form":"hot","bytes":8,"ranks":2,"metric":"latency","unit":"us","samples":[1.5],"verified":true}'


@pytest.fixture
def job(tmp_path):
    """Run a shell script as a job; give what was recorded and what the harness said."""

    def start(script, limit=30 * PATIENCE):
        file = tmp_path / "job.sh"
        file.write_text(script)
        command = [sys.executable, str(Path(__file__).with_name("run_once.py")), str(file), str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300 * PATIENCE)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return start


def test_a_job_that_ends_well(job):
    done = job(f"echo noise; echo '{LINE}'; echo '{LINE}'")
    assert done["run"]["outcome"] == "ok"
    assert [sample["samples"] for sample in done["samples"]] == [[1.5], [1.5]]
    assert (done["samples"][0]["library"], done["samples"][0]["program"]) == ("plain", "script")


def test_options_and_benchmarks_are_passed_on(job):
    done = job('test "$*" = "--quick --only some,more" || exit 9')
    assert done["run"]["outcome"] == "ok", done["run"]


def test_a_job_that_fails_keeps_what_it_printed_and_said(job):
    done = job(f"echo '{LINE}'; echo 'it went wrong' >&2; exit 5")
    assert (done["run"]["outcome"], done["run"]["exit_code"], done["run"]["errors"]) == ("failed", 5, "it went wrong")
    assert len(done["samples"]) == 1


def test_wrong_data_is_told_from_other_failures(job):
    done = job(f"echo '{LINE.replace('true', 'false')}'; exit 1")
    assert done["run"]["outcome"] == "wrong data"


def test_a_job_that_takes_too_long_is_stopped_and_keeps_whole_lines(job):
    done = job(f"echo '{LINE}'; printf '%s' '{LINE[:40]}'; sleep 1000 & wait", limit=5)
    assert done["run"]["outcome"] == "time limit"
    assert len(done["samples"]) == 1


def test_nothing_is_left_behind(job, tmp_path):
    """A process in a session of its own, whose parent has ended, that ignores polite signals."""
    pid_file = tmp_path / "pid"
    stubborn = f"trap '' TERM HUP; echo $$ > {pid_file}; while :; do sleep 0.1; done"
    done = job(
        f'setsid sh -c "{stubborn.replace("$", chr(92) + "$")}" & while ! [ -s {pid_file} ]; do sleep 0.05; done'
    )
    assert done["run"]["left_behind"] >= 1
    pid = int(pid_file.read_text())
    until(lambda: not _alive(pid), "it is left behind")


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
