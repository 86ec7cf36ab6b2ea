"""Which interface ``import mpi`` means: pyMPI's, MYMPI's or that of Boost.MPI's bindings, which share the name.

1. The variable ``LIMOSA_DIALECT`` (``pympi``, ``mympi`` or ``boost``; ``auto`` is as if it were not set), which
   ``limosa run --dialect`` sets.
2. What the script uses: names of MYMPI begin with ``mpi_`` or ``MPI_`` (``mpi.mpi_send``); Boost's are words with an
   underscore, and some that the others lack (``mpi.all_reduce``, ``mpi.world``); all else is pyMPI's (``mpi.send``).
   The sources of the main program and of the module with the import are looked at.
3. pyMPI.

A program that then uses a name that is not there is told which interface was chosen, why, and how to choose another.
"""

from __future__ import annotations

import ast
import dis
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

__all__ = ["MODULES", "TITLES", "choose", "from_source", "refuse"]

MODULES = {"pympi": "pympi", "mympi": "mympi", "boost": "boost_mpi"}
"""The modules below `limosa.dialects`."""

TITLES = {"pympi": "pyMPI", "mympi": "MYMPI", "boost": "Boost.MPI"}
VARIABLE = "LIMOSA_DIALECT"

#: Names of MYMPI that do not begin with its prefix.
_OTHER_NAMES_OF_MYMPI = frozenset(
    {"ARRAY_LIBRARY", "COPYWRITE", "DATE_DOC", "DATE_SRC", "VERSION", "copywrite", "pydusa_version"}
)

#: Names of Boost's bindings that pyMPI does not have.
_NAMES_OF_BOOST = frozenset(
    {
        *("Communicator", "Content", "ObjectWithoutSkeleton", "Request", "RequestList", "RequestWithValue"),
        *("SkeletonProxy", "Status", "Timer", "all_gather", "all_reduce", "all_to_all", "any_source", "any_tag"),
        *("broadcast", "collectives_tag", "get_content", "host_rank", "io_rank", "max_tag", "processor_name"),
        *("skeleton", "test_all", "test_any", "test_some", "wait_all", "wait_any", "wait_some", "world"),
    }
)

#: Those that a script may well have variables of.
_COMMON_WORDS = frozenset({"Content", "Request", "Status", "Timer", "broadcast", "skeleton", "world"})

_reason = f"the names that the script uses do not distinguish pyMPI from the others, and {VARIABLE} is not set"


def choose() -> str:
    """Decide for the program that is running.

    Returns
    -------
    str
        ``pympi``, ``mympi`` or ``boost``.

    Raises
    ------
    ImportError
        ``LIMOSA_DIALECT`` is set to something else.
    """
    global _reason  # noqa: PLW0603 - there is one module "mpi" in a process
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in {"", "auto"}:
        if wanted not in TITLES:
            raise ImportError(f"{VARIABLE}={wanted}: the module mpi is known in the dialects {', '.join(TITLES)}")
        _reason = f"{VARIABLE}={wanted} is set"
        return wanted
    found = None
    for name, source in _sources():
        evidence = from_source(source)
        if evidence is None:
            continue
        dialect, used, line = evidence
        if found is None or dialect != "pympi":
            found = dialect
            _reason = f"line {line} of {name} uses {used!r}"
        if dialect != "pympi":
            break
    return found or "pympi"


def from_source(source: str) -> tuple[str, str, int] | None:
    """Decide by the names that a source text takes from the module ``mpi``.

    Returns
    -------
    tuple or None
        Dialect, the name that shows it, and its line; None if the text is not Python 3 or takes nothing from ``mpi``.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    first = None
    for used, line in sorted(_names_from_mpi(tree), key=lambda found: found[1]):
        if used.startswith(("mpi_", "MPI_")) or used in _OTHER_NAMES_OF_MYMPI:
            return "mympi", used, line
        if used in _NAMES_OF_BOOST:
            return "boost", used, line
        first = first or ("pympi", used, line)
    return first


def _names_from_mpi(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names that are taken from the module, with their lines."""
    aliases = set()
    everything = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {item.asname or item.name for item in node.names if item.name == "mpi"}
        elif isinstance(node, ast.ImportFrom) and node.module == "mpi" and not node.level:
            everything = everything or node.names[0].name == "*"
            yield from ((item.name, node.lineno) for item in node.names if item.name != "*")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            if not node.attr.startswith("__"):
                yield node.attr, node.lineno
        elif everything and isinstance(node, ast.Name) and _is_telling(node.id):
            yield node.id, node.lineno


def _sources() -> Iterator[tuple[str, str]]:
    """Name and text of the main program and of the module that is importing."""
    files = []
    if main := getattr(sys.modules.get("__main__"), "__file__", None):
        files.append(main)
    if importer := _importer():
        files.append(importer.f_code.co_filename)
    for file in dict.fromkeys(files):
        try:
            yield Path(file).name, Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError:  # "<stdin>" and the like
            continue
    if "-c" in sys.orig_argv[1:-1]:
        yield "the program after -c", sys.orig_argv[sys.orig_argv.index("-c") + 1]


def _importer() -> FrameType | None:
    """The frame whose import statement led here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        "importlib" in frame.f_code.co_filename
        or frame.f_globals.get("__name__") in {__name__, "mpi", "limosa.dialects"}
    ):
        frame = frame.f_back
    return frame


def _is_telling(name: str) -> bool:
    """Tell whether a bare name can be from nowhere but a module mpi."""
    return name.startswith(("mpi_", "MPI_")) or name in _NAMES_OF_BOOST - _COMMON_WORDS


def _is_name_of(dialect: str, name: str) -> bool:
    """Tell whether a name shows that an interface is meant that is not pyMPI's."""
    if dialect == "mympi":
        return name.startswith(("mpi_", "MPI_")) or name in _OTHER_NAMES_OF_MYMPI
    return name in _NAMES_OF_BOOST


def refuse(missing: str, dialect: str) -> NoReturn:
    """Raise the error for a name that the chosen interface does not have.

    Raises
    ------
    AttributeError
        Says which interface this is, why, and how to get another; for ``from mpi import missing`` an ImportError with
        the same text.
    """
    other = next((name for name in ("boost", "mympi") if _is_name_of(name, missing)), "pympi")
    if other == dialect:
        other = "pympi" if dialect != "pympi" else "mympi"
    text = (
        f"{missing!r} is not a name of {TITLES[dialect]}'s module mpi. {TITLES[dialect]} was chosen because {_reason}; "
        f"for {TITLES[other]} run the script with: limosa run --dialect {other} ..., or set {VARIABLE}={other}"
    )
    caller = sys._getframe(2)
    if (
        dis.opname[caller.f_code.co_code[caller.f_lasti]] == "IMPORT_FROM"
    ):  # Python would replace an AttributeError by a text of its own
        raise ImportError(text, name="mpi")
    raise AttributeError(text)
