"""Every kernel gives the right answer with every module, on one process and several, on Limosa and MPICH; and in C."""

import json
import subprocess
from pathlib import Path

import pytest

from common.comm import modules

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
ALL = ["inner --repeat 2", "wave3d --n 17", "cg --n 33 --tolerance 1e-20", "mandelbrot --n 60"]
BLOCKING_ONLY = {"pypar", "mympi"}


def records(output):
    """Read the measurements among what was printed."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(("on", "n"), [("limosa", 1), ("limosa", 4), ("mpich", 2)])
@pytest.mark.parametrize("module", modules())
def test_applications(job, module, on, n):
    kernels = [*ALL, *([] if module in BLOCKING_ONLY else ["wave3d --n 17 --overlap"])]
    code, output = job("run.py", "--json", "--comm", module, *kernels, n=n, on=on)
    assert code == 0, output
    found = records(output)
    assert {record["bench"] for record in found} == {"inner", "wave3d", "cg", "mandelbrot"}
    assert all(record["verified"] and record["ranks"] == n and record["x"]["module"] == module for record in found)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("module", modules())
def test_applications_are_right_under_the_checks(job, module, n):
    kernels = ["inner --n 1001", "wave3d --n 9", "cg --n 17 --tolerance 1e-20", "mandelbrot --n 31"]
    if module not in BLOCKING_ONLY:
        kernels.append("wave3d --n 9 --overlap")
    if n == 2:
        kernels.append("micro --factor 8192 --max-bytes 65536 --iterations 3")
    code, output = job("run.py", "--json", "--comm", module, *kernels, n=n, env={"LIMOSA_CHECK": "1"})
    assert code == 0, output
    assert all(record["verified"] for record in records(output))
    assert len(records(output)) >= len(kernels)
    assert "limosa: " not in output, output  # no report, true or false


def test_blocks_of_one_layer(job):
    code, output = job("run.py", "wave3d --n 9", "wave3d --n 9 --overlap", n=5)
    assert code == 0, output


@pytest.mark.parametrize("module", modules())
def test_micro_benchmarks(job, module):
    code, output = job("run.py", "--json", "--comm", module, "micro --factor 8192 --max-bytes 65536 --iterations 3")
    assert code == 0, output
    found = records(output)
    assert [(record["bench"], record["bytes"]) for record in found] == [
        (bench, size) for bench in ("pingpong", "bcast", "reduce", "allreduce") for size in (8, 65536)
    ]
    assert all(record["verified"] and record["unit"] == "us" and record["samples"][0] > 0 for record in found)


def test_programs_speak_for_people(job, tmp_path):
    picture = tmp_path / "set.png"
    code, output = job("mandelbrot/mandelbrot.py", "--n", "50", "--png", picture)
    assert code == 0, output
    assert "mandelbrot: 50 x 50 points" in output
    assert "passed" in output
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, output = job("cg/cg.py", "--n", "20", n=3)
    assert code == 0, output
    assert "3 processes as 3 x 1" in output
    assert "passed" in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--comm", "pigeons", "inner"], "no communication layer for `pigeons`; known: boostmpi, "),
        (["outer"], "there is no kernel `outer`; known: micro, inner"),
        (["--comm", "pypar", "wave3d --n 9 --overlap"], "pypar has no non-blocking calls"),
        (["cg --n 1"], "--n 1: at least 2 points are needed"),
        (["mandelbrot --limit 70000"], "--limit from 2 to 32767"),
        (["micro --only pingpong,juggling"], "there is no benchmark `juggling`"),
    ],
)
def test_what_cannot_be_done_is_said_once(job, arguments, said):
    code, output = job("run.py", *arguments)
    assert code == 2, output
    assert output.count(said) == 1, output
    assert "Traceback" not in output


def test_a_missing_package_is_named_with_the_cure(job, tmp_path):
    (tmp_path / "scipy.py").write_text("raise ModuleNotFoundError(\"No module named 'scipy'\", name='scipy')")
    code, output = job("cg/cg.py", "--n", "9", env={"PYTHONPATH": str(tmp_path)})
    assert code == 2, output
    assert output.count("needs scipy, which is not installed") == 1, output
    assert "pip install scipy" in output


@pytest.fixture(scope="module")
def in_c(libraries, tmp_path_factory):
    """The kernels compiled with our mpicc."""
    folder = tmp_path_factory.mktemp("c")
    for name in ("inner", "wave3d", "cg", "mandelbrot", "micro"):
        command = [*libraries["limosa"].compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp-simd"]
        subprocess.run([*command, KERNELS / name / f"{name}.c", "-o", folder / name, "-lm"], check=True, timeout=300)
    return folder


def run_c(libraries, program, *arguments, n):
    command = [*libraries["limosa"].launcher(n, n), program, *arguments]
    return subprocess.run(command, text=True, capture_output=True, timeout=300, check=False)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize(
    "command",
    [
        "inner --n 1001 --repeat 2",
        "wave3d --n 9",
        "wave3d --n 9 --overlap",
        "cg --n 33 --tolerance 1e-20",
        "mandelbrot --n 61",
    ],
)
def test_twins_in_c(libraries, in_c, command, n):
    name, *options = command.split()
    done = run_c(libraries, in_c / name, "--json", *options, n=n)
    assert done.returncode == 0, done.stderr
    found = records(done.stdout)
    assert found and all(
        record["verified"] and record["ranks"] == n and record["x"]["module"] == "c" for record in found
    )


def test_twins_in_c_measure_and_refuse(libraries, in_c):
    done = run_c(
        libraries, in_c / "micro", "--json", "--factor", "1024", "--max-bytes", "8192", "--only", "pingpong,reduce", n=2
    )
    assert [(record["bench"], record["bytes"]) for record in records(done.stdout)] == [
        ("pingpong", 8), ("pingpong", 8192), ("reduce", 8), ("reduce", 8192),
    ], done.stderr  # fmt: skip
    for name, options, said in [
        ("cg", ["--size", "3"], "there is no option --size"),
        ("wave3d", ["--n", "x"], "--n needs a number"),
        ("wave3d", ["--n", "9", "--dt", "1"], "stable only up to"),
        ("micro", ["--only", "bcast", "--factor", "1"], "--factor must be at least 2"),
    ]:
        done = run_c(libraries, in_c / name, *options, n=2)
        assert (done.returncode, done.stderr.count(said)) == (2, 1), done.stderr
