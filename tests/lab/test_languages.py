"""Operations from C, from Python and from Java: the same lines, verified, in one recording."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import PATIENCE
from limosa_lab.catalogue import COLLECTIVES
from limosa_lab.cli import main
from limosa_lab.java_library import has_java, twin
from limosa_lab.model import measuring, samples
from limosa_lab.records import Run, parse_line
from test_bench import bench


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--languages", "C,cobol"],
            "`cobol` is not a language of this suite\nhint: known: C, mpi4py, limosa, Java, Java-threads",
        ),
        (["--rounds", "0"], "at least one round"),
        (["--against", "lam"], "`lam` is not a library to compare with"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, words, message):
    done = bench("primitives", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not list(tmp_path.glob("limosa-bench-*"))


def test_every_operation_in_every_language(tmp_path):
    done = bench("primitives", "--quick", "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    measured = [line for line in lines if line["kind"] == "sample"]
    assert all(line["verified"] and line["metric"] == "time" and line["unit"] == "us" for line in measured)
    found = {
        language: {line["bench"] for line in measured if line["x"] == {"language": language}}
        for language in ("C", "mpi4py", "limosa", *(("Java", "Java-threads") if has_java() else ()))
    }
    suite = {
        "send",
        "barrier",
        "bcast",
        "scatter",
        "gather",
        "allgather",
        "alltoall",
        "reduce",
        "allreduce",
        "scan",
    }
    # mpiJava's interface has the general form alone.
    scattered = {language: "reduce_scatter" + ("" if "Java" in language else "_block") for language in found}
    assert all({*suite, scattered[language]} <= operations for language, operations in found.items()), found
    assert "allreduce, hot: time in us, smaller is better; 2 ranks" in done.stdout
    assert "mpi4py" in done.stdout


def test_a_missing_jdk_is_named(tmp_path, monkeypatch, capsys):
    old = tmp_path / "jdk"
    (old / "bin").mkdir(parents=True)
    (old / "release").write_text('JAVA_VERSION="17.0.1"\n')
    for name in ("java", "javac"):
        (old / "bin" / name).write_text("#!/bin/sh\n")
        (old / "bin" / name).chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: iter(()))
    assert main(["bench", "primitives", "--languages", "Java", "--output", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert "a JDK 22 or newer" in said
    assert "is version 17" in said
    assert "`limosa doctor`" in said


@pytest.mark.parametrize("ranks", [2, 3])
def test_numpy_follows_a_plan(ranks):
    """As the program in C does, with the same names: of each operation, root and rhythm."""
    names = [name + kind for name in COLLECTIVES for kind in ("", "@loop")]
    names += [name + kind for name in samples.ROOTED for kind in ("@turns", "@turns@loop")]
    plan = ";".join(f"{name}={'0' if name.startswith('barrier') else '1000'}" for name in names)
    program = Path(measuring.__file__).parents[1] / "programs" / "primitives.py"
    command = [Path(sys.executable).parent / "limosa", "run", "-n", str(ranks), program, "--forms", "hot"]
    done = subprocess.run([*command, "--plan", plan], capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stderr
    lines = [
        parse_line(line, library="limosa", program="primitives", ranks=ranks, round_number=0)
        for line in done.stdout.splitlines()
    ]
    assert [samples.case_name(line) for line in lines] == names
    assert all(line.verified and line.samples and line.ranks == ranks for line in lines)


@pytest.fixture
def jdk():
    if not has_java():
        pytest.skip("there is no JDK 22 or newer: https://adoptium.net")


PRIMITIVES = twin(Path(measuring.__file__).parents[1] / "programs" / "primitives.c")


def in_java(*words, ranks=2):
    command = [Path(sys.executable).parent / "limosa", "run", "-n", str(ranks), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120 * PATIENCE)


@pytest.mark.parametrize("options", [[], ["--threads"]])
@pytest.mark.parametrize("buffers", ["arrays", "direct"])
def test_java_follows_a_plan(jdk, options, buffers):
    plan = "bcast=0,1000;reduce_scatter=100;exscan=8;send=16"
    words = ["--plan", plan, "--seconds", "600", "--buffers", buffers, "--start", "window"]
    done = in_java(*options, PRIMITIVES, *words, ranks=3)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    # There is no Exscan in mpiJava, and a ping-pong needs two ranks.
    assert [(line["bench"], line["bytes"]) for line in lines] == [
        ("bcast", 0),
        ("bcast", 1000),
        ("reduce_scatter", 100),
    ]
    assert all(line["verified"] and line["x"] == {"start": "window", "buffers": buffers} for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sizes", "3x"], "`3x` is not a number"),
        (["--plan", "bcast"], "`bcast` in the plan is not like bcast=0,4,16"),
        (["--turbo", "1"], "there is no option `--turbo`"),
        (["--buffers", "files"], "--buffers files: there are arrays, direct and objects"),
    ],
)
def test_java_names_a_wrong_option(jdk, words, message):
    done = in_java(PRIMITIVES, *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "at Primitives" not in done.stderr


def test_a_library_in_java_has_the_suite_alone(tmp_path, jdk):
    done = bench("--against", "java", "--programs", "pingpong", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no program `pingpong` in Java\nhint: there is: primitives" in done.stderr


def test_what_a_finished_run_has_left_out_is_not_tried_again():
    cases = [("bcast", 8), ("exscan", 8)]
    entry, run = measuring.Known(), Run("java", "primitives", 3, 0, [], "ok", 0, 1.0, 0.0)
    measuring._lose(entry, run, cases, [], in_time=False)
    assert not entry.lost
    measuring._lose(entry, run, cases, [], in_time=True)
    assert entry.lost == set(cases)


def test_models_of_java_beside_c(tmp_path, jdk):
    words = [
        "--against",
        "java,java-threads",
        "--operations",
        "bcast,exscan",
        "--ranks",
        "2",
        "--quick",
        "--max-bytes",
        "1024",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "limosa_lab", "model", *words, "--minutes", "20", "--output", tmp_path / "out"],
        capture_output=True,
        text=True,
        timeout=200 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    for title in ("Limosa", "Limosa, Java", "Java, ranks as threads"):
        assert title in done.stdout
