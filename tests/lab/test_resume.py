"""Measurements that were interrupted, or could not be written: nothing is lost, and they can be gone on with."""

import json
import subprocess
import sys

import pytest
from limosa_lab import records
from limosa_lab.errors import LabError
from made_records import environment, run, sample
from test_bench import bench

WORDS = "--quick --programs bidirectional --forms hot --max-bytes 64 --samples 3 --rounds 2".split()


def lines_of(folder):
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def test_an_interrupted_measurement_goes_on(tmp_path):
    out = tmp_path / "out"
    assert bench(*WORDS, "--output", out, cwd=tmp_path).returncode == 0
    whole = (out / "samples.jsonl").read_text()
    second = whole.index('{"kind": "run"', whole.index('"kind": "run"') + 1)
    # Stopped while it wrote the record of the second run.
    (out / "samples.jsonl").write_text(whole[: second + 30])

    shown = bench("--report", out, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "cut short" in shown.stdout

    resumed = bench("--resume", out, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    kinds = [line["kind"] for line in lines_of(out)]
    assert (kinds.count("run"), kinds.count("resumed"), kinds[-1]) == (2, 1, "end")
    assert [line["round"] for line in lines_of(out) if line["kind"] == "run"] == [0, 1]

    again = bench("--resume", out, cwd=tmp_path)
    assert again.returncode == 2
    assert f"the measurement in {out} is complete" in again.stderr


def test_another_library_does_not_go_on_with_a_measurement(tmp_path):
    out = tmp_path / "out"
    assert bench(*WORDS, "--output", out, cwd=tmp_path).returncode == 0
    first, *rest = lines_of(out)
    first["libraries"][0]["sha256"] = "another"
    (out / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (first, *rest[:-1])))
    done = bench("--resume", out, cwd=tmp_path)
    assert done.returncode == 3
    assert "Limosa is another library than at the beginning of the measurement" in done.stderr


def test_a_full_disk_loses_nothing(tmp_path):
    """A limit on the size of files stands for the disk; the second record does not fit."""
    code = """
import resource, sys
from pathlib import Path
from limosa_lab import records
from limosa_lab.errors import LabError
writer = records.Writer(Path(sys.argv[1]))
writer.record("environment", {"libraries": []})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    writer.record_all([("odd", {"text": "x" * 100}), ("odd", {"text": "x" * 9000})])
except LabError as error:
    print(error, "|", error.hint)
"""
    folder = tmp_path / "full"
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
    assert f"cannot write {folder / 'samples.jsonl'}: File too large | what was measured before is kept" in done.stdout
    assert [line["kind"] for line in lines_of(folder)] == ["environment"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"cannot write .*file/out/samples\.jsonl: Not a directory"):
        records.Writer(tmp_path / "file" / "out").record("environment", {})


def test_a_damaged_line_in_the_middle_is_named(keep):
    folder = keep(environment(), run("limosa", "pingpong"), sample("limosa", "pingpong", [1.0]))
    text = (folder / "samples.jsonl").read_text().splitlines()
    (folder / "samples.jsonl").write_text("\n".join([text[0], text[1][:40], text[2], ""]))
    with pytest.raises(LabError, match="line 2: this is not a record") as caught:
        records.read(folder)
    assert "without that line the others can be read" in caught.value.hint


def test_noise_during_and_after_a_measurement_is_reported(keep, tmp_path):
    noisy = run("limosa", "pingpong", others=40.0)
    end = {"kind": "end", "time": "", "load": [1.0], "busy_percent": 60.0}
    folder = keep(environment(), noisy, run("limosa", "pingpong"), sample("limosa", "pingpong", [1.0]), end)
    done = bench("--report", folder, "--no-plots", cwd=tmp_path)
    assert "Other programs used more than 5 % of the processors during 1 of 2 runs, up to 40 %." in done.stdout
    assert "Other programs used 60 % of the processors at the end." in done.stdout
