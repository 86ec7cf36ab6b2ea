"""What the numbers in a profile mean: places of the program, and communicators. Reads ``HOST.PID.names``.

The format is that of ``crates/limosa-profile/src/names.rs``. Places of a program in C are addresses, of which
``addr2line`` (of the GNU binutils) finds the line if the program was compiled with ``-g``. Names of C++ and Rust are
written without the arguments of templates and functions.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# Python's own library, installed packages, the interpreter's start-up: not the user's lines.
_NOT_THE_USERS = re.compile(r"^<frozen|-packages/|/lib/python3|python/limosa/|mpi4py/MPI\.src/")
_EXECUTABLE_AT_FIXED_ADDRESS = 2
_LINES_AT_A_TIME = 200
LONGEST_NAME = 60
# Between a line and that which has called it.
CALLED_BY = " < "


@dataclass(frozen=True)
class Code:
    """A place in a program that is not in Python."""

    file: str
    loaded_at: int
    returns_to: int
    symbol: str


@dataclass
class Names:
    """What is known of places, and of communicators.

    Attributes
    ----------
    python
        The lines of Python's frames, innermost first.
    code
        Places in code.
    communicators
        What a handle has meant in turn: since when, by the processor's counter, and the members' ranks in
        ``MPI_COMM_WORLD``, of an intercommunicator those of the other group.

    """

    python: dict[int, list[str]] = field(default_factory=dict)
    code: dict[int, Code] = field(default_factory=dict)
    communicators: dict[int, list[tuple[int, tuple[int, ...]]]] = field(default_factory=dict)


def read(file: Path) -> Names:
    """Read what a process has written; lines that are not whole are left out."""
    found = Names()
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return found
    for line in text.splitlines():
        kind, *words = line.split("\t")
        try:
            number = int(words[0], 16)
            if kind == "python":
                found.python[number] = words[1:]
            elif kind == "code":
                name, loaded_at, returns_to, symbol = words[1:]
                found.code[number] = Code(name, int(loaded_at, 16), int(returns_to, 16), symbol)
            elif kind == "comm":
                meaning = (int(words[1], 16), tuple(map(int, words[2:])))
                found.communicators.setdefault(number, []).append(meaning)
        except (ValueError, IndexError):
            continue
    return found


def places(all_names: Iterable[Names], callers: int = 0) -> list[dict[int, str]]:
    """Give for each process what to call its places: the user's line, or the function.

    Of places in Python up to so many `callers` of that line are named behind it, if they are the user's lines, too.
    """
    all_names = list(all_names)
    lines = _lines({code for names in all_names for code in names.code.values()})
    found = []
    for names in all_names:
        said = {number: _users_lines(frames, callers) for number, frames in names.python.items()}
        said |= {number: lines[code] for number, code in names.code.items()}
        found.append(said)
    return found


def _users_lines(frames: list[str], callers: int) -> str:
    users = [frame for frame in frames if not _NOT_THE_USERS.search(frame)] or frames[:1] or ["?"]
    # A script's outermost line is called by a line of the command that runs it.
    callers_of_it = [frame for frame in users[1:] if not frame.startswith("<string>")]
    return CALLED_BY.join([users[0], *callers_of_it[:callers]])


def readable(name: str) -> str:
    """Give a function's name without the arguments of templates and of the function, and not too long."""
    if "operator" not in name:
        # Rust's hash, and its way to write a type's function.
        name = re.sub(r"::h[0-9a-f]{16}$", "", name)
        name = re.sub(r"^<(.+?)(?: as .+?)?>::", r"\1::", name)
        name = _without_brackets(name, "<", ">")
        name = _without_brackets(name, "(", ")").removesuffix(" const")
        # A function template's name begins with what it returns.
        name = name.rpartition(" ")[2] if " " in name.strip() and "anonymous" not in name else name.strip()
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _without_brackets(name: str, opening: str, closing: str) -> str:
    kept, depth = [], 0
    for at, letter in enumerate(name):
        if letter == opening and at:
            depth += 1
        elif letter == closing and depth:
            depth -= 1
        elif not depth:
            kept.append(letter)
    return "".join(kept)


def _demangled(symbol: str) -> str:
    """Give what a symbol is called in C++, if it is one of C++, or of Rust's older kind, which has the same form."""
    if not symbol.startswith("_Z"):
        return symbol
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except OSError:
        return symbol
    demangle.restype = ctypes.c_void_p
    state = ctypes.c_int()
    found = demangle(symbol.encode(), None, None, ctypes.byref(state))
    if not found:
        return symbol
    name = ctypes.string_at(found).decode(errors="replace")
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(found)
    return name


def _lines(codes: set[Code]) -> dict[Code, str]:
    """Find the source lines of places in code."""
    found = {
        code: readable(_demangled(code.symbol)) or f"{Path(code.file).name}+{code.returns_to - code.loaded_at:#x}"
        for code in codes
    }
    tool = shutil.which("addr2line")
    if not tool:
        return found
    for file in {code.file for code in codes}:
        here = [code for code in codes if code.file == file]
        base = _base(Path(file))
        for start in range(0, len(here), _LINES_AT_A_TIME):
            some = here[start : start + _LINES_AT_A_TIME]
            # The call is before the address to which it returns.
            addresses = [hex(code.returns_to - 1 - (0 if base else code.loaded_at)) for code in some]
            asked = subprocess.run([tool, "-f", "-C", "-e", file, *addresses], capture_output=True, text=True)
            said = asked.stdout.splitlines()
            if asked.returncode or len(said) != 2 * len(some):
                continue
            for code, function, line in zip(some, said[::2], said[1::2]):
                if not line.startswith("??"):
                    found[code] = f"{line.split(' (')[0]} in {readable(function)}"
                elif function != "??":
                    found[code] = readable(_demangled(function))
    return found


def _base(file: Path) -> bool:
    """Tell whether addresses in a program are those in its file."""
    try:
        with file.open("rb") as opened:
            start = opened.read(18)
    except OSError:
        return False
    return len(start) == 18 and struct.unpack_from("<H", start, 16)[0] == _EXECUTABLE_AT_FIXED_ADDRESS
