"""Counted instructions as a benchmark: on this library where valgrind is there, and a message where it is not."""

import json

import pytest
from limosa_lab import callgrind
from test_bench import bench


def test_a_machine_without_valgrind_is_told_so(tmp_path):
    (tmp_path / "bin").mkdir()
    done = bench("instructions", cwd=tmp_path, PATH=str(tmp_path / "bin"))
    assert done.returncode == 3
    assert "instructions cannot be counted: there is no C compiler `cc`" in done.stderr
    (tmp_path / "bin" / "cc").symlink_to("/usr/bin/cc")
    done = bench("instructions", cwd=tmp_path, PATH=str(tmp_path / "bin"))
    assert done.returncode == 3
    assert "sudo apt-get install valgrind" in done.stderr
    assert not list(tmp_path.glob("limosa-bench-*"))


@pytest.mark.skipif(callgrind.missing() is not None, reason=str(callgrind.missing()))
def test_calls_are_counted(tmp_path):
    done = bench("instructions", "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    found = {line["x"]["call"]: line["samples"][0] for line in lines if line["kind"] == "sample"}
    assert {"send", "receive", "barrier_first_rank", "put", "fence"} <= set(found)
    # A window is 64 messages.
    assert 20 < found["send"] < found["window_send"] < 64 * 2 * found["send"]
    assert "lock_and_unlock" in done.stdout
