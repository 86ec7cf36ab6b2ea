"""House rules that no compiler checks: which crate may use which, where unsafe code may be, how long a file is."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The table of ARCHITECTURE.md: what each crate may use of ours.
MAY_USE: dict[str, set[str]] = {
    "limosa-api": set(),
    "limosa-base": set(),
    "limosa-device": {"limosa-base"},
    "limosa-p2p": {"limosa-device", "limosa-base"},
    "limosa-sim": {"limosa-device", "limosa-base"},
    "limosa-job": {"limosa-base"},
    "limosa-hang": {"limosa-job", "limosa-base"},
    "limosa-mpi": {"limosa-p2p", "limosa-hang", "limosa-job", "limosa-base", "limosa-api"},
    "limosa-coll": {"limosa-mpi", "limosa-p2p", "limosa-job", "limosa-base"},
    "limosa-rma": {"limosa-coll", "limosa-mpi", "limosa-p2p", "limosa-base"},
    "limosa-io": {"limosa-rma", "limosa-coll", "limosa-mpi", "limosa-p2p", "limosa-base"},
    "limosa-abi": {"limosa-io", "limosa-rma", "limosa-coll", "limosa-mpi", "limosa-base", "limosa-api"},
    "limosa-cli": {"limosa-p2p", "limosa-device", "limosa-hang", "limosa-job", "limosa-base"},
    "limosa-mpich": {"limosa-api"},
    "limosa-openmpi": {"limosa-api"},
    "limosa-interpose": set(),
    "limosa-profile": {"limosa-interpose", "limosa-api"},
    "limosa-check": {"limosa-interpose", "limosa-base", "limosa-api"},
    "limosa-fuzz": {
        "limosa-base",
        "limosa-device",
        "limosa-p2p",
        "limosa-job",
        "limosa-mpi",
        "limosa-rma",
        "limosa-cli",
    },
}

# Crates that may contain unsafe code, each with its reason. All others forbid it.
MAY_BE_UNSAFE: dict[str, str] = {
    "limosa-base": "structures in memory that processes share, and system calls",
    "limosa-device": "lanes, pools and areas in shared memory, memory of other processes, libfabric",
    "limosa-sim": "implements the unsafe trait for memory of other processes",
    "limosa-p2p": "reads and writes the program's buffers",
    "limosa-job": "maps the status board, and loads libpmix",
    "limosa-mpi": "reads and writes the program's buffers, and calls its functions",
    "limosa-coll": "reads and writes the program's buffers, and memory that members share",
    "limosa-rma": "reads and writes windows, in this process and in others",
    "limosa-io": "reads and writes the program's buffers, and mapped files",
    "limosa-abi": "pointers that C passes in",
    "limosa-cli": "system calls between fork and exec, signals, terminals",
    "limosa-mpich": "pointers that C passes in, and functions of another library",
    "limosa-openmpi": "pointers that C passes in, and functions of another library",
    "limosa-interpose": "functions of other libraries, and entries in assembly language",
    "limosa-profile": "functions of other libraries, and a mapped file",
    "limosa-check": "functions of other libraries, and buffers of the program",
    "limosa-fuzz": "calls unsafe functions of the crates that it tests",
}

# Longer files, each with its reason.
LONG_FILES: dict[str, str] = {}
LONGEST = 800


def packages() -> dict[str, dict]:
    out = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {p["name"]: p for p in json.loads(out)["packages"]}


def sources() -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [ROOT / n for n in names if n.endswith((".rs", ".py", ".c", ".h"))]


def test_crates_use_only_what_their_layer_allows() -> None:
    found = packages()
    assert set(found) == set(MAY_USE), "ARCHITECTURE.md and this table list other crates than the workspace has"
    for name, package in found.items():
        ours = {d["name"] for d in package["dependencies"] if d["name"].startswith("limosa-") and d["kind"] != "dev"}
        assert ours <= MAY_USE[name], f"{name} may not use {sorted(ours - MAY_USE[name])}"


def test_the_table_of_the_architecture_page_says_what_each_crate_may_use() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = dict(re.findall(r"^\| `(limosa-\w+)` \|.*\| (.*) \|$", page, re.MULTILINE))
    assert set(rows) == set(MAY_USE)
    for crate, said in rows.items():
        named = {f"limosa-{name}" for name in re.findall(r"`(\w+)`", said)}
        assert said == "everything" or named == MAY_USE[crate] - {"limosa-api"}, crate


def test_the_picture_of_the_architecture_page_has_each_crate_above_those_that_it_uses() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    picture = page[page.index("```text") :].split("```")[1].splitlines()
    line = {name: number for number, text in enumerate(picture) for name in re.findall(r"limosa-\w+", text)}
    assert set(line) == set(MAY_USE) - {"limosa-fuzz"}
    for name, number in line.items():
        wrong = {used for used in MAY_USE[name] if line[used] <= number}
        assert not wrong, f"{name} is not above {sorted(wrong)}"


def test_the_page_on_dependencies_names_every_one() -> None:
    page = (ROOT / "docs/internals/dependencies.md").read_text()
    for name, package in packages().items():
        for dependency in package["dependencies"]:
            if not dependency["name"].startswith("limosa-"):
                assert f"`{dependency['name']}`" in page, (
                    f"docs/internals/dependencies.md does not say why {name} needs {dependency['name']}"
                )


def test_only_listed_crates_may_be_unsafe() -> None:
    for name, package in packages().items():
        targets = [Path(t["src_path"]) for t in package["targets"] if {"lib", "cdylib", "bin"} & set(t["kind"])]
        forbids = all("#![forbid(unsafe_code)]" in target.read_text() for target in targets)
        if name in MAY_BE_UNSAFE:
            assert not forbids, f"{name} forbids unsafe code: take it off the list"
            text = "".join(file.read_text() for target in targets for file in target.parent.rglob("*.rs"))
            assert re.search(r"^[^/\n]*\bunsafe\b", text, re.MULTILINE), f"{name} needs no unsafe code: forbid it"
        else:
            assert forbids, f"{name} must begin with #![forbid(unsafe_code)], or be listed with a reason"


@pytest.mark.parametrize(
    "crate, words",
    [
        ("limosa-base", r"\b(MPI|communicator|datatype)\b"),
        ("limosa-device", r"\b(communicator_|Comm\b|Datatype)\b"),
    ],
)
def test_lower_crates_know_no_words_of_higher_ones(crate: str, words: str) -> None:
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
        code = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))
        hit = re.search(words, code)
        assert not hit, f"{path.relative_to(ROOT)} says {hit.group()!r}" if hit else ""


def test_what_loom_replaces_comes_from_the_one_shim() -> None:
    for crate in ("limosa-base", "limosa-device"):
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
            if path.name in ("sync.rs", "model.rs", "tests.rs"):
                continue
            code = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))
            code = re.split(r"#\[cfg\((all\()?test", code)[0]
            hit = re.search(r"std::sync::(atomic|Mutex|RwLock|Condvar)|parking_lot", code)
            assert not hit, (
                f"{path.relative_to(ROOT)} uses {hit.group()}: take it from limosa_base::sync" if hit else ""
            )


def test_files_stay_readable() -> None:
    for path in sources():
        lines = path.read_text().count("\n")
        name = str(path.relative_to(ROOT))
        assert lines <= LONGEST or name in LONG_FILES, (
            f"{name} has {lines} lines: cut it along its seams, or list it with a reason"
        )
