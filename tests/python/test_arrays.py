"""Distributed arrays: random operations against NumPy, and what is said about wrong ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import LIMOSA, Job

PROGRAM = Path(__file__).parent / "programs" / "arrays.py"
STANDARD = PROGRAM.with_name("array_standard.py")
VECTORS = PROGRAM.with_name("array_vectors.py")
ORACLE = Path(__file__).parents[1] / "arrays" / "vectors.py"
GUIDE = Path(__file__).parents[2] / "docs" / "arrays.md"


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.on_mpich(n=2)
def test_arrays_have_the_elements_of_numpys(engine, n):
    assert f"cases went well on {n} ranks" in engine.run(PROGRAM, 90, 9000 * n, n=n, limit=120).out


@pytest.mark.parametrize("n", [3, 4, 6])
def test_arrays_on_more_ranks_than_processors_have_the_elements_of_numpys(n):
    """On Limosa alone: the other library's processes wait by polling, which takes minutes."""
    cases = 90 if n == 3 else 45
    short_rounds = [64] if n % 3 == 0 else []
    command = [LIMOSA, "run", "-n", n, sys.executable, PROGRAM, cases, 9000 * n, *short_rounds]
    outcome = Job([str(word) for word in command]).wait(120)
    assert f"cases went well on {n} ranks" in outcome.out, outcome.text


def test_arrays_on_several_hosts_have_the_elements_of_numpys(engine):
    outcome = engine.run(PROGRAM, 45, 7, n=4, env={"LIMOSA_HOSTS": "2"}, limit=120)
    assert "cases went well on 4 ranks" in outcome.out


def test_the_test_vectors_are_what_their_oracle_gives():
    assert subprocess.run([sys.executable, ORACLE, "--check"]).returncode == 0


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.on_mpich(n=3)
def test_arrays_agree_with_the_test_vectors(engine, n):
    assert "the vectors agree" in engine.run(VECTORS, n=n, limit=120).out


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.on_mpich(n=2)
def test_arrays_agree_with_the_reference_of_the_array_api_standard(engine, n):
    examples = {1: 30, 2: 12, 3: 8, 4: 6}[n]
    assert "tests agree with array-api-strict" in engine.run(STANDARD, examples, n=n, limit=150).out


def test_what_is_missing_of_the_standard_is_on_the_page_and_told(engine):
    rows = re.findall(r"^\| (`from_dlpack`.*?) \| .* \|$", GUIDE.read_text(), re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    engine.code(
        f"""
        import array_api_strict as xp, limosa.arrays as la
        from limosa.arrays._namespace import MISSING

        assert set(MISSING) == {documented!r}, set(MISSING) ^ {documented!r}
        for name in MISSING:
            home = la.linalg if name.startswith("linalg.") else la
            try:
                getattr(home, name.split(".")[-1])(la.ones((2, 2)))
            except NotImplementedError as error:
                assert "hint: " in str(error), error
            else:
                raise AssertionError(name)

        for path, theirs, ours in (("", xp, la), ("linalg.", xp.linalg, la.linalg), ("fft.", xp.fft, la.fft)):
            for name in theirs.__all__:
                known = name in ours.__all__ or path + name in MISSING or "strict_flags" in name
                assert known or name in ("Device", "ArrayAPIStrictFlags") or name[0] == "_", path + name
        """,
        n=1,
    )


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
    "la.zeros(4)[[0, 4]]": "IndexError: index 4 is out of range for axis 0 of length 4",
    "la.zeros(4)['a']": "IndexError: str as index of a distributed array; hint: integers, slices",
    "la.zeros(4)[la.ones(5, bool)]": "IndexError: the mask has the shape (5,), but the array the shape (4,)",
    "la.zeros((4, 4))[la.ones(4, bool), 0]": "IndexError: a mask can be the only index",
    "la.zeros((4, 4, 4))[[0, 1], 0]": "NotImplementedError: arrays of indices together with slices and integers",
    "la.linalg.svd(la.zeros(4))": "ValueError: svd takes a matrix, which has two axes; this array has the shape (4,)",
    "la.linalg.inv(la.zeros((4, 3)))": "ValueError: inv takes a square matrix; this array has the shape (4, 3)",
    "la.linalg.inv(la.zeros((4, 4)))": "LinAlgError: Singular matrix",
    "la.linalg.inv(la.zeros((2, 4, 4)))": "LinAlgError: Singular matrix",
    "la.linalg.solve(la.eye(4), la.zeros(3))": "ValueError: solve: the right hand sides have the shape (3,)",
    "la.linalg.cholesky(-la.eye(200))": "LinAlgError: Matrix is not positive definite",
    "la.linalg.eigvals(la.full((2, 2), np.nan))": "LinAlgError: Array must not contain infs or NaNs",
    "la.linalg.eigh(la.zeros((10000, 10000)))": "ValueError: eigh of a matrix of the shape (10000, 10000): it is comp",
    "la.linalg.qr(la.eye(4), mode='r')": "ValueError: qr: the mode is 'r'; hint: 'reduced' or 'complete'",
    "la.linalg.cross(la.zeros(4), la.zeros(4))": "ValueError: cross takes vectors of 3 elements",
    "la.linalg.matrix_norm(la.eye(4), ord=3)": "ValueError: 3 is no norm of matrices; hint: 'fro', 'nuc'",
    "la.no_such_function": "AttributeError: there is no limosa.arrays.no_such_function",
    "np.from_dlpack(la.zeros(4))": "BufferError: the elements of a distributed array are on many ranks; hint: x.local",
    "la.zeros(4).__array_namespace__(api_version='2020.01')": "ValueError: there is no version '2020.01'",
    "la.zeros(4).__setitem__(slice(2), [1, 2, 3])": "ValueError: an array of the shape (3,) does not fit into a part",
    "float(la.zeros(4))": "TypeError: only an array of one element becomes a float",
    "la.max(la.zeros(0))": "ValueError: max of no elements",
    "np.linalg.multi_dot([la.eye(4), la.eye(4)])": "TypeError: numpy.multi_dot does not work on distributed arrays",
    "np.add.accumulate(la.zeros(4))": "TypeError: numpy.add.accumulate does not work on distributed arrays",
    "np.add(la.zeros(4), 1, out=np.zeros(4))": "TypeError: out= is a ndarray, but the operands are distributed",
    "la.zeros(4).agg(2)": "ValueError: there is no rank 2: the communicator has 2 ranks, from 0",
    "la.reshape(la.zeros(4), (3, 2))": "ValueError: 4 elements of the shape (4,) do not fit into the shape (3, 2)",
    "la.load('no-such-file.npy')": "NoSuchFileError",
    "la.memmap('no-such-file.npy')": "FileNotFoundError: 'no-such-file.npy' on rank 0",
    "la.memmap('/dev/null')": "ValueError: '/dev/null' on rank 0",
    "la.memmap('/no/x', 'w+', shape=(2, 2), dtype=float)": "FileNotFoundError: '/no/x' on rank 0: [Errno 2]",
    "la.memmap('x', offset=0)": "ValueError: raw elements and new files need shape= and dtype=",
    "la.memmap('x', 'w')": "ValueError: mode is 'w'; hint: 'r', 'r+', 'c' or 'w+'",
    "la.memmap('x', map=la.Map(2, 3))": "ValueError: the parts of Map((2,), (3,)) are not slices of the array",
    "la.load_hdf5('no-such-file.h5', 'x')": "FileNotFoundError: 'no-such-file.h5' on rank 0",
    "la.save_hdf5('/no/x.h5', 'x', la.zeros(4))": "FileNotFoundError: '/no/x.h5' on rank 0",
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


MISMATCHED = {
    "la.zeros((4 + rank, 4)).agg_all()": "rank 0: agg_all: an array of the shape (4, 4), float64, Map((2, 1)), rank 1: "
    "agg_all: an array of the shape (5, 4)",
    "la.zeros((4, 4), map=[la.Map((2, 1)), la.Map((1, 2))][rank]).agg()": "float64, Map((1, 2))",
    "la.zeros(4, [float, 'float32'][rank]).agg()": "rank 1: agg to rank 0: an array of the shape (4,), float32",
    "la.zeros(4).agg(rank)": "rank 1: agg to rank 1: an array",
    "la.zeros((4, 4)).remap([la.Map((1, 2)), la.Map((2, 1), 'cyclic')][rank])": "rank 1: remap to Map((2, 1), (",
    "la.zeros((4, 4)).sum(axis=rank)": "rank 1: reduction of (4, 4) along axes (1,)",
    "la.zeros((4, 4))[rank]": "rank 1: x[1, 0:4:1]: an array of the shape",
    "la.zeros((4, 4)).reshape((8, 2) if rank else (2, 8))": "rank 1: reshape to (8, 2)",
    "la.zeros((4, 4)).agg_all() if rank else la.zeros(4, map=la.Map(2, overlap=1)).synch()": "rank 0: synch",
    "la.zeros((4, 4)).agg_all() if rank else limosa.world.barrier()": "the ranks called different things",
    "la.fft.fft(la.zeros((4, 4)), axis=rank)": "rank 1: fft (n=None, norm='backward') along axis 1",
    "la.sort(la.zeros((4, 4)), axis=rank)": "rank 1: sort (descending=False) along axis 1",
    "la.sort(la.zeros(4 + rank))": "rank 1: sort of an array of the shape (5,)",
    "la.cumulative_sum(la.zeros(4 + rank))": "rank 1: cumulative_sum of an array of the shape (5,)",
    "la.take(la.zeros((4, 4)), [0, 1 + rank], axis=0)": "rank 1: take of 2 indices",
    "la.nonzero(la.zeros(4)) if rank else la.sort(la.zeros(4))": "the ranks called different things",
    "la.save(f'/no/{rank}.npy', la.zeros(4)) if rank else la.zeros(4).agg()": "the ranks called different things",
    "la.zeros((4, 4)) @ la.zeros((4, 4 + rank))": "rank 1: matmul (4, 4) @ (4, 5)",
}


def test_ranks_that_do_different_things_are_told_so_and_the_program_goes_on(engine):
    program = f"""
import limosa, limosa.arrays as la
rank = limosa.world.rank
for wrong, expected in {MISMATCHED!r}.items():
    told = "nothing"
    try:
        eval(wrong)
    except limosa.errors.MismatchError as error:
        told = str(error)
    assert expected in told, (wrong, told)
    assert float(la.sum(la.ones(10))) == 10
"""
    engine.code(program, n=2)


def test_with_the_check_of_all_calls_also_those_that_move_nothing_are_compared(engine):
    engine.code(
        """
        import limosa, limosa.arrays as la
        rank = limosa.world.rank
        for wrong in ("la.zeros((4, 4 + rank)) + 1", "la.sin(la.zeros(4)) if rank else la.cos(la.zeros(4))"):
            try:
                eval(wrong)
            except limosa.errors.MismatchError as error:
                assert "rank 0: " in str(error) and "rank 1: " in str(error)
            else:
                raise AssertionError(wrong)
        """,
        env={"LIMOSA_CHECK": "1"},
    )


def test_the_memory_of_arrays_is_not_kept(engine):
    engine.code(
        """
        import gc, weakref
        import limosa, limosa.arrays as la

        def operate(x, y):
            z = x + y
            z = la.sum(z @ z.T, axis=0) + la.sum(x)
            x[1:3] = y[:2]
            la.sort(x[x > 0.5])
            la.take(y, [0, 1], axis=1).reshape(-1).agg_all()
            la.fft.fft(x, axis=0)
            x.synch()

        x = la.random.uniform((8, 8), map=la.Map((2, 1), overlap=(1, 0)))
        y = la.random.uniform((8, 8), map=la.Map((1, 2), "cyclic"))
        operate(x, y)
        kept = [weakref.ref(x.local), weakref.ref(y.local)]
        del x, y
        gc.collect()
        assert [each() for each in kept] == [None, None]
        """
    )


def test_objects_are_refused(engine):
    engine.code(
        """
        import limosa.arrays as la
        try:
            la.asarray([{}, {}]).agg()
        except TypeError as error:
            assert "elements of the type object cannot be moved" in str(error)
        else:
            raise AssertionError
        """
    )


def test_the_picture_of_a_map_has_each_rank_where_it_is(engine):
    engine.code(
        """
        import matplotlib
        matplotlib.use("Agg")
        import limosa, limosa.arrays as la

        def seen(map, shape):
            axes = la.plot_map(map, shape)
            axes.figure.canvas.draw()
            return {(text.get_position()[::-1], text.get_text()) for text in axes.texts}, axes

        texts, axes = seen(la.Map((2, 2)), (4, 6))
        assert texts == {((0.5, 1), "0"), ((0.5, 4), "1"), ((2.5, 1), "2"), ((2.5, 4), "3")}, texts
        texts, axes = seen(la.Map(2, 2, ranks=[3, 1]), (7,))
        assert texts == {((0, 0.5), "3"), ((0, 2.5), "1"), ((0, 4.5), "3"), ((0, 6), "1")}, texts
        texts, axes = seen(la.Map((1, 2), overlap=(0, 2)), (3, 8))
        hatched = [patch.get_bbox().bounds for patch in axes.patches if patch.get_hatch()]
        assert hatched == [(3.5, -0.5, 2.0, 3.0)], hatched
        try:
            la.plot_map(la.Map((2, 2)), (0, 4))
        except ValueError as error:
            assert "nothing to draw" in str(error)
        else:
            raise AssertionError
        """,
        n=4,
    )
