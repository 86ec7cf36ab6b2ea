"""Which indices of one axis a cell of the processor grid owns, and which indices two cells have in common.

A set of indices is a list of `Piece`: an arithmetic progression of indices of the whole array (a Python `range`), and
the places, also a `range`, where their elements lie in the array of one rank. Block and cyclic distributions are one
piece each, block-cyclic ones a few. What two sets have in common is then a list of slices on both sides, found by
arithmetic: nothing is enumerated, whatever the length of the axis. Only sets of very many pieces are enumerated.

The method follows S. Ramaswamy and P. Banerjee, "Automatic generation of efficient array redistribution routines for
distributed memory multicomputers" (Frontiers '95), with progressions in place of their line segments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.intp]

#: Places along one axis of an array.
Places: TypeAlias = "slice | Indices"

#: Up to this many pairs, pieces are compared with each other; beyond, indices are enumerated.
_MOST_PAIRS = 1024


class Piece(NamedTuple):
    """Indices `whole` of the array, and where they lie in the array of one rank: `places` (of the same length)."""

    whole: range
    places: range


class Common(NamedTuple):
    """What two sets of indices have in common: `count` indices, and their places on both sides."""

    source: Places
    target: Places
    number: int


@dataclass(frozen=True)
class Axis:
    """How one axis of an array is dealt to the cells of the processor grid.

    Blocks of `block` indices go to the cells in turn: a block distribution has one block for each cell, a cyclic one
    has blocks of one index.

    Parameters
    ----------
    length
        Number of indices, from 0.
    cells
        Number of cells of the grid along this axis.
    block
        Number of indices in a block, at least 1.
    overlap
        How many indices after its own block a cell stores too. The distribution is then one of blocks.

    """

    length: int
    cells: int
    block: int
    overlap: int = 0

    def owned_count(self, cell: int) -> int:
        """Return the number of indices that the cell owns. Each index has one owner."""
        rounds, rest = divmod(self.length, self.block * self.cells)
        return rounds * self.block + min(max(rest - cell * self.block, 0), self.block)

    def count(self, cell: int) -> int:
        """Return the number of indices that the cell stores: those that it owns, and the overlap."""
        owned = self.owned_count(cell)
        return min(owned + self.overlap, self.length - cell * self.block) if owned and self.overlap else owned

    def owned(self, cell: int) -> list[Piece]:
        """Return the indices that the cell owns, and where they lie in its local array."""
        count = self.owned_count(cell)
        period = self.block * self.cells
        first = cell * self.block
        if count == 0:
            return []
        if count <= self.block or self.cells == 1:
            return [Piece(range(first, first + count), range(count))]
        rounds = math.ceil(count / self.block)
        if self.block <= rounds:  # one progression for each place in a block
            starts = range(self.block)
            return [Piece(range(first + k, self.length, period), range(k, count, self.block)) for k in starts]
        ends = [min((turn + 1) * self.block, count) for turn in range(rounds)]
        return [
            Piece(
                range(first + turn * period, first + turn * period + end - turn * self.block),
                range(turn * self.block, end),
            )
            for turn, end in enumerate(ends)
        ]

    def stored(self, cell: int) -> list[Piece]:
        """Return the indices that the cell stores, overlap included, and where they lie in its local array."""
        count = self.count(cell)
        first = cell * self.block
        if self.overlap and count:
            return [Piece(range(first, first + count), range(count))]
        return self.owned(cell)

    def owner(self, indices: Indices) -> Indices:
        """Return the cells that own indices."""
        cells: Indices = indices // self.block % self.cells
        return cells

    def places(self, indices: Indices) -> Indices:
        """Return where indices lie in the local arrays of their owners."""
        places: Indices = indices // (self.block * self.cells) * self.block + indices % self.block
        return places

    def indices(self, cell: int) -> Indices:
        """Return the indices that the cell stores, in the order of its local array."""
        whole, places = listed(self.stored(cell))
        return whole[np.argsort(places)]


def all_of(length: int) -> list[Piece]:
    """Return all indices of an axis, stored in their order."""
    return [Piece(range(length), range(length))] if length else []


def count_of(pieces: Sequence[Piece]) -> int:
    """Return the number of indices in a set."""
    return sum(len(piece.whole) for piece in pieces)


def listed(pieces: Sequence[Piece]) -> tuple[Indices, Indices]:
    """Return the indices of a set and their places, one by one."""
    if not pieces:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    return (
        np.concatenate([np.arange(p.whole.start, p.whole.stop, p.whole.step, dtype=np.intp) for p in pieces]),
        np.concatenate([np.arange(p.places.start, p.places.stop, p.places.step, dtype=np.intp) for p in pieces]),
    )


def through(chosen: range, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the set of the elements of `chosen` at the indices of a set, at the places of these."""
    found = [Piece(chosen[p.whole.start : p.whole.stop : p.whole.step], p.places) for p in pieces]
    return [Piece(p.whole[::-1], p.places[::-1]) if p.whole.step < 0 else p for p in found]


def common(source: Sequence[Piece], target: Sequence[Piece]) -> list[Common]:
    """Return the indices that are in both sets, in an order that depends on the two sets only."""
    if len(source) * len(target) > _MOST_PAIRS:
        (whole, at), (other, there) = listed(source), listed(target)
        _, i, j = np.intersect1d(whole, other, assume_unique=True, return_indices=True)
        return [Common(at[i], there[j], len(i))] if len(i) else []
    found = []
    for ours in source:
        for theirs in target:
            both = _meet(ours.whole, theirs.whole)
            if both:
                found.append(Common(_slice(_at(ours, both)), _slice(_at(theirs, both)), len(both)))
    return found


def merged(parts: Sequence[Common]) -> Common:
    """Return the same as one part, its places enumerated."""
    if len(parts) == 1:
        return parts[0]
    source = np.concatenate([enumerated(part.source) for part in parts])
    target = np.concatenate([enumerated(part.target) for part in parts])
    return Common(source, target, len(source))


def enumerated(places: Places) -> Indices:
    """Return places one by one."""
    if isinstance(places, slice):
        each = _range(places)
        return np.arange(each.start, each.stop, each.step, dtype=np.intp)
    return places


def cut(part: Common, step: int) -> list[Common]:
    """Return the same in parts of at most `step` indices."""
    if isinstance(part.source, slice) and isinstance(part.target, slice):
        source, target = _range(part.source), _range(part.target)
        both = [(source[k : k + step], target[k : k + step]) for k in range(0, part.number, step)]
        return [Common(_slice(ours), _slice(theirs), len(ours)) for ours, theirs in both]
    ours, theirs = enumerated(part.source), enumerated(part.target)
    starts = range(0, part.number, step)
    return [Common(ours[k : k + step], theirs[k : k + step], min(step, part.number - k)) for k in starts]


def _meet(a: range, b: range) -> range:
    """Return what two rising progressions have in common, by the Chinese remainder theorem."""
    divisor = math.gcd(a.step, b.step)
    apart = b.start - a.start
    if not a or not b or apart % divisor:
        return range(0)
    turns = b.step // divisor
    start = a.start + a.step * (apart // divisor * pow(a.step // divisor, -1, turns) % turns)
    step = a.step * turns
    least = max(a.start, b.start)
    start += -(-(least - start) // step) * step
    return range(start, min(a.stop, b.stop), step)


def _at(piece: Piece, part: range) -> range:
    """Return the places of a part of a piece's indices."""
    first = piece.whole.index(part[0])
    last = piece.whole.index(part[-1])
    step = (last - first) // (len(part) - 1) if len(part) > 1 else 1
    return piece.places[first : last + 1 : step]


def _slice(places: range) -> slice:
    stop: int | None = places[-1] + (1 if places.step > 0 else -1)
    return slice(places.start, None if stop == -1 else stop, places.step)


def _range(places: slice) -> range:
    """Return the places of which `_slice` made a slice."""
    return range(places.start, -1 if places.stop is None else places.stop, places.step)
