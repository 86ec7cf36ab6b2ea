"""Writes docs/variables.md: every LIMOSA_ variable, with its values, its default, and when to set it.

usage: python python/tools/pages/variables.py

The declarations are those that `limosa env` prints; variables.toml says when to set a variable. The script finds the
pages that say more. `tests/packaging/test_site.py` fails when the page is not what this writes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/variables.md"
HEAD = """# Variables

What a `LIMOSA_` variable sets holds for all ranks of a job: the launcher passes the variables on, also to other hosts.
`limosa env` shows those of users with their present values, `limosa env --all` also the others. A value that is not
understood, and a name that does not exist, cause a warning and count as not set:

```console
$ LIMOSA_WIAT=poll limosa run -n 2 ./program
limosa: warning: there is no variable LIMOSA_WIAT; did you mean LIMOSA_WAIT? (`limosa env` lists all)
```

`limosa run -x NAME=VALUE` sets a variable for one job. A switch is `1` or `0`, also `on` or `off`, `yes` or `no`,
`true` or `false`. The variables of users are also control variables of [the tool interface](mpi_t.md).

The compiler wrapper `mpicc` has variables of its own: `LIMOSA_CC`, `LIMOSA_CXX` and `LIMOSA_FC` name the compiler.
`JAVA_LIMOSA_LIBRARY` names [the MPI library of a Java program](java.md#without-the-library); other variables that begin
with `JAVA_LIMOSA_` or `OCTAVE_LIMOSA_` are Limosa's own, but for `JAVA_LIMOSA_KEY`, the
[key of a job](java.md#several-java-machines-and-hosts-without-the-library) on hosts without the library.

This page is generated: `python python/tools/pages/variables.py`.
"""
RANK = ["LIMOSA_RANK", "LIMOSA_SIZE", "LIMOSA_LOCAL_RANK", "LIMOSA_LOCAL_SIZE"]
GROUPS = ["Variables of users", "Set by the launcher, for programs to read", "Set by the launcher, for the library"]
# Generated pages, lists of changes and records of decisions say nothing more about a variable.
LEFT_OUT = re.compile(r"variables\.md|errors\.md|decisions/|where-to-look\.md")


def wrapped(text: str) -> str:
    """A paragraph whose lines end at column 120."""
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def declared() -> list[dict[str, Any]]:
    """The declarations of all variables."""
    limosa = Path(sys.executable).parent / "limosa"
    printed = subprocess.run([limosa, "env", "--all", "--format", "json"], check=True, stdout=subprocess.PIPE)
    variables: list[dict[str, Any]] = json.loads(printed.stdout)
    return variables


def mentions(name: str) -> list[str]:
    """Links to the pages that mention a variable."""
    found = []
    for path in sorted((ROOT / "docs").rglob("*.md")):
        place = path.relative_to(ROOT / "docs")
        text = path.read_text(encoding="utf-8")
        if not LEFT_OUT.search(str(place)) and re.search(rf"\b{name}\b", text):
            found.append(f"[{text.splitlines()[0].removeprefix('# ')}]({place})")
    return found


def values(form: str) -> str:
    """The form of a variable's values, in words."""
    words = {"text": "a text", "file": "a path"}
    if re.fullmatch(r"[a-z]+", form):
        return words.get(form, f"a number of {form}")
    # The bars between words are alternatives, not those in the forms of a device.
    return ", ".join(f"`{value}`" for value in form.split("|"))


def group(variable: dict[str, Any]) -> str:
    """The group of a variable."""
    if variable["set_by"] == "user":
        return GROUPS[0]
    return GROUPS[1] if variable["name"] in RANK else GROUPS[2]


def section(variable: dict[str, Any], about: dict[str, str]) -> str:
    """The section of a variable."""
    out = [f"### {variable['name']}\n", wrapped(f"{variable['text']}.") + "\n"]
    facts = []
    if variable["set_by"] == "user":
        facts.append(f"Values: {values(variable['form'])}.")
        facts.append(f"Default: `{variable['default']}`." if variable["default"] else "Not set by default.")
    if "option" in about:
        facts.append(f"Option: `{about['option']}`.")
    if facts:
        out.append(wrapped(" ".join(facts)) + "\n")
    if "when" in about:
        out.append(wrapped(about["when"]) + "\n")
    if found := mentions(variable["name"]):
        out.append(wrapped(f"See also {', '.join(found)}.") + "\n")
    return "\n".join(out)


def page() -> str:
    """The whole page."""
    about = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    variables = declared()
    unknown = set(about) - {variable["name"] for variable in variables}
    assert not unknown, f"variables.toml has variables that do not exist: {unknown}"
    out = [HEAD]
    for title in GROUPS:
        out.append(f"## {title}\n")
        out += [section(each, about.get(each["name"], {})) for each in variables if group(each) == title]
    return "\n".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
