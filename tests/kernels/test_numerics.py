"""The numerics of the kernels, without communication, against slow and obvious ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cg import poisson
from common.comm import faces
from common.decomposition import Block, grid, share, view
from inner import inner
from mandelbrot import escape
from micro.micro import sizes
from wave3d import stencil

sizes_and_counts = st.tuples(st.integers(1, 24), st.integers(1, 24)).filter(
    lambda pair: max(grid(pair[1], 3)) <= pair[0]
)


def test_grids_have_the_least_surface():
    assert [grid(count, 3) for count in (1, 2, 4, 8, 12, 64, 7)] == [
        (1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (4, 4, 4), (7, 1, 1),
    ]  # fmt: skip
    assert grid(6, 2) == (3, 2)


@given(st.integers(1, 1000), st.integers(1, 50))
def test_shares_cover_everything_once_and_differ_by_one_at_most(n, parts):
    ranges = [share(n, parts, part) for part in range(parts)]
    assert [place for first, last in ranges for place in range(first, last)] == list(range(n))
    assert max(last - first for first, last in ranges) - min(last - first for first, last in ranges) <= 1


@given(sizes_and_counts)
@settings(max_examples=40)
def test_blocks_cover_the_mesh_once_and_inner_and_shell_each_block(pair):
    n, count = pair
    mesh = np.zeros((n,) * 3, int)
    for rank in range(count):
        block = Block.of(n, 3, rank, count)
        mesh[tuple(slice(first, first + points) for first, points in zip(block.start, block.shape))] += 1
        own = np.zeros(block.padded, int)
        inner_box, shell = block.inner_and_shell()
        for box in (inner_box, *shell):
            view(own, box)[:] += 1
        assert (view(own, block.whole) == 1).all()
        # What the inner box reads are its points and those beside them: no ghost layer that a neighbour fills.
        for axis, neighbours in enumerate(block.neighbours):
            first, last = inner_box[axis]
            assert last <= first or neighbours[0] is None or first > 0
            assert last <= first or neighbours[1] is None or last < block.shape[axis]
    assert (mesh == 1).all()


@given(sizes_and_counts)
@settings(max_examples=40)
def test_what_one_block_sends_its_neighbour_expects(pair):
    n, count = pair
    sent = {}
    expected = {}
    for rank in range(count):
        for face in faces(Block.of(n, 3, rank, count)):
            sent[rank, face.partner, face.send_tag] = face.shape
            expected[face.partner, rank, face.receive_tag] = face.shape
    assert sent == expected


def test_too_many_processes_are_refused():
    with pytest.raises(ValueError, match=r"5 processes \(5 x 1 x 1\) are too many for 3 points"):
        Block.of(3, 3, 0, 5)


@pytest.mark.parametrize("name", list(stencil.STEPS))
def test_steps_agree_with_plain_loops(name):
    block = Block.of(7, 3, 1, 4)
    rng = np.random.default_rng(1)
    now, before = rng.normal(size=(2, *block.padded))
    box = ((1, block.shape[0]), (0, block.shape[1] - 1), (2, 5))
    expected = before.copy()
    for place in np.ndindex(*(last - first for first, last in box)):
        i, j, k = (first + 1 + at for (first, _), at in zip(box, place))
        around = (
            now[i - 1, j, k]
            + now[i + 1, j, k]
            + now[i, j - 1, k]
            + now[i, j + 1, k]
            + now[i, j, k - 1]
            + now[i, j, k + 1]
        )
        expected[i, j, k] = 2 * now[i, j, k] - before[i, j, k] + 0.25 * (around - 6 * now[i, j, k])
    stencil.STEPS[name]()(now, before, 0.25, box)
    np.testing.assert_allclose(before, expected, rtol=0, atol=1e-14)


def test_the_matrix_is_that_of_the_five_point_star():
    n = 5
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    whole = np.kron(line, np.eye(n)) + np.kron(np.eye(n), line)
    alone = Block.of(n, 2, 0, 1)
    own = np.arange(np.prod(alone.padded)).reshape(alone.padded)[1:-1, 1:-1].ravel()
    assert (poisson.matrix(alone).toarray()[:, own] == whole).all()
    np.testing.assert_allclose(whole @ poisson.exact(alone), poisson.right_side(alone), atol=1e-15)


@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_blocks_of_the_matrix_are_its_rows(count):
    n = 6
    u = np.random.default_rng(2).normal(size=(n + 2, n + 2))
    u[[0, -1]] = u[:, [0, -1]] = 0
    expected = 4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:]
    for rank in range(count):
        block = Block.of(n, 2, rank, count)
        (i, j), (di, dj) = block.start, block.shape
        padded = u[i : i + di + 2, j : j + dj + 2]
        result = poisson.matrix(block) @ padded.ravel()
        np.testing.assert_allclose(result, expected[i : i + di, j : j + dj].ravel(), atol=1e-14)


def test_the_mandelbrot_set_is_that_of_the_definition():
    n, limit = 40, 60
    picture = escape.columns(n, 0, n, limit)
    for column, row in np.ndindex(n, n):
        c = complex(escape.LEFT + escape.WIDTH / (n - 1) * column, escape.BOTTOM + escape.WIDTH / (n - 1) * row)
        z, count = c, 1
        while count < limit and abs(z) <= 2:
            z, count = z * z + c, count + 1
        assert picture[column, row] == count, (column, row)
    assert (picture == picture[:, ::-1]).all()
    np.testing.assert_array_equal(picture[7:9], escape.columns(n, 7, 9, limit))


def test_the_inner_product_is_exact():
    assert np.inner(*inner.vectors(0, 5000)) == inner.exact(5000)


def test_sizes_of_messages_end_with_the_largest():
    assert sizes(8, 1 << 23, 2) == [1 << k for k in range(3, 24)]
    assert sizes(8, 100, 8) == [8, 64, 100]
    assert sizes(8, 8, 2) == [8]
