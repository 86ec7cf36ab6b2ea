"""The page that says what each file is for is what the files say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("where_to_look", ROOT / "python/tools/where_to_look.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_files_say(writer: ModuleType) -> None:
    assert writer.PAGE.read_text() == writer.page(), "write it anew with:  python3 python/tools/where_to_look.py"


def test_every_file_says_what_it_is_for(writer: ModuleType) -> None:
    silent = [
        str(path.relative_to(ROOT)) for path in writer.tracked() if not writer.sentence(writer.documentation(path))
    ]
    assert silent == [], "begin these files with a sentence that says what they are for"


@pytest.mark.parametrize(
    "name, text, says",
    [
        ("a.rs", "//! Rings of [`Cell`]s. One per\n//! pair.\n\nuse x;\n", "Rings of `Cell`s."),
        ("a.rs", "use x;\n//! Not at the beginning.\n", ""),
        ("a.py", '"""Sends e.g. arrays,\nv1.2 of them."""\nx = 1\n', "Sends e.g. arrays, v1.2 of them."),
        ("a.c", "/* lab: ranks=2 */\n/* Measures\n * a | b.\n */\n", "Measures a \\| b."),
        ("a.cc", "// Reads. And writes.\nint x;\n", "Reads."),
        ("A.java", "package p;\n\n/** Waits for {@link Ring}. More. */\nclass A {}\n", "Waits for `Ring`."),
    ],
)
def test_the_first_sentence_is_found_in_every_language(
    writer: ModuleType, tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    assert writer.sentence(writer.documentation(tmp_path / name)) == says
