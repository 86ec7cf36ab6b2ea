"""Writes docs/errors.md: every error class of MPI-5, with what causes it in Limosa and what to do.

usage: python python/tools/pages/errors.py

Names and numbers come from the table of MPI-5, texts from the library, exceptions from `limosa.errors`, examples of
sentences from the wrong programs of the tests, causes and remedies from errors.toml. `tests/tidy/test_site.py` fails
when the page is not what this writes.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
import textwrap
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/errors.md"
HEAD = """# Error classes

An error of Limosa has one of the standard's classes and a sentence, which names the call, the argument, its value and,
where known, the remedy. By default the error handler prints it and ends the job:

```text
limosa: error in MPI_Send on rank 0: the destination rank is 4, but MPI_COMM_WORLD has ranks 0 to 3
```

A program that handles errors itself gets class and sentence in the way of its language:

| program | how |
|---|---|
| C, Fortran | with `MPI_ERRORS_RETURN`: the code that a call returns; `MPI_Error_class` and `MPI_Error_string` of it |
| `import limosa` | an exception of `limosa.errors`, which is also a built-in one: `except limosa.errors.RankError` |
| mpi4py | `MPI.Exception`, with `Get_error_class()` and `Get_error_string()` |
| Octave | an error whose identifier is `limosa:` and the class in small letters without `MPI_ERR_`: `limosa:rank` |
| Java | `MPIException`, in `org.limosa` `LimosaException` |

[What is checked](checks.md) says which mistakes are found, [Troubleshooting](troubleshooting.md) begins with what one
sees. The words in quotation marks are parts of Limosa's sentences.

This page is generated: `python python/tools/pages/errors.py`.
"""
# Of what a wrong program gets, so many sentences are shown.
EXAMPLES = 3


def wrapped(text: str) -> str:
    """A paragraph whose lines end at column 120."""
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def classes() -> dict[str, int]:
    """Names and numbers of the classes."""
    table = json.loads((ROOT / "api/mpi5.json").read_text())
    return {c["name"]: c["value"] for c in table["constants"] if c["category"] == "ERROR_CLASSES"}


def texts() -> dict[str, str]:
    """The library's text of each class."""
    source = (ROOT / "crates/limosa-mpi/src/error_code.rs").read_text()
    return dict(re.findall(r'^    \((MPI_\w+), "(.*)"\),$', source, re.MULTILINE))


def exceptions() -> dict[str, str]:
    """The exception of each class in Python."""
    found = {}
    for name, exception, also, _ in runpy.run_path(str(ROOT / "python/limosa/errors.py"))["_TABLE"]:
        which = f", a `{also.__name__}`" if also else ""
        found[f"MPI_ERR_{name}"] = f"`limosa.errors.{exception}`{which}"
    return found


def sentences() -> dict[str, list[str]]:
    """Parts of the sentences that wrong programs in C get, the longest first."""
    rows = tomllib.loads((ROOT / "tests/programs/wrong.toml").read_text())
    found: dict[str, set[str]] = {}
    for theme, cases in rows.items():
        for case in cases.values() if not theme.startswith("with_") else ():
            if isinstance(case, dict) and "error" in case and "text" in case:
                text = case["text"]
                parts = [text] if isinstance(text, str) else text
                # A part of a few words says nothing on its own.
                found.setdefault(case["error"], set()).update(part for part in parts if part.count(" ") >= 3)
    return {name: sorted(parts, key=lambda part: (-len(part), part)) for name, parts in found.items()}


def section(
    name: str, number: int, text: str, exception: str | None, examples: list[str], about: dict[str, Any]
) -> str:
    """The section of a class."""
    facts = [f'Number {number}, "{text}".']
    if exception:
        facts.append(f"In Python {exception}.")
    out = [f"## {name}\n", wrapped(" ".join(facts)) + "\n", wrapped(about["when"]) + "\n"]
    if examples:
        out.append(wrapped("Sentences: " + "; ".join(f'"{example}"' for example in examples[:EXAMPLES]) + ".") + "\n")
    if "do" in about:
        out.append(wrapped(f"**What to do:** {about['do']}") + "\n")
    return "\n".join(out)


def page() -> str:
    """The whole page."""
    about = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    named, numbers, exception, examples = texts(), classes(), exceptions(), sentences()
    assert list(about) == list(numbers), "errors.toml has the classes of the table, in their order"
    rows = "".join(f"| [`{name}`](#{name.lower()}) | {named[name]} |\n" for name in numbers)
    sections = [
        section(name, number, named[name], exception.get(name), examples.get(name, []), about[name])
        for name, number in numbers.items()
    ]
    return f"{HEAD}\n| class | text |\n|---|---|\n{rows}\n" + "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
