"""Java as a library to measure: Limosa called from Java, and Java's own messages between ranks that are threads.

Programs are not compiled with them: each has a twin in Java beside its source, ``programs/primitives.c`` in
``programs/Primitives.java``, which ``limosa run`` compiles. Other programs have none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from limosa import _java, _java_find

from limosa_lab.catalogue import Program
from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.libraries import PEERS, Limosa, Peer, choose


def needed() -> Path:
    """Give the Java that programs run in.

    Raises
    ------
    LabError
        If there is no JDK that is new enough, or this Limosa has no classes for Java.

    """
    try:
        _java.jar()
        _java.find("javac")
        return _java.find()
    except _java.JavaError as error:
        raise LabError(str(error), hint="`limosa doctor` shows which Java is found", code=ENVIRONMENT) from None


def has_java() -> bool:
    """Tell whether programs can be run in Java."""
    try:
        needed()
    except LabError:
        return False
    return True


def twin(source: Path) -> Path:
    """Give the place of a program's twin in Java."""
    name = "".join(word.capitalize() for word in source.stem.split("_"))
    return source.with_name(f"{name}.java")


class InJava(Limosa):
    """Limosa, called from Java: each rank is a process."""

    name = "java"
    title = "Limosa, Java"

    def __init__(self, prefix: Path | None = None) -> None:
        super().__init__(prefix)
        self.java = needed()

    @classmethod
    def install(cls, say: Callable[[str], None]) -> InJava:
        """Give it, as it is installed."""
        return cls()

    @property
    def version(self) -> str:
        """That of Limosa, and that of Java."""
        return f"{super().version}, Java {_java_find.version_of(self.java)}"

    def in_place_of(self, program: Program) -> Path:
        """Give the program's twin in Java.

        Raises
        ------
        LabError
            If it has none.

        """
        found = twin(program.source)
        if not found.is_file():
            known = sorted(file.stem for file in program.source.parent.glob("*.c") if twin(file).is_file())
            raise LabError(f"there is no program `{program.name}` in Java", hint=f"there is: {', '.join(known)}")
        return found


class InJavaThreads(InJava):
    """Java's own messages: all ranks are threads of one process, and no MPI library is used."""

    name = "java-threads"
    title = "Java, ranks as threads"

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give ``limosa run --threads``."""
        return [*super().launcher(ranks, processors), "--threads"]

    @property
    def binary(self) -> Path:
        """The classes that carry the messages."""
        return _java.jar()


JAVA: dict[str, type[InJava]] = {library.name: library for library in (InJava, InJavaThreads)}
#: All that models can be made of, beside Limosa.
MODELLED: dict[str, type[Peer] | type[InJava]] = {**PEERS, **JAVA}


def choose_modelled(names: list[str]) -> list[type[Peer] | type[InJava]]:
    """Give the libraries of these names, in the order given, each once."""
    return choose(names, MODELLED)
