"""The examples of the pages for beginners run as they stand, and print what the pages show.

A block of code belongs to the file that the paragraph before it names first. Each console block has commands, behind
"$", and what they print. The lines of ranks come in any order; `...` stands for any lines. Times, numbers of processes,
folders and limits of the machine may differ, and so may the rank that is the first to fail.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from jobs import BIN, run_job

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/tutorial.md", "docs/troubleshooting.md", *sorted(map(str, (ROOT / "docs/migration").glob("*.md")))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`(\w+\.(?:py|c|m|java))`")
VARYING = [
    (r"\bfor [\d.]+ s\b", "for 1 s"),
    (r"\b[\d.]+ s ago\b", "1 s ago"),
    (r"\(process \d+", "(process 1"),
    (r"/\S*/(\w+\.py)", r"\1"),
    (r"its limit is [^(]*\(", "its limit is 1 ("),
]


def examples(text: str) -> tuple[dict[str, str], list[tuple[str, list[str]]]]:
    """The files of a page, and its commands with the lines that each prints."""
    files: dict[str, str] = {}
    commands: list[tuple[str, list[str]]] = []
    end = 0
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        named = FILE.search(text[end : block.start()].strip().split("\n\n")[-1])
        end = block.end()
        if language == "console":
            for line in code.splitlines():
                if line.startswith("$ "):
                    commands.append((line[2:], []))
                else:
                    commands[-1][1].append(line)
        elif language in {"python", "c", "octave", "java"} and named:
            assert named[1] not in files, f"two blocks are {named[1]}"
            files[named[1]] = code
    return files, commands


def plain(lines: list[str]) -> Counter[str]:
    """Lines without what differs from run to run, and how often each is there."""
    kept = []
    for line in lines:
        for pattern, word in VARYING:
            line = re.sub(pattern, word, line)  # noqa: PLW2901
        if line.strip():
            kept.append(line.rstrip())
    return Counter(kept)


def needed(command: str) -> None:
    """Skip the test of a command whose language is not installed."""
    if command.endswith(".m") and not (shutil.which("octave-cli") and shutil.which("mkoctfile")):
        pytest.skip("Octave is not installed; on Debian:  sudo apt-get install octave octave-dev")
    if command.endswith(".java"):
        from limosa._java_find import JavaError, find

        try:
            find("javac")
        except JavaError as error:
            pytest.skip(f"not run: {error}")


CASES = [
    pytest.param(page, number, id=f"{Path(page).stem}: {command}")
    for page in PAGES
    for number, (command, _) in enumerate(examples((ROOT / page).read_text())[1])
]


@pytest.mark.parametrize("page, number", CASES)
def test_a_command_prints_what_its_page_shows(tmp_path: Path, page: str, number: int) -> None:
    files, commands = examples((ROOT / page).read_text())
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    command, shown = commands[number]
    needed(command)
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": sys.prefix}
    # Programs are compiled before they run.
    for earlier, _ in commands[:number]:
        if earlier.startswith("mpicc "):
            assert run_job(shlex.split(earlier), 60, cwd=tmp_path, env=environment).code == 0
    done = run_job(shlex.split(command), 60, cwd=tmp_path, env=environment)
    printed, expected = plain(done.text.splitlines()), plain([line for line in shown if line != "..."])
    printed = Counter({line: n for line, n in printed.items() if not line.startswith("limosa: compiling Limosa's")})
    missing, more = expected - printed, printed - expected
    assert not missing and (not more or "..." in shown), done.text


def test_every_program_of_the_pages_is_started() -> None:
    for page in PAGES:
        files, commands = examples((ROOT / page).read_text())
        started = " ".join(command for command, _ in commands)
        assert {name for name in files if not re.search(rf"\b{re.escape(name)}\b", started)} == set(), page


def test_output_is_compared_without_what_varies() -> None:
    shown = plain(["  rank 0: for 1.2 s", "      at /home/ada/ring.py:7 in <module>", "(process 4711, ./a)"])
    assert shown == plain(["  rank 0: for 13.5 s", "      at /tmp/x-1/ring.py:7 in <module>", "(process 9, ./a)"])
    assert shown != plain(["  rank 1: for 1.2 s", "      at /home/ada/ring.py:7 in <module>", "(process 4711, ./a)"])
    text = "First `a.py` and `b.py`:\n\n```python\n1\n```\n\n```console\n$ x -l\nout\n...\n$ y\n```\n"
    files, commands = examples(text)
    assert files == {"a.py": "1\n"} and commands == [("x -l", ["out", "..."]), ("y", [])]
