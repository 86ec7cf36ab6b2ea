"""The environment of all tests and of the jobs that they start, and what several folders need."""

import os
import sys

import pytest

# Ranks are processes. The threads of OpenBLAS, one for each processor in every rank, would wait by polling.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def mpich():
    """MPICH, another library with the ABI, from PyPI."""
    from limosa_lab.errors import LabError
    from limosa_lab.libraries import Mpich

    try:
        return Mpich.install(lambda text: print(text, file=sys.stderr))
    except LabError as error:
        pytest.skip(f"{error}; hint: {error.hint}")
