"""``limosa bench primitives``: each operation by itself, from C, from Python and from Java, on any library.

Every operation of which models are made, 0 bytes and powers of four, from 2 processes on: ``programs/primitives.c`` and
``programs/primitives.py`` and ``programs/Primitives.java``, which print the same lines. Languages and libraries take
turns. mpi4py, `import limosa` and Java run on libraries with the standard ABI; on others C alone is measured. Java
whose ranks are threads passes its own messages, and is measured once, with Limosa.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from limosa_lab import build, catalogue, machine, records, runner, stats, tables
from limosa_lab.catalogue import Program
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.java_library import InJavaThreads, has_java, needed, twin
from limosa_lab.libraries import PEERS, Library, Limosa, choose_peers
from limosa_lab.records import Writer
from limosa_lab.schedule import Task
from limosa_lab.study.measure import has_standard_abi
from limosa_lab.terminal import Terminal, names, numbers
from limosa_lab.wording import ranks as written

PROGRAM = "primitives"
PYTHON = ("mpi4py", "limosa")
JAVA = ("Java", "Java-threads")
LANGUAGES = ("C", *PYTHON, *JAVA)
SIZES = (0, *(4**k for k in range(11)))
QUICK_SIZES = (0, 16, 1 << 10, 1 << 16, 1 << 20)
LIMIT = 300.0


def main(arguments: Sequence[str]) -> int:
    """Measure as the command line says; give the exit code."""
    made = argparse.ArgumentParser(
        prog="limosa bench primitives",
        description="Measure each operation by itself, from C, from Python and from Java.",
    )
    made.add_argument(
        "--against", type=names, default=[], metavar="NAMES", help=f"other libraries, too: {', '.join(PEERS)}"
    )
    made.add_argument(
        "--languages",
        type=names,
        default=[],
        metavar="NAMES",
        help=f"of: {', '.join(LANGUAGES)} (default: all, without Java where there is no JDK)",
    )
    made.add_argument("--only", type=names, default=[], metavar="NAMES", help="operations; default: all")
    made.add_argument("--ranks", type=numbers, default=[2, 4], metavar="N,...", help="numbers of ranks (default: 2,4)")
    made.add_argument("--rounds", type=int, default=2, metavar="N", help="how often everything is run (default: 2)")
    made.add_argument("--quick", action="store_true", help="2 ranks, few sizes and samples, one round: under a minute")
    made.add_argument("--output", type=Path, metavar="DIR", help="folder (default: limosa-bench-primitives-TIME)")
    given = made.parse_args(arguments)
    for language in given.languages:
        if language not in LANGUAGES:
            raise LabError(f"`{language}` is not a language of this suite", hint=f"known: {', '.join(LANGUAGES)}")
    given.languages = given.languages or _all_languages()
    if set(given.languages) & set(JAVA):
        needed()
    if given.rounds < 1:
        raise LabError(f"--rounds {given.rounds}: at least one round is needed")
    if set(given.languages) & set(PYTHON) and find_spec("mpi4py") is None:
        raise LabError("mpi4py is not installed", hint=f"{sys.executable} -m limosa.install_mpi4py", code=ENVIRONMENT)
    if given.quick:
        given.ranks, given.rounds = [2], 1
    terminal = Terminal("limosa bench primitives")
    libraries: list[Library] = [Limosa(), *(peer.install(terminal.say) for peer in choose_peers(given.against))]
    folder = given.output or Path(f"limosa-bench-primitives-{time.strftime('%Y%m%d-%H%M%S')}")
    _measure(given, libraries, folder, terminal)
    recording = records.read(folder)
    for table in tables.benchmarks(recording, stats.results(recording.samples)):
        print(table.text(terminal.width))
    for trouble in tables.troubles(recording):
        print(f"warning: {trouble}")
    terminal.say(f"wrote {folder / records.FILE_NAME}")
    return 1 if any(not sample.verified for sample in recording.samples) else 0


def _measure(given: argparse.Namespace, libraries: Sequence[Library], folder: Path, terminal: Terminal) -> None:
    writer = Writer(folder)
    in_c = catalogue.programs()[PROGRAM]
    prepared = {library.name: runner.Prepared(library, library.version, machine.processors()) for library in libraries}
    binaries = {name: build.compiled(in_c, entry.library, entry.version) for name, entry in prepared.items()}
    words = ["--sizes", ",".join(map(str, QUICK_SIZES if given.quick else SIZES))]
    words += ["--only", ",".join(given.only)] if given.only else []
    words += ["--samples", "30"] if given.quick else []
    options = {name: value for name, value in vars(given).items() if name != "output"}
    writer.record("environment", machine.record(libraries, options))
    runner.adopt_orphans()
    turns = [
        (round_number, number, name, language)
        for round_number in range(given.rounds)
        for number in given.ranks
        for language in given.languages
        for name, entry in prepared.items()
        if language == "C" or (has_standard_abi(entry.library) and (language != "Java-threads" or name == Limosa.name))
    ]
    with terminal.progress(len(turns)):
        for at, (round_number, number, name, language) in enumerate(turns):
            entry = prepared[name]
            terminal.running(at, f"{language}, {written(number)}, {entry.library.title}, round {round_number + 1}")
            launched, program, more = _program(language, entry, in_c, binaries[name])
            task = Task(Program(PROGRAM, program, (number,)), number)
            record, samples = runner.run(launched, program, task, [*more, *words], round_number, LIMIT)
            named = [("sample", replace(sample, library=name, x={"language": language})) for sample in samples]
            writer.record_all([("run", replace(record, library=name)), *named])
            if record.outcome != "ok":
                terminal.say(runner.describe(record))
    writer.record("end", machine.end())


def _all_languages() -> list[str]:
    return [language for language in LANGUAGES if language not in JAVA or has_java()]


def _program(
    language: str, entry: runner.Prepared, in_c: Program, binary: Path
) -> tuple[runner.Prepared, Path, list[str]]:
    """Give what launches the suite in a language, the program, and its first words."""
    if language == "C":
        return entry, binary, ["--forms", "hot"]
    if language in PYTHON:
        return entry, Path(sys.executable), [str(in_c.source.with_suffix(".py")), "--module", language]
    source = twin(in_c.source)
    if language == "Java":
        return entry, Path(sys.executable), ["-m", "limosa._java", str(source)]
    return replace(entry, library=InJavaThreads()), source, []
