"""Fixtures of the tests for Fortran."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fortran_programs import Fortran


@pytest.fixture(scope="session")
def mpi_table() -> dict:
    """The table of MPI."""
    return json.loads((Path(__file__).parents[2] / "api" / "mpi5.json").read_text())


@pytest.fixture(scope="session")
def gfortran() -> None:
    """A compiler; without one, these tests are reported as not run."""
    if shutil.which("gfortran") is None:
        pytest.skip("not run: gfortran is not installed; on Debian:  sudo apt-get install gfortran")


@pytest.fixture(scope="session")
def fortran(gfortran, tmp_path_factory) -> Fortran:
    """The compiler, with a folder for all tests."""
    return Fortran(tmp_path_factory.mktemp("fortran"))
