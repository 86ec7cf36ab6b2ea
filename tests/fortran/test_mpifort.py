"""The compiler wrapper for Fortran."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fortran_programs import BIN, Fortran

HELLO = "program hello\n  use mpi_f08\n  call MPI_Init()\n  print *, 'done'\n  call MPI_Finalize()\nend program\n"


def test_modules_are_compiled_once_even_by_several_calls_at_a_time(gfortran, tmp_path):
    def compile_one(i: int) -> Path:
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "hello.f90").write_text(HELLO)
        Fortran(folder).mpifort("hello.f90", "-o", "hello", env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
        return folder / "hello"

    with ThreadPoolExecutor() as pool:
        programs = list(pool.map(compile_one, range(3)))
    (made,) = (tmp_path / "cache" / "limosa" / "fortran").iterdir()
    assert {file.name for file in made.iterdir()} == {
        "mpi.mod",
        "mpi_f08.mod",
        "limosa_mpi_types.mod",
        "liblimosa_modules.a",
    }
    before = (made / "mpi.mod").stat().st_mtime_ns
    compile_one(4)
    assert (made / "mpi.mod").stat().st_mtime_ns == before
    Fortran(tmp_path).run(programs[0], 1)


def test_shows_its_command(fortran):
    shown = fortran.mpifort("-show", "x.f90", "-o", "x").split()
    assert shown[0] == "gfortran"
    assert [word for word in shown if word.startswith("-l")] == ["-llimosa_modules", "-lmpi_abi_fortran", "-lmpi_abi"]
    folders = fortran.mpifort("-showme:incdirs").split()
    assert (Path(folders[0]) / "mpif.h").is_file()
    assert (Path(folders[1]) / "mpi.mod").is_file()
    assert "mpi_abi_fortran" in fortran.mpifort("-link_info")
    assert fortran.mpifort("-compile_info").split()[1:] == [f"-I{folder}" for folder in folders]


def test_names_share_one_command(fortran):
    texts = [(BIN / name).read_text() for name in ("mpifort", "mpif90", "mpif77", "mpicc")]
    assert len(set(texts)) == 1


def test_says_what_it_cannot_do(gfortran, tmp_path):
    fortran = Fortran(tmp_path)
    said = fortran.mpifort("-fdefault-integer-8", "x.f90", succeeds=False)
    assert "makes INTEGER 8 bytes wide" in said
    said = fortran.mpifort("-fc=no-such-compiler", "x.f90", succeeds=False)
    assert "no-such-compiler is not installed" in said
    assert "apt-get install gfortran" in said
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho 'Other Fortran 1.0'\n")
    other.chmod(0o755)
    said = fortran.mpifort("x.f90", succeeds=False, env={"LIMOSA_FC": str(other)})
    assert f"{other} is not gfortran" in said


def test_mpif_h_is_for_both_source_forms(fortran):
    for name, start in (("fixed.f", "      "), ("free.f90", "")):
        text = ["program p", "include 'mpif.h'", "print *, MPI_COMM_WORLD, MPI_DISPLACEMENT_CURRENT", "end"]
        (fortran.folder / name).write_text("".join(f"{start}{line}\n" for line in text))
        fortran.mpifort("-Wall", "-Wno-unused", "-Werror", "-fsyntax-only", name)


def test_tells_a_program_with_mpif_h_how_its_library_is_found(fortran):
    (fortran.folder / "linked.f").write_text("      INCLUDE 'mpif.h'\n      CALL MPI_INIT(I)\n      END\n")
    fortran.mpifort("linked.f", "-o", "linked")
    said = subprocess.run(["ldd", fortran.folder / "linked"], capture_output=True, text=True, check=True).stdout
    assert "lib/limosa/libmpi_abi_fortran.so" in said
    assert "lib/limosa/libmpi_abi.so.1" in said
