"""The programs with distributed arrays in kernels/arrays: each checks its own result."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from jobs import Outcome

IN_TURN = Path(__file__).parent / "programs" / "in_turn.py"
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


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, int], dict[str, Outcome]]:
    """What became of programs that ran in turn, by the library and the number of ranks."""
    return {}


def run_in_turn(engine, programs: list[str], n: int) -> dict[str, Outcome]:
    """Run programs in as few jobs as possible: a program that fails or hangs ends its job, and the rest is run anew."""
    found: dict[str, Outcome] = {}
    while left := [program for program in programs if program not in found]:
        listed = [[str(FOLDER / f"{program}.py"), *PROGRAMS[program]] for program in left]
        job = engine.start(IN_TURN, json.dumps(listed), n=n)
        try:
            outcome = job.outcome(120)
        except subprocess.TimeoutExpired:
            job.kill()
            outcome = Outcome(job.process.returncode, *job.process.communicate())
        outs = re.split(r"^program \d+\n", outcome.out, flags=re.MULTILINE)[1:]
        if not outs:
            return found | dict.fromkeys(left, outcome)
        found |= {program: Outcome(0, out, "") for program, out in zip(left, outs)}
        if outcome.code != 0:
            found[left[len(outs) - 1]] = outcome
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_finds_its_result_right(engine, outcomes, request, program, n):
    place = engine.name, n
    if place not in outcomes:
        chosen = [
            item.callspec.params for item in request.session.items if item.originalname == request.node.originalname
        ]
        names = dict.fromkeys(each["program"] for each in chosen if (each["library"], each["n"]) == place)
        outcomes[place] = run_in_turn(engine, list(names), n)
    outcome = outcomes[place][program]
    assert outcome.code == 0, outcome.text
    assert re.search(rf"; {n} ranks; error \S+: right", outcome.out), outcome.text


def test_the_set_is_drawn_and_a_wrong_result_is_told(engine, tmp_path):
    engine.run(FOLDER / "fractal.py", "--n", 60, "--png", tmp_path / "set.png")
    assert (tmp_path / "set.png").read_bytes().startswith(b"\x89PNG")
    program = f"import sys; sys.path.append({str(FOLDER)!r}); from report import finish; finish('x', 1.0, 0.5)"
    outcome = engine.code(program, succeeds=False)
    assert outcome.code == 1
    assert "WRONG" in outcome.out
