"""Comments, docstrings and messages name their subjects: a rank, a thread, a sender, not "who" or "somebody".

`words.txt` has the number of such words in each crate or folder, which only falls. After rewriting sentences, record
the lower number with `python tests/tidy/test_words.py`.
"""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("words.txt")
HEADER = """\
# Pronouns in place of a subject, by crate or folder (test_words.py). Numbers only fall.
# Empty lines keep changes of neighbouring parts from conflicting in a merge.
"""

# Sentences about people, in which these words are right. Written as in the file, on one line.
ABOUT_PEOPLE: tuple[str, ...] = ()

VERBS = (
    "is|was|has|had|does|did|may|can|must|will|would|needs?|knows?|sees?|sends?|waits?|takes?|gives?|gets?|comes?|goes"
    "|reads?|writes?|calls?|finds?|ends|looks?|says?|dies|sleeps?|holds?|makes?|copies|receives?"
)
PRONOUN = re.compile(
    r"\b(?:who|whoever|whom|nobody|somebody|anybody|everybody|another one)\b"
    rf"|\bthe other(?=[.,;:)]|'s|$| (?:{VERBS})\b)",
    re.IGNORECASE,
)

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
    for sentence in ABOUT_PEOPLE:
        whole = whole.replace(sentence, "")
    return [whole[max(0, found.start() - 40) : found.end() + 40] for found in PRONOUN.finditer(whole)]


def part_of(name: str) -> str:
    """The crate or top-level folder of a file."""
    parts = Path(name).parts
    return "/".join(parts[:2]) if parts[0] == "crates" else parts[0]


def count() -> Counter[str]:
    """The number of pronouns in each part."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not run: this is not a checkout of git")
    counts: Counter[str] = Counter()
    for name in filter(None, listed.stdout.split("\0")):
        # This file quotes the words.
        if (
            Path(name).name != "test_words.py"
            and name.endswith((".rs", ".py", ".java", ".c", ".h", ".cc", ".cpp", ".m"))
            and (ROOT / name).is_file()
        ):
            counts[part_of(name)] += len(pronouns(name, (ROOT / name).read_text(errors="replace")))
    return counts


def recorded() -> dict[str, int]:
    """The recorded numbers."""
    lines = [line for line in RECORD.read_text().splitlines() if line and not line.startswith("#")]
    return {part: int(number) for part, number in (line.split() for line in lines)}


def test_subjects_have_names() -> None:
    counts, known = count(), recorded()
    for part in sorted({*counts, *known}):
        now, before = counts[part], known.get(part, 0)
        assert now <= before, f"{part} has {now} pronouns in place of a subject, {before} before: name the subjects"
        assert now == before, f"{part} has only {now} pronouns, not {before}: run python tests/tidy/test_words.py"


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


def lower_the_record() -> None:
    """Records the numbers that have fallen; new parts begin as they are."""
    known = recorded() if RECORD.exists() else {}
    lines = [f"\n{part} {min(now, known.get(part, now))}\n" for part, now in sorted(count().items())]
    RECORD.write_text(HEADER + "".join(lines))


if __name__ == "__main__":
    lower_the_record()
