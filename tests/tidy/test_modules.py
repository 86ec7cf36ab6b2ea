"""The modules of a crate build on each other without circles, so that each can be read after those it uses."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Uses that close a circle and stay, each with its reason: (crate, the module that holds both, user, used).
WORLD = "a world owns its communicators' registry and its attached buffers, and both reach its engine through it"
PLANS = "lists every algorithm by messages in one place, from which an operation takes its own"
LENT = "a note may say that its data are lent, and data are lent by a note"
ALLOWED: dict[tuple[str, str, str, str], str] = {
    ("limosa-mpi", "", "comm", "world"): WORLD,
    ("limosa-mpi", "", "bsend", "world"): WORLD,
    **{
        ("limosa-coll", "", "select", operation): PLANS
        for operation in ["allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "reduce_scatter", "scatter"]
    },
    ("limosa-coll", "background", "storage", "lent"): LENT,
}

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
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', path.read_text())
    text = re.sub(r"//[^\n]*", "", text)
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


@pytest.mark.parametrize("crate", ["limosa-mpi", "limosa-coll"])
def test_modules_use_each_other_without_circles(crate: str) -> None:
    graphs = uses(crate)
    for named, inside, user, used in ALLOWED:
        if named == crate:
            graph = graphs[tuple(inside.split("::")) if inside else ()]
            assert used in graph[user], f"{crate}: {inside}::{user} does not use {used} any more: take it off the list"
            graph[user].discard(used)
    for place, graph in graphs.items():
        closing = {group[0]: {a: sorted(graph[a] & set(group)) for a in group} for group in circles(graph)}
        assert not closing, f"{crate} has circles in {'::'.join(place) or 'its root'}: {closing}"


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
