"""Writes docs/internals/where-to-look.md: every source file with the first sentence of its documentation.

usage: python3 python/tools/where_to_look.py

A file says itself what it is for; this page only collects the sentences. `tests/tidy/test_where_to_look.py` fails when
the page is not what this script writes.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/internals/where-to-look.md"
SUFFIXES = {".rs", ".py", ".c", ".cc", ".h", ".java"}
# Folders whose files are listed, and what is left out there: programs that users or tests run as they are.
PARTS = ["api", "crates", "fortran", "java/src/main", "lab", "octave/src", "python", "tests"]
LEFT_OUT = re.compile(
    r"/tests/|/templates/|^tests/(abi|conformance|fortran|fuzz/corpus|java|octave|programs|python|lab/data)/|_fixes/|/helper/|^python/toplevel/"
)
HEAD = """# Where to look

Every source file with the first sentence of its documentation. `python3 python/tools/where_to_look.py` writes this
page; to change a line, change the beginning of the file. Questions that several files answer are in the other pages of
[docs/internals](README.md).
"""


def tracked() -> list[Path]:
    """The source files of the project, folder by folder."""
    listed = subprocess.run(["git", "ls-files", *PARTS], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.splitlines() if Path(name).suffix in SUFFIXES and not LEFT_OUT.search(name)]
    paths = sorted(map(ROOT.joinpath, names), key=lambda path: (path.parent, path.name))
    return [path for path in paths if path.is_file() and path.stat().st_size]


def documentation(path: Path) -> str:
    """The text at the beginning of a file that says what it is for; empty if there is none."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\A/\* lab: .*\*/\n", "", text)  # what the laboratory reads
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    if path.suffix == ".rs":
        lines = re.match(r"(?://!.*\n)*", text)
        return re.sub(r"^//! ?", "", lines[0] if lines else "", flags=re.MULTILINE)
    comment = re.search(r"/\*\*(.*?)\*/", text, re.DOTALL) if path.suffix == ".java" else None
    if comment is None:
        comment = re.match(r"\s*/\*+(.*?)\*/", text, re.DOTALL)
    if comment is None:
        lines = re.match(r"(?:\s*//.*\n)+", text)
        return re.sub(r"^\s*//+ ?", "", lines[0], flags=re.MULTILINE) if lines else ""
    return re.sub(r"^\s*\* ?", "", comment[1], flags=re.MULTILINE)


def sentence(text: str) -> str:
    """The first sentence of a documentation, as Markdown on one line."""
    paragraph = re.split(r"\n\s*(?:\n|[-*|] |```|$)", text.strip())[0]
    paragraph = " ".join(paragraph.split())
    paragraph = re.sub(r"\[(`[^`]+`)\](\([^)]*\))?", r"\1", paragraph)
    paragraph = re.sub(r"\{@(?:code|link|linkplain) ([^}]*)\}", r"`\1`", paragraph)
    end = re.search(r"(?<!\be\.g)(?<!\bi\.e)[.?](?= |$)", paragraph)
    return (paragraph[: end.end()] if end else paragraph).replace("|", "\\|")


def page() -> str:
    """The whole page."""
    out = [HEAD]
    folder = None
    for path in tracked():
        name = path.relative_to(ROOT)
        if name.parent != folder:
            folder = name.parent
            out.append(f"\n## {folder}\n\n| file | about |\n|---|---|\n")
        out.append(f"| [{name.name}](../../{name}) | {sentence(documentation(path))} |\n")
    return "".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
