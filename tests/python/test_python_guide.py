"""The programs in docs/python.md run as they stand, with any number of ranks; so do those of docs/tutorial.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from jobs import Job

ROOT = Path(__file__).parents[2]


def programs_of(page: str) -> list[str]:
    """The programs on a page that use the interface."""
    found = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [program for program in found if "limosa.world" in program or "limosa.Executor" in program]


def test_the_programs_of_the_guide_run(engine):
    programs = programs_of("docs/python.md")
    assert len(programs) > 4
    for program in programs:
        outcome = engine.code(program, n=4)
        assert not outcome.err, outcome.err


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_programs_run_with_any_number_of_ranks(tmp_path, n):
    # One job for all, except those that start processes, which would have to find the program.
    programs = [*programs_of("docs/tutorial.md"), *programs_of("docs/python.md")]
    together = [program for program in programs if "limosa.spawn" not in program]
    text = f"import limosa\nfor program in {together!r}:\n    exec(program, globals())\n    limosa.world.barrier()\n"
    (tmp_path / "all.py").write_text(text + "print('all done')\n")
    done = Job([Path(sys.executable).parent / "limosa", "run", "-n", str(n), tmp_path / "all.py"]).wait(60)
    assert (done.out.count("all done"), done.err) == (n, ""), done.text
