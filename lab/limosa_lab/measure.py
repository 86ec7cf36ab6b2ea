"""A measurement from beginning to end: libraries, binaries, all runs in turn, everything written down."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from limosa_lab import build, catalogue, flag_time, limit, machine, resume, runner, schedule
from limosa_lab.catalogue import START
from limosa_lab.errors import LabError
from limosa_lab.java_library import choose_modelled
from limosa_lab.libraries import Before, Library, Limosa
from limosa_lab.options import Options
from limosa_lab.records import Recording, Run, Sample, Writer
from limosa_lab.stats import DIRECTIONS
from limosa_lab.wording import ranks

# How often the program of the start-up time is run in one round.
START_REPEATS = 5


class Observer(Protocol):
    """What is told how a measurement goes on."""

    def say(self, text: str) -> None:
        """Take a remark for the user."""

    def progress(self, total: int) -> AbstractContextManager[object]:
        """Take the number of runs; the context lasts as long as they do."""

    def running(self, number: int, text: str) -> None:
        """Take which run starts now."""


@dataclass
class Session:
    """What the runs of a measurement need: the libraries, the compiled programs, and the file of records."""

    options: Options
    observer: Observer
    prepared: dict[str, runner.Prepared]
    binaries: dict[tuple[str, str], Path]
    flag: flag_time.FlagTime
    writer: Writer

    @property
    def processors(self) -> int:
        """The number of processors that the ranks may use."""
        return machine.processors()

    def run(
        self, task: schedule.Task, name: str, round_number: int, words: Sequence[str] = (), limit: float | None = None
    ) -> list[tuple[Run, list[Sample]]]:
        """Run a task with the library of this name, with further words for the program, and write down how it went."""
        options = replace(self.options, program_options=[*self.options.program_options, *words])
        if limit is not None:
            task = replace(task, program=replace(task.program, limit=limit))
        done = _run(self.prepared[name], self.binaries[task.program.name, name], task, options, round_number, self.flag)
        for record, samples in done:
            self.writer.record_all([("run", record), *(("sample", sample) for sample in samples)])
            if record.outcome != "ok":
                self.observer.say(runner.describe(record))
        return done

    def measure_limit(self) -> None:
        """Measure what the machine allows now, and write it down."""
        try:
            samples = limit.measure("--quick" in self.options.program_options)
        except LabError as error:
            self.observer.say(str(error))
        else:
            self.writer.record_all([("limit", sample) for sample in samples])

    def end(self) -> None:
        """Write the last record."""
        self.writer.record("end", machine.end())


def libraries_of(options: Options, observer: Observer) -> list[Library]:
    """Give Limosa, and the libraries that are to be measured beside it, installed now if need be."""
    found: list[Library] = [Limosa(options.prefix)]
    if options.before:
        found.append(Before(options.before))
    return found + [peer.install(observer.say) for peer in choose_modelled(options.against)]


def begin(
    options: Options,
    output: Path,
    observer: Observer,
    resumed: Recording | None = None,
    libraries: Sequence[Library] = (),
) -> tuple[Session, list[schedule.Task]]:
    """Prepare a measurement into the folder `output`, or go on with one; give what is to be run in each round.

    Parameters
    ----------
    libraries
        Measured in place of Limosa and the peers of the options.

    Raises
    ------
    LabError
        If a name is unknown, a library cannot be installed or a program not be compiled, if the folder holds a
        measurement already, or a resumed one is of other libraries than those that are installed now.

    """
    chosen = catalogue.for_benches(options.only, catalogue.choose(options.programs, catalogue.programs()))
    todo = schedule.tasks(chosen, options.ranks, options.only)
    choose_modelled(options.against)
    if not todo:
        raise catalogue.nothing_to_run(chosen, options.ranks)

    writer = Writer(output, resume=resumed is not None)
    libraries = list(libraries) or libraries_of(options, observer)
    prepared = {library.name: runner.Prepared(library, library.version, machine.processors()) for library in libraries}
    binaries = _compile(todo, prepared, observer)
    session = Session(options, observer, prepared, binaries, flag_time.FlagTime(), writer)

    environment = machine.record(libraries, options.record())
    if resumed is None:
        writer.record("environment", environment)
    else:
        resume.check(resumed, environment, output)
        writer.record("resumed", {"time": environment["time"], "busy_percent": environment["busy_percent"]})
    if environment["busy_percent"] > machine.QUIET_PERCENT:
        observer.say(
            f"other programs use {environment['busy_percent']:.0f} % of the processors: the numbers will be doubtful"
        )
    return session, todo


def measure(
    options: Options,
    output: Path,
    observer: Observer,
    resumed: Recording | None = None,
    libraries: Sequence[Library] = (),
) -> None:
    """Measure and write ``samples.jsonl`` into the folder `output`, or what a resumed measurement lacks.

    Runs that fail are recorded and do not end the measurement. What took too long once is not tried again in later
    rounds. For errors see `begin`.
    """
    session, todo = begin(options, output, observer, resumed, libraries)
    runner.adopt_orphans()
    turns = list(schedule.turns(options.rounds, todo, list(session.prepared)))
    done = resume.done(resumed.runs) if resumed else {}
    too_long: set[tuple[schedule.Task, str]] = set()
    with_limit: set[int] = set()
    with observer.progress(len(turns)):
        for number, (round_number, task, name) in enumerate(turns):
            earlier = done.get(resume.key(task, name, round_number))
            if earlier == "time limit":
                too_long.add((task, name))
            if earlier or (task, name) in too_long:
                continue
            benches = f" {', '.join(task.benches)}" if task.benches else ""
            observer.running(
                number,
                f"{task.program.name}{benches}, {ranks(task.ranks)}, {session.prepared[name].library.title}, round "
                f"{round_number + 1}",
            )
            if task.program.name in DIRECTIONS and round_number not in with_limit:
                with_limit.add(round_number)
                session.measure_limit()
            if any(record.outcome == "time limit" for record, _ in session.run(task, name, round_number)):
                too_long.add((task, name))
    session.end()


def _compile(
    todo: Sequence[schedule.Task], prepared: dict[str, runner.Prepared], observer: Observer
) -> dict[tuple[str, str], Path]:
    """Compile every program that is needed with every library."""
    observer.say("compiling the programs, unless they are in the cache")
    programs = {task.program.name: task.program for task in todo}
    return {
        (program.name, name): entry.library.in_place_of(program)
        or build.compiled(program, entry.library, entry.version)
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
