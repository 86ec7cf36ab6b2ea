"""Values of all kinds between ranks, and collective calls: the cases are in `programs`."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("program", "n"),
    [
        ("values", 2),
        ("values", 3),
        ("collectives", 1),
        ("collectives", 2),
        ("collectives", 3),
        ("errors", 2),
        ("errors", 3),
        ("requests", 2),
        ("requests", 3),
    ],
)
def test_cases(engine, program, n):
    assert f"cases went well on {n} ranks" in engine.run(PROGRAMS / f"{program}.py", n=n).out
