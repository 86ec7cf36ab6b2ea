#!/usr/bin/env python3
"""Derive the facts about Open MPI's ABI (`api/openmpi.json`) from the headers and libraries of two versions.

    python3 api/derive_openmpi.py <mpi.h of 5.0> <libmpi.so.40 of 5.0> <mpi.h of 4.1> <libmpi.so.40 of 4.1> [output]

Only facts are carried over: the values of the standard's constants, as a C compiler gives them, the names and sizes of
the objects behind predefined handles, and the names of the exported symbols. The table of MPI-5 (`api/mpi5.json`) says
which constants there are. Both versions share one ABI: the newer one adds constants, objects and functions.
"""

import json
import pathlib
import re
import subprocess
import sys

from derive_mpich import HERE, symbols, values

# Error classes of Open MPI that the standard does not have.
OTHERS = ["MPI_ERR_PROC_FAILED", "MPI_ERR_PROC_FAILED_PENDING", "MPI_ERR_REVOKED"]
# Variables of the library that its C++ bindings (libmpi_cxx.so.40 of 4.1) name: they must exist for those to be loaded.
FOR_CXX = {
    "ompi_errcode_intern_lastused",
    "ompi_errcodes_intern",
    "ompi_mpi_errors_throw_exceptions",
    "ompi_registered_datareps",
}


def objects(header: pathlib.Path) -> dict[str, str]:
    """Find the object behind each constant that is the address of one."""
    text = header.read_text() + extensions(header)
    return dict(re.findall(r"#\s*define\s+(\w+)\s+OMPI_PREDEFINED_GLOBAL\s*\(\s*\w+\s*,\s*(\w+)\s*\)", text))


def extensions(header: pathlib.Path) -> str:
    """Read the headers of extensions."""
    return "".join(file.read_text() for file in sorted(header.parent.glob("openmpi/mpiext/*_c.h")))


def declared(header: pathlib.Path) -> set[str]:
    """List the objects that the header declares; some have no constant."""
    text = header.read_text() + extensions(header)
    return set(re.findall(r"OMPI_DECLSPEC\s+extern\s+struct\s+\w+\s+(\w+)\s*;", text))


def sizes(library: pathlib.Path) -> dict[str, int]:
    """List the sizes of the exported variables."""
    said = subprocess.run(
        ["nm", "-D", "-S", "--defined-only", str(library)], check=True, capture_output=True, text=True
    )
    found = (line.split() for line in said.stdout.splitlines())
    return {fields[3]: int(fields[1], 16) for fields in found if len(fields) == 4 and fields[2] in "BDRV"}


def version(header: pathlib.Path) -> str:
    """Read the version from the header."""
    numbers = [
        re.search(rf"#define OMPI_{part}_VERSION (\d+)", header.read_text()) for part in ("MAJOR", "MINOR", "RELEASE")
    ]
    return ".".join(number.group(1) if number else "?" for number in numbers)


def main() -> None:
    """Write the file."""
    newer, newer_library, older, older_library = map(pathlib.Path, sys.argv[1:5])
    output = pathlib.Path(sys.argv[5]) if len(sys.argv) > 5 else HERE / "openmpi.json"
    table = json.loads((HERE / "mpi5.json").read_text())
    named = objects(older) | objects(newer)
    functions = {c["name"] for c in table["constants"] if c["name"].endswith(("_COPY_FN", "_DUP_FN", "_DELETE_FN"))}
    names = [c["name"] for c in table["constants"] if c["name"] not in functions | set(named)]
    names += OTHERS
    new, old = values(newer, names), values(older, names)
    for name in sorted(new.keys() & old.keys()):
        if new[name] != old[name]:
            print(f"{name} is {old[name]} in {version(older)} and {new[name]} in {version(newer)}", file=sys.stderr)
    known = sizes(older_library) | sizes(newer_library)
    wanted = declared(newer) | declared(older) | FOR_CXX
    exported = set(symbols(older_library, "TW")) | set(symbols(newer_library, "TW"))
    parts = {
        "openmpi": version(newer),
        "constants": old | new,
        "objects": {name: symbol for name, symbol in sorted(named.items()) if symbol in known},
        "sizes": {symbol: known[symbol] for symbol in sorted(wanted) if symbol in known},
        "functions": sorted(name for name in exported if re.match(r"MPIX?_(T_|[A-Z][a-z])", name)),
        "variables": sorted(name for name in known if name.startswith("MPI_")),
    }
    output.write_text(json.dumps(parts, indent=0) + "\n")


if __name__ == "__main__":
    main()
