#!/usr/bin/env python3
"""Derive the facts about MPICH's ABI (`api/mpich.json`) from installed packages of MPICH and of Intel MPI.

    python3 api/derive_mpich.py <environment with MPICH> <environment with Intel MPI> [output]

An environment is a folder with `include/mpi.h` and `lib/libmpi.so.12`; of Intel MPI's only the library is read. Only
facts are carried over: the values of the standard's constants, as a C compiler gives them, and the names of the
exported symbols. The table of MPI-5 (`api/mpi5.json`) says which constants there are.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Constants that MPI-5 does not have, or no longer, and programs for MPICH use.
OTHERS = [
    "MPIX_C_FLOAT16",
    "MPI_LB",
    "MPI_UB",
    "MPI_COMBINER_HVECTOR_INTEGER",
    "MPI_COMBINER_HINDEXED_INTEGER",
    "MPI_COMBINER_STRUCT_INTEGER",
]


def values(header: pathlib.Path, names: list[str]) -> dict[str, int]:
    """Have the C compiler say the values of the constants that the header has as numbers."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    defined = [name for name in names if re.search(rf"^(#define\s+{name}\s|\s+{name}\b)", text, re.MULTILINE)]
    functions = [
        name for name in defined if re.search(rf"^#define\s+{name}\s.*MPIR_Dup_fn|MPI_DUP_FN", text, re.MULTILINE)
    ]
    numbers = [name for name in defined if name not in functions or not name.endswith("_DUP_FN")]
    lines = [f'printf("%s %lld\\n", "{name}", (long long)({name}));' for name in numbers]
    program = "#include <stdio.h>\n#include <mpi.h>\nint main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "values.c")
        source.write_text(program)
        binary = source.with_suffix("")
        command = ["cc", "-w", f"-I{header.parent}", "-fsyntax-only", str(source)]
        subprocess.run(command, check=True)
        # The program reads nothing of the library: symbols that inline functions mention may stay undefined.
        subprocess.run(["cc", "-w", f"-I{header.parent}", str(source), "-o", str(binary)], check=True)
        said = subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in map(str.split, said.splitlines())}


def symbols(library: pathlib.Path, kinds: str) -> list[str]:
    """List the exported symbols of these kinds (as `nm` names them), without versions and without the names PMPI_*."""
    said = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True)
    found = (line.split() for line in said.stdout.splitlines())
    names = {fields[2].split("@")[0] for fields in found if fields[1] in kinds}
    return sorted(name for name in names if re.match(r"MPI[XIR]*_", name))


def main() -> None:
    """Write the file."""
    mpich, intel = map(pathlib.Path, sys.argv[1:3])
    output = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else HERE / "mpich.json"
    table = json.loads((HERE / "mpi5.json").read_text())
    header = mpich / "include" / "mpi.h"
    names = [constant["name"] for constant in table["constants"]]
    version = re.search(r'#define MPICH_VERSION "(.*)"', header.read_text())
    functions = symbols(mpich / "lib" / "libmpi.so.12", "TW")
    public = [name for name in functions if name.startswith(("MPI_", "MPIX_"))]
    more = [name for name in symbols(intel / "lib" / "libmpi.so.12", "TW") if name not in functions]
    parts = {
        "mpich": version.group(1) if version else "unknown",
        "constants": values(header, names + OTHERS),
        "functions": public,
        "variables": symbols(mpich / "lib" / "libmpi.so.12", "BDRV"),
        "intel": [name for name in more if name.startswith(("MPI_", "MPIX_"))],
    }
    output.write_text(json.dumps(parts, indent=0) + "\n")


if __name__ == "__main__":
    main()
