"""What is fitted of one MPI library: a model for each operation, and how well it predicts."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context

from limosa_lab.model import fitting
from limosa_lab.model.fitting import Point, TooFewError
from limosa_lab.model.growth import Growth, fit_growth
from limosa_lab.model.models import Hockney, LinearProtocol, Model, PerProcesses, Piecewise
from limosa_lab.model.samples import MEDIAN, split

# Of the source; goal of its models, and of these.
ACCURACY = 0.07
# So many operations are fitted in sequence, more of them by several processes.
FEW = 8

Interval = tuple[float, float]


@dataclass(frozen=True)
class Operation:
    """An operation of a library: the models, and their errors for messages that they were not fitted to.

    Attributes
    ----------
    name, statistic
        As in `samples.points`: ``bcast`` or, with roots by turns, ``bcast@turns``; the statistic of the times.
    measured, validation
        What the models were fitted to, and the random messages.
    hockney, protocol
        The models of the source; None for an operation without bytes (barrier).
    best
        The model that predicts best by cross-validation.
    errors
        Mean absolute relative errors of the random messages by the model's name.
    intervals, best_intervals
        Of 95 % confidence, for the parameters of the model with a protocol term and of the best model: by name, such
        as ``t0.a``.

    """

    name: str
    measured: Sequence[Point]
    validation: Sequence[Point]
    hockney: Hockney | None
    protocol: LinearProtocol | None
    best: Model
    errors: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    best_intervals: Mapping[str, Interval] = field(default_factory=dict)
    statistic: str = MEDIAN

    @property
    def error(self) -> float | None:
        """The error of the best model for the random messages; None without such messages."""
        return self.errors.get(self.best.name)

    def error_among(self, processes: Container[int]) -> float | None:
        """Give the error of the best model for the random messages with these numbers of processes."""
        known = [point for point in self.validation if point.p in processes]
        return fitting.mean_error(self.best, known) if known else None

    def worst(self) -> tuple[Point, float] | None:
        """Give the random message with the largest error, and that error with its sign."""
        if not self.validation:
            return None
        errors = fitting.relative_errors(self.best, self.validation)
        at = int(abs(errors).argmax())
        return self.validation[at], float(errors[at])


def fit(measured: Mapping[str, Sequence[Point]], validation: Collection[int] | None = None) -> dict[str, Operation]:
    """Fit models of all operations that have enough measurements.

    Parameters
    ----------
    validation
        Sizes that no model is fitted to; None for all that are no powers of two.

    """
    return fit_all({"": measured}, validation)[""]


def fit_all(
    measured: Mapping[str, Mapping[str, Sequence[Point]]],
    validation: Collection[int] | None = None,
    statistic: str = MEDIAN,
) -> dict[str, dict[str, Operation]]:
    """Fit models of all operations of several libraries, on all processors; the statistic is that of the times."""
    todo = [(library, name) for library, operations in measured.items() for name in operations]
    made: dict[str, dict[str, Operation]] = {library: {} for library in measured}
    if len(todo) < FEW:
        fitted = [_try(name, measured[library][name], validation) for library, name in todo]
    else:
        with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
            waiting = [pool.submit(_try, name, measured[library][name], validation) for library, name in todo]
            fitted = [one.result() for one in waiting]
    for (library, name), operation in zip(todo, fitted, strict=True):
        if operation is not None:
            made[library][name] = replace(operation, statistic=statistic)
    return made


def _try(name: str, measured: Sequence[Point], validation: Collection[int] | None) -> Operation | None:
    try:
        return fit_operation(name, measured, validation)
    except TooFewError:
        return None


def fit_operation(name: str, measured: Sequence[Point], validation: Collection[int] | None = None) -> Operation:
    """Fit the models of one operation.

    Raises
    ------
    TooFewError
        If the measurements determine none.

    """
    fitted, random = split(measured, validation)
    if {point.n for point in fitted} == {0}:
        return Operation(name, fitted, [], None, None, _without_bytes(fitted), {})
    if name != "send":
        # A message without bytes is one; a collective call without bytes may return at once.
        fitted = fitting.messages(fitted)
    candidates = fitting.candidates(fitted)
    best = fitting.simplest_of_the_best(candidates)
    hockney = next((one.model for one in candidates if isinstance(one.model, Hockney)), None)
    protocol = next((m for m in (one.model for one in candidates) if _is_protocol(m)), None)
    errors = {one.model.name: fitting.mean_error(one.model, random) for one in candidates} if random else {}
    return Operation(
        name,
        fitted,
        random,
        hockney,
        protocol if isinstance(protocol, LinearProtocol) else None,
        best.model,
        errors,
        fitting.confidence(fitting.fit_protocol, fitted) if protocol else {},
        fitting.confidence(fitting.with_limits_of(best.model, best.fit), fitted),
    )


def _without_bytes(measured: Sequence[Point]) -> Model:
    """Fit a function of p to times without bytes, or, where that is not within `ACCURACY`, take each as it is."""
    grows = Hockney(fit_growth([point.p for point in measured], [point.time for point in measured]), Growth(0.0))
    if fitting.mean_error(grows, measured) <= ACCURACY:
        return grows
    numbers = tuple(sorted({point.p for point in measured}))
    return PerProcesses(
        numbers, tuple(fitting.fit_constant([point for point in measured if point.p == p]) for p in numbers)
    )


def _is_protocol(model: Model) -> bool:
    return isinstance(model, LinearProtocol) and not model.to_line


def models(operations: Mapping[str, Operation]) -> dict[str, Model]:
    """Give the best model of each operation."""
    return {name: operation.best for name, operation in operations.items()}


def lines(operation: Operation) -> int:
    """Give the number of protocols that the best model tells apart."""
    return len(operation.best.lines) if isinstance(operation.best, Piecewise) else 1
