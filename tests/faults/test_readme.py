"""The README keeps its word: its hang report is what Limosa prints for the program to which it leads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import is_limosa

ROOT = Path(__file__).parents[2]
WAITED = re.compile(r"for [0-9.]+ s$", re.MULTILINE)
FOLDER = re.compile(r"at /\S*/ring\.py")


def blocks(text: str, language: str) -> list[str]:
    """The blocks of code in a text."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def without_places_and_times(report: str) -> str:
    """A report without what differs from run to run (waiting times, the folder) and without its line ends."""
    return " ".join(FOLDER.sub("at ring.py", WAITED.sub("for a while", report)).split())


@pytest.mark.skipif(not is_limosa(), reason="the report is Limosa's")
def test_the_hang_report_is_what_limosa_prints(job, tmp_path):
    program = blocks((ROOT / "docs/troubleshooting.md").read_text().split("\n### All send first\n")[1], "python")[0]
    (shown,) = blocks((ROOT / "README.md").read_text(), "console")
    command, _, report = shown.partition("\n")
    (tmp_path / "ring.py").write_text(program)
    assert command == "$ limosa run --on-hang=abort -n 3 ring.py"
    done = job(["ring.py"], n=3, options=["--on-hang=abort"], cwd=tmp_path).wait(60)
    assert without_places_and_times(done.err) == without_places_and_times(report)
    assert done.code != 0
