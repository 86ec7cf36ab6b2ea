"""How a parameter of a model depends on the number of processes p: constant, or a + b f(p)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# The functions f(p) by name, and how tables write them.
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "constant": lambda p: 0.0,
    "log": lambda p: float(math.ceil(math.log2(p))),
    "log of 2p": lambda p: float(math.ceil(math.log2(2 * p))),
    "linear": float,
}
SYMBOLS = {"constant": "", "log": "⌈lp⌉", "log of 2p": "⌈2lp⌉", "linear": "p"}
# Among these `fit_growth` chooses.
CANDIDATES = ("log", "linear")

_WRITTEN = re.compile(r"(?P<a>[+-]?\d*\.?\d+(?![\d.]*(?:⌈|p)))?(?:(?P<b>[+-]?\d*\.?\d*)(?P<f>⌈2lp⌉|⌈lp⌉|p))?")


@dataclass(frozen=True)
class Growth:
    """``a + b f(p)``; `kind` names f, one of `FUNCTIONS`."""

    a: float
    b: float = 0.0
    kind: str = "constant"

    def __call__(self, p: float) -> float:
        """Give the value for p processes."""
        return self.a + self.b * FUNCTIONS[self.kind](p)

    def __str__(self) -> str:
        """Write it as the tables of the source do: ``12+8⌈lp⌉``."""
        if self.kind == "constant":
            return f"{self.a:.4g}"
        return f"{self.a:.4g}{self.b:+.4g}{SYMBOLS[self.kind]}"

    def scaled(self, factor: float) -> Growth:
        """Give it in another unit."""
        return Growth(self.a * factor, self.b * factor, self.kind)


def parse_growth(text: str) -> Growth:
    """Read what `Growth` writes; a missing a is 0, a missing b is 1.

    Raises
    ------
    ValueError
        If the text is no such sum.

    """
    found = _WRITTEN.fullmatch(text)
    if not text or not found:
        raise ValueError(f"`{text}` is not a number, or a sum such as 12+8⌈lp⌉ or 5-3p")
    a = float(found["a"] or 0)
    if not found["f"]:
        return Growth(a)
    b = float(found["b"] + "1") if found["b"] in ("", "+", "-") else float(found["b"])
    return Growth(a, b, next(kind for kind, symbol in SYMBOLS.items() if symbol == found["f"]))


def fit_growth(processes: Sequence[float], values: Sequence[float], candidates: Sequence[str] = CANDIDATES) -> Growth:
    """Fit a parameter's values for several numbers of processes by least squares.

    The function is the one that predicts best what it was not fitted to, each value from all others (cross-validation).
    With fewer than three different numbers of processes nothing can be left out: the first candidate is taken, and with
    one of them a constant.

    Raises
    ------
    ValueError
        If there is no value, or not as many values as numbers of processes.

    """
    p, v = np.asarray(processes, dtype=float), np.asarray(values, dtype=float)
    if len(p) != len(v) or not len(p):
        raise ValueError(f"{len(p)} numbers of processes and {len(v)} values: as many are needed, at least one")
    if len(np.unique(p)) == 1:
        return Growth(float(v.mean()))
    if len(np.unique(p)) == 2:
        return _least_squares(p, v, candidates[0])
    return min((_least_squares(p, v, kind) for kind in candidates), key=lambda made: _left_out(p, v, made.kind))


def _least_squares(p: np.ndarray, v: np.ndarray, kind: str) -> Growth:
    f = np.array([FUNCTIONS[kind](one) for one in p])
    if np.ptp(f) == 0:
        return Growth(float(v.mean()), 0.0, kind)
    b, a = np.polyfit(f, v, 1)
    return Growth(float(a), float(b), kind)


def _left_out(p: np.ndarray, v: np.ndarray, kind: str) -> float:
    """Give the mean squared error of values that are predicted from those of all other numbers of processes."""
    errors = []
    for one in np.unique(p):
        kept = p != one
        made = _least_squares(p[kept], v[kept], kind)
        errors += [(made(one) - value) ** 2 for value in v[~kept]]
    return float(np.mean(errors))
