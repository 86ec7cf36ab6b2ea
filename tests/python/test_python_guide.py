"""The programs in docs/python.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_programs_of_the_guide_run(engine):
    programs = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(programs) > 4
    for program in programs:
        outcome = engine.code(program, n=4)
        assert not outcome.err, outcome.err
