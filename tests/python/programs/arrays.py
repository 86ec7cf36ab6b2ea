"""Random arrays, maps and operations: distributed arrays against NumPy, on every rank.

Arguments: the number of cases, the first seed, and the bytes that a rank sends in one round of a move (without it, as
many as in use). All ranks draw the same cases.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import limosa
import limosa.arrays as la
import numpy as np
from limosa.arrays import _move

world = limosa.world
rng = random.Random()


def any_map(ndim: int, *, overlap: bool = True) -> la.Map:
    """Draw a map for arrays of `ndim` axes."""
    if ndim == 0 or rng.random() < 0.1:
        return la.Map.replicated(ndim)
    left, grid = world.size, []
    for _ in range(ndim):
        grid.append(rng.choice([k for k in range(1, left + 1)]))
        left //= grid[-1]
    rng.shuffle(grid)
    dist = [rng.choice(["block", "block", "cyclic", rng.randint(1, 4)]) for _ in grid]
    width = [rng.randint(0, 2) if overlap and kind == "block" else 0 for kind in dist]
    ranks = rng.sample(range(world.size), int(np.prod(grid)))
    return la.Map(grid, dist, ranks=ranks, overlap=width, order=rng.choice("CF"))


def any_shape(ndim: int, least: int = 0) -> tuple[int, ...]:
    """Draw a shape."""
    return tuple(rng.choice([least, 1, 2, 3, 5, 8, 13]) for _ in range(ndim))


def any_array(shape: tuple[int, ...], kind: str = "if") -> tuple[la.Array, np.ndarray]:
    """Draw an array, distributed and whole."""
    values = np.random.default_rng(rng.randrange(1 << 30))
    whole = values.integers(-9, 10, shape) if rng.choice(kind) == "i" else values.normal(size=shape)
    return la.asarray(whole, map=any_map(len(shape))), whole


def same(found: object, expected: object, *, exact: bool = True) -> None:
    """Stop unless a distributed array has the elements of a NumPy array, overlaps included."""
    expected = np.asarray(expected)
    assert isinstance(found, la.Array), type(found)
    assert found.shape == expected.shape, (found, expected.shape)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    whole = found.agg_all()
    equal = np.array_equal(whole, expected, equal_nan=found.dtype.kind in "fc")
    assert equal or (not exact and np.allclose(whole, expected, rtol=1e-10, atol=1e-10, equal_nan=True)), (
        whole,
        expected,
    )
    beside = expected[np.ix_(*found.global_index())] if expected.ndim else expected
    if found.map.cell() is not None:
        assert np.allclose(found.local, beside, rtol=1e-10, atol=1e-10, equal_nan=True), (found, found.local, beside)


def any_key(shape: tuple[int, ...], *, new: bool = True) -> object:
    """Draw an index."""
    key: list[object] = []
    for length in shape[: rng.randint(0, len(shape))]:
        bound = [None, *range(-length - 1, length + 2)]
        key.append(
            rng.randrange(-length, length)
            if length and rng.random() < 0.3
            else slice(rng.choice(bound), rng.choice(bound), rng.choice([None, 1, 2, 3, -1, -2]))
        )
    if rng.random() < 0.3:
        key.insert(rng.randint(0, len(key)), None if new else Ellipsis)
    return key[0] if len(key) == 1 else tuple(key)


def move_around() -> None:
    shape = any_shape(rng.randint(0, 3))
    x, a = any_array(shape)
    same(x, a)
    y = x.remap(any_map(len(shape)))
    same(y, a)
    root = rng.randrange(world.size)
    whole = y.agg(root)
    assert (whole is None) == (world.rank != root)
    if whole is not None:
        assert np.array_equal(whole, a)
    x.local[...] = -1000
    x.owned[...] = 0
    x += a
    assert np.array_equal(x.agg_all(), a)
    x.owned[...] += 1
    if not x.map.everywhere:
        x.synch()
        same(x, a + 1)
        exchange = x.isynch()
        inner = x.owned[tuple(slice(width, None) for width in x.map.overlap)]  # what no other rank stores
        before = inner.copy()
        inner[...] = 7
        exchange.wait()
        inner[...] = before
        same(x, a + 1)


def index() -> None:
    shape = any_shape(rng.randint(0, 3))
    x, a = any_array(shape)
    key = any_key(shape)
    same(x[key], a[key])
    value, v = any_array(tuple(rng.choice([n, n, 1]) for n in a[key].shape)[rng.choice([0, 0, 1]) :])
    if x.dtype.kind == "i":
        value, v = value.astype(int), v.astype(int)
    kind = rng.randrange(3)
    x[key] = [value, v, 7][kind]
    a = a.copy()
    a[key] = [v, v, 7][kind]
    same(x, a)
    if a.size:
        count = rng.randint(0, 9)
        lists = [np.array([rng.randrange(-n, n) for _ in range(count)], int) for n in shape]
        dealt = tuple(la.asarray(each, map=any_map(1, overlap=False)) for each in lists)
        if shape:
            same(x[dealt], a[tuple(lists)])
            same(x[tuple(lists)], a[tuple(lists)])
            np.add.at(x, dealt, 3)
            np.add.at(x, tuple(lists), la.asarray(np.arange(count), x.dtype, map=any_map(1, overlap=False)))
            np.add.at(a, tuple(lists), 3)
            np.add.at(a, tuple(lists), np.arange(count).astype(a.dtype))
            same(x, a, exact=False)
            lines = np.array([rng.randrange(-shape[0], shape[0]) for _ in range(2)])
            x[lines] = 4
            a[lines] = 4
            same(x, a, exact=False)
    if shape:
        x[::-1] = x
        a = a[::-1].copy()
        same(x, a, exact=False)
    mask = la.asarray(a > 1, map=any_map(len(shape)))
    x[mask] = 5
    a[a > 1] = 5
    same(x, a)


def elementwise() -> None:
    shape = any_shape(rng.randint(0, 3))
    other = tuple(rng.choice([n, n, 1]) for n in shape)[rng.choice([0, 0, 1]) :]
    x, a = any_array(shape)
    y, b = any_array(other)
    for left, right in ((x, y), (x, b), (a, y), (y, x), (x, 3), (2.5, x)):
        one, two = (v.agg_all() if isinstance(v, la.Array) else v for v in (left, right))
        same(left + right, one + two)
        same(np.maximum(left, right), np.maximum(one, two))
        same(left < right, one < two)
    same(-x, -a)
    same(abs(x) ** 2, abs(a) ** 2)
    same(la.where(x > 0, x, y), np.where(a > 0, a, b))
    same(la.clip(x, -1, 2), np.clip(a, -1, 2))
    out = la.zeros(shape, x.dtype, map=any_map(len(shape)))
    assert np.multiply(x, 2, out=out) is out
    same(out, a * 2)
    x -= 1
    same(x, a - 1)
    for found, expected in zip(np.divmod(x, 3), np.divmod(a - 1, 3), strict=True):
        same(found, expected)


def reduce() -> None:
    ndim = rng.randint(0, 3)
    x, a = any_array(any_shape(ndim, least=rng.choice([0, 1])))
    axes = [None, *range(-ndim, ndim)] + ([tuple(rng.sample(range(ndim), 2))] if ndim > 1 else [])
    axis, keep = rng.choice(axes), rng.random() < 0.5
    for name in ("sum", "prod", "any", "all", "max", "min"):
        try:
            expected = getattr(np, name)(a, axis=axis, keepdims=keep)
        except ValueError:
            try:
                getattr(la, name)(x, axis=axis, keepdims=keep)
            except ValueError:
                continue
            raise AssertionError(name) from None
        same(getattr(la, name)(x, axis=axis, keepdims=keep), expected, exact=False)
        same(getattr(np, name)(x, axis=axis, keepdims=keep), expected, exact=False)
    if a.size:
        same(la.mean(x, axis=axis, keepdims=keep), np.mean(a, axis=axis, keepdims=keep), exact=False)
        same(x.var(axis=axis, keepdims=keep), np.var(a, axis=axis, keepdims=keep), exact=False)
        if not isinstance(axis, tuple):
            same(la.argmax(x, axis=axis, keepdims=keep), np.argmax(a, axis=axis, keepdims=keep))
            same(la.argmin(x, axis=axis, keepdims=keep), np.argmin(a, axis=axis, keepdims=keep))
    same(la.count_nonzero(x, axis=axis), np.count_nonzero(a, axis=axis))
    assert [value in x for value in (1, 99)] == [value in a for value in (1, 99)]


def shape_anew() -> None:
    ndim = rng.randint(1, 3)
    shape = any_shape(ndim)
    x, a = any_array(shape)
    order = rng.sample(range(ndim), ndim)
    same(la.permute_dims(x, order), a.transpose(order))
    same(x.T, a.T)
    same(la.reshape(x, (-1,)), a.reshape(-1))
    factors = [k for k in range(1, a.size + 1) if a.size % k == 0] or [1]
    k = rng.choice(factors)
    target = rng.choice([(k, -1), (a.size // k, k), (1, k, -1)]) if a.size else (0, 4)
    same(la.reshape(x, target), a.reshape(target))
    d = rng.randrange(ndim)
    same(la.flip(x, axis=d), np.flip(a, d))
    same(la.roll(x, rng.randint(-3, 20), axis=d), a) if not a.size else None
    shift = rng.randint(-20, 20)
    same(la.roll(x, shift, axis=d), np.roll(a, shift, d))
    same(la.roll(x, shift), np.roll(a, shift))
    y, b = any_array(shape)
    same(la.concat([x, y, x], axis=d), np.concatenate([a, b, a], d))
    same(la.stack([x, y], axis=d), np.stack([a, b], d))
    same(la.expand_dims(x, axis=d), np.expand_dims(a, d))
    same(la.squeeze(la.expand_dims(x, axis=d), d), a)
    same(la.repeat(x, 2, axis=d), np.repeat(a, 2, d))
    same(la.tile(x, (2,) * ndim), np.tile(a, (2,) * ndim))
    if a.shape[d]:
        chosen = [rng.randrange(-a.shape[d], a.shape[d]) for _ in range(rng.randint(0, 9))]
        same(la.take(x, chosen, axis=d), np.take(a, chosen, d))


def lines() -> None:
    ndim = rng.randint(1, 3)
    x, a = any_array(any_shape(ndim, least=1))
    d = rng.randrange(ndim)
    same(la.sort(x, axis=d), np.sort(a, d))
    same(la.sort(x, axis=d, descending=True), np.flip(np.sort(a, d), d))
    same(la.argsort(x, axis=d), np.argsort(a, d, stable=True))
    same(la.argsort(x, axis=d, descending=True), np.argsort(-a, d, stable=True))
    same(la.cumulative_sum(x, axis=d), np.cumsum(a, d), exact=False)
    same(la.diff(x, axis=d), np.diff(a, axis=d))
    same(la.fft.fft(x, axis=d), np.fft.fft(a, axis=d), exact=False)
    same(np.fft.ifft(x, axis=d), np.fft.ifft(a, axis=d), exact=False)
    same(la.fft.rfft(x, axis=d), np.fft.rfft(a, axis=d), exact=False)
    same(la.fft.fftn(x), np.fft.fftn(a), exact=False)


def multiply() -> None:
    n, k, m = (rng.choice([1, 2, 3, 5, 8]) for _ in range(3))
    x, a = any_array((n, k))
    y, b = any_array((k, m))
    u, c = any_array((k,))
    v, d = any_array((k,))
    same(x @ y, a @ b, exact=False)
    same(x @ b, a @ b, exact=False)
    same(a @ y, a @ b, exact=False)
    same(x @ u, a @ c, exact=False)
    same(u @ y, c @ b, exact=False)
    same(u @ v, c @ d, exact=False)
    p, e = any_array((2, n, k))
    same(la.matmul(p, y), e @ b, exact=False)
    same(la.tensordot(p, y, axes=1), np.tensordot(e, b, 1), exact=False)
    same(la.vecdot(u, v), np.vecdot(c, d), exact=False)


def make() -> None:
    shape = any_shape(rng.randint(0, 3))
    ndim = len(shape)
    seed = rng.randrange(1000)
    one, other = (la.random.uniform(shape, seed=seed, map=any_map(ndim)) for _ in range(2))
    same(one, other.agg_all())
    flat = la.random.uniform(one.size, seed=seed).agg_all()
    same(one, flat.reshape(shape))
    same(la.full(shape, 3, map=any_map(ndim)), np.full(shape, 3))
    if ndim == 2:
        same(la.eye(*shape, k=1, map=any_map(2)), np.eye(*shape, k=1))
        same(la.tril(one), np.tril(one.agg_all()))
    same(la.arange(2, 30, 3, map=any_map(1)), np.arange(2, 30, 3))
    same(la.linspace(0, 1, 11, map=any_map(1)), np.linspace(0, 1, 11))
    root = rng.randrange(world.size)
    whole = one.agg(root)
    same(la.scatter(whole, any_map(ndim), root), one.agg_all())


def files() -> None:
    x, a = any_array(any_shape(rng.randint(0, 3)))
    folder = world.bcast(tempfile.mkdtemp() if world.rank == 0 else None)
    path = Path(folder) / "array.npy"
    la.save(path, x)
    if world.rank == 0:
        assert np.array_equal(np.load(path), a)
    same(la.load(path, map=any_map(a.ndim)), a)
    world.barrier()
    if world.rank == 0:
        np.save(path, np.asarray(a, order="F"))
    world.barrier()
    same(la.load(path), a)
    map = any_map(a.ndim)
    la.save_hdf5(Path(folder) / "arrays.h5", "x", x)
    same(la.load_hdf5(Path(folder) / "arrays.h5", "x", map=map), a)
    dist = ["cyclic" if isinstance(each, int) else "block" for each in map.dist]
    plain = map if map.everywhere else la.Map(map.grid, dist)
    in_file = la.memmap(path, map=plain)
    same(in_file, a)
    assert not in_file.local.flags.writeable or in_file.local.size == 0
    raw = Path(folder) / "raw"
    if a.size:
        for mode in ("w+", "r+"):
            y = la.memmap(raw, mode, shape=a.shape, dtype=a.dtype, offset=24, map=plain)
            y.local[...] = x.remap(plain).local + (mode == "r+")
        world.barrier()
        assert np.array_equal(np.fromfile(raw, a.dtype, offset=24).reshape(a.shape), a + 1)
    world.barrier()
    if world.rank == 0:
        shutil.rmtree(folder)


CASES = [move_around, index, elementwise, reduce, shape_anew, lines, multiply, make, files]


def main(count: int, first: int) -> None:
    """Run `count` cases."""
    warnings.simplefilter("ignore", RuntimeWarning)
    for seed in range(first, first + count):
        rng.seed(seed)
        case = CASES[seed % len(CASES)]
        try:
            case()
        except BaseException:
            print(f"case {seed} ({case.__name__}) on rank {world.rank} of {world.size}", file=sys.stderr)
            raise
    if world.rank == 0:
        print(f"{count} cases went well on {world.size} ranks")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _move._ROUND = int(sys.argv[3])
    main(int(sys.argv[1]), int(sys.argv[2]))
