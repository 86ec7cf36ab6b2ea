"""Programs in Fortran: one for each chapter of the standard, with both modules, and one with mpif.h."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fortran_programs import BIN, PROGRAMS
from jobs import PATIENCE

CHAPTERS = [
    "point_to_point",
    "collectives",
    "datatypes",
    "communicators",
    "topologies",
    "one_sided",
    "files",
    "environment",
    "spawn",
]


@pytest.mark.parametrize("name", CHAPTERS)
def test_mpi_f08(fortran, name):
    program = fortran.compile(PROGRAMS / f"{name}.F90", f"{name}_f08", "-DF08")
    for ranks in (1, 4):
        fortran.run(program, ranks)


@pytest.mark.parametrize("name", CHAPTERS)
def test_mpi(fortran, name):
    fortran.run(fortran.compile(PROGRAMS / f"{name}.F90", f"{name}_mpi"), 3)


def test_mpif_h(fortran):
    # One procedure with arguments of several types is an error for gfortran where no interface allows it.
    program = fortran.compile(PROGRAMS / "old_style.f", "old_style", "-fallow-argument-mismatch", "-w")
    fortran.run(program, 2)


def test_sections_and_large_counts(fortran):
    fortran.run(fortran.compile(PROGRAMS / "sections.f90", "sections"), 2)


def test_heat_equation(fortran):
    program = fortran.compile(PROGRAMS / "heat.f90", "heat")
    for ranks in (1, 4):
        fortran.run(program, ranks)


def test_fortran_with_c(fortran):
    subprocess.run([BIN / "mpicc", "-Wall", "-Werror", "-c", PROGRAMS / "with_c.c"], cwd=fortran.folder, check=True)
    fortran.run(fortran.compile(PROGRAMS / "with_c.f90", "with_c", "with_c.o"), 1)


@pytest.mark.parametrize("name", ["point_to_point", "collectives", "communicators"])
def test_another_library_of_the_abi(fortran, mpich, name):
    fortran.run(fortran.compile(PROGRAMS / f"{name}.F90", f"{name}_any", "-DF08"), 2, "--mpi", "mpich")


def test_checks_name_the_line_of_the_program(fortran):
    lines = ["program leak", "use mpi_f08", "type(MPI_Datatype) :: two", "call MPI_Init()"]
    lines += ["call MPI_Type_contiguous(2, MPI_REAL, two)", "call MPI_Finalize()", "print *, 'done'", "end program"]
    (fortran.folder / "leak.f90").write_text("\n".join(lines) + "\n")
    fortran.mpifort("-g", "leak.f90", "-o", "leak")
    line = [BIN / "limosa", "run", "--check", "-n", "1", fortran.folder / "leak"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert "a datatype was never freed" in done.stderr
    assert "leak.f90:5" in done.stderr


def functions(table: dict, module: str) -> list[str]:
    """Names of the functions that a module must have, from the table of MPI."""
    there = {"mpi": (None, "mpi"), "mpi_f08": (None,)}[module]
    return [function["name"] for function in table["functions"] if function.get("fortran") in there]


@pytest.mark.parametrize("module", ["mpi", "mpi_f08"])
def test_every_function_exists_and_links(fortran, module, mpi_table):
    source = (Path(sys.prefix) / "lib" / "limosa" / "fortran" / f"{module}.f90").read_text()
    source = source[source.index(f"\nmodule {module}\n") :]
    forms = re.findall(r"^ +(?:subroutine|function) (P?MPI_\w+)\(", source, re.MULTILINE)
    callbacks = re.findall(r"^ +(?:procedure\(\w+\)|external) :: (\w+)$", source, re.MULTILINE)
    forms = [form for form in dict.fromkeys(forms) if not form.lower().endswith(("_function", "_function_c"))]
    wanted = [prefix + name for name in functions(mpi_table, module) for prefix in ("", "P")]
    generic = {re.sub(r"_(c_)?f08(ts)?$|_cptr$", "", form) for form in forms}
    assert set(wanted) <= generic
    callbacks = [name for name in callbacks if name.startswith("MPI_")]
    lines = ["program everything", f"use {module}", "implicit none"]
    for i, name in enumerate(forms):
        lines += [f"procedure({name}), pointer :: p{i}"]
    lines += [f"p{i} => {name}" for i, name in enumerate(forms)]
    lines += [f"call take({name})" for name in callbacks]
    lines += ["contains", "subroutine take(f)", "external :: f", "end subroutine", "end program"]
    (fortran.folder / f"all_{module}.f90").write_text("\n".join(lines) + "\n")
    fortran.mpifort("-O0", f"all_{module}.f90", "-o", f"all_{module}")
    assert len(forms) > {"mpi": 850, "mpi_f08": 1100}[module]
    # The names themselves, as a program writes them.
    names = [*dict.fromkeys(wanted), *callbacks, "MPI_Sizeof", "MPI_F_sync_reg", "PMPI_Sizeof"]
    only = ", &\n  ".join(names)
    (fortran.folder / "names.f90").write_text(f"program names\nuse {module}, only: &\n  {only}\nend program\n")
    fortran.mpifort("-fsyntax-only", "names.f90")
