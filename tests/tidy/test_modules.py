"""The modules of a crate or package build on each other without circles, so that each can be read after those it uses.

`circles.txt` has the uses that close one, which only become fewer. After removing some, record the rest with
`python tests/tidy/test_modules.py`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

RECORD = Path(__file__).with_name("circles.txt")
HEADER = """\
# Uses between modules that close a circle (test_modules.py): where, the module, what it uses. Lines only go and shrink.
# Empty lines keep changes of neighbouring parts from conflicting in a merge.
# limosa-p2p: a job that the state keeps for later, and what follows a request, is called with the engine.
# limosa: a communicator makes grids, graphs and windows, which are or have communicators.
"""
# Items that are defined in the crate's root belong to this module.
CRATE_ROOT = "lib"

# A module's place: the names on the way to it from the crate's root.
Place = tuple[str, ...]


def modules(src: Path) -> dict[Place, Path]:
    """The file of each module of a crate, without tests. The crate's root has the place ()."""
    found = {}
    for path in sorted(src.rglob("*.rs")):
        parts = path.relative_to(src).with_suffix("").parts
        if "tests" not in parts:
            found[parts[:-1] if parts[-1] in ("mod", "lib") else parts] = path
    return found


def code_of(path: Path) -> str:
    """A file without comments, strings, and what follows its unit tests' attribute in the same file."""
    # One pattern for all, so that what looks like one of them inside of another does not count.
    strings = r"""r(#+)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|//[^\n]*"""
    text = re.sub(strings, '""', path.read_text(), flags=re.DOTALL)
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def paths_in(code: str) -> list[Place]:
    """All paths that begin with `crate`, `super` or `self`; of those in braces, each."""
    return [
        path
        for found in re.finditer(r"(?<![\w:])(?:crate|super|self)::", code)
        for path in _expanded(code, found.start())[0]
    ]


def _expanded(code: str, at: int, prefix: Place = ()) -> tuple[list[Place], int]:
    """The paths of the expression `a::b` or `a::{b, c::d}` that begins at a position, and where it ends."""
    while name := re.compile(r"\s*(\w+|\*)").match(code, at):
        prefix, at = (*prefix, name[1]), name.end()
        if not code.startswith("::", at):
            return [prefix], at
        at += 2
    if not code.startswith("{", at):
        return [prefix], at  # a turbofish, or the like
    found: list[Place] = []
    while code[at] != "}":
        paths, at = _expanded(code, at + 1, prefix)
        found += [path for path in paths if path != prefix]  # nothing follows a comma at the end
        at = re.compile(r"[^,}]*").match(code, at).end()  # type: ignore[union-attr]  # behind `as name` and spaces
    return found, at + 1


def reexports(code: str, below: set[str]) -> dict[str, str]:
    """Which module below a module the names that it hands on come from."""
    origin: dict[str, str] = {}
    for module, names in re.findall(r"\buse (?:self::)?(\w+)::(\{[^}]*\}|[\w:]+)", code):
        if module in below:
            for name in re.findall(r"\w+", names):
                origin.setdefault(name, module)
    return origin


def absolute(path: Place, place: Place) -> Place:
    """A path as seen from the crate's root, for one that stands in the module at `place`."""
    if path[0] == "crate":
        return path[1:]
    rest = list(path)
    while rest and rest[0] in ("super", "self"):
        place = place[:-1] if rest.pop(0) == "super" else place
    return (*place, *rest)


def uses(crate: str) -> dict[Place, dict[str, set[str]]]:
    """For each module with modules below it: which of these uses which other one, itself or by what is below it.

    What a module has of its own, beside the modules below it, is common ground for these, except in the crate's root.
    """
    files = modules(ROOT / "crates" / crate / "src")
    code = {place: code_of(path) for place, path in files.items()}
    handed_on = {
        place: reexports(text, {other[-1] for other in files if other[:-1] == place and other})
        for place, text in code.items()
    }
    graph: dict[Place, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for place, text in code.items():
        if place == ():
            # What the root only hands on it does not use.
            own = re.sub(r"\bpub(?:\([^)]*\))? use [^;]*;", "", text)
            for name in re.findall(r"\b(\w+)::", own):
                if (name,) in files:
                    graph[()][CRATE_ROOT].add(name)
            continue
        for path in paths_in(text):
            used = absolute(path, place)
            for depth in range(len(place)):
                if used[:depth] != place[:depth]:
                    break
                known = len(used) > depth
                name = (
                    used[depth]
                    if known and used[: depth + 1] in files
                    else handed_on[place[:depth]].get(used[depth])
                    if known
                    else None
                )
                if name is None and depth == 0:
                    name = CRATE_ROOT
                if name is not None and name != place[depth]:
                    graph[place[:depth]][place[depth]].add(name)
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches all others of its group."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        open_ = [start]
        while open_:
            for used in graph.get(open_.pop(), set()) - seen:
                seen.add(used)
                open_.append(used)
        reach[start] = seen
    groups = {frozenset(b for b in reach[a] if a in reach.get(b, set())) for a in graph if a in reach[a]}
    return sorted(sorted(group) for group in groups)


# Folders of Python packages, by name.
PACKAGES = {"limosa": "python/limosa", "limosa_lab": "lab/limosa_lab"}


def imports(tree: ast.Module, package: Place) -> Iterator[Place]:
    """All names that a Python module imports, also inside functions, but for type checks."""
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = (*package[: len(package) - node.level + 1], *base)
            yield from ((*base, alias.name) for alias in node.names)


def python_uses(package: str, folder: Path) -> dict[Place, dict[str, set[str]]]:
    """As `uses`, of a Python package. What `__init__.py` has is common ground."""
    paths = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        paths[parts[:-1] if parts[-1] == "__init__" else parts] = path
    graph: dict[Place, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for place, path in paths.items():
        inside = place if path.name == "__init__.py" else place[:-1]
        for name in imports(ast.parse(path.read_text()), (package, *inside)):
            used = name[1:] if name[0] == package else ()
            while used and used not in paths:
                used = used[:-1]
            for depth in range(min(len(place), len(used))):
                if used[:depth] != place[:depth]:
                    break
                if used[depth] != place[depth]:
                    graph[place[:depth]][place[depth]].add(used[depth])
    return graph


def closing_uses() -> dict[tuple[str, str], set[str]]:
    """Of each place and module in a circle, the modules of the circle that it uses."""
    graphs = {path.name: uses(path.name) for path in (ROOT / "crates").iterdir()}
    graphs |= {name: python_uses(name, ROOT / folder) for name, folder in PACKAGES.items()}
    return {
        ("::".join([part, *place]), module): graph[module] & set(group)
        for part, places in graphs.items()
        for place, graph in places.items()
        for group in circles(graph)
        for module in group
    }


def recorded() -> dict[tuple[str, str], set[str]]:
    """The recorded uses."""
    lines = [line.split() for line in RECORD.read_text().splitlines() if line and not line.startswith("#")]
    return {(where, module): set(used) for where, module, *used in lines}


def test_modules_use_each_other_without_circles() -> None:
    now, before = closing_uses(), recorded()
    for where, module in sorted({*now, *before}):
        used, known = now.get((where, module), set()), before.get((where, module), set())
        new, gone = sorted(used - known), sorted(known - used)
        assert not new, f"{where}: {module} uses {new}, which use it, directly or through others: move what both need"
        assert not gone, f"{where}: {module} and {gone} are in no circle now: run python tests/tidy/test_modules.py"


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_paths_of_all_shapes_count() -> None:
    code = (
        "use crate::comm::{Comm, mix};\nuse crate::{error::Result, group, info::{self, Info as I},};\n"
        "fn f() { super::op::check::<u8>() }"
    )
    assert paths_in(code) == [
        ("crate", "comm", "Comm"),
        ("crate", "comm", "mix"),
        ("crate", "error", "Result"),
        ("crate", "group"),
        ("crate", "info", "self"),
        ("crate", "info", "Info"),
        ("super", "op", "check"),
    ]
    assert absolute(("super", "super", "a"), ("b", "c")) == ("a",)
    assert absolute(("self", "a"), ("b", "c")) == ("b", "c", "a")


def test_circles_below_a_module_and_through_names_that_it_hands_on_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = tmp_path / "crates" / "some" / "src"
    texts = {
        "lib.rs": "mod top;",
        "top/mod.rs": "mod one;\nmod two;\npub use two::Two;\nconst COMMON: u8 = 0;",
        "top/one.rs": "use super::{COMMON, Two};",
        "top/two/mod.rs": "mod deep;",
        "top/two/deep.rs": "use super::super::one::One;",
    }
    for name, text in texts.items():
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(text)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert circles(uses("some")[("top",)]) == [["one", "two"]]
    assert circles(uses("some")[()]) == []


def test_code_behind_a_quotation_mark_counts(tmp_path: Path) -> None:
    source = tmp_path / "some.rs"
    lines = [
        "const Q: char = '\"'; // it's \"",
        "use crate::a;",
        'const S: &str = r#"crate::b "#; // crate::c',
        "use crate::d;",
    ]
    source.write_text("\n".join(lines))
    assert paths_in(code_of(source)) == [("crate", "a"), ("crate", "d")]


def test_imports_of_python_modules_are_found(tmp_path: Path) -> None:
    texts = {
        "__init__.py": "from .low import a",
        "low.py": "if TYPE_CHECKING:\n    from some.high import b\na = 1",
        "middle.py": "def f():\n    from some.high import b",
        "high.py": "from . import middle, low\nimport some.deep.one",
        "deep/__init__.py": "",
        "deep/one.py": "from .two import c",
        "deep/two.py": "from some.deep import one",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = python_uses("some", tmp_path)
    assert found[()] == {"middle": {"high"}, "high": {"middle", "low", "deep"}}
    assert [circles(found[place]) for place in [(), ("deep",)]] == [[["high", "middle"]], [["one", "two"]]]


def shrink_the_record() -> None:
    """Records the uses that have remained."""
    now = closing_uses()
    known = recorded() if RECORD.exists() else now
    left = {key: used & known.get(key, set()) for key, used in sorted(now.items())}
    lines = [f"\n{where} {module} {' '.join(sorted(used))}\n" for (where, module), used in left.items() if used]
    RECORD.write_text(HEADER + "".join(lines))


if __name__ == "__main__":
    shrink_the_record()
