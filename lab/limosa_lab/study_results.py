"""Samples of a study by benchmark, series, ranks and bytes, and figures of them. Pure functions."""

from __future__ import annotations

import math
import re
import statistics
from typing import Any

import matplotlib as mpl

from limosa_lab import machine, styles

mpl.use("Agg")
# The last line of a traceback in Python, an error in Octave, or Java's first line about an exception.
_EXCEPTION = re.compile(r"(error: |Exception in thread |[\w.]*(Error|Exception|Interrupt|Exit)\b)")
LOOKS = (
    *(("#555555", "x"), ("#0072B2", "s"), ("#D55E00", "o"), ("#009E73", "^")),
    *(("#CC79A7", "D"), ("#E69F00", "v"), ("#56B4E9", "P")),
)


class Results:
    """What a study has measured: samples by benchmark, series, ranks and bytes."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.environment: dict[str, Any] = found["environment"]
        self._others: list[float] = found.get("others", [])
        self.troubles = [sample for sample in found["samples"] if "trouble" in sample]
        self.troubles += _differing(found["samples"])
        self._samples: dict[tuple[str, str, int, int], list[float]] = {}
        for sample in found["samples"]:
            if "seconds" in sample:
                key = (sample["bench"], sample["series"], sample["ranks"], sample["bytes"])
                self._samples.setdefault(key, []).extend(sample["seconds"])

    def series(self, bench: str) -> list[str]:
        """Give the names of the series of a benchmark, in the order of their jobs."""
        return list(dict.fromkeys(series for of, series, _, _ in self._samples if of == bench))

    def places(self, bench: str) -> list[tuple[int, int]]:
        """Give the pairs of bytes and ranks at which a benchmark was run."""
        return sorted({(length, ranks) for of, _, ranks, length in self._samples if of == bench})

    def median(self, bench: str, series: str, ranks: int, length: int) -> float | None:
        """Give the median at one place."""
        values = self._samples.get((bench, series, ranks, length))
        return statistics.median(values) if values else None

    def samples(self, bench: str, series: str, axis: str, only: int | None = None) -> dict[int, list[float]]:
        """Give the samples of a series by ``bytes`` or by ``ranks``, of this number of ranks only."""
        chosen: dict[int, list[float]] = {}
        for (of, name, ranks, length), values in self._samples.items():
            if (of, name) == (bench, series) and only in {None, ranks}:
                chosen.setdefault(length if axis == "bytes" else ranks, []).extend(values)
        return dict(sorted(chosen.items()))

    def medians(self, bench: str, series: str, axis: str, only: int | None = None) -> dict[int, float]:
        """Give the medians of these samples."""
        return {at: statistics.median(values) for at, values in self.samples(bench, series, axis, only).items()}

    def written_troubles(self) -> list[str]:
        """Say what went wrong, and what makes the numbers doubtful."""
        doubts = machine.doubts(self.environment["busy_percent"], self._others)
        return doubts + [f"{t['bench']}, {t['series']}, {t['ranks']} ranks: {t['trouble']}" for t in self.troubles]


def reason(errors: str) -> str:
    """Give the line of an error output that says best why a job has failed.

    That is the last one of the program itself, such as the last line of a traceback, not what the launcher says of the
    ranks' ends, nor a hint.
    """
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith(("limosa: rank", "limosa: ending", "limosa: ranks", "hint:"))]
    said = [line for line in own if _EXCEPTION.match(line)]
    return (said or own or lines or ["no message"])[-1]


def _differing(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give those samples whose result is another number than that of the first sample of the same program and size."""
    wanted: dict[tuple[str, int], float] = {}
    differing = []
    for sample in samples:
        if "check" in sample:
            first = wanted.setdefault((sample["bench"], sample["bytes"]), sample["check"])
            if not math.isclose(sample["check"], first, rel_tol=1e-9):
                trouble = f"the result is {sample['check']}, that of another series {first}"
                differing.append(sample | {"trouble": trouble})
    return differing


def look(at: int) -> dict[str, Any]:
    """Give the colour, mark and line of a series."""
    colour, mark = LOOKS[at % len(LOOKS)]
    return {"color": colour, "marker": mark, "linewidth": 1.4, "markersize": 4}


def curves(results: Results, bench: str, axis: str, only: int | None = None) -> str:
    """Draw the medians of a benchmark's series by ``bytes`` or ``ranks``, of one number of ranks; an SVG element."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
    places: set[float] = set()
    for at, series in enumerate(results.series(bench)):
        # 0 has no place on a logarithmic axis.
        found = {at: value for at, value in results.medians(bench, series, axis, only).items() if at}
        places |= set(found)
        axes.loglog(list(found), list(found.values()), **look(at), label=series)
    if axis == "bytes":
        styles.size_ticks(axes, places)
    else:
        styles.count_ticks(axes, [int(place) for place in places])
    styles.time_ticks(axes.yaxis)
    axes.set_xlabel(axis)
    axes.set_ylabel("time")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", frameon=False)
    return styles.svg(figure)
