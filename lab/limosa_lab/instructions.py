"""``limosa bench instructions``: how many instructions calls execute, of Limosa and of other libraries.

No noise of the machine touches these numbers, and no wake-up is in them: what the counted rank needs from its partner
has happened before (``instructions.c``). Where a call must wait for an answer all the same, as in a barrier, what it
executes while it polls is counted; the least of some repetitions is shown. Each library is called as its users call it,
with its own header. The results are records as of ``limosa bench``, which ``limosa bench diff`` compares.
"""

from __future__ import annotations

import argparse
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from limosa_lab import build, callgrind, machine, records, runner
from limosa_lab.catalogue import Program
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.libraries import PEERS, Library, Limosa, choose_peers
from limosa_lab.records import Recording, Sample, Writer
from limosa_lab.schedule import Task
from limosa_lab.tables import Table
from limosa_lab.terminal import Terminal, names

PROGRAM = Program("instructions", callgrind.SOURCE, (2,))
# A run under valgrind takes some seconds; this only ends one that hangs.
LIMIT = 180.0


def main(arguments: Sequence[str]) -> int:
    """Count as the command line says; give the exit code."""
    made = argparse.ArgumentParser(
        prog="limosa bench instructions",
        description="Count the instructions that calls execute between two ranks, with valgrind.",
    )
    made.add_argument(
        "--against", type=names, default=[], metavar="NAMES", help=f"other libraries, too: {', '.join(PEERS)}"
    )
    made.add_argument(
        "--output", type=Path, metavar="DIR", help="folder for the counts (default: limosa-bench-instructions-TIME)"
    )
    made.add_argument("--limosa", type=Path, metavar="DIR", help="environment in which Limosa is installed")
    given = made.parse_args(arguments)
    lack = callgrind.missing()
    if lack:
        raise LabError(f"instructions cannot be counted: {lack}", code=ENVIRONMENT)
    terminal = Terminal("limosa bench instructions")
    libraries: list[Library] = [Limosa(given.limosa)]
    libraries += [peer.install(terminal.say) for peer in choose_peers(given.against)]
    folder = given.output or Path(f"limosa-bench-instructions-{time.strftime('%Y%m%d-%H%M%S')}")
    _measure(libraries, folder, terminal)
    recording = records.read(folder)
    if not recording.samples:
        raise LabError("no call was counted", hint="see the messages above", code=ENVIRONMENT)
    print(_table(recording).text(terminal.width), end="")
    terminal.say(f"wrote {folder / records.FILE_NAME}")
    return 0


def _measure(libraries: Sequence[Library], folder: Path, terminal: Terminal) -> None:
    writer = Writer(folder)
    writer.record("environment", machine.record(libraries, {"program": PROGRAM.name}))
    runner.adopt_orphans()
    with terminal.progress(len(libraries)):
        for number, library in enumerate(libraries):
            terminal.running(number, library.title)
            prepared = runner.Prepared(library, library.version, machine.processors())
            binary = build.compiled(PROGRAM, library, prepared.version, callgrind.FLAGS)
            with tempfile.TemporaryDirectory() as dumps:
                record, _ = runner.run(
                    prepared, _wrapped(binary, Path(dumps)), Task(PROGRAM, 2), [], 0, LIMIT, {"LIMOSA_WAIT": "poll"}
                )
                found = callgrind.counts(Path(dumps))
            samples = [_sample(library, case, count.instructions) for case, count in found.items()]
            writer.record_all([("run", record), *(("sample", sample) for sample in samples)])
            if record.outcome != "ok":
                terminal.say(runner.describe(record))
    writer.record("end", machine.end())


def _table(recording: Recording) -> Table:
    """Give the counts: a row for each call, a column for each library."""
    counts: dict[str, dict[str, float]] = {}
    for sample in recording.samples:
        counts.setdefault(sample.x["call"], {})[sample.library] = sample.samples[0]
    titles = recording.titles()
    table = Table("Instructions of a call at one of two ranks; a window is 64 messages", ["call", *titles.values()])
    table.words = 1
    for call, by_library in counts.items():
        table.rows.append([call, *(f"{by_library[name]:.0f}" if name in by_library else "-" for name in titles)])
    return table


def _wrapped(binary: Path, folder: Path) -> Path:
    """Give a program that runs the binary under valgrind."""
    script = folder / binary.name
    script.write_text(f"#!/bin/sh\nexec {shlex.join(callgrind.command(folder))} {shlex.quote(str(binary))}\n")
    script.chmod(0o755)
    return script


def _sample(library: Library, case: str, count: int) -> Sample:
    return Sample(
        library=library.name,
        program=PROGRAM.name,
        round=0,
        bench="instructions",
        form="hot",
        bytes=0,
        ranks=2,
        metric="instructions",
        unit="instructions",
        samples=[float(count)],
        verified=True,
        x={"call": case},
    )
