"""What the study runs: jobs of kernels, for each size of the study. Pure.

A job is run once per round by every contender that takes part in it, all of them in turn. A different one is first
each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

MODULES = {
    "c": "C",
    "mpi4py": "mpi4py",
    "mpi4py_objects": "mpi4py, objects",
    "limosa": "limosa",
    "pypar": "pypar",
    "scientific": "Scientific.MPI",
    "mympi": "MYMPI",
    "pympi": "pyMPI",
    "boostmpi": "boostmpi",
}
"""The contenders on a library: C and the Python modules, with their written names.

mpi4py has two sets of methods: those in upper case take buffers, those in lower case any object.
"""

COUNTERPARTS = {
    "limosa": "mpi4py",
    "pypar": "mpi4py",
    "scientific": "mpi4py",
    "mympi": "mpi4py",
    "pympi": "mpi4py_objects",
    "boostmpi": "mpi4py_objects",
}
"""Which calls of mpi4py correspond to those of a module: for buffers, or for any object that is returned as a value."""

WITHOUT_ALLREDUCE = ("pypar", "mympi")
"""Modules in which a reduce and a broadcast stand for it, as in the thesis."""

NEEDS = {
    "mpi4py": "mpi4py",
    "mpi4py_objects": "mpi4py",
    "limosa": "limosa._comm",
    "pypar": "limosa.dialects.pypar",
    "scientific": "limosa.dialects.scientific",
    "mympi": "limosa.dialects.mympi",
    "pympi": "limosa.dialects.pympi",
    "boostmpi": "limosa.dialects.boostmpi",
}
"""What must be installed for each module."""

KERNELS = ("micro", "inner", "wave3d", "cg", "mandelbrot")
NONBLOCKING = ("c", "mpi4py", "limosa")
"""The modules that take part in the comparison of blocking and non-blocking exchange (in the thesis: mpi4py)."""


@dataclass(frozen=True)
class Work:
    """One kernel with its options; `python` are options that its twin in C does not have."""

    kernel: str
    options: tuple[str, ...] = ()
    python: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """What runs in one job of a contender, kernel by kernel.

    Attributes
    ----------
    limit
        Longest time in seconds.
    modules
        The contenders that take part; all if empty.

    """

    name: str
    ranks: int
    works: tuple[Work, ...]
    limit: float
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Size:
    """How large a study is.

    Attributes
    ----------
    ranks
        Numbers of processes of the applications.
    collective_ranks
        Numbers of processes of the collective micro-benchmarks.
    micro
        Options of the micro-benchmarks.
    repeat
        Repetitions of the inner product.
    wave, cg, mandelbrot
        Meshes.
    compiled
        Mesh of the wave equation for comparing ways of computing a step.
    limit
        Longest time of one job in seconds.
    together
        Whether the applications share a job, which spares the start of Python.

    """

    ranks: tuple[int, ...]
    collective_ranks: tuple[int, ...]
    micro: tuple[str, ...]
    repeat: int
    wave: tuple[int, ...]
    compiled: int
    cg: tuple[int, ...]
    mandelbrot: int
    limit: float
    rounds: int
    together: bool


QUICK = Size(
    ranks=(1, 2, 4),
    collective_ranks=(2,),
    micro=("--factor", "32", "--iterations", "50", "--seconds", "0.05"),
    repeat=20,
    wave=(33,),
    compiled=65,
    cg=(129,),
    mandelbrot=300,
    limit=10,
    rounds=1,
    together=True,
)
NORMAL = Size(
    ranks=(1, 2, 4, 8),
    collective_ranks=(2, 4),
    micro=("--factor", "4", "--seconds", "0.5"),
    repeat=100,
    wave=(65,),
    compiled=65,
    cg=(257,),
    mandelbrot=800,
    limit=60,
    rounds=3,
    together=True,
)
FULL = Size(
    ranks=(1, 2, 4, 8, 16, 32, 64),
    collective_ranks=(2, 4, 8),
    micro=("--seconds", "2"),
    repeat=1000,
    wave=(129, 257),
    compiled=129,
    cg=(1025, 2049),
    mandelbrot=4800,
    limit=900,
    rounds=1,
    together=False,
)


def jobs(size: Size, ranks: Sequence[int] = (), kernels: Sequence[str] = ()) -> list[Job]:
    """Give the jobs of a study.

    Parameters
    ----------
    size
        How large it is.
    ranks
        Numbers of processes; those of the size if empty. The micro-benchmarks keep to those of them beyond 1.
    kernels
        Which kernels; all if empty.

    """
    wanted = set(kernels or KERNELS)
    made: list[Job] = []
    if "micro" in wanted:
        made.append(Job("micro", 2, (Work("micro", size.micro),), size.limit))
        collectives = ("--only", "bcast,reduce,allreduce")
        made += [
            Job("micro", count, (Work("micro", (*size.micro, *collectives)),), size.limit)
            for count in size.collective_ranks
            if count > 2 and (not ranks or count in ranks)
        ]
    applications = [work for work in _applications(size) if work.kernel in wanted]
    for count in ranks or size.ranks:
        if size.together and applications:
            made.append(Job("applications", count, tuple(applications), size.limit))
        else:
            made += [Job(" ".join((work.kernel, *work.options)), count, (work,), size.limit) for work in applications]
        if "wave3d" in wanted:
            made += _variants(size, count)
    return made


def _applications(size: Size) -> list[Work]:
    """Give what every contender runs, as the thesis did it: the wave equation with slices and blocking exchange."""
    return [
        Work("inner", ("--repeat", str(size.repeat))),
        *(Work("wave3d", ("--n", str(n)), _step("slices")) for n in size.wave),
        *(Work("cg", ("--n", str(n))) for n in size.cg),
        Work("mandelbrot", ("--n", str(size.mandelbrot))),
    ]


def _variants(size: Size, count: int) -> list[Job]:
    """Give the other forms of the wave equation: non-blocking, and with the step in place and compiled by Numba."""
    made = []
    for n in size.wave:
        overlapped = Work("wave3d", ("--n", str(n), "--overlap"), _step("slices"))
        if count > 1:
            made.append(Job(f"wave3d {n} non-blocking", count, (overlapped,), size.limit, NONBLOCKING))
    works = tuple(Work("wave3d", ("--n", str(size.compiled)), _step(step)) for step in ("slices", "inplace", "numba"))
    if size.compiled in size.wave:  # slices are measured anyhow
        works = works[1:]
    made.append(Job(f"wave3d {size.compiled} compiled", count, works, size.limit, ("c", "mpi4py")))
    return made


def _step(kernel: str) -> tuple[str, ...]:
    return ("--kernel", kernel, "--no-progress", "--check-every", "1000000")


def turns(rounds: int, todo: Sequence[Job], contenders: Sequence[tuple[T, str]]) -> Iterator[tuple[int, Job, T, str]]:
    """Give (round, job, library, module) in the order of the runs.

    Parameters
    ----------
    contenders
        Pairs of library and module.

    """
    for number in range(rounds):
        for index, job in enumerate(todo):
            taking_part = [contender for contender in contenders if not job.modules or contender[1] in job.modules]
            first = (number + index) % max(1, len(taking_part))
            for library, module in [*taking_part[first:], *taking_part[:first]]:
                yield number, job, library, module
