"""mpi4py of the package index, to which Limosa brings the module for the standard ABI, and what is said without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import _limosa_mpi4py
import pytest
from limosa.install_mpi4py import REQUIREMENT
from packaging.requirements import Requirement

LIMOSA = Path(sys.executable).parent / "limosa"
EXT = ".abi3.so"
WHO = "import mpi4py.MPI as m; print(m.Get_library_version().split()[0], m.COMM_WORLD.size, m.__file__, flush=True)"

ONLY_STABLE = "import importlib.machinery as m; m.EXTENSION_SUFFIXES[:] = ['.abi3.so']\n"
INTERRUPTED = """
import os, signal, threading
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.rank == 0:
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        world.Recv(bytearray(1), source=1)
    except KeyboardInterrupt:
        print("interrupted in", MPI.__file__, flush=True)
world.Barrier()
"""


@pytest.fixture(scope="module")
def of_the_index(tmp_path_factory):
    """A folder that has mpi4py, as its wheel brings it, with a module for MPICH only."""
    folder = tmp_path_factory.mktemp("packages")
    theirs = Path(find_spec("mpi4py").submodule_search_locations[0])
    shutil.copytree(theirs, folder / "mpi4py", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (folder / "mpi4py" / f"MPI.mpich{EXT}").write_bytes(b"cannot be loaded")
    return folder


@pytest.fixture
def changed(of_the_index, tmp_path):
    """A copy of it that a test changes."""
    return shutil.copytree(of_the_index, tmp_path / "packages")


def run(*command: str | Path, packages: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose ranks see these packages first."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MPI4PY_", "LD_", "LIMOSA_"))}
    env |= {"PYTHONPATH": str(packages), **variables}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("command", [[LIMOSA, "run", "-n", "2", sys.executable], [sys.executable]])
def test_mpi4py_of_the_index_uses_limosa_with_and_without_the_launcher(of_the_index, command):
    done = run(*command, "-c", WHO, packages=of_the_index)
    size = 2 if LIMOSA in command else 1
    assert done.returncode == 0, done
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [["Limosa", str(size)]] * size, done
    assert "/limosa/_mpi4py." in done.stdout, done


def test_the_module_in_the_stable_abi_works_too(of_the_index):
    stable = Path(_limosa_mpi4py.__file__).parent / "limosa" / "_mpi4py.abi3.so"
    code = ONLY_STABLE + (
        "import mpi4py.MPI as m, mpi4py.util.pkl5 as p;"
        "assert p.Intracomm(m.COMM_WORLD).allgather(bytearray(9)) == [bytearray(9)] * 2; print(m.__file__, flush=True)"
    )
    done = run(LIMOSA, "run", "-n", "2", sys.executable, "-c", code, packages=of_the_index)
    assert (done.returncode, done.stdout) == (0, f"{stable}\n" * 2), done
    done = run(LIMOSA, "run", "-n", "2", sys.executable, "-c", ONLY_STABLE + INTERRUPTED, packages=of_the_index)
    assert (done.returncode, done.stdout) == (0, f"interrupted in {stable}\n"), done


def test_the_modules_look_for_the_library_in_the_environment_only():
    modules = list((Path(_limosa_mpi4py.__file__).parent / "limosa").glob("_mpi4py.*.so"))
    assert len(modules) == 2
    for module in modules:
        read = subprocess.run(["readelf", "-d", module], capture_output=True, text=True, check=True).stdout
        (path,) = [line.split("[")[1].rstrip("]") for line in read.splitlines() if "(RUNPATH)" in line]
        assert all(folder.startswith("$ORIGIN/") for folder in path.split(":")), path


@pytest.mark.parametrize("version", ["4.0.3", "4.2.0"])
def test_another_release_of_mpi4py_is_named_in_a_job(changed, version):
    file = changed / "mpi4py" / "__init__.py"
    file.write_text(file.read_text() + f"__version__ = '{version}'\n")
    (changed / "script.py").write_text(WHO)
    done = run(LIMOSA, "run", "-n", "2", changed / "script.py", packages=changed)
    assert done.returncode == 1, done
    assert f"Limosa has no module for mpi4py {version} of" in done.stderr and "it has one for mpi4py 4.1" in done.stderr
    assert "`python -m limosa.install_mpi4py` installs" in done.stderr, done


def test_a_module_beside_mpi4py_comes_first(changed):
    (changed / "mpi4py" / "MPI.py").write_text("own = True")
    done = run(LIMOSA, "run", sys.executable, "-c", "import mpi4py.MPI; mpi4py.MPI.own", packages=changed)
    assert done.returncode == 0, done


def test_a_module_for_the_standard_abi_of_mpi4pys_own_comes_first(changed):
    file = changed / "mpi4py" / "__init__.py"
    file.write_text(file.read_text() + "_mpiabi._register('mpi4py.MPI', 'mpiabi')\n")
    (changed / "mpi4py" / f"MPI.mpiabi{EXT}").write_bytes(b"mpi4py's own")
    library = str(Path(sys.prefix) / "lib" / "libmpi_abi.so.1")
    done = run(LIMOSA, "run", sys.executable, "-c", WHO, packages=changed, MPI4PY_LIBMPI=library)
    assert f"MPI.mpiabi{EXT}: " in done.stderr, done


def test_pytest_does_not_mind_what_python_has_imported_before(tmp_path):
    (tmp_path / "test_x.py").write_text("def test(): pass")
    done = run(sys.executable, "-m", "pytest", "-q", "-W", "error", tmp_path, packages=tmp_path)
    assert "1 passed" in done.stdout and "warning" not in done.stdout, done


def test_the_user_chooses_another_abi(of_the_index):
    done = run(LIMOSA, "run", sys.executable, "-c", WHO, packages=of_the_index, MPI4PY_MPIABI="mpich")
    assert done.returncode != 0 and f"MPI.mpich{EXT}: " in done.stderr, done


def test_the_releases_that_are_served_are_the_same_everywhere():
    following = _limosa_mpi4py.SERVED[:-1] + str(int(_limosa_mpi4py.SERVED[-1]) + 1)
    assert f"mpi4py>={_limosa_mpi4py.SERVED},<{following}" == REQUIREMENT
    extras = [Requirement(text) for text in requires("limosa") if text.startswith("mpi4py")]
    assert {requirement.specifier for requirement in extras} == {Requirement(REQUIREMENT).specifier}


FRONT_ENDS = {
    "mpi4py": ([LIMOSA, "run", "-n", "2"], "from mpi4py import MPI"),
    "limosa": ([LIMOSA, "run", "-n", "2"], "import limosa; limosa.world"),
    "limosa, alone": ([sys.executable], "import limosa; limosa.world"),
    **{name: ([sys.executable], f"import {name}") for name in ("pypar", "boostmpi", "boost.mpi")},
    "shell": ([LIMOSA, "shell", "-n", "2"], ""),
}
MISSING = {"__init__.py": "raise ModuleNotFoundError(\"No module named 'mpi4py'\", name='mpi4py')"}
OF_THE_INDEX = {"__init__.py": "from . import _mpiabi", "_mpiabi.py": "raise RuntimeError('cannot load MPI library')"}


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("mpi4py", [MISSING, OF_THE_INDEX], ids=["missing", "of the package index"])
def test_every_front_end_says_how_to_install_mpi4py(tmp_path, front_end, mpi4py):
    command, code = FRONT_ENDS[front_end]
    (tmp_path / "mpi4py").mkdir()
    for name, text in mpi4py.items():
        (tmp_path / "mpi4py" / name).write_text(text)
    (tmp_path / "script.py").write_text(code)
    done = subprocess.run(
        [*command, *([tmp_path / "script.py"] if code else [])],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert done.stderr.count("`python -m limosa.install_mpi4py` installs an mpi4py that works with Limosa") == 1, done
    assert "EOFError" not in done.stderr


def test_the_doctor_warns_of_a_python_without_mpi4py(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True, timeout=600)
    command = shutil.copy(LIMOSA, tmp_path / "bin" / "limosa")  # it asks the Python beside it
    said = subprocess.run([command, "doctor"], capture_output=True, text=True, timeout=300).stdout
    assert "warn mpi4py: " in said and "`python -m limosa.install_mpi4py` installs" in said, said
