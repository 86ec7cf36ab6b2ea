"""Functions stay short enough to be read at once."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Lines of a function, from its first line to its last, without a docstring.
LONGEST = 60

# Longer functions, each with its reason: (file, function).
LANE = (
    "the fast path of every message: what it does is cut by the forms of a message, and parts of it in functions cost "
    "a tenth of its time"
)
LONG: dict[tuple[str, str], str] = {
    ("crates/limosa-device/src/shm.rs", "send"): LANE,
    ("crates/limosa-device/src/shm.rs", "poll"): LANE,
    ("crates/limosa-p2p/src/engine/waiting.rs", "wait_as"): "one loop whose steps share its state and the lock",
}

BEGIN = re.compile(
    r"^( *)(?:pub(?:\([^)]*\))? )?(?:default )?(?:const )?(?:async )?(?:unsafe )?(?:extern \"\w+\" )?fn (\w+)"
)


def rust_functions(text: str) -> Iterator[tuple[str, int]]:
    """Each function with its number of lines.

    rustfmt puts the closing brace below the first letter of the declaration.
    """
    lines = text.splitlines()
    for start, line in enumerate(lines):
        found = BEGIN.match(line)
        if not found or line.endswith(("}", ";")):
            continue
        for end in range(start + 1, len(lines)):
            if lines[end].startswith(f"{found[1]}}}") or re.match(rf"{found[1]}\).*;$", lines[end]):
                yield found[2], end - start + 1
                break


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Each function with its number of lines without the docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0]
            has_docstring = (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            )
            docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - docstring


def sources() -> Iterator[tuple[str, str]]:
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for name in names:
        path = ROOT / name
        if path.suffix in (".rs", ".py") or (
            path.suffix == "" and path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python")
        ):
            yield name, path.read_text()


def test_functions_are_short_or_say_why() -> None:
    too_long = {}
    for name, text in sources():
        functions = rust_functions(text) if name.endswith(".rs") else python_functions(text)
        too_long |= {(name, function): lines for function, lines in functions if lines > LONGEST}
    unknown = {
        f"{function} in {name}": lines for (name, function), lines in too_long.items() if (name, function) not in LONG
    }
    assert not unknown, f"cut these along their seams, or list them with a reason: {unknown}"
    stale = set(LONG) - set(too_long)
    assert not stale, f"these are short now: take them off the list: {stale}"


def test_lines_are_counted_in_every_shape_of_a_function() -> None:
    rust = """
pub(crate) unsafe fn one<T>(
    a: T,
) -> u32
where
    T: Copy,
{
    fn inner() {
        1;
    }
    match a {
        _ => {}
    }
}

trait Some {
    fn declared(
        a: u32,
    ) -> u32;
    fn short() {}
}
"""
    assert list(rust_functions(rust)) == [("one", 13), ("inner", 3), ("declared", 3)]
    python = (
        'class A:\n    def f(self):\n        """Text.\n\n        More.\n        """\n        return 1\n\n'
        "def g():\n    pass\n"
    )
    assert sorted(python_functions(python)) == [("f", 2), ("g", 2)]
