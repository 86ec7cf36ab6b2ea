"""Parameters of models from measurements; which model predicts best.

A measurement is a time in microseconds of an operation with n bytes among p processes. All functions are pure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from limosa_lab.model.growth import CANDIDATES, FUNCTIONS, Growth, fit_growth
from limosa_lab.model.models import Hockney, Line, LinearProtocol, LogGP, Model, PerProcesses, Piecewise

MAXIMUM_OF_LINES = 8
# A line of its own needs so many sizes: two to fit and one to contradict.
SIZES_OF_A_LINE = 3
# Cross-validation leaves out sizes in so many groups, every twelfth in each.
FOLDS = 12
# A model with more parameters must predict better by this factor, or the simpler one is taken.
WORTH = 0.95
# A call without bytes that takes less than this part of the shortest other one's time sends no message.
AT_ONCE = 0.7
# Of a call with at most so many bytes the time is that of starting, where calls without bytes send no message.
SHORT = 64


@dataclass(frozen=True, order=True)
class Point:
    """One measurement: n bytes, p processes, microseconds."""

    n: int
    p: int
    time: float


Fit = Callable[[Sequence[Point]], Model]


class TooFewError(ValueError):
    """The measurements do not determine the parameters."""


def relative_errors(model: Model, points: Iterable[Point]) -> np.ndarray:
    """Give ``(predicted - measured) / measured`` of each measurement."""
    return np.array([model.time(point.n, point.p) / point.time - 1 for point in points])


def mean_error(model: Model, points: Iterable[Point]) -> float:
    """Give the mean absolute relative error, the figure by which the source judges models; 0.07 is 7 %."""
    errors = relative_errors(model, points)
    if not len(errors):
        raise TooFewError("there is no measurement to compare with")
    return float(np.abs(errors).mean())


def messages(points: Sequence[Point]) -> list[Point]:
    """Leave out calls without bytes that return at once, for those numbers of processes where they do.

    They send no message, as the shortest other calls show: their time is no latency.
    """
    kept = list(points)
    for p in {point.p for point in points}:
        empty = [point.time for point in points if point.p == p and point.n == 0]
        shortest = min((point for point in points if point.p == p and point.n > 0), default=None)
        if empty and shortest and np.mean(empty) < AT_ONCE * shortest.time:
            kept = [point for point in kept if point.p != p or point.n]
    return kept


# --- Hockney, the protocol term, LogGP ---------------------------------------------------------------------------


def fit_hockney(points: Sequence[Point]) -> Hockney:
    """Fit Hockney's model: t0 is the time without bytes, tb the slope of the regression line, both for each p."""
    startup, _, slope = _regressions(points)
    return Hockney(startup, slope)


def fit_protocol(points: Sequence[Point], *, to_line: bool = False) -> LinearProtocol:
    """Fit the linear model with a protocol term: as Hockney's, with the intercept of the regression line."""
    startup, intercept, slope = _regressions(points)
    return LinearProtocol(startup, intercept, slope, to_line)


def fit_loggp(points: Sequence[Point], messages_per_second: float | None = None) -> LogGP:
    """Fit LogGP to messages between two processes; the gap comes from a message rate, if one was measured."""
    slope, intercept = _line([(point.n - 1, point.time) for point in points if point.n > 0])
    startup = [point.time for point in points if point.n <= 1]
    gap = None if messages_per_second is None else 1e6 / messages_per_second
    return LogGP(float(np.mean(startup)) if startup else intercept, slope, gap)


def _regressions(points: Sequence[Point]) -> tuple[Growth, Growth, Growth]:
    """Give startup, intercept and slope as functions of p."""
    numbers = sorted({point.p for point in points})
    startups, intercepts, slopes = [], [], []
    for p in numbers:
        of_p = [point for point in points if point.p == p]
        shortest = min((point.n for point in of_p), default=0)
        if shortest > SHORT:
            raise TooFewError(
                f"with {p} processes there is no measurement with at most {SHORT} bytes, which gives the startup time"
            )
        empty = [point.time for point in of_p if point.n == shortest]
        slope, intercept = _line([(point.n, point.time) for point in of_p])
        startups.append(float(np.mean(empty)))
        intercepts.append(intercept)
        slopes.append(slope)
    return fit_growth(numbers, startups), fit_growth(numbers, intercepts), fit_growth(numbers, slopes)


def _line(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    n = np.array([pair[0] for pair in pairs], dtype=float)
    t = np.array([pair[1] for pair in pairs], dtype=float)
    if len(np.unique(n)) < 2:
        raise TooFewError("a regression line needs measurements with at least two numbers of bytes")
    slope, intercept = np.polyfit(n, t, 1)
    return float(slope), float(intercept)


def fit_constant(points: Sequence[Point]) -> Piecewise:
    """Take the mean of the times for all sizes."""
    return Piecewise((0,), (Line(Growth(float(np.mean([point.time for point in points]))), Growth(0.0)),))


# --- A line for each protocol ------------------------------------------------------------------------------------


def fit_piecewise(points: Sequence[Point], lines: int) -> Piecewise:
    """Fit so many lines: those limits and parameters whose relative errors have the least sum of squares.

    The function of p is chosen for each line. Limits are tried between all sizes by dynamic programming, so that the
    result is the best there is; `_limit` says where between two sizes a limit lies.

    Raises
    ------
    TooFewError
        If there are not `SIZES_OF_A_LINE` sizes for each line.

    """
    segments = _segments_of(tuple(sorted(points)))
    sizes, costs = segments.sizes, segments.costs
    least = SIZES_OF_A_LINE if lines > 1 else 2
    if lines < 1 or len(sizes) < least * lines:
        raise TooFewError(f"{lines} lines need {least} sizes each; there are {len(sizes)}")
    # best[j]: the least cost of the first j sizes with so many lines; `begins` holds where the last of these begins.
    best = np.full(len(sizes) + 1, np.inf)
    best[0] = 0.0
    begins: list[np.ndarray] = []
    for _ in range(lines):
        totals = best[:, None] + costs
        begins.append(totals.argmin(axis=0))
        best = totals.min(axis=0)
    limits = [len(sizes)]
    for of_line in reversed(begins):
        limits.insert(0, int(of_line[limits[0]]))
    found = tuple(_segment(segments.points(first, last))[1] for first, last in pairwise(limits))
    return Piecewise((0, *(_limit(sizes[first - 1], sizes[first]) for first in limits[1:-1])), found)


def _limit(last: int, first: int) -> int:
    """Give the size at which a line begins that is fitted to sizes from `first` on, after a line up to `last`.

    Libraries change protocols at powers of two: such a size is the limit, or the last one below. Otherwise it is the
    geometric mean.
    """
    if is_power(first):
        return first
    return last + 1 if is_power(last) else round((last * first) ** 0.5)


def is_power(n: int) -> bool:
    """Tell whether a size is a power of two."""
    return n > 0 and n & (n - 1) == 0


class _Segments:
    """What lines through all ranges of sizes cost: the sums of squares of their relative errors.

    ``costs[i, j]`` is that of a line through the sizes from number i to before number j, infinite where these are too
    few for a line. All are found at once from sums over the sizes (normal equations).
    """

    def __init__(self, points: Sequence[Point]) -> None:
        self.sizes = sorted({point.n for point in points})
        self._of_size = {n: [point for point in points if point.n == n] for n in self.sizes}
        count = len(self.sizes)
        self.costs = np.full((count + 1, count + 1), np.inf)
        least = min(SIZES_OF_A_LINE, count)
        first, last = (np.array(ends) for ends in zip(*_ranges(count, least), strict=True))
        for kind in _kinds(points):
            rows = [_rows(self._of_size[n], kind) for n in self.sizes]
            squares = np.cumsum([np.zeros((rows[0].shape[1],) * 2), *(of.T @ of for of in rows)], axis=0)
            sums = np.cumsum([np.zeros(rows[0].shape[1]), *(of.sum(axis=0) for of in rows)], axis=0)
            counts = np.cumsum([0, *(len(of) for of in rows)])
            cost = _least_costs(squares[last] - squares[first], sums[last] - sums[first], counts[last] - counts[first])
            self.costs[first, last] = np.minimum(self.costs[first, last], cost)

    def points(self, first: int, last: int) -> list[Point]:
        """Give the measurements of a range of sizes."""
        return [point for n in self.sizes[first:last] for point in self._of_size[n]]


# Fits with other numbers of lines to the same measurements use the same segments.
_segments_of = lru_cache(maxsize=64)(_Segments)


def _ranges(count: int, least: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i + least, count + 1)]


def _least_costs(squares: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Give the least sums of ``(row x - 1)^2`` from the sums of the rows and of their products."""
    scale = np.sqrt(np.maximum(np.diagonal(squares, axis1=1, axis2=2), 1e-300))
    scaled = squares / (scale[:, :, None] * scale[:, None, :])
    # Where sizes do not tell two parameters apart, a little of the unit matrix keeps the equations solvable.
    scaled += 1e-12 * np.eye(scaled.shape[1])
    solution = np.linalg.solve(scaled, (sums / scale)[:, :, None])
    least: np.ndarray = counts - np.sum(solution[:, :, 0] * sums / scale, axis=1)
    return least.clip(0.0)


def _kinds(points: Sequence[Point]) -> Sequence[str]:
    """Give the functions of p that may be fitted."""
    return ("constant",) if len({point.p for point in points}) == 1 else CANDIDATES


def _rows(points: Sequence[Point], kind: str) -> np.ndarray:
    """Give the rows of the equations ``row x = 1``, each divided by its time, so that the errors are relative."""
    n = np.array([point.n for point in points], dtype=float)
    t = np.array([point.time for point in points], dtype=float)
    columns = [np.ones_like(n), n]
    if kind != "constant":
        f = np.array([FUNCTIONS[kind](point.p) for point in points])
        columns += [f, n * f]
    rows: np.ndarray = np.stack(columns, axis=1) / t[:, None]
    return rows


def _segment(points: Sequence[Point]) -> tuple[float, Line]:
    """Fit one line with each function of p; give the least sum of squares of relative errors, and that line."""
    return min((_weighted(points, kind) for kind in _kinds(points)), key=lambda made: made[0])


def _weighted(points: Sequence[Point], kind: str) -> tuple[float, Line]:
    matrix = _rows(points, kind)
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1
    solution = np.linalg.lstsq(matrix / scale, np.ones(len(matrix)), rcond=None)[0] / scale
    cost = float(np.sum((matrix @ solution - 1) ** 2))
    a, b, *more = (float(value) for value in solution)
    fa, fb = more if more else (0.0, 0.0)
    return cost, Line(Growth(a, fa, kind), Growth(b, fb, kind))


# --- Choosing ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A fitted model, its error by cross-validation, and how it was fitted."""

    model: Model
    error: float
    fit: Fit


def candidates(points: Sequence[Point]) -> list[Candidate]:
    """Fit every model that the measurements allow, with their errors by cross-validation, the simplest first."""
    ways: list[Fit] = [fit_hockney, fit_protocol, lambda kept: fit_protocol(kept, to_line=True)]
    if {point.p for point in points} == {2}:
        ways.append(fit_loggp)
    ways += [_lines(k) for k in range(1, MAXIMUM_OF_LINES + 1)]
    made = []
    for fit in ways:
        try:
            made.append(Candidate(fit(points), cross_validation(fit, points), fit))
        except TooFewError:
            continue
    made += _of_each_number(points)
    if not made:
        raise TooFewError("no model can be fitted: measure an empty message and at least three sizes")
    return sorted(made, key=lambda one: one.model.parameters)


def _of_each_number(points: Sequence[Point]) -> list[Candidate]:
    """Fit lines for each number of processes by itself, as many as pay for each; nothing if that cannot be done."""
    numbers = sorted({point.p for point in points})
    if len(numbers) == 1:
        return []
    counts, errors = [], []
    for p in numbers:
        of_p = [point for point in points if point.p == p]
        made = []
        for k in range(1, MAXIMUM_OF_LINES + 1):
            with contextlib.suppress(TooFewError):
                made.append(Candidate(fit_piecewise(of_p, k), cross_validation(_lines(k), of_p), _lines(k)))
        if not made:
            return []
        chosen = simplest_of_the_best(made)
        counts.append(made.index(chosen) + 1)
        errors.append(chosen.error)

    def fit(kept: Sequence[Point]) -> PerProcesses:
        lines_of = zip(numbers, counts, strict=True)
        models = (fit_piecewise([point for point in kept if point.p == p], count) for p, count in lines_of)
        return PerProcesses(tuple(numbers), tuple(models))

    return [Candidate(fit(points), float(np.mean(errors)), fit)]


def best(points: Sequence[Point]) -> Candidate:
    """Give the model that predicts best; one with more parameters only if it is better by the factor `WORTH`."""
    return simplest_of_the_best(candidates(points))


def simplest_of_the_best(made: Sequence[Candidate]) -> Candidate:
    """Choose among candidates, of which the simplest comes first, by the rule of `best`."""
    chosen, *others = made
    for other in others:
        if other.error < WORTH * chosen.error:
            chosen = other
    return chosen


def cross_validation(fit: Fit, points: Sequence[Point]) -> float:
    """Give the mean absolute relative error of sizes that the model was not fitted to: each group from all others.

    The smallest and the largest size are always kept: models interpolate.
    """
    sizes = sorted({point.n for point in points})
    if len(sizes) < 4:
        raise TooFewError(f"cross-validation needs four sizes; there are {len(sizes)}")
    inner = sizes[1:-1]
    folds = min(len(inner), FOLDS)
    errors: list[float] = []
    for fold in range(folds):
        left_out = set(inner[fold::folds])
        model = fit([point for point in points if point.n not in left_out])
        errors += list(np.abs(relative_errors(model, [point for point in points if point.n in left_out])))
    return float(np.mean(errors))


def _lines(number: int) -> Fit:
    return lambda points: fit_piecewise(points, number)


def with_limits_of(model: Model, fit: Fit) -> Fit:
    """Give the fit of the same model in which the limits between lines stay where they are."""
    if isinstance(model, Piecewise):
        return lambda points: _between(points, model)
    if isinstance(model, PerProcesses):
        return lambda points: PerProcesses(
            model.processes,
            tuple(
                _between([point for point in points if point.p == p], of_p)
                for p, of_p in zip(model.processes, model.models, strict=True)
            ),
        )
    return fit


def _between(points: Sequence[Point], model: Piecewise) -> Piecewise:
    limits = [*model.starts, float("inf")]
    parts = [[point for point in points if low <= point.n < high] for low, high in pairwise(limits)]
    return Piecewise(model.starts, tuple(_segment(part)[1] for part in parts))


# --- Confidence --------------------------------------------------------------------------------------------------


def confidence(
    fit: Fit, points: Sequence[Point], level: float = 0.95, repeats: int = 100, seed: int = 1
) -> dict[str, tuple[float, float]]:
    """Give an interval for each parameter, by name, as ``t0.a`` (bootstrap of the residuals).

    The fitted model's times are disturbed with its own relative errors, drawn at random, and fitted again. The interval
    reaches from the estimate to both sides as far as these fits lie from their mean, but for the farthest ones. (They
    need not lie around the estimate: a model that does not describe the measurements gives other parameters when it is
    fitted to its own times.) Where the function of p or the number of lines differs from the fit of the measurements,
    the draw is not used for that parameter.
    """
    model = fit(points)
    residuals = relative_errors(model, points)
    residuals -= residuals.mean()
    random = np.random.default_rng(seed)
    named = _named(model)
    drawn: dict[str, list[float]] = {name: [] for name in named}
    for _ in range(repeats):
        errors = random.choice(residuals, len(points))
        disturbed = [
            Point(point.n, point.p, model.time(point.n, point.p) / (1 + error))
            for point, error in zip(points, errors, strict=True)
        ]
        for name, value in _named(fit(disturbed)).items():
            if name in drawn:
                drawn[name].append(value)
    found = {}
    for name, values in drawn.items():
        if values:
            reach = float(np.quantile(np.abs(np.array(values) - np.mean(values)), level))
            found[name] = (named[name] - reach, named[name] + reach)
    return found


def _named(value: Any, name: str = "") -> dict[str, float]:
    """Give the numbers of a model by their path of names."""
    if isinstance(value, Growth):
        found = {f"{name}.a": value.a}
        return found if value.kind == "constant" else found | {f"{name}.b {value.kind}": value.b}
    if isinstance(value, tuple):
        return {
            path: number
            for index, item in enumerate(value)
            for path, number in _named(item, f"{name}[{index}]").items()
        }
    if is_dataclass(value):
        return {
            path: number
            for field in fields(value)
            for path, number in _named(
                getattr(value, field.name), f"{name}.{field.name}" if name else field.name
            ).items()
        }
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {name: float(value)}
    return {}
