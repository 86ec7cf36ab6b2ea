"""House rules that no compiler checks: which crate may use which, where unsafe code may live, how long a file is."""

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


def test_the_architecture_page_names_every_crate_and_every_dependency() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    for name, package in packages().items():
        assert f"`{name}`" in page, f"ARCHITECTURE.md does not mention {name}"
        for dependency in package["dependencies"]:
            if not dependency["name"].startswith("limosa-"):
                assert f"`{dependency['name']}`" in page, (
                    f"ARCHITECTURE.md does not say why {name} needs {dependency['name']}"
                )


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
