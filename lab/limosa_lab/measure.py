"""A measurement from beginning to end: libraries, binaries, all runs in turn, everything written down."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from limosa_lab import build, catalogue, flag_time, machine, runner, schedule
from limosa_lab.catalogue import START
from limosa_lab.libraries import Before, Library, Limosa, choose_peers
from limosa_lab.records import Run, Sample, Writer
from limosa_lab.wording import ranks

# How often the program of the start-up time is run in one round.
START_REPEATS = 5


@dataclass(frozen=True)
class Options:
    """What to measure.

    Attributes
    ----------
    against
        Names of the peers.
    programs, only, ranks
        Programs or groups, benchmarks, numbers of ranks; all if empty.
    limit
        Longest time of one run in seconds, for programs that do not state their own.
    program_options
        Passed on to the programs.
    prefix
        Where Limosa is installed; None for the environment of this Python.
    before
        Where an earlier Limosa is installed, to be measured beside this one.

    """

    against: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    only: list[str] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    rounds: int = 3
    limit: float = 120.0
    program_options: list[str] = field(default_factory=list)
    prefix: Path | None = None
    before: Path | None = None


class Observer(Protocol):
    """Who is told how a measurement goes on."""

    def say(self, text: str) -> None:
        """Take a remark for the user."""

    def progress(self, total: int) -> AbstractContextManager[object]:
        """Take the number of runs; the context lasts as long as they do."""

    def running(self, number: int, text: str) -> None:
        """Take which run starts now."""


def measure(options: Options, output: Path, observer: Observer) -> None:
    """Measure and write ``samples.jsonl`` into the folder `output`.

    Raises
    ------
    LabError
        If a name is unknown, a library cannot be installed or a program not be compiled. Runs that fail are
        recorded and do not end the measurement. What took too long once is not tried again in later rounds.

    """
    chosen = catalogue.for_benches(options.only, catalogue.choose(options.programs, catalogue.programs()))
    todo = schedule.tasks(chosen, options.ranks, options.only)
    peers = choose_peers(options.against)
    if not todo:
        raise catalogue.nothing_to_run(chosen, options.ranks)

    writer = Writer(output)
    libraries: list[Library] = [Limosa(options.prefix)]
    if options.before:
        libraries.append(Before(options.before))
    libraries += [peer.install(observer.say) for peer in peers]
    prepared = {library.name: runner.Prepared(library, library.version, machine.processors()) for library in libraries}
    binaries = _compile(todo, prepared, observer)
    flag = flag_time.FlagTime()

    environment = machine.record(libraries, _options_record(options))
    writer.record("environment", environment)
    if environment["busy_percent"] > machine.QUIET_PERCENT:
        observer.say(
            f"other programs use {environment['busy_percent']:.0f} % of the processors: the numbers will be doubtful"
        )

    runner.adopt_orphans()
    turns = list(schedule.turns(options.rounds, todo, list(prepared)))
    too_long: set[tuple[schedule.Task, str]] = set()
    with observer.progress(len(turns)):
        for number, (round_number, task, name) in enumerate(turns):
            if (task, name) in too_long:
                continue
            benches = f" {', '.join(task.benches)}" if task.benches else ""
            observer.running(
                number,
                f"{task.program.name}{benches}, {ranks(task.ranks)}, {prepared[name].library.title}, round "
                f"{round_number + 1}",
            )
            for record, samples in _run(
                prepared[name], binaries[task.program.name, name], task, options, round_number, flag
            ):
                writer.record("run", record)
                for sample in samples:
                    writer.record("sample", sample)
                if record.outcome == "time limit":
                    too_long.add((task, name))
                if record.outcome != "ok":
                    observer.say(runner.describe(record))
    writer.record("end", machine.end())


def _compile(
    todo: Sequence[schedule.Task], prepared: dict[str, runner.Prepared], observer: Observer
) -> dict[tuple[str, str], Path]:
    """Compile every program that is needed with every library."""
    observer.say("compiling the programs, unless they are in the cache")
    programs = {task.program.name: task.program for task in todo}
    return {
        (program.name, name): build.compiled(program, entry.library, entry.version)
        for program in programs.values()
        for name, entry in prepared.items()
    }


def _run(
    prepared: runner.Prepared,
    binary: Path,
    task: schedule.Task,
    options: Options,
    round_number: int,
    flag: flag_time.FlagTime,
) -> list[tuple[Run, list[Sample]]]:
    """Run a task once; the program of the start-up time several times, until it fails."""
    limit = task.program.limit or options.limit
    repeats = START_REPEATS if task.program.name == START else 1
    done: list[tuple[Run, list[Sample]]] = []
    for _ in range(repeats):
        before = flag.measure()
        record, samples = runner.run(prepared, binary, task, options.program_options, round_number, limit)
        if task.program.name == START and record.outcome == "ok":
            samples.append(_start_sample(record))
        times = flag_time.pair(before, flag.measure())
        done.append((replace(record, flag=times), [replace(sample, flag=times) for sample in samples]))
        if record.outcome != "ok":
            break
    return done


def _start_sample(record: Run) -> Sample:
    """Give the time of a whole job, from starting the launcher to its end, as a sample."""
    return Sample(
        library=record.library,
        program=record.program,
        round=record.round,
        bench="start",
        form="hot",
        bytes=0,
        ranks=record.ranks,
        metric="time",
        unit="s",
        samples=[record.seconds],
        verified=True,
    )


def _options_record(options: Options) -> dict[str, Any]:
    return {
        "against": options.against,
        "programs": options.programs,
        "only": options.only,
        "ranks": options.ranks,
        "rounds": options.rounds,
        "limit": options.limit,
        "program_options": options.program_options,
    }
