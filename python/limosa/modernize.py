"""Turn Python 2 sources into Python 3: ``limosa modernize old.py``.

It is there so that scripts written for the old MPI modules can be run.

The work is done by fissix, which is 2to3 kept alive (``pip install fissix``). Added to its fixers are what those
scripts need beside it (`limosa.modernize_fixes`): the functions of module ``string``; names like ``time.clock`` and
``numpy.float``, which have gone since; and Numeric, numarray and ``numpy.oldnumeric``, whose names and one-letter
typecodes are taken care of by `limosa.oldnumeric`. Tabs and spaces that Python 3 refuses to see mixed become spaces.

What no fixer can know is listed after the change: divisions (in Python 2 ``/`` between integers gives an integer), what
a fixer had to leave, modules that are not there, and where the result is still no Python 3.

Without options the changes are shown as a diff. ``--write`` makes them and keeps the old file as ``old.py.bak``;
``--output FOLDER`` leaves the old files alone.
"""

import argparse
import ast
import difflib
import importlib.util
import string
import sys
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["complaint", "divisions", "main", "missing", "modernized"]

_LEFT_OUT = {"buffer", "future", "idioms", "set_literal", "ws_comma"}
"""Fixers that change style or guess; imports from the future do no harm, and say what was meant."""

_OURS = [f"limosa.modernize_fixes.fix_{name}" for name in ("attributes", "numeric", "string_module")]


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
        raise SourceError(
            f"{name}:{line}:{column + 1}: this is not valid Python: {error.msg} at {error.value!r}"
        ) from None
    except (old_tokens.TokenError, IndentationError) as error:
        place = error.args[1] if len(error.args) > 1 else (0, 0)
        line = place[0] if isinstance(place[0], int) else place[1]
        raise SourceError(f"{name}:{line}: this is not valid Python: {error.args[0]}") from None
    result = _with_spaces(result, name)
    result = _with_brackets(result)
    return result if text.endswith("\n") else result[:-1]


def _with_spaces(text: str, name: str) -> str:
    """Give a source with spaces for tabs before its lines if Python 3 does not take it otherwise.

    Tabs went to column 8.
    """
    from fissix.pgen2 import token, tokenize

    try:
        compile(text, name, "exec", dont_inherit=True)
    except TabError:
        lines = text.splitlines(keepends=True)
        inside: set[int] = set()  # of strings: there a tab is a tab
        for kind, _, (first, _), (last, _), _ in tokenize.generate_tokens(iter(lines).__next__):
            if kind == token.STRING:
                inside.update(range(first + 1, last + 1))
        for number, line in enumerate(lines, 1):
            rest = line.lstrip(" \t")
            if number not in inside:
                lines[number - 1] = line[: len(line) - len(rest)].expandtabs(8) + rest
        return "".join(lines)
    except (SyntaxError, ValueError):
        pass  # `complaint` tells what is wrong
    return text


def _with_brackets(text: str) -> str:
    """Write ``[*range(3)]`` for ``list(range(3))`` where ``list`` is a name of the program.

    The fixers put calls of ``list`` around what gave lists in Python 2. In a function with a variable of that name they
    would call the variable.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text
    calls: list[ast.Call] = []
    _collect_shadowed(tree, "list", False, calls)
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    raw = text.encode()
    changes: list[tuple[int, int, bytes]] = []
    for call in calls:
        inner = call.args[0]
        begin = starts[call.lineno - 1] + call.col_offset
        first = starts[inner.lineno - 1] + inner.col_offset
        end = starts[(call.end_lineno or 0) - 1] + (call.end_col_offset or 0)
        if not raw[begin + len("list") : first].strip(b"( \t\n\\"):  # no comment is in between
            changes += [(begin, raw.index(b"(", begin) + 1, b"[*"), (end - 1, end, b"]")]
    for begin, end, new in sorted(changes, reverse=True):
        raw = raw[:begin] + new + raw[end:]
    return raw.decode()


def _collect_shadowed(scope: ast.AST, name: str, outside: bool, calls: list[ast.Call]) -> None:
    """Add the calls of a name with one argument in scopes that bind it themselves, or are inside of such scopes."""
    inside: list[ast.AST] = []
    nested: list[ast.AST] = []
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            nested.append(node)
        else:
            waiting.extend(ast.iter_child_nodes(node))
        inside.append(node)
    bound = outside or any(
        (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.arg) and node.arg == name)
        for node in inside
    )
    if bound:
        for node in inside:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name):
                continue
            if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
                calls.append(node)
    for node in nested:
        _collect_shadowed(node, name, bound, calls)


def complaint(text: str) -> str | None:
    """Give the line and the reason for which Python 3 does not take a source; None if it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<text>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:
        return str(error)
    return None


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
            """Turn a text.

            Unlike the original, let errors through, and tell by the text whether ``print`` is a function in it.
            """
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
    old = any(
        isinstance(value, ast.Tuple) or (isinstance(value, ast.Name) and value.id == "print") for value in statements
    )
    return not old or any(isinstance(node, ast.ImportFrom) and _imports(node, "print_function") for node in nodes)


def divisions(text: str) -> list[int]:
    """Give the lines of a Python 3 source that divide with ``/``, unless it imports the division of Python 3."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    nodes = list(ast.walk(tree))
    if any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and _imports(node, "division")
        for node in nodes
    ):
        return []
    return sorted(
        {node.lineno for node in nodes if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)}
    )


def missing(text: str, folder: Path) -> list[str]:
    """Give what a Python 3 source uses that is not there, with lines: modules, names of module ``string``, and ``cmp``.

    Parameters
    ----------
    text
        The source.
    folder
        Where its own modules are.
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return []
    known = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    found = []
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == "cmp" and "cmp" not in known:
            found.append((node.lineno, "there is no function `cmp` any more"))
        found += _gone(node)
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        module = None
        if isinstance(node, ast.ImportFrom):
            module = node.module
            if node.level or not module:
                continue
        for top in {name.partition(".")[0] for name in ([module] if module else names)}:
            if (
                not (folder / f"{top}.py").exists()
                and not (folder / top).is_dir()
                and importlib.util.find_spec(top) is None
            ):
                found.append((node.lineno, f"there is no module `{top}` here"))
        if module == "string":
            gone = [name for name in names if name != "*" and not hasattr(string, name)]
            found += [(node.lineno, f"module string has no `{name}` any more") for name in gone]
    return [f"new line {line}: {text}" for line, text in sorted(set(found))]


_BUFFER_KEYWORDS = ("buffer", "buf", "recvbuf")
_FILLING = ("receive", "recv", "receiveString", "raw_receive", "receive_string", "broadcast_string")


def _gone(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Give what an expression uses that has gone, or cannot work any more, with its line."""
    if isinstance(node, ast.Attribute):
        if node.attr in ("tostring", "fromstring") and not (
            isinstance(node.value, ast.Name) and node.value.id in ("ElementTree", "etree", "ET")
        ):
            new = "tobytes" if node.attr == "tostring" else "frombytes, or numpy.frombuffer"
            yield node.lineno, f"arrays have no `{node.attr}` any more: use {new}"
        if isinstance(node.value, ast.Name) and node.value.id == "string" and not hasattr(string, node.attr):
            instead = {"atoi": ": use int", "atol": ": use int", "atof": ": use float"}.get(node.attr, "")
            yield node.lineno, f"module string has no `{node.attr}` any more{instead}"
    if isinstance(node, ast.Call):
        named = [keyword.value for keyword in node.keywords if keyword.arg in _BUFFER_KEYWORDS]
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[:1] if function in _FILLING else []
        if any(_is_text(value) for value in [*named, *first]):
            yield node.lineno, "a string is a buffer here, but strings cannot be filled: use a bytearray"


def _is_text(value: ast.expr) -> bool:
    """Tell whether an expression is a literal string, or one that is repeated."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _is_text(value.left) or _is_text(value.right)
    return isinstance(value, ast.Constant) and isinstance(value.value, str | bytes)


def _imports(node: ast.ImportFrom, name: str) -> bool:
    return any(alias.name == name for alias in node.names)


def _files(paths: list[Path]) -> Iterator[tuple[Path, Path]]:
    """Give all sources among files and folders, with their names relative to the argument."""
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
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE", help="a source file, or a folder with all sources below it"
    )
    parser.add_argument("-w", "--write", action="store_true", help="change the files; FILE.bak keeps what was there")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write the results there, changed or not")
    options = parser.parse_args()
    try:
        tool = refactoring_tool()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "fissix":
            raise
        return _fail(
            "`limosa modernize` needs fissix, which is not installed",
            f"install it: {sys.executable} -m pip install 'limosa[modernize]' (or just: fissix)",
        )
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
    """Convert one file, and list what remains to be checked by hand."""
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
    for remark in [*_remarks(tool), *missing(new, file.parent)]:
        print(f"limosa: {file}: {remark}", file=sys.stderr)
    if lines := divisions(new):
        where = ", ".join(map(str, lines[:20])) + (", ..." if len(lines) > 20 else "")
        print(
            f"limosa: {file}: look at the divisions in new line {where}: `/` between integers was what `//` is now",
            file=sys.stderr,
        )
    if reason := complaint(new):
        raise SourceError(f"{file}: the result is not Python 3 yet: new {reason}")


def _remarks(tool: Any) -> Iterator[str]:
    """Give what the fixers have to say about the latest file, in order; it is taken from their log."""
    remarks: list[str] = []
    for text in tool.fixer_log:
        if text.startswith("Line "):
            remarks.append(f"old l{text[1:]}")
        elif remarks and not text.startswith("###"):
            remarks[-1] += f" ({text})"
    tool.fixer_log.clear()
    return iter(dict.fromkeys(remarks))


def _fail(text: str, hint: str | None = None) -> int:
    print(f"limosa: {text}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
