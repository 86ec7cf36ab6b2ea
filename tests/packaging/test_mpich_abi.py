"""Programs compiled for MPICH run on Limosa without settings, and `limosa doctor PROGRAM` says what will happen."""

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

FOLDER = PREFIX / "lib" / "limosa" / "mpich"


@pytest.fixture(scope="module")
def mpich() -> Path:
    """The environment with MPICH's package, downloaded once."""
    return _peers.install("mpich", "MPICH", "mpich", print)


@pytest.fixture(scope="module")
def hello(mpich, tmp_path_factory) -> Path:
    """A program that was compiled with MPICH's header and library."""
    folder = tmp_path_factory.mktemp("hello")
    (folder / "hello.c").write_text(HELLO)
    words = ["cc", "hello.c", f"-I{mpich}/include", f"-L{mpich}/lib", "-lmpi", f"-Wl,-rpath,{mpich}/lib", "-o", "hello"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "hello"


def test_a_program_compiled_for_mpich_runs_unmodified(hello):
    done = run(LIMOSA, "run", "-n", "3", hello)
    expected = [f"rank {rank} of 3, sum 3, Limosa" for rank in range(3)]
    assert (sorted(done.stdout.splitlines()), done.stderr, done.returncode) == (expected, "", 0)


def test_a_program_compiled_for_debians_mpich_runs_unmodified(mpich, tmp_path):
    """The library has another name there."""
    functions = sorted(set(re.findall(r"MPI_\w+(?=\()", HELLO)))
    (tmp_path / "stub.c").write_text("".join(f"void {name}(void) {{}}\n" for name in functions))
    stub = ["cc", "-shared", "-fPIC", "stub.c", "-Wl,-soname,libmpich.so.12", "-o", "libmpich.so"]
    subprocess.run(stub, cwd=tmp_path, check=True)
    (tmp_path / "hello.c").write_text(HELLO)
    words = ["cc", "hello.c", f"-I{mpich}/include", "-L.", "-lmpich", "-o", "hello"]
    subprocess.run(words, cwd=tmp_path, check=True)
    done = run(LIMOSA, "run", "-n", "2", tmp_path / "hello")
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of 2, sum 1, Limosa" for rank in range(2)], done.stderr


def test_a_program_compiled_for_mpich_runs_without_a_launcher(hello):
    done = run(hello, LD_LIBRARY_PATH=str(FOLDER))
    assert (done.stdout, done.returncode) == ("rank 0 of 1, sum 0, Limosa\n", 0), done.stderr


def test_the_translation_serves_another_library(hello, mpich, tmp_path):
    (tmp_path / "libmpi.so.12").symlink_to(FOLDER / "libmpi.so.12")
    path = f"{tmp_path}:{mpich / 'lib'}"
    done = run(mpich / "bin" / "mpiexec", "-n", "2", hello, LD_LIBRARY_PATH=path)
    expected = [f"rank {rank} of 2, sum 1, MPICH " for rank in range(2)]
    assert sorted(done.stdout.splitlines()) == expected, done.stderr


def test_the_library_is_in_no_folder_of_another_package(mpich):
    ours = [Path(str(file.locate())).resolve() for file in files("limosa") or [] if file.name.startswith("libmpi")]
    assert {file for file in ours if ".so.12" in file.name} == {FOLDER / "libmpi.so.12", FOLDER / "libmpich.so.12"}
    assert (mpich / "lib" / "libmpi.so.12").is_file(), "where MPICH's package has its own"


def test_mpi4pys_own_module_for_mpich_runs(tmp_path):
    code = (
        "from mpi4py import MPI; w = MPI.COMM_WORLD; "
        "print(w.allreduce(w.rank), MPI.Get_library_version().split()[0], 'mpich' in MPI.__file__)"
    )
    done = run(LIMOSA, "run", "-n", "2", sys.executable, "-c", code, MPI4PY_MPIABI="mpich")
    assert (done.stdout, done.returncode) == ("1 Limosa True\n" * 2, 0), done.stderr


def test_the_doctor_says_what_a_program_is_compiled_for(hello, tmp_path):
    code, said = doctor(hello)
    assert code == 0 and "libmpi.so.12" in said and "through the translation" in said, said
    (tmp_path / "ours.c").write_text(HELLO)
    subprocess.run([LIMOSA, "cc", tmp_path / "ours.c", "-o", tmp_path / "ours"], check=True)
    code, said = doctor(tmp_path / "ours")
    assert code == 0 and "libmpi_abi.so.1" in said and "it runs on Limosa" in said, said
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert "is no 64-bit ELF file" in doctor(tmp_path / "script")[1]
    assert "ask for no MPI library" in doctor(Path("/bin/ls"))[1]
    assert doctor(tmp_path / "missing")[0] == 1


def test_the_doctor_finds_two_libraries_in_one_program(tmp_path):
    """The program is linked with the standard ABI, and with a library that is linked with Open MPI."""

    def library(name: str, *words: str) -> str:
        command = ["cc", "-shared", "-x", "c", os.devnull, f"-Wl,-soname,{name}", "-Wl,--no-as-needed", "-o", name]
        subprocess.run([*command, *words], cwd=tmp_path, check=True)
        return str(tmp_path / name)

    theirs, standard = library("libmpi.so.40"), library("libmpi_abi.so.1")
    solver = library("libsolver.so", "-x", "none", theirs)
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    words = ["cc", "main.c", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]
    subprocess.run([*words, solver, standard, "-o", "mixed"], cwd=tmp_path, check=True)
    code, said = doctor(tmp_path / "mixed")
    assert code == 1 and "two MPI libraries are mixed" in said and "libsolver.so" in said, said
