"""Every function has a help text, and the examples in it run."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import ROOT

#: Their examples start processes, or need the installed package.
AT_THE_PROMPT = {"limosa_run", "limosa_toolbox"}


def helps() -> dict[str, str]:
    """The help texts of the modern API by function."""
    texts = {}
    for name in ("limosa", "messages", "collectives"):
        source = (ROOT / "octave" / "src" / f"{name}.cc").read_text()
        texts |= dict(re.findall(r'DEFUN_DLD\((limosa_\w+),.*?R"\((.*?)\)"\)', source, re.DOTALL))
    for file in (ROOT / "octave" / "inst").glob("[!_]*.m"):
        lines = [line[2:].removeprefix(" ") for line in file.read_text().splitlines() if line.startswith("##")]
        texts[file.stem] = "\n".join(lines) + "\n"
    return texts


def examples(text: str) -> list[str]:
    found = re.findall(r"@example\n(.*?)@end example", text, re.DOTALL)
    return [re.sub(r"@([@{}])", r"\1", one) for one in found]


def test_the_index_lists_every_function_and_each_has_a_help_text():
    listed = re.findall(r"^ (\w+)$", (ROOT / "octave" / "INDEX").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(helps())
    assert all("@deftypefn" in text for text in helps().values())


def test_the_examples_run(octave, tmp_path: Path):
    code = [one for name, text in helps().items() if name not in AT_THE_PROMPT for one in examples(text)]
    assert len(code) > 20
    octave.code("\nlimosa_barrier ();\n".join(code), n=2)
