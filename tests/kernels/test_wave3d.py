"""The wave equation gives the exact discrete solution however the cube is cut, and says so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "kernels" / "wave3d" / "wave3d.py"
LAUNCHER = Path(sys.executable).parent / "limosa"


def wave3d(np, *arguments):
    """Run the program; give exit code and all output."""
    command = [LAUNCHER, "run", "-n", str(np), sys.executable, PROGRAM, "--no-progress", *arguments]
    result = subprocess.run(command, text=True, capture_output=True, timeout=600, check=False)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize(("np", "n"), [(1, 33), (2, 33), (3, 20), (4, 33), (5, 6), (8, 17), (8, 3)])
def test_agrees_with_the_exact_solution(np, n):
    code, output = wave3d(np, "--n", str(n))
    assert code == 0, output
    assert float(re.search(r"largest error\s+(\S+)", output)[1]) < 1e-12
    assert re.search(r"time in communication\s+\d+\.\d % on average, \d+\.\d % at most", output)
    assert re.search(r"steps per second\s+\d+\.\d", output)


def test_draws_the_slice(tmp_path):
    picture = tmp_path / "slice.png"
    code, output = wave3d(4, "--n", "17", "--slice-png", picture)
    assert code == 0, output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in output


def test_refuses_an_unstable_time_step_once_for_all_processes():
    code, output = wave3d(2, "--n", "17", "--dt", "0.1")
    assert code == 2
    assert output.count("stable only up to 0.036") == 1, output


def test_refuses_more_processes_than_points():
    code, output = wave3d(5, "--n", "3")
    assert code != 0
    assert "too many" in output
