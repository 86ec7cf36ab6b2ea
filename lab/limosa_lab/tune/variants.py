"""Libraries as they are compared: Limosa with other algorithms, any library with replaced collectives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from limosa_lab import build
from limosa_lab.catalogue import Program
from limosa_lab.libraries import COMPILER_FLAGS, Library, Limosa, output_of

SOURCE = Path(__file__).parent / "substitute.c"

# Algorithms of Limosa in memory that ranks share, in the order in which growing messages take them, with the words of
# the variables for them.
WAYS: dict[str, tuple[str, ...]] = {
    "slots": ("slots",),
    "rounds": ("rounds",),
    "direct": ("single_copy", "pieces"),
    "messages": ("messages",),
}

# Operations of which Limosa's algorithms are compared, and the variables that force one.
VARIABLES = {
    "bcast": "LIMOSA_COLL_BCAST",
    "gather": "LIMOSA_COLL_GATHER",
    "scatter": "LIMOSA_COLL_SCATTER",
    "allgather": "LIMOSA_COLL_ALLGATHER",
    "alltoall": "LIMOSA_COLL_ALLTOALL",
    "reduce": "LIMOSA_COLL_REDUCE",
    "allreduce": "LIMOSA_COLL_ALLREDUCE",
    "reduce_scatter": "LIMOSA_COLL_REDUCE_SCATTER",
    "scan": "LIMOSA_COLL_SCAN",
    "exscan": "LIMOSA_COLL_SCAN",
}

UNTUNED = {"LIMOSA_TUNING": "off"}


class Plain(Limosa):
    """Limosa without any tuning file."""

    def environment(self) -> dict[str, str]:
        """Give the variable that says so."""
        return UNTUNED


class Forced(Limosa):
    """Limosa with one algorithm for all operations that have it."""

    def __init__(self, prefix: Path | None, way: str) -> None:
        super().__init__(prefix)
        self.way = way
        self.name = f"limosa:{way}"
        self.title = f"Limosa, {way}"
        self.words = words(self.prefix, way)

    def environment(self) -> dict[str, str]:
        """Give the variables that force the algorithm."""
        return UNTUNED | {VARIABLES[operation]: word for operation, word in self.words.items()}


class TunedLimosa(Limosa):
    """Limosa with a tuning file."""

    name = "limosa+tuned"
    title = "Limosa, tuned"

    def __init__(self, prefix: Path | None, file: Path) -> None:
        super().__init__(prefix)
        self.file = file

    def environment(self) -> dict[str, str]:
        """Give the variable that names the file."""
        return {"LIMOSA_TUNING": str(self.file.absolute())}


class Variant(Library):
    """A library that is used in another way; all else is the library's."""

    def __init__(self, library: Library, name: str, title: str) -> None:
        super().__init__(library.prefix)
        self.library = library
        self.name = f"{library.name}{name}"
        self.title = f"{library.title}, {title}"

    @property
    def version(self) -> str:
        """That of the library."""
        return self.library.version

    @property
    def compiler(self) -> list[str]:
        """That of the library."""
        return self.library.compiler

    @property
    def link(self) -> list[str]:
        """As with the library."""
        return self.library.link

    @property
    def binary(self) -> Path:
        """The library itself."""
        return self.library.binary

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give the library's."""
        return self.library.launcher(ranks, processors)

    def environment(self) -> dict[str, str]:
        """Give what the library needs."""
        return self.library.environment()

    def in_place_of(self, program: Program) -> Path | None:
        """Give what the library has."""
        return self.library.in_place_of(program)


class Substituted(Variant):
    """A library whose collectives are replaced by these rules.

    `preload` is what is loaded before programs that are not compiled with the library.
    """

    def __init__(self, library: Library, rules: str, preload: str = "") -> None:
        super().__init__(library, "+tuned", "tuned")
        self.rules = rules
        self.preload = preload or str(interposer(library))

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give the library's, which starts the program by ``env``: every launcher passes its words on unchanged."""
        variables = [f"LD_PRELOAD={self.preload}", f"LIMOSA_TUNED={self.rules}"]
        return [*super().launcher(ranks, processors), "env", *variables]


class Threaded(Variant):
    """A library whose programs ask for MPI_THREAD_MULTIPLE."""

    def __init__(self, library: Library) -> None:
        super().__init__(library, ":multiple", "MPI_THREAD_MULTIPLE")

    def environment(self) -> dict[str, str]:
        """Give the variable that the programs look at."""
        return super().environment() | {"LAB_THREADS": "multiple"}


class InNumPy(Variant):
    """A library as mpi4py calls it, with arrays: programs have twins in Python."""

    def __init__(self, library: Library) -> None:
        super().__init__(library, ":numpy", "NumPy")

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give the library's, which starts Python."""
        return [*super().launcher(ranks, processors), sys.executable]

    def in_place_of(self, program: Program) -> Path:
        """Give the program's twin in Python."""
        return program.source.with_suffix(".py")


def words(prefix: Path, way: str) -> dict[str, str]:
    """Give the word for an algorithm of each operation that has it, as ``limosa env`` lists them."""
    listed = json.loads(output_of([str(prefix / "bin" / "limosa"), "env", "--format", "json"]))
    offered = {variable["name"]: variable["form"].split("|") for variable in listed}
    found = {}
    for operation, variable in VARIABLES.items():
        known = [word for word in WAYS[way] if word in offered.get(variable, [])]
        if known:
            found[operation] = known[0]
    return found


def interposer(library: Library) -> Path:
    """Give the library that replaces collectives, compiled for this MPI library."""
    program = Program("liblimosa_tuned.so", SOURCE, ())
    return build.compiled(program, library, library.version, [*COMPILER_FLAGS, "-shared", "-fPIC"])
