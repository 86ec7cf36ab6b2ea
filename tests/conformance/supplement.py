"""A header for programs of the newest standard that are compiled for Open MPI, whose own header is of an older one.

It includes Open MPI's `mpi.h` and adds what that lacks: the declarations of Limosa's header, and constants with the
numbers that the translation lets through. Without it, a program that uses one newer function could not be tested.
"""

from __future__ import annotations

import re
from pathlib import Path

# Constants that the older standard lacks: those of Open MPI 5.0, or as the translation sees them.
CONSTANTS = {
    "MPI_ERR_ERRHANDLER": "MPI_ERR_ARG",
    "MPI_ERR_PROC_ABORTED": "74",
    "MPI_ERR_SESSION": "78",
    "MPI_ERR_VALUE_TOO_LARGE": "79",
    "MPI_LOGICAL16": "((MPI_Datatype)(736L | 1L << 62))",
    "MPI_REAL2": "((MPI_Datatype)&ompi_mpi_real2)",
    "MPI_COMPLEX4": "((MPI_Datatype)&ompi_mpi_complex4)",
    "MPI_INTEGER16": "((MPI_Datatype)&ompi_mpi_integer16)",
    "MPI_ERRORS_ABORT": "((MPI_Errhandler)&ompi_mpi_errors_abort)",
    "MPI_SESSION_NULL": "((MPI_Session)&ompi_mpi_instance_null)",
}
OBJECTS = ["real2", "complex4", "integer16", "errors_abort", "instance_null"]
# These say which header it is.
NEVER = re.compile(r"MPI_ABI_|LIMOSA|_H$|_FN$")


def write(folder: Path, theirs: Path, newest: Path) -> Path:
    """Write `mpi.h` into a folder, over the header in the folder `theirs`; give the folder."""
    old, new = (theirs / "mpi.h").read_text(), newest.read_text()
    words = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", old, flags=re.DOTALL)))
    # Open MPI's header has its names of older datatypes only if its Fortran compiler knows them.
    words -= {name for name in CONSTANTS if not re.search(rf"^\s*#\s*define {name}\b", old, re.MULTILINE)}
    lines = [f'#include "{theirs}/mpi.h"']
    lines += [f"extern char ompi_mpi_{name}[];" for name in OBJECTS if f"ompi_mpi_{name}" not in words]
    for text in re.findall(r"^typedef [^;{]*(?:\{[^}]*\})?[^;]*;", new, re.MULTILINE):
        name = re.search(r"\((\w+)\)\(|\*?(\w+);$", text)
        if name and (name[1] or name[2]) not in words:
            lines.append(text)
    for name, given in re.findall(r"^#define (MPI_\w+) +(.+)$", new, re.MULTILINE):
        code = re.fullmatch(r"\(?(\d+)\)?", given.split("/*")[0].strip())
        value = f"({code[1]} | 1 << 30)" if code and "_ERR_" in name else given
        if name not in words and not NEVER.search(name):
            lines.append(f"#define {name} {CONSTANTS.get(name, value)}")
    for name in CONSTANTS.keys() & words:
        lines.append(f"#ifndef {name}\n#define {name} {CONSTANTS[name]}\n#endif")
    for text, name in re.findall(r"^(\w[\w ]*[ *](P?MPI_\w+)\(.*\);)$", new, re.MULTILINE):
        if name not in words:
            lines.append(text)
    (folder / "mpi.h").write_text("\n".join(lines) + "\n")
    return folder
