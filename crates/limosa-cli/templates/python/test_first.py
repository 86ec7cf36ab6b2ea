"""The test of first.py: `python -m pytest` starts a job of 3 ranks for it. Needs pytest (pip install pytest)."""

import math

import pytest
from first import circle_area


@pytest.mark.mpi(n=3)
def test_area_is_pi():
    assert math.isclose(circle_area(10_000), math.pi, abs_tol=1e-5)
