"""The wheel in an empty virtual environment: everything it promises is there and works."""

import email
import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from jobs import PATIENCE
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]

C_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d, sum %d\n", rank, size, sum);
    MPI_Finalize();
    return 0;
}
"""


def run(*command, **options):
    """Run a command with nothing of this environment on its path; give its output."""
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LIMOSA_", "LD_", "VIRTUAL_ENV", "PYTHON"))
    } | path
    words = [str(word) for word in command]
    result = subprocess.run(
        words, env=env, text=True, capture_output=True, timeout=120 * PATIENCE, check=False, **options
    )
    assert result.returncode == 0, f"{' '.join(words)}: exit code {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout.strip()


@pytest.fixture(scope="session")
def wheel():
    """The wheel that `make` has installed into .venv."""
    wheels = sorted((ROOT / ".venv" / "wheel").glob("limosa-*.whl"))
    assert wheels, "no wheel in .venv/wheel; run this through `make test-python`"
    return wheels[-1]


@pytest.fixture(scope="session")
def prefix(wheel, tmp_path_factory):
    """An environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    run(
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--python",
        folder / "bin" / "python",
        "install",
        "--no-deps",
        "--no-index",
        wheel,
    )
    return folder


@pytest.fixture(scope="session")
def c_program(prefix, tmp_path_factory):
    """A C program compiled with the wheel's mpicc."""
    folder = tmp_path_factory.mktemp("c")
    (folder / "hello.c").write_text(C_PROGRAM)
    run(prefix / "bin" / "mpicc", "-Wall", "-Werror", "hello.c", "-o", "hello", cwd=folder)
    return folder / "hello"


def test_brings_every_file(prefix):
    for name in [
        "bin/limosa",
        "bin/mpiexec",
        "bin/mpirun",
        "bin/mpicc",
        "bin/mpicxx",
        "bin/mpiCC",
        "bin/mpifort",
        "include/mpi.h",
        "include/limosa.h",
        "lib/libmpi_abi.so.1",
        "include/limosa/mpif.h",
        "lib/limosa/libmpi_abi_fortran.so",
        "lib/limosa/fortran/mpi_f08.f90",
    ]:
        assert (prefix / name).is_file(), name


def test_python_package_knows_version_and_files(prefix):
    code = "import limosa; print(limosa.__version__, limosa.get_lib_path(), limosa.get_include())"
    version, library, include = run(prefix / "bin" / "python", "-c", code).split()
    assert f'version = "{version}"' in (ROOT / "Cargo.toml").read_text()
    assert Path(library) == (prefix / "lib" / "libmpi_abi.so.1").resolve()
    assert Path(include) == (prefix / "include").resolve()


def test_brings_the_names_of_the_dialects(prefix):
    names = ["pypar", "boostmpi", "boost.mpi", "boost.parallel.mpi"]
    code = f"from importlib.util import find_spec; print(*[find_spec(name).origin for name in {names}])"
    places = [Path(place) for place in run(prefix / "bin" / "python", "-c", code).split()]
    assert [place.name for place in places] == ["pypar.py", "boostmpi.py", "mpi.py", "mpi.py"]
    assert not (places[0].parent / "boost" / "__init__.py").exists(), "boost is shared with other packages"


def test_brings_the_kernels_that_a_study_runs(prefix):
    (folder,) = prefix.glob("lib/python*/site-packages/limosa_lab/kernels")
    for name in [
        "run.py",
        "common/comm_mpi4py.py",
        "common/kernel.h",
        "wave3d/wave3d.py",
        "wave3d/wave3d.c",
        "cg/cg.c",
        "micro/micro.c",
    ]:
        assert (folder / name).is_file(), name


def test_commands_agree_on_the_version(prefix):
    code = "import limosa; print(limosa.__version__)"
    assert run(prefix / "bin" / "python", "-c", code) in run(prefix / "bin" / "limosa", "--version")


@pytest.mark.parametrize("launcher", [["limosa", "run"], ["mpiexec"], ["mpirun"]])
def test_c_program_runs_under_each_launcher(prefix, c_program, launcher):
    output = run(prefix / "bin" / launcher[0], *launcher[1:], "-n", 3, c_program)
    assert sorted(output.splitlines()) == [f"rank {rank} of 3, sum 3" for rank in range(3)]


def test_c_program_runs_alone(c_program):
    assert run(c_program) == "rank 0 of 1, sum 0"


def test_launcher_is_found_through_a_symbolic_link(prefix, c_program, tmp_path):
    link = tmp_path / "mpiexec"
    link.symlink_to(prefix / "bin" / "mpiexec")
    assert run(link, "-n", 1, c_program) == "rank 0 of 1, sum 0"


def test_mpicxx_compiles_cpp(prefix, tmp_path):
    (tmp_path / "hello.cpp").write_text(
        "#include <iostream>\n" + C_PROGRAM.replace("printf(", "std::cout << rank; printf(")
    )
    run(prefix / "bin" / "mpicxx", "-Wall", "-Werror", "-std=c++17", "hello.cpp", "-o", "hello", cwd=tmp_path)
    assert run(tmp_path / "hello") == "0rank 0 of 1, sum 0"


def test_program_linked_by_full_path_asks_for_the_abi_name(prefix, tmp_path):
    """As CMake does it: include folder and library file taken from the wrapper, the compiler called directly."""
    (tmp_path / "hello.c").write_text(C_PROGRAM)
    flags = run(prefix / "bin" / "mpicc", "-showme:compile").split()
    libdir = run(prefix / "bin" / "mpicc", "-showme:libdirs")
    name = run(prefix / "bin" / "mpicc", "-showme:libs")
    run("cc", *flags, "hello.c", f"{libdir}/lib{name}.so", f"-Wl,-rpath,{libdir}", "-o", "hello", cwd=tmp_path)
    assert "libmpi_abi.so.1" in run("readelf", "-d", tmp_path / "hello")
    assert run(tmp_path / "hello") == "rank 0 of 1, sum 0"


def test_separate_compiling_and_linking(prefix, tmp_path):
    (tmp_path / "hello.c").write_text(C_PROGRAM)
    run(prefix / "bin" / "mpicc", "-c", "hello.c", cwd=tmp_path)
    run(prefix / "bin" / "mpicc", "hello.o", "-o", "hello", cwd=tmp_path)
    assert run(tmp_path / "hello") == "rank 0 of 1, sum 0"


def test_wrapper_shows_instead_of_running(prefix, tmp_path):
    shown = run(prefix / "bin" / "mpicc", "-show", "nothing.c", "-o", "nothing", cwd=tmp_path).split()
    assert shown[0] == "cc"
    assert {f"-I{prefix.resolve()}/include", "nothing.c", "-lmpi_abi"} <= set(shown)
    assert not list(tmp_path.iterdir())


def test_wrapper_takes_another_compiler(prefix):
    assert run(prefix / "bin" / "mpicc", "-cc=my-compiler", "-show").split()[0] == "my-compiler"
    assert run("env", "LIMOSA_CC=my-compiler", prefix / "bin" / "mpicc", "-showme:command") == "my-compiler"
    assert run("env", "LIMOSA_CXX=my-compiler", prefix / "bin" / "mpicxx", "-showme:command") == "my-compiler"


def test_wrapper_says_when_there_is_no_compiler(prefix):
    result = subprocess.run(
        [prefix / "bin" / "mpicc", "-cc=no-such-compiler", "x.c"], text=True, capture_output=True, check=False
    )
    assert result.returncode == 127
    assert "no-such-compiler is not installed" in result.stderr


def test_wrapper_asked_for_the_compilers_version_does_not_link(prefix):
    assert run(prefix / "bin" / "mpicc", "--version") == run("cc", "--version")


def test_limosa_stays_right_where_another_package_has_replaced_its_files(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python, limosa = tmp_path / "env" / "bin" / "python", tmp_path / "env" / "bin" / "limosa"
    run(sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", "--no-index", wheel)
    (tmp_path / "hello.c").write_text(C_PROGRAM)
    run(limosa, "cc", "hello.c", "-o", "before", cwd=tmp_path)
    for name in ["bin/mpiexec", "bin/mpirun", "bin/mpicc", "include/mpi.h", "lib/libmpi_abi.so.1", "lib/libmpi_abi.so"]:
        (tmp_path / "env" / name).write_text("#error of another MPI library\n")
    run(limosa, "cc", "hello.c", "-o", "after", cwd=tmp_path)
    for program in ["before", "after"]:
        output = run(limosa, "run", "-n", 2, tmp_path / program)
        assert sorted(output.splitlines()) == ["rank 0 of 2, sum 1", "rank 1 of 2, sum 1"]


HELLO = "from mpi4py import MPI; print(MPI.Get_library_version().split()[0], MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)"


@pytest.mark.skipif(
    not os.environ.get("FULL"), reason="installs 50 MB from the package index: `make test-full` does it"
)
@pytest.mark.parametrize("ours_first", [True, False])
def test_beside_mpich_and_mpi4py_of_the_package_index(wheel, tmp_path, ours_first):
    """Whichever package was installed last, programs in C and Python run, until Limosa is removed."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python, limosa = tmp_path / "env" / "bin" / "python", tmp_path / "env" / "bin" / "limosa"
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", python]
    for package in ["ours", "theirs"] if ours_first else ["theirs", "ours"]:
        run(*pip, "install", *(["--no-deps", wheel] if package == "ours" else ["mpich", "mpi4py"]))
    (tmp_path / "hello.c").write_text(C_PROGRAM)
    run(limosa, "cc", "hello.c", "-o", "hello", cwd=tmp_path)
    assert sorted(run(limosa, "run", "-n", 2, tmp_path / "hello").splitlines()) == [
        "rank 0 of 2, sum 1",
        "rank 1 of 2, sum 1",
    ]
    assert sorted(run(limosa, "run", "-n", 2, python, "-c", HELLO).splitlines()) == ["Limosa 0 2", "Limosa 1 2"]
    assert run(python, "-c", HELLO) == ("MPICH 0 1" if ours_first else "Limosa 0 1")
    clean = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    doctor = subprocess.run(
        [limosa, "doctor"], capture_output=True, text=True, timeout=120 * PATIENCE, check=False, env=clean
    )
    replaced = "are not Limosa's any more, but those of the package mpich"
    assert (replaced in doctor.stdout) == ours_first, doctor
    assert ("ok   mpi4py: that of" in doctor.stdout) != ours_first, doctor
    run(*pip, "uninstall", "--yes", "mpi4py")
    assert run(python, "-c", "import importlib.util; print(importlib.util.find_spec('mpi4py'))") == "None"
    run(*pip, "install", "mpi4py")
    run(*pip, "uninstall", "--yes", "limosa")
    run(*pip, "install", "--force-reinstall", "mpich")
    assert run(python, "-c", HELLO) == "MPICH 0 1"


def dist_info(prefix):
    (folder,) = prefix.glob("lib/python*/site-packages/limosa-*.dist-info")
    return folder


def test_holds_no_file_twice(wheel):
    """Wheels hold no links. Only the library itself is in a second folder, in which no other package replaces it."""
    same = {}
    with zipfile.ZipFile(wheel) as files:
        for file in files.infolist():
            if file.file_size > 16 << 10:
                same.setdefault((file.CRC, file.file_size), []).append(file.filename.rpartition(".data/data/")[2])
    twice = sorted(sorted(names) for names in same.values() if len(names) > 1)
    assert twice == [["lib/libmpi_abi.so.1", "lib/limosa/libmpi_abi.so.1"]]


def test_binaries_are_stripped(prefix):
    checked = []
    for file in prefix.rglob("*"):
        if file.is_symlink() or not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
            continue
        sections = run("readelf", "--sections", "--wide", file)
        # `.debug_gdb_scripts`, 34 bytes, belongs to what a program loads.
        assert not re.search(r" \.(symtab|debug_(?!gdb_scripts))", sections), file
        checked.append(file.name)
    assert {"limosa", "libmpi_abi.so.1", "libmpi.so.12", "libmpi_abi_fortran.so", "_fast_path.abi3.so"} <= {*checked}


def test_carries_its_licences(prefix):
    told = email.message_from_bytes((dist_info(prefix) / "METADATA").read_bytes())
    assert (told["License-Expression"], told["Author"]) == ("BSD-3-Clause", "The Limosa authors")
    texts = {name: (dist_info(prefix) / "licenses" / name).read_text() for name in told.get_all("License-File")}
    assert texts.keys() == {"LICENSE", "NOTICES"}
    bill = json.loads((dist_info(prefix) / "sboms" / "limosa.cdx.json").read_text())
    crates = {part["name"]: part["version"] for part in bill["components"] if part["purl"].startswith("pkg:cargo/")}
    assert {"rustix", "libc", "clap", "parking_lot"} <= crates.keys()
    notices = " ".join(texts["NOTICES"].split())
    assert [name for name, version in crates.items() if f"{name} {version}" not in notices] == []


def test_its_description_holds_outside_the_repository(prefix):
    told = email.message_from_bytes((dist_info(prefix) / "METADATA").read_bytes())
    text = told.get_payload(decode=True).decode()
    assert text.startswith("# Limosa\n") and "docs/hosts.md" in text
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", text) == []
    assert all(target.startswith("https://") for target in re.findall(r"!\[[^]]*\]\(([^)]*)\)", text))


def test_no_command_lacks_a_package_after_a_plain_installation(wheel, c_program, tmp_path):
    """What needs an extra names it."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python, limosa = tmp_path / "env" / "bin" / "python", tmp_path / "env" / "bin" / "limosa"
    run(sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", "--no-index", wheel)
    # What `pip install limosa` would bring from the package index is linked from this environment.
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    todo, brought = ["limosa"], set()
    while todo:
        for line in metadata.requires(todo.pop()) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo += {requirement.name} - brought
                brought.add(requirement.name)
    for name in brought:
        for top in {file.parts[0] for file in metadata.files(name) or [] if file.parts[0] != ".."}:
            if not (site / top).exists():
                (site / top).symlink_to(metadata.distribution(name).locate_file(top))
    assert not (site / "matplotlib").exists()

    def answer(*words):
        env = {"PATH": f"{limosa.parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
        command = [str(limosa), *map(str, words)]
        done = subprocess.run(
            command, env=env, cwd=tmp_path, text=True, input="", capture_output=True, timeout=120 * PATIENCE
        )
        assert "Traceback" not in done.stderr and "ModuleNotFoundError" not in done.stderr, done.stderr
        return done

    told = answer("run", "--profile=profile", "-n", 2, c_program)
    assert (told.returncode, "MPI_Allreduce" in told.stderr) == (0, True), told.stderr
    for words in [["profile", "profile"], ["status"], ["env"], ["ps"], ["shell", "-n", "1"], ["run", "--mpi", "list"]]:
        told = answer(*words)
        assert told.returncode == 0, (words, told.stderr)
    for words in [["submit", "--on=local", "--wait", "true"], ["log"], ["cancel", "1"], ["stack"], ["messages", "."]]:
        assert "pip install" not in answer(*words).stderr, words
    assert answer("new", "python", "first").returncode == 0
    assert answer("run", "-n", 2, "first/first.py").stdout.endswith("by 2 ranks, is 3.14159\n")
    (tmp_path / "old.py").write_text("print 1\n")
    for words, extra in [
        (["bench", "--list"], "limosa[lab]"),
        (["model", "--quick"], "limosa[lab]"),
        (["predict", "bcast"], "limosa[lab]"),
        (["report"], "limosa[lab]"),
        (["study", "thesis"], "limosa[lab]"),
        (["tune"], "limosa[lab]"),
        (["modernize", "old.py"], "limosa[modernize]"),
    ]:
        told = answer(*words)
        assert told.returncode != 0 and extra in told.stderr, (words, told)
