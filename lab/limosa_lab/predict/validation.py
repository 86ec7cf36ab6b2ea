"""Predictions beside measurements: ``limosa predict --check FOLDER``.

For operations that `limosa model` has measured on this machine, the simulation predicts the times from the model of
MPI_Send alone; nothing of the operation itself is used. What a library does inside a host is often no such algorithm,
so the fastest one of each operation is taken. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from limosa_lab.model.fitting import Point
from limosa_lab.predict.networks import Costs
from limosa_lab.predict.schedules import ALGORITHMS
from limosa_lab.predict.simulation import Cluster, simulate
from limosa_lab.tables import Table
from limosa_lab.wording import number, seconds, size

# Of the sizes that were measured those are shown; all count.
SHOWN = (1, 1 << 10, 1 << 16, 1 << 20)
FACTOR = 2.0


@dataclass(frozen=True)
class Compared:
    """A measurement, and what the fastest algorithm is predicted to take."""

    operation: str
    point: Point
    predicted: float
    algorithm: str

    @property
    def ratio(self) -> float:
        """The predicted time divided by the measured one."""
        return self.predicted / self.point.time


def compare(measured: Mapping[str, Sequence[Point]], inside: Costs) -> list[Compared]:
    """Predict each measurement of the operations of which algorithms are known."""
    found = []
    for operation, algorithms in ALGORITHMS.items():
        for point in measured.get(operation, []):
            if not point.n and operation != "barrier":
                continue  # nothing is sent in many libraries
            cluster = Cluster(point.p, 1, inside, inside)
            times = {name: simulate(schedule, point.n, cluster) for name, schedule in algorithms.items()}
            best = min(times, key=lambda name: times[name])
            found.append(Compared(operation, point, times[best], best))
    return found


def table(found: Sequence[Compared], title: str) -> Table:
    """Give a row for each operation and number of ranks: its ratios at some sizes, and the mean factor over all."""
    made = Table(
        f"Predicted / measured time, {title}", ["operation", "ranks", *map(size, SHOWN), "mean factor"], words=1
    )
    cases = sorted({(one.operation, one.point.p) for one in found})
    for operation, p in cases:
        of_case = [one for one in found if (one.operation, one.point.p) == (operation, p)]
        cells = [_cell([one for one in of_case if one.point.n == n]) for n in SHOWN]
        made.rows.append([operation, str(p), *cells, number(factor(of_case))])
    return made


def _cell(found: Sequence[Compared]) -> str:
    return f"{found[0].ratio:.2f} of {seconds(found[0].point.time * 1e-6)}" if found else "-"


def factor(found: Sequence[Compared]) -> float:
    """Give the geometric mean of the factors by which predictions are too high or too low; 1 is exact."""
    return float(np.exp(np.mean([abs(np.log(one.ratio)) for one in found])))


def answer(found: Sequence[Compared], processors: int) -> str:
    """Say how far predictions are from measurements."""
    parts = []
    for words, chosen in (
        (f"up to {processors} ranks, one for each processor", [one for one in found if one.point.p <= processors]),
        ("more ranks than processors", [one for one in found if one.point.p > processors]),
    ):
        if chosen:
            near = sum(1 / FACTOR <= one.ratio <= FACTOR for one in chosen)
            parts.append(
                f"With {words}, predictions are off by a factor of {factor(chosen):.2f} in the geometric mean; "
                f"{100 * near / len(chosen):.0f} % of {len(chosen)} are within a factor of {FACTOR:g}."
            )
    return " ".join(parts)
