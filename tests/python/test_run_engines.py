"""`limosa run --mpi`: the same program on another library, by that library's own launcher."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import Job

BIN = Path(sys.executable).parent
PROGRAM = """
import os, sys
from mpi4py import MPI

world = MPI.COMM_WORLD
names = world.gather(MPI.Get_library_version().split()[0])
if world.rank == 0:
    print(world.size, *set(names), os.environ.get("GIVEN"), os.getcwd(), *sys.argv[1:])
"""
C_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(text, &length);
    text[strcspn(text, " ")] = 0;
    printf("%d %s\n", rank, text);
    return MPI_Finalize();
}
"""


def limosa(*arguments: object, limit: float = 60.0, **options):
    """Run the command to its end."""
    return Job([str(BIN / "limosa"), *map(str, arguments)], **options).wait(limit)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@pytest.mark.parametrize(("name", "title"), [("limosa", "Limosa"), ("mpich", "MPICH")])
def test_the_same_script_runs_on_the_library_that_is_named(program, tmp_path, name, title):
    outcome = limosa("run", "--mpi", name, "-n", 3, "-x", "GIVEN=word", "-wdir", tmp_path, program, "-n", "x")
    assert outcome.code == 0, outcome.text
    assert outcome.out.split() == ["3", title, "word", str(tmp_path), "-n", "x"]


def test_a_compiled_program_needs_no_second_compilation(tmp_path):
    (tmp_path / "program.c").write_text(C_PROGRAM)
    subprocess.run([BIN / "mpicc", "program.c", "-o", "program"], cwd=tmp_path, check=True)
    for name, title in [("limosa", "Limosa"), ("mpich", "MPICH")]:
        outcome = limosa("run", "-l", "-n", 2, f"--mpi={name}", "./program", cwd=tmp_path)
        assert sorted(outcome.out.splitlines()) == [f"[{rank}] {rank} {title}" for rank in range(2)], outcome.text


def test_a_folder_is_as_good_as_a_name(program):
    from limosa import engines

    prefix = Path(engines.find("mpich").library).parent.parent
    for folder in (prefix, prefix / "lib", prefix / "lib" / "libmpi_abi.so.1"):
        outcome = limosa("run", "--mpi", folder, program)
        assert outcome.out.split()[:2] == ["1", "MPICH"], outcome.text


def test_the_exit_code_comes_back(tmp_path):
    outcome = limosa("run", "--mpi", "mpich", "-n", 2, sys.executable, "-c", "raise SystemExit(7)")
    assert outcome.code == 7, outcome.text


def test_the_list_shows_names_and_versions():
    for words in (["--mpi", "list"], ["-n", "2", "--mpi=list", "true"]):
        outcome = limosa("run", *words)
        rows = dict(line.split(maxsplit=1) for line in outcome.out.split("\n\n")[0].splitlines())
        assert rows["limosa"].startswith("Limosa ") and " yes " in rows["limosa"], outcome.text
        assert rows["mpich"].startswith("MPICH 5") and " yes " in rows["mpich"], outcome.text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--mpi", "nothing", "true"], "there is no MPI library called `nothing`"),
        (["--mpi", "/no/such", "true"], "there is no MPI library at /no/such"),
        (["--mpi", "/etc", "true"], "/etc holds no MPI library"),
        (["--mpi", "/etc/passwd", "true"], "/etc/passwd does not answer as an MPI library"),
        (["--mpi", "mpich", "--on-hang=abort", "true"], "--on-hang is not supported by the launcher of MPICH 5"),
        (["--mpi", "mpich", "--stdin", "all", "true"], "--stdin is not supported by the launcher of MPICH 5"),
        (["--mpi", "mpich", "no-such-program"], "there is no program `no-such-program`"),
        (["--mpi", "mpich"], "required arguments were not provided"),
    ],
)
def test_what_cannot_be_is_said(words, says):
    outcome = limosa("run", *words)
    assert (outcome.code, outcome.out) == (2, ""), outcome.text
    assert says in outcome.err


def stub(folder: Path, *definitions: str, name: str = "libmpi_abi.so.1") -> Path:
    """Compile a library that consists of so little that it can be asked what it is."""
    version = (
        "int MPI_Get_library_version(char *t, int *n) "
        '{ __builtin_strcpy(t, "Stub MPI 1.2, a test"); *n = 20; return 0; }'
    )
    (folder / "lib").mkdir(parents=True)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / "lib" / name]
    subprocess.run(command, input="\n".join([version, *definitions]), text=True, check=True)
    return folder


def test_a_library_with_another_abi_is_refused_with_the_reason(tmp_path):
    only_own = stub(tmp_path / "own", name="libmpi.so.40")
    draft = stub(tmp_path / "draft", "int MPI_Abi_get_version(int *a, int *b) { *a = 0; *b = 9; return 0; }")
    alone = stub(tmp_path / "alone", "int MPI_Abi_get_version(int *a, int *b) { *a = 1; *b = 0; return 0; }")
    for prefix, says in [
        (only_own, "only its own ABI"),
        (draft, "version 0.9 of the standard ABI"),
        (alone, "there is no launcher"),
    ]:
        outcome = limosa("run", "--mpi", prefix, "true")
        assert outcome.code == 2 and says in outcome.err, outcome.text


@pytest.mark.parametrize("option", ["--check", "--profile=made"])
def test_what_stands_before_a_library_needs_the_standard_abi(option, tmp_path):
    """As Open MPI 5 has it not: the refusal says so, and nothing is left behind."""
    only_own = stub(tmp_path / "own", name="libmpi.so.40")
    outcome = limosa("run", "--mpi", only_own, option, "true", cwd=tmp_path)
    assert (outcome.code, outcome.out) == (2, ""), outcome.text
    assert "it has only its own ABI" in outcome.err
    assert f"for {option.split('=')[0]}, too, a library must have the standard ABI: leave --mpi out" in outcome.err
    assert "when the job has ended" not in outcome.err
    assert not (tmp_path / "made").exists()


def test_without_the_package_index_the_reason_is_given(tmp_path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PIP_NO_INDEX": "1"}
    outcome = limosa("run", "--mpi", "mpich", "true", env=environment)
    assert outcome.code == 2, outcome.text
    assert "installing MPICH (package mpich)" in outcome.err
    assert "hint: a connection to the Python package index is needed once" in outcome.err


def test_a_dialect_is_passed_on_to_the_ranks():
    show = "import os; print(os.environ['LIMOSA_DIALECT'])"
    for library in ("limosa", "mpich"):
        outcome = limosa("run", "--mpi", library, "--dialect", "mympi", sys.executable, "-c", show)
        assert outcome.out == "mympi\n", outcome.text
    outcome = limosa("run", "--dialect", "english", "true")
    assert outcome.code == 2 and "pympi, mympi" in outcome.err, outcome.text
