"""Which interface ``import mpi`` means: pyMPI's or MYMPI's, which share the name.

1. The variable ``LIMOSA_DIALECT`` (``pympi`` or ``mympi``; ``auto`` is as if it were not set), which ``limosa run
   --dialect`` sets.
2. What the script uses: names of MYMPI begin with ``mpi_`` or ``MPI_`` (``mpi.mpi_send``), those of pyMPI do not
   (``mpi.send``). The sources of the main program and of the module with the import are looked at.
3. pyMPI.

Whoever then uses a name that is not there is told which interface was chosen, why, and how to choose the other.
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

__all__ = ["TITLES", "choose", "from_source", "refuse"]

TITLES = {"pympi": "pyMPI", "mympi": "MYMPI"}
VARIABLE = "LIMOSA_DIALECT"

#: Names of MYMPI that do not begin with its prefix.
_OTHER_NAMES_OF_MYMPI = frozenset(
    {"ARRAY_LIBRARY", "COPYWRITE", "DATE_DOC", "DATE_SRC", "VERSION", "copywrite", "pydusa_version"}
)

_reason = f"the names that the script uses do not distinguish pyMPI from MYMPI, and {VARIABLE} is not set"


def choose() -> str:
    """Decide for the program that is running.

    Returns
    -------
    str
        ``pympi`` or ``mympi``, the name of the module below `limosa.dialects`.

    Raises
    ------
    ImportError
        ``LIMOSA_DIALECT`` is set to something else.
    """
    global _reason  # noqa: PLW0603 - there is one module "mpi" in a process
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in {"", "auto"}:
        if wanted not in TITLES:
            raise ImportError(f"{VARIABLE}={wanted}: the module mpi is known in the dialects {' and '.join(TITLES)}")
        _reason = f"{VARIABLE}={wanted} is set"
        return wanted
    found = None
    for name, source in _sources():
        evidence = from_source(source)
        if evidence is None:
            continue
        dialect, used, line = evidence
        if found is None or dialect == "mympi":
            found = dialect
            _reason = f"line {line} of {name} uses {used!r}"
        if dialect == "mympi":
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
        elif everything and isinstance(node, ast.Name) and node.id.startswith(("mpi_", "MPI_")):
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


def refuse(missing: str, dialect: str) -> NoReturn:
    """Raise the error for a name that the chosen interface does not have.

    Raises
    ------
    AttributeError
        Says which interface this is, why, and how to get the other; for ``from mpi import missing`` an ImportError with
        the same text.
    """
    other = "mympi" if dialect == "pympi" else "pympi"
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
