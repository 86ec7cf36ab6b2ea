"""The measurements of ``limosa tune``: of everything at first, and of two ways of doing the same in turns.

Both are those of ``limosa model`` (`limosa_lab.model.measuring`): round by round, until what is compared is certain or
the time is over. An interrupted one goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from limosa import engines

from limosa_lab import machine, records
from limosa_lab.catalogue import COLLECTIVES
from limosa_lab.errors import LabError
from limosa_lab.java_library import choose_modelled
from limosa_lab.libraries import Library, Limosa
from limosa_lab.model import measuring, plan, samples
from limosa_lab.model.measuring import Choose, Knowledge
from limosa_lab.model.plan import Case
from limosa_lab.options import Options
from limosa_lab.records import Recording
from limosa_lab.study.measure import has_standard_abi
from limosa_lab.terminal import Terminal
from limosa_lab.tune import verdict
from limosa_lab.tune.rules import LEVELS, MULTIPLE, Entry, rules_text
from limosa_lab.tune.variants import WAYS, Forced, InNumPy, Plain, Substituted, Threaded, TunedLimosa, Variant

# How often a case is measured at least when two ways are compared, and how many rounds there are at most.
ROUNDS = 3
MOST_ROUNDS = 1000
# How often a case is measured for models at most with --quick: some rounds are of another placement than most.
QUICK_ROUNDS = 4
# Cases of a run: a short one sees the processors of a virtual machine in one placement (`limosa_lab.placement`).
CASES_OF_A_RUN = 128
# Languages of the programs with which a tuning is measured, with the thread levels of these programs.
LANGUAGES = {"c": LEVELS, "numpy": (MULTIPLE,)}
# Suffixes of the operations that programs of other kinds than plain C measure.
SUFFIXES: Mapping[type[Variant], str] = {InNumPy: verdict.NUMPY, Threaded: verdict.THREADED}


@dataclass(frozen=True)
class Settings:
    """What is to be measured, as the command line says it."""

    folder: Path
    against: list[str]
    operations: list[str]
    ranks: list[int]
    max_bytes: int
    seed: int
    quick: bool
    limosa: Path | None
    languages: Sequence[str] = tuple(LANGUAGES)

    @property
    def levels(self) -> set[str]:
        """The thread levels of the programs in these languages."""
        return {level for language in self.languages for level in LANGUAGES[language]}


@dataclass(frozen=True)
class Pair:
    """A library without and with what a tuning file says, and the cases that they are compared by, by ranks."""

    plain: Library
    tuned: Library
    entries: Sequence[Entry]
    cases: Mapping[int, Sequence[Case]]


def everything(settings: Settings, seconds: float, terminal: Terminal, *, only_plain: bool) -> Recording:
    """Measure Limosa with each of its algorithms (unless `only_plain`), and the other libraries."""
    forced = [] if only_plain else [Forced(settings.limosa, way) for way in WAYS]
    libraries = [Plain(settings.limosa), *forced, *installed(settings.against, terminal)]
    sizes, validation = samples.wanted_sizes(settings.max_bytes, settings.seed, quick=settings.quick)
    operations = ["send", *(name for name in COLLECTIVES if name in (settings.operations or COLLECTIVES))]
    of_all = measuring.unknown(operations, sizes, validation)
    of_forced = {
        way.name: measuring.unknown([name for name in operations if name in way.words], sizes, validation)
        for way in forced
    }

    def choose(name: str, ranks: int, known: Knowledge) -> list[Case]:
        return of_forced.get(name, of_all)(name, ranks, known)

    rounds = QUICK_ROUNDS if settings.quick else measuring.MOST_ROUNDS
    options = _options(settings, settings.ranks, seconds, rounds, sizes, validation)
    return _measured(options, settings.folder / "measured", terminal, libraries, choose)


def installed(names: Sequence[str], terminal: Terminal) -> list[Library]:
    """Give libraries other than Limosa."""
    return [peer.install(terminal.say) for peer in choose_modelled(list(names))]


def in_turns(name: str, pairs: Sequence[Pair], settings: Settings, seconds: float, terminal: Terminal) -> Recording:
    """Measure libraries without and with entries in turns, into a folder of this name."""
    beside = {
        library.name: (pair.plain.name, pair.tuned.name) for pair in pairs for library in (pair.plain, pair.tuned)
    }
    all_cases = {(pair.plain.name, p): of_ranks for pair in pairs for p, of_ranks in pair.cases.items()}

    def choose(library: str, ranks: int, known: Knowledge) -> list[Case]:
        both = [known[one, ranks] for one in beside[library]]
        lost = {case for one in both for case in one.lost}
        wanted = all_cases.get((beside[library][0], ranks), [])
        # Only rounds count that the verdict will compare.
        times = {
            case: verdict.times_of_both(
                [*both[0].rounds.get(case, ()), *both[1].rounds.get(case, ())], *beside[library]
            )
            for case in wanted
        }
        before, after = ({case: of_both[at] for case, of_both in times.items()} for at in range(2))
        return plan.compared(wanted, known[library, ranks].rounds, before, after, lost, ROUNDS)[:CASES_OF_A_RUN]

    ranks = sorted({p for _, p in all_cases})
    options = _options(settings, ranks, seconds, MOST_ROUNDS, [], [])
    libraries = [library for pair in pairs for library in (pair.plain, pair.tuned)]
    return _measured(options, settings.folder / name, terminal, libraries, choose)


def pair(name: str, entries: Sequence[Entry], file: Path, settings: Settings, terminal: Terminal) -> Pair:
    """Give a library without and with these entries, which a tuning file has."""
    cases = cases_of(entries, settings)
    if name == "limosa":
        return Pair(Plain(settings.limosa), TunedLimosa(settings.limosa, file), entries, cases)
    (plain,) = installed([name], terminal)
    return Pair(plain, Substituted(plain, rules_text(list(entries))), entries, cases)


def with_all_cases(one: Pair, settings: Settings, ranks: Iterable[int]) -> Pair:
    """Give a pair that is compared by powers of four of all collectives, too."""
    sizes = [n for n in samples.fitted_sizes(settings.max_bytes, quick=True) if n > 0]
    wanted = [name for name in COLLECTIVES if not settings.operations or name in settings.operations]
    every = [(name, n) for n in [0, *sizes] for name in wanted if (name == "barrier") == (n == 0)]
    return replace(one, cases={p: list(dict.fromkeys([*every, *one.cases.get(p, [])])) for p in {*one.cases, *ranks}})


def in_programs(one: Pair, settings: Settings) -> list[Pair]:
    """Give the pair in C and in NumPy, with each call alone and back to back, with root 0 and roots by turns.

    Programs in C have the levels MPI_THREAD_SINGLE and MPI_THREAD_MULTIPLE, except with Limosa, which provides the
    latter to all. NumPy needs mpi4py and a library with the standard ABI.
    """
    cases = {
        p: [(name + kind, n) for name, n in of_ranks for kind in _kinds(name)] for p, of_ranks in one.cases.items()
    }
    found = []
    if "c" in settings.languages:
        found.append(replace(one, cases=cases))
        if not isinstance(one.plain, Limosa):
            found.append(replace(one, plain=Threaded(one.plain), tuned=Threaded(one.tuned), cases=cases))
    can_numpy = settings.limosa is None and find_spec("mpi4py") and has_standard_abi(one.plain)
    if "numpy" in settings.languages and can_numpy:
        tuned = one.tuned
        if isinstance(tuned, Substituted):
            # mpi4py loads the library for itself alone, where the first would not find it.
            preload = f"{Limosa().prefix}/lib/limosa/liblimosa_tuned.so:{engines.SONAME}"
            tuned = Substituted(one.plain, tuned.rules, preload)
        found.append(Pair(InNumPy(one.plain), InNumPy(tuned), one.entries, cases))
    if not found:
        hint = "NumPy needs mpi4py in this environment, and a library with the standard ABI"
        raise LabError(f"--programs numpy: there are no such programs with {one.plain.title}", hint)
    return found


def _kinds(operation: str) -> list[str]:
    turns = [samples.TURNS, samples.TURNS + samples.LOOP] if operation in samples.ROOTED else []
    return ["", samples.LOOP, *turns]


def cases_of(entries: Iterable[Entry], settings: Settings) -> dict[int, list[Case]]:
    """Give the sizes at which entries are checked, by the number of ranks: their ends, and those in between."""
    between = samples.fitted_sizes(settings.max_bytes, quick=settings.quick)
    found: dict[int, dict[Case, int]] = {}
    for entry in entries:
        ends = [n for n in (entry.low, entry.high) if n is not None]
        inside = [n for n in between if (n > 0 or entry.operation == "barrier") and entry.covers(n)]
        sizes = [0] if entry.operation == "barrier" else dict.fromkeys([*ends, *inside])
        for at, n in enumerate(sizes):
            found.setdefault(entry.ranks, {}).setdefault((entry.operation, n), at)
    return {p: sorted(cases, key=cases.__getitem__) for p, cases in found.items()}


def compare(recording: Recording, measured: Pair) -> verdict.Cases:
    """Give the times without and with the entries of a pair."""
    found = verdict.compare(recording.samples, measured.plain.name, measured.tuned.name, machine.processors())
    suffix = next((suffix for kind, suffix in SUFFIXES.items() if isinstance(measured.plain, kind)), "")
    return {(name + suffix, p, n): case for (name, p, n), case in found.items()}


def _options(
    settings: Settings, ranks: Sequence[int], seconds: float, rounds: int, sizes: list[int], validation: list[int]
) -> Options:
    return Options(
        programs=[samples.PROGRAM],
        ranks=list(ranks),
        rounds=rounds,
        program_options=["--forms", "hot", *(["--quick"] if settings.quick else [])],
        prefix=settings.limosa,
        model={"sizes": sizes, "validation": validation, "seconds": seconds, "rounds": rounds},
    )


def _measured(
    options: Options, folder: Path, terminal: Terminal, libraries: Sequence[Library], choose: Choose
) -> Recording:
    """Measure into a folder, or what an interrupted measurement in it lacks, and give all of it."""
    earlier = records.read(folder) if (folder / records.FILE_NAME).exists() else None
    if earlier is None or earlier.end is None:
        if earlier is not None:
            options = Options.recorded(earlier, folder)
        measuring.begin(options, folder, terminal, earlier, libraries, choose)
    return records.read(folder)
