"""Comments, docstrings and messages name their subjects: a rank, a thread, a sender, not "who" or "somebody"."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERBS = (
    "is|was|has|had|does|did|may|can|must|will|would|needs?|knows?|sees?|sends?|waits?|takes?|gives?|gets?|comes?|goes"
    "|reads?|writes?|calls?|finds?|ends|looks?|says?|dies|sleeps?|holds?|makes?|copies|receives?"
)
PRONOUN = re.compile(
    r"\b(?:who|whoever|whom|nobody|somebody|anybody|everybody|another one)\b"
    rf"|\bthe other(?=[.,;:)]|'s|$| (?:{VERBS})\b)",
    re.IGNORECASE,
)

SUFFIXES = (".rs", ".py", ".java", ".c", ".h", ".cc", ".cpp", ".m")
# What may hold prose in each language: comments, and strings with their quotes.
C_LIKE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\br(#*)"(?:.*?)"\1|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\])*"' + r"|'(?:\\.[^']*|[^'\\\n])'",
    re.DOTALL,
)
OCTAVE = re.compile(r'[%#][^\n]*|"(?:\\.|[^"\\\n])*"')


def prose_of(name: str, text: str) -> list[str]:
    """The comments and strings of a file."""
    suffix = Path(name).suffix
    if suffix == ".py":
        kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        return [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type in kinds]
    pattern = OCTAVE if suffix == ".m" else C_LIKE
    return [found[0] for found in pattern.finditer(text)]


def joined(prose: str) -> str:
    """A comment or string as one line, without marks of comments, code in backticks and interpolated values."""
    lines = [re.sub(r"^\s*(//[/!]?|/?\*+/?|[%#]+!?)\s?", "", line) for line in prose.splitlines()]
    return re.sub(r"`[^`]*`|\{[^{}]*\}", "_", " ".join(" ".join(lines).split()))


def pronouns(name: str, text: str) -> list[str]:
    """The pronouns of a file, each with some words around it."""
    # Comments in consecutive lines belong together.
    whole = joined("\n".join(prose_of(name, text)))
    return [whole[max(0, found.start() - 40) : found.end() + 40] for found in PRONOUN.finditer(whole)]


def test_subjects_have_names() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not run: this is not a checkout of git")
    found = [
        f"{name}: ...{words}..."
        for name in listed.stdout.split("\0")
        # This file quotes the words.
        if name.endswith(SUFFIXES) and Path(name).name != "test_words.py" and (ROOT / name).is_file()
        for words in pronouns(name, (ROOT / name).read_text(errors="replace"))
    ]
    assert found == [], "name the subjects in place of these pronouns"


def test_comments_and_messages_count_and_code_does_not() -> None:
    rust = (
        "/// Wakes whoever\n/// waits; not the `who` of\n/// the other.\n"
        'fn who() -> &\'static str { "somebody is at {who}" }'
    )
    assert len(pronouns("a.rs", rust)) == 3
    assert pronouns("a.rs", "// The whole of the other processes, whose end is near.\nlet nobody = 'a';") == []
    python = '"""Nobody is here."""\nwho = f"{who} is awaited"  # by whom\n'
    assert len(pronouns("a.py", python)) == 2
    assert len(pronouns("a.m", '% Nobody.\nwho = "somebody";')) == 2
