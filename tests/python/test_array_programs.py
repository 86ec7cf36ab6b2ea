"""The programs with distributed arrays in kernels/arrays: each checks its own result."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "kernels" / "arrays"
PROGRAMS = {
    "stream": ["--n", 100_000, "--trials", 2],
    "fourier": ["--rows", 60, "--columns", 64],
    "lu": ["--n", 150, "--block", 16],
    "updates": ["--n", 1000, "--updates", 3000, "--together", 1000],
    "fractal": ["--n", 90, "--limit", 50],
    "moves": ["--n", 200],
    "halo": ["--n", 70, "--steps", 5],
}


def test_every_program_is_tested():
    # The study of Octave runs the last one: tests/lab/test_study_octave.py.
    assert {path.stem for path in FOLDER.glob("*.py")} == {*PROGRAMS, "report", "beside_octave"}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.on_mpich(n=3)
def test_a_program_finds_its_result_right(engine, outcome_in_turn, program, n):
    outcome = outcome_in_turn(lambda name: [FOLDER / f"{name}.py", *PROGRAMS[name]], partial(engine.start, n=n))
    assert outcome.code == 0, outcome.text
    assert re.search(rf"; {n} ranks; error \S+: right", outcome.out), outcome.text


def test_the_set_is_drawn_and_a_wrong_result_is_told(engine, tmp_path):
    engine.run(FOLDER / "fractal.py", "--n", 60, "--png", tmp_path / "set.png")
    assert (tmp_path / "set.png").read_bytes().startswith(b"\x89PNG")
    program = f"import sys; sys.path.append({str(FOLDER)!r}); from report import finish; finish('x', 1.0, 0.5)"
    outcome = engine.code(program, succeeds=False)
    assert outcome.code == 1
    assert "WRONG" in outcome.out
