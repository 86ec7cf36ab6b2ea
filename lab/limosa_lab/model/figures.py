"""Figures of models: measured times beside predicted ones."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np

from limosa_lab import styles
from limosa_lab.model.library import Operation
from limosa_lab.model.samples import title
from limosa_lab.records import Recording

mpl.use("Agg")


def draw(recording: Recording, fitted: Mapping[str, Mapping[str, Operation]]) -> dict[str, str]:
    """Draw each operation: marks for what was measured, lines for the best model, with the most processes."""
    names = {name for operations in fitted.values() for name in operations}
    made = {}
    for name in sorted(names - {"barrier"}):
        of_libraries = {library: fitted[library][name] for library in fitted if name in fitted[library]}
        p = max(point.p for operation in of_libraries.values() for point in operation.measured)
        made[f"{title(name)}, {p} processes"] = _figure(recording, of_libraries, p)
    return made


def _figure(recording: Recording, of_libraries: Mapping[str, Operation], p: int) -> str:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    sizes: set[float] = set()
    for library, operation in of_libraries.items():
        look = styles.style(library)
        known = [point for point in (*operation.measured, *operation.validation) if point.p == p and point.n]
        if not known:
            continue
        sizes |= {point.n for point in known}
        axes.loglog(
            [point.n for point in known],
            [point.time for point in known],
            linestyle="none",
            color=look["color"],
            marker=look["marker"],
            markersize=3.5,
        )
        at = np.geomspace(min(point.n for point in known), max(point.n for point in known), 300)
        predicted = [operation.best.time(float(n), p) for n in at]
        axes.loglog(at, predicted, color=look["color"], linewidth=1.2, label=recording.titles()[library])
    styles.size_ticks(axes, sizes)
    styles.time_ticks(axes.yaxis, 1e-6)
    axes.set_xlabel("bytes")
    axes.set_ylabel("time")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", frameon=False)
    return styles.svg(figure)
