"""Distributed arrays against array-api-strict, the reference of the Python array API standard, by random examples.

All ranks draw the same examples. Each tells the others whether it found an error, so that all of them go on, or stop.
Argument: the number of examples of each test.
"""

from __future__ import annotations

import operator
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import array_api_strict as xp
import limosa
import limosa.arrays as la
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

world = limosa.world
rng = random.Random()
TYPES = ["bool", "int8", "int32", "int64", "uint8", "float32", "float64", "complex64", "complex128"]


class Both:
    """The two namespaces side by side: calls both, and compares what they give."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return Both(f"{self._path}.{name}".strip("."))

    def __call__(self, *args: Any, **options: Any) -> Any:
        def call(namespace: Any, side: int) -> Any:
            for name in self._path.split("."):
                namespace = getattr(namespace, name)
            return namespace(*chosen(args, side), **{key: chosen(each, side) for key, each in options.items()})

        return agree(f"{self._path}{args, options}", lambda: call(xp, 1), lambda: call(la, 0))


def chosen(value: Any, side: int) -> Any:
    """Return one side of pairs of a distributed array and a strict one."""
    if isinstance(value, Pair):
        return value[side]
    return type(value)(chosen(each, side) for each in value) if type(value) in (list, tuple) else value


class Pair(tuple):
    """A distributed array, and the same of array-api-strict."""


def agree(what: str, reference: Callable[[], Any], ours: Callable[[], Any]) -> Any:
    """Stop on all ranks unless ours gives what the reference gives, if that gives something."""
    try:
        expected = reference()
    except (TypeError, ValueError, IndexError):
        return None  # the standard says nothing about it
    wrong = ""
    try:
        found = ours()
        wrong = difference(found, expected)
    except limosa.errors.Error:
        raise
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    wrongs = [each for each in world.allgather(wrong) if each]
    assert not wrongs, f"{what}: {wrongs[0]}"
    return found


def difference(found: Any, expected: Any) -> str:
    """Return how a result differs from the reference, or nothing."""
    if isinstance(expected, (tuple, list)):
        if len(found) != len(expected):
            return f"{len(found)} results, expected {len(expected)}"
        return "".join(difference(one, other) for one, other in zip(found, expected, strict=True))
    if not isinstance(found, la.Array):
        return f"a {type(found).__name__}"
    whole, right = found.agg_all(), np.asarray(expected)
    if (found.shape, found.dtype) != (right.shape, right.dtype):
        return f"shape {found.shape}, {found.dtype}, expected {right.shape}, {right.dtype}"
    digits = np.finfo(right.dtype).eps if right.dtype.kind in "fc" else 0
    scale = np.max(np.abs(right[np.isfinite(right)]), initial=1) if digits else 0
    if not np.allclose(whole, right, rtol=100 * digits, atol=100 * digits * scale, equal_nan=True):
        return f"{whole} with {found.map}, expected {right}"
    return ""


def any_map(ndim: int) -> la.Map:
    """Draw a map."""
    if ndim == 0 or rng.random() < 0.1:
        return la.Map.replicated(ndim)
    left, grid = world.size, []
    for _ in range(ndim):
        grid.append(rng.choice([k for k in range(1, left + 1) if left % k == 0]))
        left //= grid[-1]
    rng.shuffle(grid)
    dist = [rng.choice(["block", "cyclic", rng.randint(1, 3)]) for _ in grid]
    return la.Map(grid, dist, order=rng.choice("CF"))


def any_shape(least: int = 0, most: int = 3, lengths: tuple[int, ...] = (0, 1, 2, 3, 5)) -> tuple[int, ...]:
    """Draw a shape."""
    return tuple(rng.choice(lengths) for _ in range(rng.randint(least, most)))


def any_array(shape: tuple[int, ...], dtype: str | None = None, span: int = 4) -> Pair:
    """Draw an array of small numbers, many of which are equal."""
    kind = np.dtype(dtype or rng.choice(TYPES))
    values = np.random.default_rng(rng.randrange(1 << 30))
    whole = values.integers(0 if kind.kind in "bu" else -span, span + 1, shape)
    if kind.kind in "fc":
        whole = whole / 2
    if kind.kind == "c":
        whole = whole + 1j * values.integers(-span, span + 1, shape)
    whole = np.asarray(whole, kind)
    return Pair((la.asarray(whole, map=any_map(len(shape))), xp.asarray(whole)))


both = Both()
ONE = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf
isnan log log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan
tanh trunc""".split()
TWO = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum
multiply nextafter not_equal pow remainder subtract""".split()

OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
]


def elementwise() -> None:
    shape = any_shape()
    other = tuple(rng.choice([n, n, 1]) for n in shape)[rng.choice([0, 0, 1]) :]
    dtype = rng.choice(TYPES)
    x, y = any_array(shape, dtype), any_array(other, dtype)
    for name in rng.sample(ONE, 8):
        getattr(both, name)(x)
    for name in rng.sample(TWO, 8):
        getattr(both, name)(x, y)
    both.where(any_array(shape, "bool"), x, y)
    both.clip(x, -1, 2)
    for operate in rng.sample(OPERATORS, 6):
        apply_operator(operate, x, y)


def apply_operator(operate: Callable[[Any, Any], Any], x: Pair, y: Pair) -> None:
    """Compare an operator between arrays, and between an array and a number."""
    name = operate.__name__
    agree(name, lambda: operate(x[1], y[1]), lambda: operate(x[0], y[0]))
    agree(f"{name} with 2", lambda: operate(x[1], 2), lambda: operate(x[0], 2))
    agree(f"{name} of 2", lambda: operate(2, x[1]), lambda: operate(2, x[0]))


def reductions() -> None:
    x = any_array(any_shape())
    ndim = x[0].ndim
    axis = rng.choice([None, *range(-ndim, ndim)])
    keepdims = rng.random() < 0.5
    for name in "sum prod max min mean var std any all count_nonzero argmax argmin".split():
        getattr(both, name)(x, axis=axis, keepdims=keepdims)
    if ndim > 1:
        both.sum(x, axis=(0, -1))
        both.any(x, axis=(1, 0))


def lines() -> None:
    x = any_array(any_shape(1, lengths=(0, 1, 2, 7, 30)))
    axis = rng.randrange(-x[0].ndim, x[0].ndim)
    descending = rng.random() < 0.5
    both.sort(x, axis=axis, descending=descending)
    both.argsort(x, axis=axis, descending=descending)
    both.cumulative_sum(x, axis=axis, include_initial=rng.random() < 0.5)
    both.cumulative_prod(x, axis=axis, include_initial=rng.random() < 0.5)
    both.diff(x, axis=axis, n=rng.randint(1, 2))
    line = any_array((rng.choice([1, 5, 40]),))
    both.sort(line, descending=descending)
    both.argsort(line, descending=descending)
    both.cumulative_sum(line)
    ordered = Pair((la.sort(line[0]), xp.asarray(np.sort(np.asarray(line[1])))))
    both.searchsorted(ordered, any_array((6,), str(line[0].dtype)), side=rng.choice(["left", "right"]))


def shapes() -> None:
    x = any_array(any_shape(1))
    shape, ndim = x[0].shape, x[0].ndim
    d = rng.randrange(ndim)
    both.permute_dims(x, tuple(rng.sample(range(ndim), ndim)))
    both.moveaxis(x, d, rng.randrange(ndim))
    both.expand_dims(x, axis=rng.randint(-ndim - 1, ndim))
    both.flip(x, axis=rng.choice([None, d]))
    both.roll(x, rng.randint(-7, 7), axis=rng.choice([None, d]))
    both.reshape(x, rng.choice([(-1,), shape[::-1], (1, *shape)]))
    y = any_array(tuple(rng.choice([0, 1, 4]) if k == d else n for k, n in enumerate(shape)), str(x[0].dtype))
    both.concat([x, y], axis=d)
    both.concat([x, y], axis=None)
    both.stack([x, x], axis=rng.randint(-ndim - 1, ndim))
    both.unstack(x, axis=d)
    both.tile(x, tuple(rng.randint(0, 2) for _ in range(rng.randint(1, 3))))
    both.repeat(x, rng.randint(0, 3), axis=rng.choice([None, d]))
    both.broadcast_to(any_array(tuple(rng.choice([1, n]) for n in shape)), shape)
    both.squeeze(any_array((1, *shape)), 0)
    both.broadcast_arrays(x, any_array(shape[1:]))
    if ndim > 1:
        both.matrix_transpose(x)
        both.tril(x, k=rng.randint(-3, 3))
        both.triu(x, k=rng.randint(-3, 3))


def indices() -> None:
    x = any_array(any_shape(1, lengths=(0, 1, 2, 3, 5)))
    shape, ndim = x[0].shape, x[0].ndim
    key = tuple(
        rng.randrange(-n, n) if n and rng.random() < 0.4 else slice(*rng.choice([(None,), (1, None), (None, None, -1)]))
        for n in shape
    )
    agree(f"x[{key}]", lambda: x[1][key], lambda: x[0][key])
    mask = any_array(shape, "bool", 1)
    agree("x[mask]", lambda: x[1][mask[1]], lambda: x[0][mask[0]])
    d = rng.randrange(ndim)
    if shape[d]:
        at = any_array((rng.randint(0, 6),), "int64", shape[d] - 1)
        both.take(x, at, axis=d)
        lines = any_array(
            tuple(rng.choice([1, 3]) if k == d else n for k, n in enumerate(shape)), "int64", shape[d] - 1
        )
        both.take_along_axis(x, lines, axis=d)
    if 0 not in shape:
        lists = [any_array((2, 3)[k % 2 :], "int64", n - 1) for k, n in enumerate(shape)]
        keys = [tuple(each[side] for each in lists) for side in (0, 1)]
        agree("x[lists]", lambda: x[1][keys[1]], lambda: x[0][keys[0]])
        part = agree("x[0]", lambda: x[1][(0,) * ndim], lambda: x[0][(0,) * ndim])
        assert part is not None
    value = any_array((), str(x[0].dtype))
    changed = xp.asarray(x[1], copy=True)
    changed[mask[1]] = value[1]
    x[0][mask[0]] = value[0]
    agree("x[mask] = y", lambda: changed, lambda: x[0])


def searches() -> None:
    x = any_array(any_shape(1, lengths=(0, 1, 2, 6)))
    both.nonzero(x)
    both.unique_values(x)
    both.unique_counts(x)
    both.unique_inverse(x)
    both.unique_all(x)
    both.isin(x, any_array((3,), str(x[0].dtype)))


def products() -> None:
    dtype = rng.choice(TYPES[2:])
    n, k, m = (rng.choice([0, 1, 2, 5]) for _ in range(3))
    x, y = any_array((n, k), dtype), any_array((k, m), dtype)
    both.matmul(x, y)
    both.tensordot(x, y, axes=1)
    both.tensordot(x, x, axes=2)
    both.vecdot(x, x, axis=rng.choice([-2, -1]))
    u, v = any_array((k,), dtype), any_array((m,), dtype)
    both.matmul(x, u)
    both.linalg.outer(u, v)
    both.linalg.matmul(any_array((2, n, k), dtype), y)
    both.linalg.diagonal(x, offset=rng.randint(-3, 3))
    both.linalg.trace(x, offset=rng.randint(-3, 3))
    both.linalg.vector_norm(x, axis=rng.choice([None, 0, 1]), ord=rng.choice([1, 2, 3, 0]))
    both.linalg.matrix_norm(x, ord=rng.choice(["fro", 1, -1]))
    both.linalg.matrix_transpose(x)


def regular(n: int, dtype: str, batch: tuple[int, ...] = (), span: int = 4) -> Pair:
    """Draw matrices that are far from singular."""
    x = any_array((*batch, n, n), dtype, span)
    whole = np.asarray(x[1]) + (3 * span * n * np.eye(n)).astype(dtype)
    return Pair((la.asarray(whole, map=x[0].map), xp.asarray(whole)))


def decompositions() -> None:
    dtype = rng.choice(TYPES[5:])
    n = rng.choice([0, 1, 2, 5, 9, 70])
    batch = rng.choice([(), (), (2,), (3, 2)])
    x = regular(n, dtype, batch)
    if n < 10:
        both.linalg.det(x)  # larger ones have larger errors
    both.linalg.slogdet(x)
    both.linalg.inv(x)
    both.linalg.solve(x, any_array((*batch, n, rng.choice([1, 3])), dtype))
    if not batch:
        both.linalg.solve(x, any_array((n,), dtype))
    both.linalg.matrix_power(regular(rng.choice([1, 3]), dtype, batch, 1), rng.randint(-2, 5))
    whole = np.asarray(x[1]) @ np.conj(np.swapaxes(np.asarray(x[1]), -1, -2)) + np.eye(n).astype(dtype)
    positive = Pair((la.asarray(whole, map=x[0].map), xp.asarray(whole)))
    both.linalg.cholesky(positive, upper=rng.random() < 0.5)
    both.linalg.eigvalsh(positive)
    y = any_array((*batch, rng.choice([1, 4, 7]), rng.choice([1, 3, 8])), dtype)
    both.linalg.svdvals(y)
    both.linalg.matrix_norm(y, ord=rng.choice(["nuc", 2, -2]), keepdims=rng.random() < 0.5)
    both.linalg.matrix_rank(x)
    both.linalg.pinv(x if n else y)
    both.linalg.cross(any_array((4, 3), dtype), any_array((1, 3), dtype))
    both.linalg.cross(any_array((3, 2), dtype), any_array((3, 2), dtype), axis=0)
    factors(y, positive)


def factors(y: Pair, positive: Pair) -> None:
    """Multiply the factors, which are not unique, and look whether that is the matrix."""
    whole = np.asarray(y[1])
    shape, eps = whole.shape, np.finfo(whole.dtype).eps

    def near(found: Any, expected: Any) -> bool:
        scale = np.max(np.abs(expected), initial=1)
        return found.shape == expected.shape and np.allclose(found, expected, rtol=0, atol=1000 * eps * scale)

    for mode in ("reduced", "complete"):
        q, r = (each.agg_all() for each in la.linalg.qr(y[0], mode=mode))
        inner = min(shape[-2:]) if mode == "reduced" else shape[-2]
        assert near(q @ r, whole) and near(r, np.triu(r)) and q.shape == (*shape[:-1], inner), mode
        assert near(np.conj(np.swapaxes(q, -1, -2)) @ q, np.broadcast_to(np.eye(inner), (*shape[:-2], inner, inner)))
    for full in (False, True):
        u, s, vh = (each.agg_all() for each in la.linalg.svd(y[0], full_matrices=full))
        inner = min(shape[-2:])
        assert near((u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :], whole) and (np.diff(s) <= 0).all()
        assert u.shape[-1] == (shape[-2] if full else inner) and vh.shape[-2] == (shape[-1] if full else inner)
    whole, eps = np.asarray(positive[1]), np.finfo(whole.dtype).eps
    for function in (la.linalg.eigh, la.linalg.eig):
        values, vectors = (each.agg_all() for each in function(positive[0]))
        assert near(whole @ vectors, vectors * values[..., None, :])
    assert near(np.sort(la.linalg.eigvals(positive[0]).agg_all().real), la.linalg.eigvalsh(positive[0]).agg_all())


def swaps() -> None:
    """Solve systems for which rows must be swapped."""
    n, map = rng.choice([1, 7, 33, 100]), any_map(2)
    a, b = la.random.uniform((n, n), seed=rng.randrange(99), map=map) - 0.5, la.random.uniform((n, 3), seed=1)
    whole, right = a.agg_all(), b.agg_all()
    assert np.allclose(la.linalg.solve(a, b).agg_all(), np.linalg.solve(whole, right), rtol=1e-6, atol=1e-6)
    sign, logarithm = la.linalg.slogdet(a)
    expected = np.linalg.slogdet(whole)
    assert float(sign) == expected[0] and abs(float(logarithm) - expected[1]) < 1e-8
    assert (a.agg_all() == whole).all(), "the operands do not change"


def transforms() -> None:
    shape = any_shape(1, lengths=(1, 2, 3, 6))
    x = any_array(shape, rng.choice(["complex64", "complex128"]))
    real = any_array(shape, rng.choice(["float32", "float64"]))
    axis, norm = rng.randrange(-len(shape), len(shape)), rng.choice(["backward", "ortho", "forward"])
    n = rng.choice([None, 4])
    for name in ("fft", "ifft"):
        getattr(both.fft, name)(x, axis=axis, norm=norm, n=n)
    both.fft.irfft(x, axis=axis, norm=norm, n=4)
    both.fft.hfft(x, axis=axis, norm=norm, n=4)
    both.fft.rfft(real, axis=axis, norm=norm, n=n)
    both.fft.ihfft(real, axis=axis, norm=norm, n=n)
    both.fft.fftn(x, norm=norm)
    both.fft.ifftn(x, axes=(axis,), norm=norm)
    both.fft.rfftn(real, norm=norm)
    both.fft.irfftn(x, s=(4,) * len(shape), axes=tuple(range(len(shape))), norm=norm)
    both.fft.fftshift(x)
    both.fft.ifftshift(x, axes=axis)
    both.fft.fftfreq(rng.randint(1, 9), d=0.5)
    both.fft.rfftfreq(rng.randint(1, 9), d=0.5)


def creation() -> None:
    both.arange(rng.randint(-3, 3), rng.randint(-3, 9), rng.choice([1, 2, -1]))
    both.arange(0.0, 2.0, 0.25)
    both.linspace(-1, rng.randint(0, 3), rng.randint(1, 9), endpoint=rng.random() < 0.5)
    both.eye(rng.randint(0, 4), rng.choice([None, 3]), k=rng.randint(-2, 2))
    shape = any_shape()
    both.zeros(shape)
    both.ones(shape)
    both.full(shape, rng.choice([2, 2.5, True]))
    x = any_array(shape)
    both.zeros_like(x)
    both.ones_like(x)
    both.full_like(x, 1)
    both.meshgrid(any_array((3,), "int64"), any_array((2,), "int64"), indexing=rng.choice(["xy", "ij"]))


TESTS = [
    elementwise,
    reductions,
    lines,
    shapes,
    indices,
    searches,
    products,
    decompositions,
    swaps,
    transforms,
    creation,
]


def examples_of(test: Callable[[], None], examples: int) -> Callable[[], None]:
    """Return a function that runs a test with many seeds, the same on all ranks."""

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 1 << 30))
    def run(seed: int) -> None:
        rng.seed(seed)
        test()

    return run  # type: ignore[no-any-return]


def main(examples: int) -> None:
    """Run all tests."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for test in TESTS:
        examples_of(test, examples)()
    if world.rank == 0:
        print(f"{len(TESTS)} tests agree with array-api-strict {xp.__version__}")


main(int(sys.argv[1]))
