"""Distributed arrays against the test vectors in tests/arrays, which also the Octave toolbox is tested with."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import limosa
import limosa.arrays as la
import numpy as np
from limosa.arrays._move import Layout, regions

FOLDER = Path(__file__).parents[2] / "arrays"
world = limosa.world


def read(name: str, entries: str) -> list[dict[str, Any]]:
    """Return the entries of a file."""
    found: list[dict[str, Any]] = json.loads((FOLDER / name).read_text())[entries]
    return found


def new_map(described: dict[str, Any]) -> la.Map:
    """Return a map as a file describes it."""
    return la.Map(
        described["grid"],
        described["dist"],
        ranks=described["ranks"],
        overlap=described["overlap"],
        order=described["order"],
    )


def numbered(shape: list[int], map: la.Map) -> la.Array:
    """Return an array whose elements are their places in C order."""
    return la.asarray(np.arange(math.prod(shape)).reshape(shape), map=map)


def maps() -> None:
    """Check which rank owns and stores what."""
    for case in read("maps.json", "cases"):
        if case["size"] != world.size:
            continue
        map, shape = new_map(case["map"]), case["shape"]
        for part in case["parts"]:
            assert list(map.local_shape(shape, part["rank"])) == part["local_shape"], case
            stores = [axis["stores"] for axis in part["axes"]]
            assert [index.tolist() for index in map.global_index(shape, part["rank"])] == stores, case
            owns = [index.tolist() for index in map.without_overlap().global_index(shape, part["rank"])]
            assert owns == [axis["owns"] for axis in part["axes"]], case
        x = numbered(shape, map)
        mine = case["parts"][world.rank]["axes"]
        whole = np.arange(x.size).reshape(shape)
        assert np.array_equal(x.local, whole[np.ix_(*(np.array(axis["stores"], int) for axis in mine))]), case
        assert np.array_equal(x.owned, whole[np.ix_(*(np.array(axis["owns"], int) for axis in mine))]), case


def moves() -> None:
    """Check what travels, and that it arrives."""
    for case in read("moves.json", "cases"):
        if case["size"] != world.size:
            continue
        source, target, shape = new_map(case["source"]), new_map(case["target"]), case["shape"]
        owners, wanted = Layout(source, shape), Layout(target, shape, stored=True)
        for j, count in enumerate(case["counts"][world.rank]):
            parts = regions(owners.part(world.rank), wanted.part(j))
            assert sum(math.prod(region) for _, _, region in parts) == count, case
        moved, expected = numbered(shape, source).remap(target), numbered(shape, target)
        assert np.array_equal(moved.local, expected.local), case


def values(entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the elements of an array in a file."""
    real = np.array(entry["real"])
    flat = real + 1j * np.array(entry["imag"]) if "imag" in entry else real
    return flat.reshape(entry["shape"])


def operate(x: la.Array, operation: str, axis: int | None) -> la.Array:
    """Do an operation as the file names it."""
    if operation == "transpose":
        return x.T
    if operation == "times_its_transpose":
        return x @ x.T
    made: la.Array = getattr(la.fft if operation in ("fft", "ifft") else la, operation)(x, axis=axis)
    return made


def results() -> None:
    """Check what operations give, each with one of the maps that fit its array."""
    described = [case for case in read("maps.json", "cases") if case["size"] == world.size]
    for k, entry in enumerate(read("results.json", "arrays")):
        whole = values(entry)
        fitting = [new_map(case["map"]) for case in described if len(case["shape"]) == whole.ndim]
        for i, result in enumerate(entry["results"]):
            map = fitting[(k + i) % len(fitting)]
            expected = values(result)
            found = operate(la.asarray(whole, map=map), result["operation"], result["axis"]).agg_all()
            assert found.shape == expected.shape, (map, result)
            scale = np.max(np.abs(expected))
            assert np.allclose(found, expected, rtol=0, atol=1e-12 * max(scale, 1)), (map, result, found)


maps()
moves()
results()
if world.rank == 0:
    print("the vectors agree")
