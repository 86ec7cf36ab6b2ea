"""Writes the page of Octave's functions, from their help texts."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OCTAVE = ROOT / "octave"
CODE = re.compile(r"@(?:code|qcode|file)\{((?:[^{}@]|@[@{}]|@\w+\{[^{}]*\})*)\}")


def helps() -> dict[str, str]:
    """The help texts of the package's functions, in Texinfo."""
    texts: dict[str, str] = {}
    for source in sorted((OCTAVE / "src").glob("*.cc")):
        texts |= dict(re.findall(r'DEFUN_DLD\((limosa_\w+),.*?R"\((.*?)\)"\)', source.read_text(), re.DOTALL))
    for file in (OCTAVE / "inst").glob("[!_]*.m"):
        comments = [line[2:].removeprefix(" ") for line in file.read_text().splitlines() if line.startswith("##")]
        texts[file.stem] = "\n".join(comments) + "\n"
    return texts


def index() -> dict[str, list[str]]:
    """The functions by their groups in the file INDEX."""
    groups: dict[str, list[str]] = {}
    functions: list[str] = []
    for line in (OCTAVE / "INDEX").read_text().splitlines()[1:]:
        if line.startswith(" "):
            functions.append(line.strip())
        else:
            functions = groups[line] = []
    return groups


def plain(text: str) -> str:
    """Texinfo for code as plain text."""
    text = text.replace("@dots{}", "...")
    text = re.sub(r"@(?:var|code|qcode|file)\{([^{}]*)\}", r"\1", text)
    return re.sub(r"@([@{}])", r"\1", text)


def inline(text: str) -> str:
    """Texinfo of a paragraph as Markdown."""
    text = text.replace("@dots{}", "...")
    text = CODE.sub(lambda found: f"`{plain(found[1])}`", text)
    text = re.sub(r"@var\{([^{}]*)\}", r"*\1*", text)
    text = re.sub(r"@([@{}])", r"\1", text)
    left = re.search(r"@[a-z]+\{", text)
    assert left is None, f"a command of Texinfo that this script does not know: {text[left.start() :]}"
    return text


def section(name: str, text: str, known: set[str]) -> str:
    """The section of a function."""
    forms = [plain(form).replace("{} ", "", 1) for form in re.findall(r"^@deftypefnx? +(.*)$", text, re.MULTILINE)]
    # A form is the type, which is empty, the results in braces, and the call.
    calls = [re.sub(r"^\{(.*?)\} (?=\w+ \()", r"\1 ", re.sub(r"^\{\} ", "", form)) for form in forms]
    assert calls, f"{name} has no line that begins with @deftypefn"
    body = re.sub(r"\A.*?(?=^@deftypefn)", "", text, flags=re.DOTALL | re.MULTILINE)
    body = re.sub(r"^@(?:deftypefnx?|end deftypefn).*\n?", "", body, flags=re.MULTILINE)
    others = re.search(r"@seealso\{([^}]*)\}", body)
    body = re.sub(r"@seealso\{[^}]*\}\n?", "", body)
    out = [f"### {name}\n\n```octave\n" + "\n".join(calls) + "\n```\n\n"]
    for i, part in enumerate(re.split(r"^@(?:end )?example\n", body, flags=re.MULTILINE)):
        out.append(f"```octave\n{plain(part)}```\n\n" if i % 2 else inline(part.strip()) + "\n\n")
    if others:
        names = re.split(r"[\s,]+", others[1].strip())
        links = [f"[`{other}`](#{other.lower()})" if other in known else f"`{other}`" for other in names]
        out.append(f"See also {', '.join(links)}.\n\n")
    return "".join(out)


def page() -> str:
    """The page of all functions."""
    texts = helps()
    out = [
        "# Octave functions\n\n"
        "The functions that `limosa run script.m` and the package provide, with their help texts; `help limosa_send` "
        "shows the same at the prompt. The [guide](../octave.md) says how they work together, and describes the "
        "toolboxes of the past.\n\n"
    ]
    for group, names in index().items():
        out.append(f"## {group}\n\n")
        out += [section(name, texts[name], set(texts)) for name in names]
    return "".join(out)
