"""The version stands in one place, and what repeats it says the same."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name, pattern",
    [
        ("java/pom.xml", r"^  <version>([^<]*)</version>"),
        ("docs/java.md", r"limosa-mpi-([\d.]+)\.jar"),
        ("octave/DESCRIPTION", r"^Version: (.*)$"),
        ("Cargo.lock", r'name = "limosa-abi"\nversion = "([^"]*)"'),
    ],
)
def test_what_repeats_the_version_says_the_same(name: str, pattern: str) -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    repeated = re.findall(pattern, (ROOT / name).read_text(), re.MULTILINE)
    assert version and repeated and set(repeated) == {version[1]}
