"""The languages of ``limosa shell``: what a complete piece of code is, and how ranks that run it are started.

A rank of a session in Octave is ``octave/run/session.m``. It says what `limosa._group_rank` says, but as bytes: the
fields of a message with a zero byte between them.
"""

from __future__ import annotations

import ast
import codeop
import re
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Protocol

from limosa import _octave
from limosa._group import Group

__all__ = ["Language", "Octave", "Python"]


class Language(Protocol):
    """What the shell needs to know of a language."""

    #: Ends the prompt.
    prompt: str
    #: What ends a session.
    leave: str

    def version(self, group: Group) -> str:
        """Give the versions of library and language."""

    def start(self, size: int, library: str) -> Group:
        """Start processes that run pieces of code."""

    def is_command(self, text: str) -> bool:
        """Tell whether a line is for the session itself."""

    def is_complete(self, text: str) -> bool:
        """Tell whether a piece can be run; one with an error can, to show the error."""

    def pieces(self, lines: Iterator[str]) -> Iterator[str]:
        """Cut lines, with their ends or without, into complete pieces."""


class Python:
    """Python: a block ends with an empty line, as in Python's own prompt."""

    prompt = ">>>"
    leave = "exit()"
    _continues = ("elif", "else", "except", "finally", "case")

    def __init__(self) -> None:
        compiles = codeop.CommandCompiler()
        compiles.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as the ranks do
        self._compiles: Callable[[str], object] = compiles

    def version(self, group: Group) -> str:
        """Give the versions of library and language."""
        return f"{group.version}, Python {sys.version.split()[0]}"

    def start(self, size: int, library: str) -> Group:
        """Start processes that run pieces of code."""
        return Group(size, library=library)

    def is_command(self, text: str) -> bool:
        """Tell whether a line is for the session itself."""
        return text.lstrip().startswith(("%", "!", "?"))

    def is_complete(self, text: str) -> bool:
        """Tell whether a piece can be run; one with an error can, to show the error."""
        if text.startswith("%%"):
            return text.endswith("\n")
        if self.is_command(text):
            return True
        try:
            return self._compiles(text) is not None
        except (SyntaxError, ValueError, OverflowError):
            return True

    def pieces(self, lines: Iterator[str]) -> Iterator[str]:
        r"""Cut lines into pieces that Python takes for complete.

        A block ends with an empty line, and also where a line begins that is no part of it.

        >>> list(Python().pieces(iter(["for i in range(2):", "    print(i)", "x = 1"])))
        ['for i in range(2):\n    print(i)', 'x = 1']
        """
        held: list[str] = []
        for line in (raw.rstrip("\r\n") for raw in lines):
            starts = line[:1] not in {"", " ", "\t", "#", ")", "]", "}"} and not line.startswith(self._continues)
            if held and starts and not held[0].startswith("%%") and self.is_complete("\n".join(held) + "\n\n"):
                yield "\n".join(held)
                held = []
            held.append(line)
            text = "\n".join(held)
            if self.is_complete(text):
                if text.strip():
                    yield text
                held = []
        if held:
            yield "\n".join(held)


class Octave:
    """Octave: a piece is complete when all its blocks and brackets are closed."""

    prompt = ">>"
    leave = "exit"

    _opens = re.compile(r"(?<![\w.])(if|for|parfor|while|switch|do|try|unwind_protect|function)(?!\w)")
    _closes = re.compile(
        r"(?<![\w.])(end(if|for|parfor|while|switch|function|_try_catch|_unwind_protect)?|until)(?!\w)"
    )
    _block_comment = re.compile(r"^[ \t]*[%#]\{[ \t]*$.*?^[ \t]*[%#]\}[ \t]*$", re.MULTILINE | re.DOTALL)
    #: Texts in quotation marks and comments; an apostrophe after a value transposes it.
    _no_code = re.compile(r""""(?:[^"\n\\]|\\.)*"|(?<![\w)\]}'.])'(?:[^'\n]|'')*'|[%#][^\n]*|\.\.\.[^\n]*$""")
    _brackets = re.compile(r"\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\}")

    def version(self, group: Group) -> str:
        """Give the versions of library and language."""
        return group.version

    def start(self, size: int, library: str) -> Group:
        """Start processes that run pieces of code."""
        script = str(_octave.package() / "run" / "session.m")
        return Group(size, library=library, program=[script], connect=_Messages)

    def is_command(self, text: str) -> bool:
        """Tell whether a line is for the session itself; other lines that begin with % are comments."""
        return re.match(r"\s*(%?%rank|%restart|%ps)(\s|$)", text) is not None

    def is_complete(self, text: str) -> bool:
        """Tell whether a piece can be run."""
        if text.startswith("%%rank"):
            return text.endswith("\n")
        if self.is_command(text):
            return True
        if re.search(r"\.\.\.[^\n]*\n?$", self._no_code.sub(_dots, text)):
            return False
        code = self._no_code.sub("", self._block_comment.sub("", text))
        if re.search(r"^[ \t]*[%#]\{[ \t]*$", self._block_comment.sub("", text), re.MULTILINE):
            return False
        while (shorter := self._brackets.sub("", code)) != code:  # `x(end)` closes nothing
            code = shorter
        is_open = any(code.count(left) > code.count(right) for left, right in ("()", "[]", "{}"))
        return not is_open and len(self._opens.findall(code)) <= len(self._closes.findall(code))

    def pieces(self, lines: Iterator[str]) -> Iterator[str]:
        r"""Cut lines into complete pieces.

        >>> list(Octave().pieces(iter(["for i = 1:2", "  i", "end", "x = 1"])))
        ['for i = 1:2\n  i\nend', 'x = 1']
        """
        held: list[str] = []
        for line in (raw.rstrip("\r\n") for raw in lines):
            held.append(line)
            text = "\n".join(held)
            if self.is_complete(text):
                if text.strip():
                    yield text
                held = []
        if held:
            yield "\n".join(held)


def _dots(found: re.Match[str]) -> str:
    """Keep a continuation, and nothing else that is no code."""
    return "..." if found[0].startswith("...") else ""


class _Messages(Connection):
    """A connection to a rank in Octave."""

    def send(self, obj: Any) -> None:
        """Send a message of words and numbers."""
        self.send_bytes(b"\0".join(str(field).encode() for field in obj))

    def recv(self) -> tuple[Any, ...]:
        """Give the next message."""
        kind, *fields = self.recv_bytes().decode(errors="replace").split("\0")
        numbers = {"hello": 2, "done": 1}.get(kind, 0)
        return (kind, *map(int, fields[:numbers]), *fields[numbers:])
