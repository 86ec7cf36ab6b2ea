"""The examples of docs/dialects.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "dialects.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_runs(engine, number):
    outcome = engine.code(EXAMPLES[number], n=2)
    assert outcome.out
