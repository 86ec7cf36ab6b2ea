"""`python -m limosa.install_mpi4py` in environments without pip, with a cache that cannot be written, and offline.

And what is said where mpi4py is missing, or is that of the package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import limosa
import pytest


@pytest.fixture
def environment(tmp_path):
    """The Python of a new environment that has Limosa but no pip, as uv makes them."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=600)
    packages = next(folder.glob("lib/python*/site-packages"))
    ours = distribution("limosa")
    (packages / "limosa").symlink_to(Path(limosa.__file__).parent)
    for file in ours.files or []:
        there = Path(os.path.normpath(packages / file))
        if there.is_relative_to(folder) and not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.symlink_to(Path(str(file.locate())).resolve())
    return folder / "bin" / "python"


def run(python: Path, *arguments: str, code: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command; `code` is executed before it."""
    program = f"{code}\nimport runpy\nrunpy.run_module('limosa.install_mpi4py', {{}}, '__main__')"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    return subprocess.run(
        [python, "-c", program, *arguments],
        env={**kept, "PIP_NO_INDEX": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_an_environment_without_pip_gets_mpi4py(environment):
    assert subprocess.run([environment, "-m", "pip"], capture_output=True, check=False).returncode != 0
    outcome = run(environment)
    assert outcome.returncode == 0, outcome.stderr
    assert "uses Limosa" in outcome.stdout
    subprocess.run([environment, "-c", "import mpi4py.MPI"], check=True, timeout=300)


def test_without_any_pip_it_says_where_to_get_one(environment, tmp_path):
    code = (
        "import importlib.util as util; find = util.find_spec; "
        "util.find_spec = lambda name, *more: None if name in ('pip', 'ensurepip') else find(name, *more)"
    )
    outcome = run(environment, code=code, PATH=str(tmp_path))
    assert outcome.returncode == 1
    assert (
        "has no pip" in outcome.stderr and "uv pip install pip" in outcome.stderr and "Traceback" not in outcome.stderr
    )


def test_offline_it_says_what_to_copy_where(environment, tmp_path):
    outcome = run(environment, "--version", "4.1.2.dev7", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert outcome.returncode == 1
    folder = tmp_path / "cache" / "limosa" / "mpi4py" / "4.1.2.dev7"
    assert "copy mpi4py-4.1.2.dev7.tar.gz (from a machine" in outcome.stderr and f"to {folder}" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_a_cache_that_cannot_be_written_is_replaced(environment, tmp_path):
    (tmp_path / "file").write_text("no folder")
    source = tmp_path / "mpi4py-4.1.2.tar.gz"
    source.write_bytes(b"no archive")
    outcome = run(environment, XDG_CACHE_HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert outcome.returncode == 1 and "Traceback" not in outcome.stderr
    assert f"the cache {tmp_path / 'file'}" in outcome.stderr and "set XDG_CACHE_HOME" in outcome.stderr
    assert "copy mpi4py-4.1.2.tar.gz" in outcome.stderr, "it went on, and found that it is offline"


LIMOSA = Path(sys.executable).parent / "limosa"
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
