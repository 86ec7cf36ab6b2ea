"""The command line of ``limosa tune``: finds faster ways for collectives, checks them, and writes the tuning file."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from limosa_lab import machine, output, records
from limosa_lab.catalogue import COLLECTIVES
from limosa_lab.errors import LabError
from limosa_lab.java_library import JAVA, MODELLED, choose_modelled
from limosa_lab.model import library, samples
from limosa_lab.records import Recording
from limosa_lab.tables import Table, troubles
from limosa_lab.terminal import Terminal, names, numbers
from limosa_lab.tune import choices, report, steps, store, verdict
from limosa_lab.tune.rules import Entry
from limosa_lab.tune.steps import Pair
from limosa_lab.tune.store import Part
from limosa_lab.tune.variants import WAYS, Plain, words
from limosa_lab.tune.verdict import Verdict

EPILOG = """examples:
  limosa tune --quick                        Limosa's algorithms, 2, 3 and 4 processes
  limosa tune --against mpich,openmpi,intel  collectives of other libraries, too: 12 minutes, and some for the models
  limosa tune --from FOLDER                  from a measurement of `limosa model` or `limosa tune`
  limosa tune --check --from FOLDER          only list what takes longer than a combination of others
  limosa tune --verify                       measure programs with and without the tuning file, take back what is slower
  limosa tune --compare FILE FILE            at how many sizes two tuning files decide alike
  limosa tune --resume FOLDER                go on with what was interrupted
  limosa run -n 4 wave.py                    Limosa takes the file by itself
  limosa run --mpi mpich --tuned -n 4 wave.py
"""

# How long is measured for each library; parts of it are for the check, and for programs with what has passed it.
MINUTES = 3.0
QUICK_MINUTES = 0.75
CHECK = 0.2
PROGRAMS = 0.4
VERIFY_MINUTES = 4.0
RANKS = [2, 3, 4]
# What was asked for, so that an interrupted command goes on.
ARGUMENTS = "arguments.json"


@dataclass(frozen=True)
class Job:
    """What all steps need: the options of the command line, what follows from them, and the observer."""

    given: argparse.Namespace
    settings: steps.Settings
    terminal: Terminal

    @property
    def file(self) -> Path:
        """The tuning file."""
        return self.given.file or store.usual_place()

    def seconds(self, usual: float, libraries: int) -> float:
        """Give how long is measured, of `usual` minutes for each library unless the command line says it."""
        return 60 * (self.given.minutes if self.given.minutes is not None else usual * libraries)


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="limosa tune",
        description="Find out which collectives other algorithms of Limosa, or combinations of other collectives, do "
        "faster, check it by measurement, and write a file that `limosa run` reads.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    made.add_argument(
        "--against", type=names, default=[], metavar="NAMES", help=f"other libraries, too: {', '.join(MODELLED)}"
    )
    made.add_argument(
        "--operations", type=names, default=[], metavar="NAMES", help="such as bcast,allreduce; default: all"
    )
    made.add_argument("--ranks", type=numbers, default=[], metavar="N,...", help="default: 2,3,4")
    made.add_argument(
        "--programs",
        type=names,
        default=list(steps.LANGUAGES),
        metavar="NAMES",
        help=f"in which languages nothing may become slower (default: {','.join(steps.LANGUAGES)})",
    )
    made.add_argument("--max-bytes", type=int, default=1 << 20, metavar="N", help="largest message (default: 1048576)")
    made.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help=f"time for all runs (default: {MINUTES:g} for each library, with --quick {QUICK_MINUTES:g}, with "
        f"--verify {VERIFY_MINUTES:g})",
    )
    made.add_argument("--seed", type=int, default=1, metavar="N", help="of the random messages (default: 1)")
    made.add_argument("--quick", action="store_true", help="powers of four and fewer samples")
    made.add_argument("--from", type=Path, dest="source", metavar="DIR", help="measure nothing first; take that in DIR")
    made.add_argument("--resume", type=Path, metavar="DIR", help="go on with what was interrupted in DIR")
    made.add_argument("--output", type=Path, metavar="DIR", help="folder for measurements (default: limosa-tune-TIME)")
    usual = "limosa/tuning.json in ${XDG_CONFIG_HOME:-~/.config}"
    made.add_argument("--file", type=Path, metavar="FILE", help=f"the tuning file (default: {usual})")
    made.add_argument("--limosa", type=Path, metavar="DIR", help="environment in which Limosa is installed")
    made.set_defaults(goes_on=False)
    only = made.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="only say what takes longer than a combination of others")
    only.add_argument(
        "--verify", action="store_true", help="only measure programs with the tuning file, and take back what is slower"
    )
    only.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help="only compare two tuning files")
    return made


def tune(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)
    if given.compare:
        return _compare(given)
    if given.resume:
        folder, given = given.resume, _earlier(given.resume)
    else:
        folder = given.output or Path(f"limosa-tune-{time.strftime('%Y%m%d-%H%M%S')}")
    if given.max_bytes < 64:
        raise LabError(f"--max-bytes {given.max_bytes}: models need messages of 64 bytes and more")
    if given.minutes is not None and given.minutes <= 0:
        raise LabError(f"--minutes {given.minutes:g}: a positive number is needed")
    for language in given.programs:
        if language not in steps.LANGUAGES:
            raise LabError(f"--programs {language}: known are {', '.join(steps.LANGUAGES)}")
    choose_modelled(given.against)
    settings = steps.Settings(
        folder,
        given.against,
        given.operations,
        given.ranks or RANKS,
        given.max_bytes,
        given.seed,
        given.quick,
        given.limosa,
        given.programs,
    )
    job = Job(given, settings, Terminal("limosa tune"))
    if given.verify:
        return _verify(job, arguments)
    if given.source:
        recording = records.read(given.source)
    else:
        _begin(job, arguments)
        share = 1.0 if given.check else 1 - CHECK - PROGRAMS
        seconds = share * job.seconds(QUICK_MINUTES if given.quick else MINUTES, 1 + len(given.against))
        recording = steps.everything(settings, seconds, job.terminal, only_plain=given.check)
    tables = [
        report.consistency(recording.titles()[name], samples.of_library(recording, name))
        for name in recording.libraries()
        if ":" not in name
    ]
    if not given.check:
        if given.source:
            _begin(job, arguments)
        tables += _tuned(job, recording)
    for table in tables:
        print(table.text(job.terminal.width) if table.rows else f"{table.title}: nothing.\n")
    for trouble in troubles(recording):
        job.terminal.say(f"warning: {trouble}")
    return 1 if any(not sample.verified for sample in recording.samples) else 0


def _begin(job: Job, arguments: Sequence[str]) -> None:
    """Make the folder, and note in it what was asked for; nothing if this goes on with it."""
    folder = job.settings.folder
    noted = folder / ARGUMENTS
    if job.given.goes_on:
        return
    if noted.exists() or (folder / store.NAME).exists():
        raise LabError(
            f"{folder} holds a tuning already", hint=f"choose another --output, or go on with --resume {folder}"
        )
    output.write(noted, json.dumps(list(arguments)) + "\n")


def _earlier(folder: Path) -> argparse.Namespace:
    """Give the options of an interrupted command."""
    noted = folder / ARGUMENTS
    if (folder / store.NAME).exists():
        raise LabError(f"the tuning in {folder} is complete", hint=f"look at it with `limosa report {folder}`")
    try:
        arguments = json.loads(noted.read_text())
        given = parser().parse_args(arguments)
    except OSError as error:
        hint = "name the folder of a `limosa tune` that was interrupted"
        raise LabError(f"cannot read {noted}: {error.strerror}", hint) from None
    except (ValueError, TypeError) as error:
        raise LabError(f"{noted} is damaged: {error}", "begin anew with another --output") from None
    given.goes_on = True
    return given


def _tuned(job: Job, recording: Recording) -> list[Table]:
    """Find what is faster with each library, check it, write the file; give the tables."""
    found = _candidates(job, recording)
    for part in found.values():
        job.terminal.say(f"{part.title}: the models predict gains in {len(part.kept)} cases")
    candidates = job.settings.folder / "candidates.json"
    pairs = [steps.pair(name, part.kept, candidates, job.settings, job.terminal) for name, part in found.items()]
    pairs = [pair for pair in pairs if pair.entries]
    usual = QUICK_MINUTES if job.given.quick else MINUTES
    seconds = CHECK * job.seconds(usual, len(found))
    checked = steps.in_turns("check", pairs, job.settings, seconds, job.terminal) if pairs else None
    parts: dict[str, Part] = {name: part.with_verdict(Verdict([], [])) for name, part in found.items()}
    for pair in pairs:
        name, measured = pair.plain.name, steps.compare(checked, pair) if checked else {}
        result = verdict.judge(pair.entries, measured)
        parts[name] = found[name].with_verdict(result, report.answer(found[name].title, result.kept, measured))
        for doubt in report.doubts(found[name].title, measured):
            job.terminal.say(f"warning: {doubt}")
    # What has passed the check, for the measurement of programs.
    file = job.settings.folder / "checked.json"
    store.write(file, recording.environment, parts)
    pairs = [steps.pair(name, part.kept, file, job.settings, job.terminal) for name, part in parts.items() if part.kept]
    tables: list[Table] = []
    if pairs:
        seconds = PROGRAMS * job.seconds(usual, len(found))
        _, parts, tables, _ = _in_programs(job, "programs", pairs, parts, seconds, are_candidates=True)
    for part in parts.values():
        tables += [report.entries(part.title, part.kept), report.dropped(part.title, part.dropped)]
    store.write(job.file, recording.environment, parts)
    store.write(job.settings.folder / store.NAME, recording.environment, parts)
    job.terminal.say(f"wrote {job.file}")
    return tables


def _in_programs(
    job: Job, name: str, pairs: Sequence[Pair], parts: dict[str, Part], seconds: float, *, are_candidates: bool = False
) -> tuple[Recording, dict[str, Part], list[Table], int]:
    """Measure programs into the folder of this name, and take back what makes any of them slower, level by level.

    Entries at thread levels that no program has stay as they are. `are_candidates`: the entries have passed the check,
    which programs without threads make. Then they must be measured in programs, and gain at MPI_THREAD_MULTIPLE, too.

    Returns
    -------
    tuple
        The recording, the parts without what was taken back, the tables, and the number of slower cases.

    """
    kinds = {pair.plain.name: steps.in_programs(pair, job.settings) for pair in pairs}
    recording = steps.in_turns(name, list(chain(*kinds.values())), job.settings, seconds, job.terminal)
    parts, tables, slower = dict(parts), [], 0
    for pair in pairs:
        part = parts[pair.plain.name]
        measured = {key: case for one in kinds[pair.plain.name] for key, case in steps.compare(recording, one).items()}
        tables += [report.programs(part.title, pair.entries, measured)]
        tables += [] if are_candidates else [report.long_calls(part.title, pair.entries, measured)]
        tables += [report.losses(part.title, pair.entries, measured)]
        for doubt in report.doubts(part.title, measured):
            job.terminal.say(f"warning: {doubt}")
        slower += sum(map(verdict.is_slower, measured.values()))
        tried = [entry for entry in verdict.at_levels(pair.entries) if entry.level in ("", *job.settings.levels)]
        others = [entry for entry in verdict.at_levels(part.kept) if entry not in tried]
        confirmed = verdict.confirm(tried, measured) if are_candidates else Verdict(tried, [])
        result = verdict.withdraw(confirmed.kept, measured, keep_unmeasured=not are_candidates)
        result = Verdict([*others, *result.kept], [*part.dropped, *confirmed.dropped, *result.dropped])
        parts[pair.plain.name] = part.with_verdict(result, report.answer(part.title, pair.entries, measured))
    return recording, parts, tables, slower


def _candidates(job: Job, recording: Recording) -> dict[str, Part]:
    """Give what the models say is faster with each library; of an interrupted command what it has found."""
    file = job.settings.folder / "candidates.json"
    if file.exists():
        return store.read(file)
    job.terminal.say("fitting")
    known = {sample.library for sample in recording.samples}
    measured = {name: samples.of_library(recording, name) for name in recording.libraries() if name in known}
    fitted = library.fit_all(measured, samples.apart(recording))
    versions = {one["name"]: str(one["version"]) for one in recording.environment["libraries"]}
    found = {}
    for name in (name for name in fitted if ":" not in name):
        if name in JAVA:
            job.terminal.say(f"{recording.titles()[name]} is only checked: its collectives are not replaced")
            continue
        if name == "limosa":
            forced = {way: fitted.get(f"limosa:{way}", {}) for way in WAYS}
            prefix = Plain(job.given.limosa).prefix
            entries = choices.algorithms(fitted[name], forced, {way: words(prefix, way) for way in WAYS})
        else:
            entries = choices.substitutions(fitted[name])
        wanted = [entry for entry in entries if _is_wanted(job, entry)]
        found[name] = Part(recording.titles()[name], versions[name], wanted)
    store.write(file, recording.environment, found)
    return found


def _is_wanted(job: Job, entry: Entry) -> bool:
    operations = job.settings.operations
    return entry.ranks in job.settings.ranks and (not operations or entry.operation in operations)


def _verify(job: Job, arguments: Sequence[str]) -> int:
    """Measure programs with and without the tuning file, and take back what makes any of them slower.

    Gives the exit code: 1 if something is slower beyond the noise.
    """
    parts = store.read(job.file)
    pairs = []
    for name, part in parts.items():
        ranks, operations = job.given.ranks, job.settings.operations
        entries = [
            entry
            for entry in part.kept
            if (not ranks or entry.ranks in ranks) and (not operations or entry.operation in operations)
        ]
        if name != "limosa" and (not entries or (job.given.against and name not in job.given.against)):
            continue
        pair = steps.pair(name, entries, job.file.absolute(), job.settings, job.terminal)
        if pair.plain.version != part.version:
            version = pair.plain.version
            job.terminal.say(
                f"{job.file} is for version {part.version} of {part.title}, and this is {version}: left out"
            )
            continue
        # Others' ranks do not sleep: more of them than processors take milliseconds for a call.
        every = job.settings.ranks if name == "limosa" else ranks
        pairs.append(steps.with_all_cases(pair, job.settings, every))
    if not pairs:
        raise LabError(f"{job.file} has nothing to verify", hint="`limosa tune` makes a new one")
    _begin(job, arguments)
    usual = QUICK_MINUTES if job.given.quick else VERIFY_MINUTES
    recording, found, tables, slower = _in_programs(job, "verify", pairs, parts, job.seconds(usual, len(pairs)))
    for pair in pairs:
        part = found[pair.plain.name]
        tables += [report.dropped(part.title, part.dropped[len(parts[pair.plain.name].dropped) :])]
    for table in tables:
        if table.rows:
            print(table.text(job.terminal.width))
    for pair in pairs:
        print(found[pair.plain.name].answer + "\n")
    store.write(job.settings.folder / store.NAME, recording.environment, found)
    if any(len(found[name].dropped) > len(part.dropped) for name, part in parts.items()):
        store.write(job.file, recording.environment, found)
        job.terminal.say(f"took back what is slower in programs: wrote {job.file}")
    job.terminal.say(f"measured on {machine.cpu_model()}, {machine.processors()} processors")
    return 1 if slower else 0


def _compare(given: argparse.Namespace) -> int:
    """Say how far two tuning files agree; give the exit code."""
    first, second = (store.read(file, of_any_machine=True) for file in given.compare)
    sizes = [n for n in samples.fitted_sizes(given.max_bytes, quick=False) if n > 0]
    known = [name for name in first if name in second]
    for name in known:
        one, other = first[name], second[name]
        tried = [*one.kept, *other.kept, *(entry for entry, _ in [*one.dropped, *other.dropped])]
        ranks = sorted({entry.ranks for entry in tried if not given.ranks or entry.ranks in given.ranks})
        wanted = [operation for operation in COLLECTIVES if not given.operations or operation in given.operations]
        kinds = ["", verdict.THREADED] if any(entry.level for entry in tried) else [""]
        cases = [
            (call + kind, p, n)
            for call in wanted
            for kind in kinds
            for p in ranks
            for n in (sizes if call != "barrier" else [0])
        ]
        print(report.agreement(one.title, verdict.agreement(one.kept, other.kept, tried, cases), len(cases)))
    if not known:
        raise LabError(f"{given.compare[0]} and {given.compare[1]} have no library in common")
    return 0
