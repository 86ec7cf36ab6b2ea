"""Writes NOTICES: the licences of the crates that are linked into the libraries and commands of the wheel.

usage: python3 python/tools/notices.py

Of a crate with several licences the one is taken under which Limosa uses it: the first of `PREFERRED`. Needs no
network where Cargo has built the wheel. `tests/packaging/test_notices.py` fails when the file is not what this writes.
The wheel's bill of materials comes from here, too.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "NOTICES"
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
PREFERRED = ["MIT", "Apache-2.0"]
HEAD = """\
Limosa itself is under the licence in the file LICENSE. The library, the launcher and the tools in its wheels are made
with Rust's standard library (MIT OR Apache-2.0, copyright The Rust Project Developers) and contain the crates below.
The modules limosa/_mpi4py*.so are mpi4py's; limosa/_mpi4py.LICENSE.rst is their licence.
"""


def cargo(*words: str) -> str:
    """Give what Cargo prints."""
    command = ["cargo", *words, "--locked"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(packages: list[str], targets: list[str]) -> list[dict[str, Any]]:
    """Give what Cargo knows of the crates that these packages link on these platforms."""
    words = [word for package in packages for word in ("-p", package)]
    words += [word for target in targets for word in ("--target", target)]
    tree = cargo("tree", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}", *words)
    names = {tuple(line.split()[:2]) for line in tree.splitlines() if line and "(/" not in line}
    words = [word for target in targets for word in ("--filter-platform", target)]
    known = json.loads(cargo("metadata", "--format-version", "1", *words))["packages"]
    return [package for package in known if (package["name"], f"v{package['version']}") in names]


def bill(packages: list[str], others: list[dict[str, Any]]) -> str:
    """Give the bill of materials (CycloneDX) of these packages on this platform, with other components."""
    host = subprocess.run(["rustc", "--print", "host-tuple"], check=True, stdout=subprocess.PIPE, text=True).stdout
    crates = [
        {
            "type": "library",
            "name": crate["name"],
            "version": crate["version"],
            "licenses": [{"expression": crate["license"].replace("/", " OR ")}],
            "purl": f"pkg:cargo/{crate['name']}@{crate['version']}",
        }
        for crate in linked(packages, [host.strip()])
    ]
    made = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [*crates, *others]}
    return json.dumps(made, indent=1) + "\n"


def licence(crate: str, folder: Path, expression: str) -> tuple[str, str]:
    """Give the name and the text of the licence under which a crate is used."""
    name = next(name for name in PREFERRED if name in expression)
    files = sorted(path for place in (folder, folder / "LICENSES") for path in place.glob("*") if path.is_file())
    named = [path for path in files if path.name.upper() in {f"LICENSE-{name}".upper(), f"{name}.TXT".upper()}]
    plain = [path for path in files if path.stem.upper() == "LICENSE" and name == expression]
    found = (named + plain)[:1]
    if not found:
        raise SystemExit(f"{crate}: no text of its licence {name} among {[path.name for path in files]}")
    text = "\n".join(line.rstrip() for line in found[0].read_text(encoding="utf-8").strip().splitlines())
    return name, text


def text() -> str:
    """Give the text of the file: each licence once, below the crates that have it."""
    packages = runpy.run_path(str(ROOT / "python" / "hatch_build.py"))["PACKAGES"]
    users: dict[tuple[str, str], list[str]] = {}
    for package in linked(packages, TARGETS):
        crate = f"{package['name']} {package['version']}"
        found = licence(crate, Path(package["manifest_path"]).parent, package["license"])
        users.setdefault(found, []).append(crate)
    parts = [
        textwrap.fill(f"{', '.join(sorted(crates))}: {name}", 100, break_on_hyphens=False) + f"\n\n{text}\n"
        for (name, text), crates in users.items()
    ]
    return ("\n" + "-" * 100 + "\n\n").join([HEAD, *sorted(parts)])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
