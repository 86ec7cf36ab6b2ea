"""Turn Python 2 sources into Python 3: ``limosa modernize old.py``, so that scripts written for the old MPI modules can be run.

The work is done by fissix, which is 2to3 kept alive (``pip install fissix``). Added to its fixers are what those scripts need beside
it (`limosa.modernize_fixes`): the functions of module ``string``, and Numeric, numarray and ``numpy.oldnumeric``, whose
names and one-letter typecodes are taken care of by `limosa.oldnumeric`.

What no fixer can know is listed after the change: divisions. In Python 2 ``/`` between integers gives an integer.

Without options the changes are shown as a diff. ``--write`` makes them and keeps the old file as ``old.py.bak``; ``--output FOLDER``
leaves the old files alone.
"""

import argparse
import ast
import difflib
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["divisions", "main", "modernized"]

_LEFT_OUT = {"buffer", "future", "idioms", "set_literal", "ws_comma"}
"""Fixers that change style or guess; imports from the future do no harm, and say what was meant."""

_OURS = ["limosa.modernize_fixes.fix_string_module", "limosa.modernize_fixes.fix_numeric"]


class SourceError(Exception):
    """A file that cannot be turned; the message says where and why."""


def modernized(text: str, name: str = "<text>", tool: Any = None) -> str:
    r"""Give a Python 2 source as Python 3.

    Parameters
    ----------
    text
        The source.
    name
        Its name, for messages.
    tool
        What `refactoring_tool` gives, to be used for several files.

    Raises
    ------
    SourceError
        If it is neither Python 2 nor Python 3.

    Examples
    --------
    >>> modernized("print 'x', string.join(words)\n")
    "print('x', ' '.join(words))\n"
    """
    tool = tool or refactoring_tool()
    from fissix.pgen2 import parse
    from fissix.pgen2 import tokenize as old_tokens

    whole = text if text.endswith("\n") else text + "\n"
    try:
        result = str(tool.refactor_string(whole, name))
    except parse.ParseError as error:
        _, (line, column) = error.context
        raise SourceError(f"{name}:{line}:{column + 1}: this is no Python: {error.msg} at {error.value!r}") from None
    except (old_tokens.TokenError, IndentationError) as error:
        place = error.args[1] if len(error.args) > 1 else (0, 0)
        line = place[0] if isinstance(place[0], int) else place[1]
        raise SourceError(f"{name}:{line}: this is no Python: {error.args[0]}") from None
    return result if text.endswith("\n") else result[:-1]


def refactoring_tool() -> Any:
    """Give fissix with all its fixers and ours.

    Raises
    ------
    ModuleNotFoundError
        If fissix is not installed.
    """
    from fissix import refactor

    class Tool(refactor.RefactoringTool):  # type: ignore[misc]
        def refactor_string(self, data: str, name: str) -> Any:
            """Turn a text; unlike the original, let errors through, and tell by the text whether ``print`` is a function in it."""
            if _prints_by_function(data):
                self.driver.grammar = refactor.pygram.python_grammar_no_print_statement
            try:
                tree = self.driver.parse_string(data)
            finally:
                self.driver.grammar = self.grammar
            tree.future_features = refactor._detect_future_features(data)
            self.refactor_tree(tree, name)
            return tree

        def log_error(self, *_: object, **__: object) -> None:
            raise  # noqa: PLE0704 - called where an exception is handled

    names = refactor.get_fixers_from_package("fissix.fixes")
    return Tool([name for name in names if name.rpartition(".fix_")[2] not in _LEFT_OUT] + _OURS)


def _prints_by_function(text: str) -> bool:
    """Tell whether a source is Python 3 already as far as ``print`` is concerned, or imports it from the future."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return "print_function" in text
    statements = [node.value for node in nodes if isinstance(node, ast.Expr)]
    # `print` alone and `print (1), 2` can be read either way: they were meant as statements.
    old = any(isinstance(value, ast.Tuple) or (isinstance(value, ast.Name) and value.id == "print") for value in statements)
    return not old or any(isinstance(node, ast.ImportFrom) and _imports(node, "print_function") for node in nodes)


def divisions(text: str) -> list[int]:
    """Give the lines of a Python 3 source that divide with ``/``, unless it imports the division of Python 3 from the future."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.ImportFrom) and node.module == "__future__" and _imports(node, "division") for node in nodes):
        return []
    return sorted({node.lineno for node in nodes if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)})


def _imports(node: ast.ImportFrom, name: str) -> bool:
    return any(alias.name == name for alias in node.names)


def _files(paths: list[Path]) -> Iterator[tuple[Path, Path]]:
    """Give all sources among files and folders, with their names below what was given."""
    for path in paths:
        if path.is_dir():
            yield from ((file, file.relative_to(path.parent)) for file in sorted(path.rglob("*.py")))
        elif path.exists():
            yield path, Path(path.name)
        else:
            raise SourceError(f"{path}: no such file or folder")


def _read(file: Path) -> tuple[str, str]:
    """Give text and encoding. Old sources without a declared one are often Latin-1."""
    raw = file.read_bytes()
    with file.open("rb") as stream:
        try:
            encoding, _ = tokenize.detect_encoding(stream.readline)
            return raw.decode(encoding), encoding
        except (SyntaxError, UnicodeDecodeError):
            return raw.decode("latin-1"), "utf-8"


def main() -> int:
    """Read the command line and turn the files; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="limosa modernize", description="Turn Python 2 sources into Python 3; without options only show the diff."
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="a source, or a folder with all that are below it")
    parser.add_argument("-w", "--write", action="store_true", help="change the files; FILE.bak keeps what was there")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write the results there, changed or not")
    options = parser.parse_args()
    try:
        tool = refactoring_tool()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "fissix":
            raise
        return _fail("`limosa modernize` needs fissix, which is not installed", f"install it: {sys.executable} -m pip install fissix")
    code = 0
    try:
        for file, below in _files(options.paths):
            try:
                _turn(file, below, options, tool)
            except SourceError as error:
                code = _fail(str(error))
    except (SourceError, OSError) as error:
        code = _fail(str(error))
    return code


def _turn(file: Path, below: Path, options: argparse.Namespace, tool: Any) -> None:
    """Turn one file, and say what is left to look at."""
    old, encoding = _read(file)
    new = modernized(old, str(file), tool)
    if options.output:
        target = options.output / below
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(new.encode(encoding))
    elif options.write:
        if new != old:
            file.with_name(file.name + ".bak").write_bytes(file.read_bytes())
            file.write_bytes(new.encode(encoding))
            print(f"{file}: changed; {file.name}.bak is what it was")
    else:
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
        difference = difflib.unified_diff(before, after, str(file), str(file))
        sys.stdout.writelines(line if line.endswith("\n") else line + "\n" for line in difference)
    if lines := divisions(new):
        where = ", ".join(map(str, lines[:20])) + (", ..." if len(lines) > 20 else "")
        print(f"limosa: {file}: look at the divisions in line {where}: `/` between integers was what `//` is now", file=sys.stderr)


def _fail(text: str, hint: str | None = None) -> int:
    print(f"limosa: {text}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
