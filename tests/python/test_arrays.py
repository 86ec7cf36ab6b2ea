"""Distributed arrays: random operations against NumPy, and what is said about wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "arrays.py"
GUIDE = Path(__file__).parents[2] / "docs" / "arrays.md"


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_arrays_have_the_elements_of_numpys(engine, n):
    if n > 2 and engine.library.name != "limosa":
        n = 2  # the other library's processes wait by polling, which takes minutes when there are more than processors
    assert f"cases went well on {n} ranks" in engine.run(PROGRAM, 90, 9000 * n, n=n, limit=120).out


def test_the_programs_of_the_page_run(engine):
    programs = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(programs) >= 4
    for program in programs:
        outcome = engine.code(program, n=2)
        assert not outcome.err, outcome.err


WRONG = {
    "la.Map((2, 2))": "ValueError: the grid (2, 2) has 4 cells, but the communicator 2 ranks",
    "la.Map((2, 0))": "ValueError: the grid (2, 0) of a map must have positive integers; 0 is not one",
    "la.Map(2, 'rows')": "ValueError: 'rows' is no distribution; hint: 'block', 'cyclic', or the size of the blocks",
    "la.Map(2, 'cyclic', overlap=1)": "ValueError: axis 0 is dealt cyclically, and cannot have an overlap",
    "la.Map(2, ranks=[0, 5])": "ValueError: there is no rank 5: the communicator has 2 ranks, from 0",
    "la.Map(2, ranks=[1, 1])": "ValueError: rank 1 is 2 times in the map",
    "la.Map((1, 2), ['block'])": "ValueError: dist has 1 entries, but the grid 2 axes",
    "la.zeros((4, 4), map=la.Map(2))": "ValueError: the map has 1 axes, but the shape (4, 4) has 2",
    "la.zeros((4, 4)) + la.zeros((5, 4))": "ValueError: arrays of the shapes (4, 4), (5, 4) do not fit together",
    "la.zeros(4) @ la.zeros(5)": "ValueError: matrices of the shapes (4,) and (5,) cannot be multiplied",
    "la.zeros((4, 4)).put_local([1, 2, 3])": "has the shape (2, 4); given was one of shape (3,)",
    "la.zeros(4)[4]": "IndexError: index 4 is out of range for axis 0 of length 4",
    "la.zeros(4)[0, 1]": "IndexError: 2 indices for an array with 1 axes",
    "la.zeros(4)[[0, 1]]": "IndexError: list as index of a distributed array; hint: integers, slices",
    "la.zeros(4).__setitem__(slice(2), [1, 2, 3])": "ValueError: an array of the shape (3,) does not fit into a part",
    "float(la.zeros(4))": "TypeError: only an array of one element becomes a float",
    "la.max(la.zeros(0))": "ValueError: max of no elements",
    "np.linalg.svd(la.zeros((4, 4)))": "TypeError: numpy.svd does not work on distributed arrays; hint: x.local",
    "np.add.accumulate(la.zeros(4))": "TypeError: numpy.add.accumulate does not work on distributed arrays",
    "np.add(la.zeros(4), 1, out=np.zeros(4))": "TypeError: out= is a ndarray, but the operands are distributed",
    "la.reshape(la.zeros(4), (3, 2))": "ValueError: 4 elements of the shape (4,) do not fit into the shape (3, 2)",
    "la.load('no-such-file.npy')": "NoSuchFileError",
    "la.zeros(4) + la.zeros(4, map=la.Map(2, comm=limosa.world.dup()))": "the two arrays belong to different",
}


def test_wrong_use_is_told_on_every_rank_and_the_program_goes_on(engine):
    program = f"""
import limosa, numpy as np, limosa.arrays as la
for wrong, expected in {WRONG!r}.items():
    told = "nothing"
    try:
        eval(wrong)
    except Exception as error:
        told = f"{{type(error).__name__}}: {{error}}"
    assert expected in told, (wrong, told)
    assert float(la.sum(la.ones(10))) == 10
"""
    engine.code(program, n=2)
