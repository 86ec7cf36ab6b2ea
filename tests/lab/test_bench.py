"""The command: errors that name what is wrong, and a whole measurement with Limosa alone."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from jobs import PATIENCE

LIMOSA = Path(sysconfig.get_path("scripts")) / "limosa"


def bench(*arguments, cwd, command=(sys.executable, "-m", "limosa_lab", "bench"), **variables):
    """Run the command with a cache of its own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    env |= {"XDG_CACHE_HOME": str(cwd / "cache"), "COLUMNS": "160", **variables}
    words = [*map(str, command), *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=300 * PATIENCE)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (
            ["--against", "mpich,lam"],
            "`lam` is not a library to compare with\nhint: known: mpich, openmpi, intel",
        ),
        (["--programs", "p2q"], "there is no benchmark program or group `p2q`"),
        (["--only", "brast"], "none of the chosen programs has a benchmark `brast`"),
        (
            ["--programs", "pingpong", "--ranks", "3"],
            "none of the chosen programs runs at 3 ranks\nhint: possible: pingpong at 2",
        ),
        (["--ranks", "2,many"], "`2,many` is not a list of positive integers such as 2,4,8"),
        (["--forms", "warm"], "`warm` is not a list of hot, cold, fresh"),
        (["--rounds", "0"], "--rounds 0: at least one round is needed"),
        (["--limosa", "no-such-folder"], "Limosa is not installed in no-such-folder"),
        (["--report", "no-such-folder"], "there is no samples.jsonl in no-such-folder"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, arguments, words):
    done = bench(*arguments, cwd=tmp_path)
    assert (done.returncode in {2, 3}, done.stdout) == (True, ""), done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("limosa-bench-*"))


def test_missing_packages_are_named(tmp_path):
    """An interpreter without site packages has none of them."""
    package = subprocess.run(
        [sys.executable, "-c", "import limosa_lab; print(limosa_lab.__path__[0])"], capture_output=True, text=True
    )
    folder = str(Path(package.stdout.strip()).parent)
    # Only the package itself is visible, by a link.
    (tmp_path / "limosa_lab").symlink_to(Path(folder) / "limosa_lab")
    done = bench(cwd=tmp_path, command=[sys.executable, "-S", "-m", "limosa_lab", "bench"], PYTHONPATH="")
    assert done.returncode == 3
    assert "needs the extra `lab`: numpy, matplotlib, rich, psutil not installed" in done.stderr
    assert "pip install 'limosa[lab]'" in done.stderr


def test_the_list_shows_programs_and_groups(tmp_path):
    done = bench("--list", cwd=tmp_path)
    assert done.returncode == 0
    assert "pingpong         ranks 2\n" in done.stdout
    assert "coll             = collectives, icollectives\n" in done.stdout


def test_a_measurement_with_limosa_alone(tmp_path):
    """From the limosa command to samples, tables and plots.

    A second one is made from the cached binary and refuses the same folder.
    """
    words = [
        "--quick",
        "--programs",
        "pingpong",
        "--forms",
        "hot",
        "--max-bytes",
        "1024",
        "--samples",
        "3",
        "--rounds",
        "2",
        "--output",
        "out",
    ]
    done = bench(*words, cwd=tmp_path, command=[LIMOSA, "bench"], LIMOSA_WAIT="auto")
    assert done.returncode == 0, done.stderr
    assert "pingpong, hot: latency in us, smaller is better; 2 ranks" in done.stdout

    lines = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    environment, *middle, end = lines
    assert (environment["kind"], end["kind"]) == ("environment", "end")
    assert environment["variables"]["LIMOSA_WAIT"] == "auto"
    assert environment["libraries"][0]["name"] == "limosa"
    assert {"cpu", "kernel", "mitigations", "load", "time", "processors"} <= set(environment)
    runs = [line for line in middle if line["kind"] == "run"]
    assert [(line["round"], line["outcome"], line["left_behind"]) for line in runs] == [(0, "ok", 0), (1, "ok", 0)], (
        runs
    )
    flags = [line["flag"] for line in middle if line["kind"] != "limit"]
    assert all(flag is None or len(flag) == 2 for flag in flags)
    # On a busy machine some may take too long.
    assert any(flags) or environment["processors"] < 2
    samples = [line for line in middle if line["kind"] == "sample" and line["metric"] == "latency"]
    assert {8, 1024} <= {line["bytes"] for line in samples} and max(line["bytes"] for line in samples) == 1024
    assert all(line["verified"] and line["form"] == "hot" and len(line["samples"]) == 3 for line in samples)

    assert "Limosa" in (tmp_path / "out" / "report.md").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("From one process to another a message of 8 B takes") < page.index("<svg") < page.index("<table")
    assert "Budgets" not in page + done.stdout
    assert (tmp_path / "out" / "plots" / "pingpong-hot-latency.svg").exists()
    binaries = list((tmp_path / "cache" / "limosa" / "bench").glob("*/pingpong"))
    assert len(binaries) == 1

    again = bench(*words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert "out/samples.jsonl holds measurements already" in again.stderr
    assert list((tmp_path / "cache" / "limosa" / "bench").glob("*/pingpong")) == binaries

    report = bench("--report", "out", "--no-plots", cwd=tmp_path)
    assert report.stdout == done.stdout


@pytest.mark.quiet
def test_the_limit_of_the_machine(tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("the two processes need a processor each")
    done = bench("limit", "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if line.startswith("Limit of this machine")]
    assert len(titles) == 4
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("64 KB")]
    assert len(rows) == 4
    assert all("-" not in row for row in rows), "all ways, with verified bytes"


def test_the_limit_needs_two_processors(tmp_path):
    one = min(os.sched_getaffinity(0))
    command = ("taskset", "-c", str(one), sys.executable, "-m", "limosa_lab", "bench")
    done = bench("limit", "--quick", cwd=tmp_path, command=command)
    assert done.returncode == 3
    assert "the limit cannot be measured: it needs two processors" in done.stderr


def test_buffers_that_the_sender_has_just_written(tmp_path):
    done = bench(
        "--quick",
        "--programs",
        "pingpong,pingping,bidirectional",
        "--forms",
        "fresh",
        "--max-bytes",
        "1024",
        "--no-plots",
        "--output",
        "out",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert {(line["bench"], line["form"]) for line in lines if line["kind"] == "sample"} == {
        (bench, "fresh") for bench in ("pingpong", "pingping", "bidirectional")
    }
    assert all(line["verified"] for line in lines if line["kind"] == "sample")


def test_ranks_begin_at_a_time_that_was_agreed_on(tmp_path):
    words = ["--quick", "--forms", "hot", "--max-bytes", "256", "--samples", "3", "--ranks", "2", "--output", "out"]
    done = bench("--programs", "collectives", "--only", "allreduce", "--start", "window", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert all("--start window" in " ".join(line["command"]) for line in lines if line["kind"] == "run")
    assert all(line["verified"] and len(line["samples"]) == 3 for line in lines if line["kind"] == "sample")
