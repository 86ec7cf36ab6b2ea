"""The runs of a study: every contender in turn, everything written down as in any measurement of the laboratory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from limosa import engines

from limosa_lab import build, catalogue, machine, runner
from limosa_lab.catalogue import Program
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.libraries import PEERS, Library, Limosa, Mpich
from limosa_lab.measure import Observer
from limosa_lab.records import Writer
from limosa_lab.schedule import Task
from limosa_lab.study.plan import KERNELS, MODULES, NEEDS, Job, Size, jobs, turns
from limosa_lab.wording import ranks as written_ranks

C_FLAGS = ("-std=gnu11", "-O3", "-march=native", "-fopenmp-simd")
"""The kernels in C are compiled for this processor, as Numba compiles."""

NEEDED = {
    "micro": ("mpi4py",),
    "inner": ("mpi4py",),
    "wave3d": ("mpi4py", "numba"),
    "cg": ("mpi4py", "scipy"),
    "mandelbrot": ("mpi4py",),
}
"""What the kernels in Python need beside NumPy."""


@dataclass(frozen=True)
class Options:
    """What to study.

    Attributes
    ----------
    size, size_name
        How large.
    libraries
        Names or folders of MPI libraries; if empty, those that are found.
    modules, kernels, ranks
        What to leave it at; everything if empty.
    rounds
        How often everything is run; as the size says if None.
    limit
        Longest time of a job in seconds; as the size says if None.

    """

    size: Size
    size_name: str
    libraries: Sequence[str] = ()
    modules: Sequence[str] = ()
    kernels: Sequence[str] = ()
    ranks: Sequence[int] = ()
    rounds: int | None = None
    limit: float | None = None


class Named(Library):
    """A library in a folder that the user has named, with the standard ABI.

    Programs are compiled by our own wrapper.
    """

    def __init__(self, engine: engines.Engine, ours: Limosa) -> None:
        super().__init__(Path(engine.library).parent.parent)
        self.name = engine.name
        self.title = engine.version
        self._engine, self._ours = engine, ours

    @property
    def version(self) -> str:
        """What the library says it is."""
        return self._engine.version

    @property
    def compiler(self) -> list[str]:
        """Limosa's wrapper: the ABI is the same."""
        return self._ours.compiler

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give the launcher that belongs to the library."""
        return [*self._engine.launcher, "-n", str(ranks)]

    def environment(self) -> dict[str, str]:
        """Give what makes the loader find it."""
        return self._engine.environment

    @property
    def binary(self) -> Path:
        """The library."""
        return Path(self._engine.library)


def has_standard_abi(library: Library) -> bool:
    """Tell whether Python's modules run on a library: mpi4py is built for the standard ABI."""
    return (library.binary.parent / engines.SONAME).exists()


def choose_libraries(names: Sequence[str], quick: bool, observer: Observer) -> list[Library]:
    """Give the libraries of these names.

    Without names these are all that are found (in the quick form MPICH alone beside Limosa).

    Raises
    ------
    LabError
        If a library is not known, cannot be installed, or cannot run programs for the standard ABI.

    """
    ours = Limosa()
    if not names:
        installed = {engine.name for engine in engines.found()}
        names = ["limosa", *(name for name in PEERS if name in installed and (name == Mpich.name or not quick))]
    chosen: list[Library] = []
    for name in dict.fromkeys(names):
        if name == "limosa":
            chosen.append(ours)
        elif name in PEERS:
            chosen.append(PEERS[name].install(observer.say))
        else:
            try:
                chosen.append(Named(engines.find(name), ours))
            except engines.EngineError as error:
                raise LabError(str(error), hint=error.hint) from None
    return chosen


def choose_modules(names: Sequence[str]) -> list[str]:
    """Give the modules of these names; without names, all that are installed.

    Raises
    ------
    LabError
        If a name is not known, or a module that was asked for is not installed.

    """
    for name in names:
        if name not in MODULES:
            raise LabError(f"`{name}` is not a module of the study", hint=f"known: {', '.join(MODULES)}")
        if not _is_installed(name):
            raise LabError(
                f"module {MODULES[name]} is not installed", hint="it is part of the wheel of limosa", code=ENVIRONMENT
            )
    return [name for name in MODULES if name in names] if names else [name for name in MODULES if _is_installed(name)]


def check_needed(kernels: Sequence[str]) -> None:
    """Make sure that what the kernels need is there.

    Raises
    ------
    LabError
        If something is missing; the hint says how to get it.

    """
    for kernel in kernels or KERNELS:
        if kernel not in NEEDED:
            raise LabError(f"there is no kernel `{kernel}` in the study", hint=f"known: {', '.join(KERNELS)}")
        missing = [name for name in NEEDED[kernel] if find_spec(name) is None]
        if "mpi4py" in missing:
            raise LabError(
                "mpi4py is not installed", hint=f"{sys.executable} -m limosa.install_mpi4py", code=ENVIRONMENT
            )
        if missing:
            raise LabError(
                f"kernel {kernel} needs {', '.join(missing)}, not installed for {sys.executable}",
                hint=f"{sys.executable} -m pip install 'limosa[kernels]' (or just: {' '.join(missing)})",
                code=ENVIRONMENT,
            )


def measure(options: Options, output: Path, observer: Observer) -> None:
    """Run everything and write ``samples.jsonl`` into the folder `output`.

    Raises
    ------
    LabError
        If a name is unknown, or something that is needed is missing. Runs that fail are recorded and do not end the
        study; what took too long once is not tried again in later rounds.

    """
    check_needed(options.kernels)
    modules = choose_modules(options.modules)
    todo = jobs(options.size, options.ranks, options.kernels)
    if not any(not job.modules or set(job.modules) & set(modules) for job in todo):
        raise LabError("with these numbers of ranks, modules and kernels there is nothing to run")
    writer = Writer(output)
    libraries = choose_libraries(options.libraries, options.size_name == "quick", observer)
    prepared = {library.name: runner.Prepared(library, library.version, machine.processors()) for library in libraries}
    contenders = [
        (name, module)
        for name, entry in prepared.items()
        for module in modules
        if module == "c" or has_standard_abi(entry.library)
    ]
    binaries = _compile(todo, prepared, observer) if "c" in modules else {}

    rounds = options.rounds or options.size.rounds
    environment = machine.record(libraries, _options_record(options, modules, rounds))
    writer.record("environment", environment)
    if environment["busy_percent"] > machine.QUIET_PERCENT:
        observer.say(
            f"other programs use {environment['busy_percent']:.0f} % of the processors: the numbers will be doubtful"
        )

    runner.adopt_orphans()
    planned = list(turns(rounds, todo, contenders))
    too_long: set[tuple[Job, str, str]] = set()
    with observer.progress(len(planned)):
        for number, (round_number, job, name, module) in enumerate(planned):
            if (job, name, module) in too_long:
                continue
            title = prepared[name].library.title
            observer.running(
                number,
                f"{job.name}, {written_ranks(job.ranks)}, {MODULES[module]} on {title}, round {round_number + 1}",
            )
            for binary, words in _commands(job, name, module, binaries):
                task = Task(Program(f"{job.name}, {MODULES[module]}", binary, (job.ranks,)), job.ranks)
                record, samples = runner.run(
                    prepared[name], binary, task, words, round_number, options.limit or job.limit
                )
                writer.record("run", record)
                for sample in samples:
                    writer.record("sample", sample)
                if record.outcome == "time limit":
                    too_long.add((job, name, module))
                if record.outcome != "ok":
                    observer.say(runner.describe(record))
    writer.record("end", machine.end())


def _compile(
    todo: Sequence[Job], prepared: dict[str, runner.Prepared], observer: Observer
) -> dict[tuple[str, str], Path]:
    """Compile the kernels that are needed with every library."""
    observer.say("compiling the kernels in C, unless they are in the cache")
    folder = catalogue.kernels_folder()
    needed = sorted({work.kernel for job in todo for work in job.works})
    programs = [Program(kernel, folder / kernel / f"{kernel}.c", ()) for kernel in needed]
    return {
        (program.name, name): build.compiled(program, entry.library, entry.version, C_FLAGS)
        for program in programs
        for name, entry in prepared.items()
    }


def _commands(
    job: Job, library: str, module: str, binaries: dict[tuple[str, str], Path]
) -> list[tuple[Path, list[str]]]:
    """Give the programs of a job with their words: in Python one for all kernels, in C one for each, the same once."""
    if module == "c":
        once = dict.fromkeys((work.kernel, work.options) for work in job.works)
        return [(binaries[kernel, library], ["--json", *options]) for kernel, options in once]
    kernels = [" ".join((work.kernel, *work.options, *work.python)) for work in job.works]
    return [(Path(sys.executable), [str(catalogue.kernels_folder() / "run.py"), "--json", "--comm", module, *kernels])]


def _is_installed(module: str) -> bool:
    """Tell whether a module can be imported, without importing it."""
    if module == "c":
        return True
    try:
        return find_spec(NEEDS[module]) is not None
    except ModuleNotFoundError:
        return False


def _options_record(options: Options, modules: Sequence[str], rounds: int) -> dict[str, Any]:
    return {
        "study": "thesis",
        "size_name": options.size_name,
        "size": asdict(options.size),
        "modules": list(modules),
        "kernels": list(options.kernels),
        "ranks": list(options.ranks),
        "rounds": rounds,
        "limit": options.limit,
        "c_flags": list(C_FLAGS),
    }
