"""The measurements of ``limosa model`` and ``limosa tune``: rounds of runs until all is certain or the time is over.

In a round each library measures at each number of ranks a part of what `plan` asks for, the least known first, in one
run; libraries take turns. Runs are short: the placement of a virtual machine's processors (`limosa_lab.placement`) is
known of whole runs, and changes every few seconds. What an interrupted measurement has measured counts, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path

from limosa_lab import measure, placement, runner, schedule
from limosa_lab.catalogue import Program
from limosa_lab.java_library import JAVA
from limosa_lab.libraries import Library
from limosa_lab.model import plan, samples
from limosa_lab.model.plan import Case
from limosa_lab.options import Options
from limosa_lab.records import Recording, Run, Sample

# Repetitions of a case after which nothing more is expected of others.
MOST_ROUNDS = 20
# Cases of a run: a second or two. In Java all are in one run, in which the compiler learns each operation first.
CASES_OF_A_RUN = 256
# A round may use this part of the time that is left, so that noise of a while does not hit all rounds of a case.
SHARE = 0.45
# Seconds: a short run that is worth its start, the shortest that is tried, and how long after its time one is stopped.
SHORT = 3.0
SHORTEST = 1.0
GRACE = 60.0


@dataclass
class Known:
    """What is known at one number of ranks with one library.

    Attributes
    ----------
    rounds
        Of each case a sample for each round, whose only value is the time of the case.
    lost
        Cases that cannot be measured.

    """

    rounds: dict[Case, list[Sample]] = field(default_factory=dict)
    lost: set[Case] = field(default_factory=set)

    def take(self, found: Sequence[Sample]) -> None:
        for sample in found:
            if sample.verified and sample.samples:
                case = (samples.case_name(sample), sample.bytes)
                time_of_round = samples.time_of(sample.samples, roots=samples.roots_of(sample))
                self.rounds.setdefault(case, []).append(replace(sample, samples=[time_of_round]))


# What is known by library and number of ranks, and what chooses from that the cases of a library's next run.
Knowledge = Mapping[tuple[str, int], Known]
Choose = Callable[[str, int, Knowledge], list[Case]]


@dataclass(frozen=True)
class Wanted:
    """What is to be measured: what chooses it, at which numbers of ranks, for how many seconds, each case how often."""

    choose: Choose
    ranks: list[int]
    seconds: float
    rounds: int = MOST_ROUNDS


def run(session: measure.Session, program: Program, wanted: Wanted, earlier: Recording | None = None) -> None:
    """Measure, and write everything down."""
    libraries = list(session.prepared)
    known = {(name, p): Known() for name in libraries for p in wanted.ranks}
    begin = time.monotonic()
    if earlier:
        for (name, p), entry in known.items():
            of_both = [sample for sample in earlier.samples if sample.library == name and sample.ranks == p]
            entry.take(of_both)
        begin -= sum(run.seconds for run in earlier.runs)
    end = begin + wanted.seconds
    first_round = 1 + max((run.round for run in earlier.runs), default=-1) if earlier else 0
    with session.observer.progress(round(wanted.seconds)):
        for number in count(first_round):
            turns = [
                (task, name) for _, task, name in schedule.turns(1, _tasks(program, wanted.ranks, number), libraries)
            ]
            if not _round(session, wanted, known, turns, number, begin, end):
                break


def _tasks(program: Program, ranks: Sequence[int], number: int) -> list[schedule.Task]:
    """Give the tasks of a round; every other round begins with the most ranks."""
    ordered = ranks if number % 2 == 0 else list(reversed(ranks))
    return [schedule.Task(program, p) for p in ordered]


def _round(
    session: measure.Session,
    wanted: Wanted,
    known: Knowledge,
    turns: Sequence[tuple[schedule.Task, str]],
    number: int,
    begin: float,
    end: float,
) -> bool:
    """Run each turn once; tell whether another round may find something."""
    busy = False
    all_of_it = end - time.monotonic()
    share = max(SHARE * all_of_it, min(all_of_it, SHORT * len(turns)))
    share = share if wanted.rounds > 1 else all_of_it
    round_end = time.monotonic() + share
    for at, (task, name) in enumerate(turns):
        left = round_end - time.monotonic()
        # No less than an even share, if earlier turns have taken longer: on a busy machine a start takes seconds.
        seconds = max(left / (len(turns) - at), min(share / len(turns), end - time.monotonic()), SHORTEST)
        entry = known[name, task.ranks]
        chosen = wanted.choose(name, task.ranks, known)
        cases = [case for case in chosen if len(entry.rounds.get(case, ())) < wanted.rounds]
        if name not in JAVA:
            cases = cases[:CASES_OF_A_RUN]
        if not cases:
            continue
        if time.monotonic() + SHORTEST > end:
            return False
        busy = True
        title = session.prepared[name].library.title
        session.observer.running(
            round(time.monotonic() - begin),
            f"{title}, {task.ranks} ranks, round {number + 1}: {len(cases)} cases",
        )
        words = ["--plan", plan.text(cases), "--seconds", f"{seconds:.1f}"]
        for record, found in session.run(task, name, number, words, seconds + GRACE):
            entry.take(found)
            _lose(entry, record, cases, found, in_time=record.seconds < seconds)
    return busy


def _lose(entry: Known, record: Run, cases: Sequence[Case], found: Sequence[Sample], in_time: bool) -> None:
    """Do not try cases again that cannot be measured.

    These are the one at which a run failed or hung, the first of which it has printed nothing, and all that a run that
    ended well before its time has left out: not every language has every operation.
    """
    printed = {(samples.case_name(sample), sample.bytes) for sample in found if sample.verified}
    missing = [case for case in cases if case not in printed]
    if record.outcome != "ok":
        entry.lost.update(missing[:1])
    elif in_time:
        entry.lost.update(missing)


def unknown(operations: Sequence[str], sizes: Sequence[int], apart: Sequence[int]) -> Choose:
    """Give what chooses all that is unknown or uncertain of these operations, the most important sizes first.

    `apart` has the random messages among the sizes. Only rounds count in which the processors were placed as in most.
    """

    def choose(name: str, ranks: int, known: Knowledge) -> list[Case]:
        possible = [one for one in operations if one != "send" or ranks == 2]
        every = [sample for entry in known.values() for sample in chain(*entry.rounds.values())]
        times: dict[Case, list[float]] = {}
        for sample in placement.prevailing(every):
            if (sample.library, sample.ranks) == (name, ranks):
                times.setdefault((samples.case_name(sample), sample.bytes), []).extend(sample.samples)
        entry = known[name, ranks]
        rounds = {case: len(of_case) for case, of_case in entry.rounds.items()}
        return plan.next_cases(times, possible, sizes, apart, entry.lost, rounds)

    return choose


def begin(
    options: Options,
    output: Path,
    observer: measure.Observer,
    resumed: Recording | None,
    libraries: Sequence[Library] = (),
    choose: Choose | None = None,
) -> None:
    """Measure what the options ask for; with a recording, go on with it.

    Parameters
    ----------
    libraries
        Measured in place of Limosa and the peers of the options.
    choose
        What to measure in place of all operations, with root 0 and with roots by turns, at all sizes of the options.

    """
    session, todo = measure.begin(options, output, observer, resumed, libraries)
    settings = options.model
    ranks = sorted({task.ranks for task in todo})
    if choose is None:
        operations = list(dict.fromkeys(name for task in todo for name in task.benches))
        choose = unknown(samples.with_turns(operations), settings["sizes"], settings["validation"])
    runner.adopt_orphans()
    run(session, todo[0].program, Wanted(choose, ranks, settings["seconds"], settings["rounds"]), resumed)
    session.end()
