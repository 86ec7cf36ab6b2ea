"""Libraries as they are compared: Limosa with other algorithms, any library with replaced collectives."""

from __future__ import annotations

import json
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


class Substituted(Library):
    """A library whose collectives are replaced by these rules."""

    def __init__(self, library: Library, rules: str) -> None:
        super().__init__(library.prefix)
        self.library = library
        self.name = f"{library.name}+tuned"
        self.title = f"{library.title}, tuned"
        self.rules = rules
        self.interposer = interposer(library)

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
        """Give the library's, which starts the program by ``env``: every launcher passes its words on unchanged."""
        variables = [f"LD_PRELOAD={self.interposer}", f"LIMOSA_TUNED={self.rules}"]
        return [*self.library.launcher(ranks, processors), "env", *variables]

    def environment(self) -> dict[str, str]:
        """Give what the library needs."""
        return self.library.environment()


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
