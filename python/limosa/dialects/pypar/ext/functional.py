"""Share out an iterable over the ranks, and collect what they make of it.

Rank 0 is the master: the iterable matters there only. As upstream, except that ``distributed_generator`` loses no
element when their number is no multiple of the number of ranks.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from limosa.dialects import pypar

_RUN, _DIE = 0, 1


def distributed_slice(iterable: Iterable[Any]) -> Iterator[Any]:
    """Give each rank its part of the elements: neighbours stay together."""
    if pypar.rank() == 0:
        elements = list(iterable)
        parts = [elements[slice(*pypar.balance(len(elements), pypar.size(), p))] for p in range(pypar.size())]
        for p in range(1, pypar.size()):
            pypar.send(parts[p], p)
        yield from parts[0]
    else:
        yield from pypar.receive(0)


def distributed_generator(iterable: Iterable[Any]) -> Iterator[Any]:
    """Give each rank one element in turn, each when the master comes to it: for iterables that are long or slow."""
    if pypar.rank() == 0:
        elements = iter(iterable)
        while turn := list(islice(elements, pypar.size())):
            for p, element in enumerate(turn[1:], start=1):
                pypar.send(element, p, tag=_RUN)
            yield turn[0]
        for p in range(1, pypar.size()):
            pypar.send(None, p, tag=_DIE)
    else:
        while True:
            element, status = pypar.receive(0, tag=pypar.any_tag, return_status=True)
            if status.tag == _DIE:
                return
            yield element


def distributed(iterable: Iterable[Any]) -> Iterator[Any]:
    """Share out by slices what can be sliced, and one by one what cannot.

    All ranks must pass the same kind of thing, because each decides for itself.
    """
    if isinstance(iterable, list | tuple | str | bytes | range | np.ndarray):
        return distributed_slice(iterable)
    return distributed_generator(iterable)


def collected(iterable: Iterable[Any]) -> Iterator[Any]:
    """Give the master the elements of all ranks, rank by rank; the other ranks get none.

    Like any generator it does its work when it is consumed: do that on every rank, for example with ``list``.
    """
    if pypar.rank() == 0:
        results = list(iterable)
        for p in range(1, pypar.size()):
            results.extend(pypar.receive(p))
        yield from results
    else:
        pypar.send(list(iterable), 0)


def balanced(iterable: Iterable[Any]) -> Iterator[Any]:
    """Give each rank every size()-th element, from its own number on; nothing is communicated."""
    return islice(iterable, pypar.rank(), None, pypar.size())
