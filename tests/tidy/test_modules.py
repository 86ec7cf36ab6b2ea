"""The modules of a crate build on each other without circles, so that each can be read after those it uses."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Uses that close a circle and stay, each with its reason: (crate, user, used).
WORLD = "a world owns its communicators' registry and its attached buffers, and both reach its engine through it"
PLANS = "lists every algorithm by messages in one place, from which an operation takes its own"
ALLOWED: dict[tuple[str, str, str], str] = {
    ("limosa-mpi", "comm", "world"): WORLD,
    ("limosa-mpi", "bsend", "world"): WORLD,
    **{
        ("limosa-coll", "select", operation): PLANS
        for operation in ["allgather", "allreduce", "bcast", "gather", "reduce", "reduce_scatter", "scatter"]
    },
}

# Items that are defined in the crate's root belong to this module.
CRATE_ROOT = "lib"


def modules(src: Path) -> dict[str, list[Path]]:
    """The files of each module at the top of a crate, without tests."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(src.rglob("*.rs")):
        parts = path.relative_to(src).with_suffix("").parts
        if "tests" not in parts:
            found[parts[0]].append(path)
    return found


def code_of(path: Path) -> str:
    """A file without comments, strings, and what follows its unit tests' attribute in the same file."""
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', path.read_text())
    text = re.sub(r"//[^\n]*", "", text)
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def names_after(code: str, prefix: str) -> set[str]:
    """The first names in paths that begin with `prefix`, also in braces."""
    names = set(re.findall(rf"\b{prefix}::(\w+)", code))
    for group in re.findall(rf"\b{prefix}::\{{([^;]*?)\}};", code, flags=re.S):
        flat = re.sub(r"\{[^{}]*\}", "", group)
        names |= {part.strip().split("::")[0].split(" ")[0] for part in flat.split(",") if part.strip()}
    return names


def reexports(root: str, tops: set[str]) -> dict[str, str]:
    """Which module the names that the root brings together come from."""
    origin: dict[str, str] = {}
    for module, names in re.findall(r"\buse (\w+)::(\{[^}]*\}|[\w:]+)", root):
        if module in tops:
            for name in re.findall(r"\w+", names):
                origin.setdefault(name, module)
    return origin


def uses(crate: str) -> dict[str, set[str]]:
    """Which modules each module at the top of the crate uses."""
    src = ROOT / "crates" / crate / "src"
    files = modules(src)
    tops = set(files)
    origin = reexports(code_of(src / "lib.rs"), tops - {CRATE_ROOT})
    graph: dict[str, set[str]] = {module: set() for module in files}
    for module, paths in files.items():
        for path in paths:
            code = code_of(path)
            depth = len(path.relative_to(src).with_suffix("").parts) - (path.stem == "mod")
            names = names_after(code, "crate")
            if module == CRATE_ROOT:
                # What the root only hands on it does not use.
                code = re.sub(r"\bpub(?:\([^)]*\))? use [^;]*;", "", code)
                names |= {name for name in re.findall(r"\b(\w+)::", code) if name in tops}
            else:
                names |= names_after(code, r"(?<!super::)" + "::".join(["super"] * depth))
            for name in names - {"super"}:
                used = name if name in tops else origin.get(name, CRATE_ROOT)
                if used != module:
                    graph[module].add(used)
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
    graph = uses(crate)
    for named, user, used in ALLOWED:
        if named == crate:
            assert used in graph[user], f"{crate}: {user} does not use {used} any more: take it off the list"
            graph[user].discard(used)
    found = circles(graph)
    closing = {group[0]: {a: sorted(graph[a] & set(group)) for a in group} for group in found}
    assert not found, f"{crate} has circles: {closing}"


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_paths_of_all_shapes_count() -> None:
    code = "use crate::comm::{Comm, mix};\nuse crate::{error::Result, group, info::{self, Info}};\nfn f() { crate::op::check() }"
    assert names_after(code, "crate") == {"comm", "error", "group", "info", "op"}
