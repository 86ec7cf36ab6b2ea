"""Programs of others, from the package index, as they are: `make test-full` runs them.

What else was tried, and what it showed, is in docs/programs.md.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not os.environ.get("FULL"), reason="installs 100 MB from the package index: `make test-full` does it"
)

DASK = """
from dask_mpi import initialize

initialize(interface="lo", nthreads=1, dashboard=False)

import dask.array as da
from distributed import Client

with Client() as client:
    client.wait_for_workers(2)
    x = da.arange(4_000_000, chunks=250_000, dtype="float64")
    print("sum", (x + x[::-1]).sum().compute(), "on", len(client.scheduler_info()["workers"]))
"""

FFT = """
import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

whole = np.random.default_rng(5).standard_normal((12, 14, 10))
for grid in [(-1,), (-1, -1, 1)]:
    fft = PFFT(MPI.COMM_WORLD, whole.shape, axes=(0, 1, 2), dtype=float, grid=grid)
    u = newDistArray(fft, False)
    u[:] = whole[u.local_slice()]
    transformed = fft.forward(u, newDistArray(fft, True))
    expected = np.fft.rfftn(whole)[transformed.local_slice()] / whole.size
    assert np.allclose(transformed, expected), MPI.COMM_WORLD.rank
    back = fft.backward(transformed, newDistArray(fft, False))
    assert np.allclose(back, u), MPI.COMM_WORLD.rank
print("transformed")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with Limosa and mpi4py."""
    folder = tmp_path_factory.mktemp("programs")
    venv.create(folder, with_pip=False, symlinks=True)
    ours = sorted((ROOT / ".venv" / "wheel").glob("limosa-*.whl"))
    assert ours, "no wheel in .venv/wheel; run this through `make test-python`"
    install(folder, f"{ours[-1]}[mpi4py]")
    return folder


def run(*command):
    """Run a command; give its output."""
    path = {"PATH": f"{Path(command[0]).parent}:/usr/local/bin:/usr/bin:/bin"}
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LIMOSA_", "LD_", "PYTHON"))}
    words = [str(word) for word in command]
    result = subprocess.run(words, env=env | path, text=True, capture_output=True, timeout=1200, check=False)
    assert result.returncode == 0, f"{' '.join(words)}: exit code {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout.strip()


def install(environment, *what):
    run(sys.executable, "-m", "pip", "--quiet", "--python", environment / "bin" / "python", "install", *what)


def test_dask_mpi(environment, tmp_path):
    install(environment, "dask-mpi", "dask[array]", "distributed")
    (tmp_path / "program.py").write_text(DASK)
    python = environment / "bin" / "python"
    output = run(environment / "bin" / "limosa", "run", "-n", 4, "-wdir", tmp_path, python, tmp_path / "program.py")
    # Rank 0 is the scheduler, rank 1 runs the program, the others work.
    assert output.splitlines() == ["sum 15999996000000.0 on 2"]


@pytest.mark.skipif(
    not Path("/usr/include/fftw3.h").exists(), reason="needs FFTW's header: apt-get install libfftw3-dev"
)
@pytest.mark.parametrize("ranks", [1, 4])
def test_mpi4py_fft(environment, tmp_path, ranks):
    install(environment, "numpy", "cython", "setuptools<81", "wheel")
    install(environment, "--no-build-isolation", "--no-deps", "mpi4py-fft")
    (tmp_path / "program.py").write_text(FFT)
    python = environment / "bin" / "python"
    output = run(environment / "bin" / "limosa", "run", "-n", ranks, python, tmp_path / "program.py")
    assert output.splitlines() == ["transformed"] * ranks
