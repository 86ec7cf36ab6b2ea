"""The entries of a tuning file: what is done otherwise, where, and by what evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

# The guidelines (`limosa_lab.model.equivalents`) that `substitute.c` can put into practice.
RECIPES = frozenset(
    (
        "bcast = scatter + allgather",
        "bcast = allreduce",
        "bcast = send",
        "allgather = gather + bcast",
        "allgather = allgatherv",
        "allgather = alltoallv",
        "allgather = allreduce",
        "allgather = send",
        "allgatherv = gatherv + bcast",
        "gather = allgather",
        "gather = gatherv",
        "gather = reduce",
        "gather = send",
        "scatter = bcast",
        "scatter = scatterv",
        "scatter = send",
        "alltoall = alltoallv",
        "alltoall = send",
        "reduce = allreduce",
        "reduce = reduce_scatter + gather",
        "allreduce = reduce + bcast",
        "allreduce = reduce_scatter + allgather",
        "reduce_scatter = reduce + scatter",
        "reduce_scatter = allreduce",
        "reduce_scatter_block = reduce_scatter",
        "reduce_scatter_block = allreduce",
        "reduce_scatter_block = reduce + scatter",
        "scan = allgather",
        "scan = exscan",
        "exscan = allgather",
        "barrier = allreduce",
    )
)

# Ranges of MPI's thread levels that rules are for: with MPI_THREAD_MULTIPLE libraries take other ways.
BELOW, MULTIPLE = LEVELS = ("single-serialized", "multiple")

# Operations whose rows have the bytes of one rank's contribution, not of all together.
PER_RANK = ("gather", "allgather")
# Algorithms of Limosa that need access to other ranks' memory.
DIRECT = ("single_copy", "pieces")


@dataclass(frozen=True)
class Measured:
    """The times of one size without and with an entry, in microseconds.

    `noise` is how far repetitions of the same lie apart, as a part of the time.
    """

    bytes: int
    before: float
    after: float
    noise: float

    @property
    def gain(self) -> float:
        """The part of the time that is saved."""
        return 1 - self.after / self.before


@dataclass(frozen=True)
class Entry:
    """An operation that is done otherwise by so many ranks, from `low` to `high` bytes.

    Attributes
    ----------
    way
        A guideline such as ``bcast = scatter + allgather``, or an algorithm of Limosa such as ``rounds``.
    high
        None: there is no end.
    predicted
        The part of the time that is saved by the models, at best.
    error
        The models' error, which the prediction exceeds.
    curve
        The predicted gains by size.
    rows
        Rows for Limosa's table of algorithms; none for other libraries.
    evidence
        What was measured, if it was.
    level
        The thread levels of the programs that it is for, one of `LEVELS`; empty: all programs.

    """

    operation: str
    way: str
    ranks: int
    low: int
    high: int | None
    predicted: float
    error: float
    rows: tuple[str, ...] = ()
    evidence: tuple[Measured, ...] = ()
    curve: tuple[tuple[int, float], ...] = ()
    level: str = ""

    def rule(self) -> str:
        """Write the entry as a rule for ``substitute.c``."""
        end = "*" if self.high is None else str(self.high)
        return f"{self.way.replace(' ', '')} {self.ranks} {self.low}-{end} {self.level}".rstrip()

    def within(self, low: int, high: int | None, evidence: Sequence[Measured]) -> Entry:
        """Narrow the entry, with its rows, to these sizes, of which this was measured."""
        rows = tuple(row(self.operation, self.way, self.ranks, low, high) for _ in self.rows)
        return replace(self, low=low, high=high, rows=rows, evidence=tuple(evidence))

    def predicted_at(self, size: int) -> float:
        """Give the gain that is predicted for a size."""
        if not self.curve:
            return self.predicted
        sizes, gains = zip(*self.curve, strict=True)
        return float(np.interp(np.log(max(size, 1)), np.log(np.maximum(sizes, 1)), gains))

    def covers(self, size: int) -> bool:
        """Tell whether the entry is for messages of so many bytes."""
        return self.low <= size and (self.high is None or size <= self.high)


def row_bytes(operation: str, n: int, p: int) -> int:
    """Give the bytes that Limosa's table counts for a call of n bytes, rounded up."""
    return -(-n // p) if operation in PER_RANK else n


def row(operation: str, word: str, p: int, low: int, high: int | None) -> str:
    """Write a row of Limosa's table for calls of these bytes, both ends among them."""
    condition = "direct" if word in DIRECT else "-"
    first = row_bytes(operation, low, p)
    # Rounded down: the size behind the range is not its own.
    end = "*" if high is None else max(first, high // p if operation in PER_RANK else high)
    return f"{operation} shared {p} {first}..{end} {condition} {word}"


def rules_text(entries: list[Entry]) -> str:
    """Write entries as the value of ``LIMOSA_TUNED``: the first that fits counts, so what saves most comes first.

    Entries for each of the thread levels that are the same otherwise are one rule.
    """
    levels: dict[str, set[str]] = {}
    for entry in sorted(entries, key=lambda entry: -entry.predicted):
        levels.setdefault(replace(entry, level="").rule(), set()).add(entry.level)
    of_all = [("",) if "" in found or found >= set(LEVELS) else sorted(found) for found in levels.values()]
    return ";".join(f"{rule} {level}".rstrip() for rule, found in zip(levels, of_all, strict=True) for level in found)


def everything() -> list[str]:
    """Give texts of rules, for tests: each replaces all that can be replaced, and together they use all recipes."""
    of_operation: dict[str, list[str]] = {}
    for recipe in sorted(RECIPES):
        of_operation.setdefault(recipe.partition(" = ")[0], []).append(f"{recipe.replace(' ', '')} * 0-*")
    turns = max(map(len, of_operation.values()))
    return [";".join(rules[turn % len(rules)] for rules in of_operation.values()) for turn in range(turns)]
