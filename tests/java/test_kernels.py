"""The kernels of the Java Grande Forum's MPJ benchmarks: each checks its result against the published values."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels" / "jgf"


def is_result(text, name, size="A"):
    line = rf"Section2:{name}:Kernel:Size{size}\t[0-9.]+ \(s\)\t\S+\t\(\w+/s\)\n"
    return re.fullmatch(line, text, re.IGNORECASE) is not None


@pytest.mark.parametrize(("n", "options"), [(1, []), (3, []), (4, ["--threads"])])
@pytest.mark.parametrize("name", ["Series", "Crypt", "Sor", "SparseMatmult", "LuFact"])
def test_kernel_of_size_a(usual_java, name, n, options):
    outcome = usual_java.run(KERNELS / f"{name}.java", "A", n=n, options=options)
    assert is_result(outcome.out, name), outcome.text


@pytest.mark.parametrize("name", ["series", "crypt", "sor", "sparsematmult", "lufact"])
def test_kernel_in_c(java, name):
    compiler = Path(sys.executable).parent / "mpicc"
    program = java.folder / name
    options = ["-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *options, KERNELS / f"{name}.c", "-o", program, "-lm"], check=True)
    for n in (1, 3):
        outcome = java.run(program, "A", n=n)
        assert is_result(outcome.out, name), outcome.text
    assert "no such size" in java.run(program, "D", succeeds=False).err


def test_a_size_that_does_not_exist(java):
    outcome = java.run(KERNELS / "Series.java", "D", succeeds=False)
    assert "there is no size D; give A, B or C" in outcome.err


def test_a_singular_matrix_is_checked_by_its_factors(usual_java):
    outcome = usual_java.run(KERNELS / "LuFact.java", "C", n=2, options=["--threads"], limit=240)
    assert is_result(outcome.out, "LUFact", "C"), outcome.text


def test_a_wrong_result_ends_the_job_with_a_reason(java):
    """As a library that adds wrongly would make it: the published sum is changed."""
    for name in ("Sor", "Jgf"):
        text = (KERNELS / f"{name}.java").read_text()
        (java.folder / f"{name}.java").write_text(text.replace("0.498574406322512", "0.49857440"))
    outcome = java.run(java.folder / "Sor.java", "A", n=2, succeeds=False)
    assert outcome.code == 1
    assert re.search(r"rank 0: .*\n.*Validation failed: the sum is 0\.49857440632", outcome.err), outcome.text


@pytest.mark.parametrize(("n", "options"), [(2, []), (3, ["--threads"])])
def test_low_level_benchmarks(java, n, options):
    words = ["--seconds", "0.001", "--largest", "100", "--json"]
    outcome = java.run(KERNELS / "LowLevel.java", *words, n=n, options=options)
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert all(line["verified"] and line["samples"][0] > 0 for line in lines)
    benches = {line["bench"] for line in lines}
    assert benches >= {f"jgf_{name}" for name in ("barrier", "bcast", "gather", "scatter", "reduce", "alltoall")}
    assert ("jgf_pingpong" in benches) == (n == 2)
    # The original's lengths: 4 7 12 21 37 66 doubles.
    of_bcast = [line["bytes"] for line in lines if line["bench"] == "jgf_bcast"]
    assert of_bcast == 2 * [8 * m for m in (4, 7, 12, 21, 37, 66)]


def test_an_unknown_low_level_benchmark_is_named(java):
    outcome = java.run(KERNELS / "LowLevel.java", "Allscatter", succeeds=False)
    assert "there is no low-level benchmark Allscatter; there are [PingPong," in outcome.err
