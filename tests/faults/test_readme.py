"""The README keeps its word: its programs run as they stand, and its hang report is what Limosa prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import is_limosa, tool

README = Path(__file__).parents[2] / "README.md"
WAITED = re.compile(r"for [0-9.]+ s$", re.MULTILINE)
FOLDER = re.compile(r"at /\S*/ring\.py")


def section(title: str) -> str:
    """The text of a section of the README."""
    return README.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    """The blocks of code in a text."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def without_places_and_times(report: str) -> str:
    """A report without what differs from run to run (waiting times, the folder) and without its line ends."""
    return " ".join(FOLDER.sub("at ring.py", WAITED.sub("for a while", report)).split())


@pytest.mark.skipif(not is_limosa(), reason="the report is Limosa's")
def test_the_hang_report_is_what_limosa_prints(job, tmp_path):
    (program,) = blocks(section("When a job hangs"), "python")
    (shown,) = blocks(section("When a job hangs"), "console")
    command, _, report = shown.partition("\n")
    (tmp_path / "ring.py").write_text(program)
    assert command == "$ limosa run --on-hang=abort -n 3 ring.py"
    done = job(["ring.py"], n=3, options=["--on-hang=abort"], cwd=tmp_path).wait(60)
    assert without_places_and_times(done.err) == without_places_and_times(report)
    assert done.code != 0


def test_the_first_programs_run(job, tmp_path):
    programs = blocks(section("First program"), "python")
    assert len(programs) == 2
    for program in programs:
        (tmp_path / "hello.py").write_text(program)
        done = job([tool("python"), "hello.py"], n=4, cwd=tmp_path).wait(60)
        assert done.code == 0, done.text
        assert "rank 3 of 4: the ranks add up to 6" in done.out
