"""Test vectors of distributed arrays, for every language: what maps, redistributions and operations must give.

``python tests/arrays/vectors.py`` writes the .json files beside this one; with ``--check`` it only tells whether they
are what it would write. They come from the definitions, element by element, in plain Python: slow, and obvious.

All indices and ranks count from 0. Elements are listed in C order: the last index varies fastest.

maps.json, `cases`: each has a `size` (number of ranks), a `shape`, a `map`, and for each rank one of `parts`:
    `rank`, `local_shape`, and for each axis the indices that the rank `owns` and those that it `stores` (with overlap),
    in the order of its local array. A rank without a part owns and stores nothing.
    A map has a `grid` (cells along each axis), `dist` (for each axis "block", "cyclic", or the length of the blocks
    that are dealt in turn), `overlap` (for each axis: how many indices after its block a cell stores too), `ranks` (of
    the cells), and the `order` of these ("C": the last axis of the grid varies fastest, "F": the first).
moves.json, `cases`: a `size`, a `shape`, two maps `source` and `target`, and `counts`: row i, column j has how many
    elements rank i owns by the source and rank j stores by the target. Those in the diagonal do not travel.
results.json, `arrays`: each has a `shape`, its elements (`real` and, if it is complex, `imag`), and `results`: each has
    the name of an `operation`, an `axis` (null: all), a `shape`, and elements. `argmax` and `argmin` give the first
    place, without an axis in C order; `any` and `all` give 0 or 1; `var` divides by the number of elements;
    `times_its_transpose` is the matrix product (without conjugation). Numbers agree to 12 digits of the largest.
"""

from __future__ import annotations

import cmath
import itertools
import json
import math
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SIZES = [1, 2, 3, 4, 6]

# --- maps -------------------------------------------------------------------------------------------------------------


def new_map(grid, dist="block", *, overlap=0, ranks=None, order="C"):
    """Return a map; without lists, `dist` and `overlap` are those of all axes."""
    return {
        "grid": list(grid),
        "dist": list(dist) if isinstance(dist, (list, tuple)) else [dist] * len(grid),
        "overlap": list(overlap) if isinstance(overlap, (list, tuple)) else [overlap] * len(grid),
        "ranks": list(range(math.prod(grid)) if ranks is None else ranks),
        "order": order,
    }


def cell_of(map, rank):
    """Return the cell of the grid that a rank has, or None."""
    cells = list(itertools.product(*(range(cells) for cells in map["grid"])))  # the last axis varies fastest
    if map["order"] == "F":
        cells.sort(key=lambda cell: cell[::-1])
    return dict(zip(map["ranks"], cells)).get(rank)


def owner(index, length, cells, dist):
    """Return the cell along an axis that owns an index."""
    if dist == "block":
        return index // math.ceil(length / cells)
    if dist == "cyclic":
        return index % cells
    return index // dist % cells


def owned(length, cells, dist, cell):
    """Return the indices of an axis that a cell owns."""
    return [index for index in range(length) if owner(index, length, cells, dist) == cell]


def stored(length, cells, dist, overlap, cell):
    """Return the indices of an axis that a cell stores."""
    own = owned(length, cells, dist, cell)
    return own + [index for index in range(length) if own and own[-1] < index <= own[-1] + overlap]


def part(map, shape, rank):
    """Return the indices, for each axis, that a rank owns and stores."""
    cell = cell_of(map, rank)
    axes = []
    for d, length in enumerate(shape):
        along = (length, map["grid"][d], map["dist"][d])
        axes.append(
            {"owns": [], "stores": []}
            if cell is None
            else {"owns": owned(*along, cell[d]), "stores": stored(*along, map["overlap"][d], cell[d])}
        )
    return {"rank": rank, "local_shape": [len(axis["stores"]) for axis in axes], "axes": axes}


def maps_for(size):
    """Return shapes and maps for a number of ranks."""
    last = list(range(size))[::-1]
    turned = [*range(1, size), 0]
    found = [((length,), new_map([size])) for length in (0, 1, 5, 12)]
    found += [((length,), new_map([size], "cyclic", ranks=last)) for length in (0, 1, 7)]
    found += [((length,), new_map([size], 2, ranks=turned)) for length in (0, 3, 11)]
    found += [((11,), new_map([size], overlap=1)), ((13,), new_map([size], overlap=3, ranks=last))]
    found += [((5,), new_map([1], ranks=[size - 1])), ((5,), new_map([max(size - 1, 1)], overlap=2))]
    found += [
        ((6, 5), new_map([size, 1])),
        ((6, 5), new_map([1, size], "cyclic")),
        ((4, 9), new_map([1, size], ["block", 2], ranks=turned)),
        ((7, 5), new_map([size, 1], overlap=[1, 0])),
        ((5, 7), new_map([1, size], overlap=[0, 2])),
        ((0, 4), new_map([size, 1])),
        ((4, 0), new_map([size, 1], ["cyclic", "block"])),
        ((3, 2, 4), new_map([1, 1, size])),
        ((5, 3, 2), new_map([size, 1, 1], ["cyclic", "block", 2])),
        ((2, 3, 2, 3), new_map([1, size, 1, 1], overlap=[0, 1, 0, 0])),
    ]
    for a in range(2, size):
        b = size // a
        if b < 2:
            continue
        cells = list(range(a * b))
        for order, ranks in itertools.product("CF", (cells, cells[::-1])):
            found += [
                ((5, 7), new_map([a, b], order=order, ranks=ranks)),
                ((7, 5), new_map([a, b], ["cyclic", 2], order=order, ranks=ranks)),
                ((6, 8), new_map([b, a], overlap=[1, 2], order=order, ranks=ranks)),
                ((3, 4, 5), new_map([a, 1, b], ["block", "cyclic", "block"], order=order, ranks=ranks)),
                ((2, 3, 3, 2), new_map([1, a, b, 1], [2, "cyclic", "block", "block"], order=order, ranks=ranks)),
            ]
    return found


def map_cases():
    """Return the cases of maps.json."""
    return [
        {"size": size, "shape": list(shape), "map": map, "parts": [part(map, shape, rank) for rank in range(size)]}
        for size in SIZES
        for shape, map in maps_for(size)
    ]


# --- redistributions --------------------------------------------------------------------------------------------------


def counts(shape, source, target, size):
    """Return how many elements each rank (row) owns by one map, and each rank (column) stores by another."""
    owners = [part(source, shape, rank)["axes"] for rank in range(size)]
    wanted = [part(target, shape, rank)["axes"] for rank in range(size)]
    found = [[0] * size for _ in range(size)]
    for element in itertools.product(*(range(length) for length in shape)):
        for i, j in itertools.product(range(size), repeat=2):
            found[i][j] += all(
                index in ours["owns"] and index in theirs["stores"]
                for index, ours, theirs in zip(element, owners[i], wanted[j])
            )
    return found


def move_cases():
    """Return the cases of moves.json: for each number of ranks, pairs of its maps of each number of axes."""
    cases = []
    for size in SIZES:
        for ndim in (1, 2, 3, 4):
            maps = [map for shape, map in maps_for(size) if len(shape) == ndim]
            shape = [(11,), (5, 7), (3, 4, 5), (2, 3, 3, 2)][ndim - 1]
            step = 1 if len(maps) < 4 else 3
            pairs = [(one, other) for one in maps for other in maps if one != other][::step]
            for source, target in pairs[:24]:
                cases.append(
                    {
                        "size": size,
                        "shape": list(shape),
                        "source": source,
                        "target": target,
                        "counts": counts(shape, source, target, size),
                    }
                )
    return cases


# --- results ----------------------------------------------------------------------------------------------------------


def lines(shape, axis):
    """Return the places, in a list in C order, of the elements of each line along an axis."""
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    others = [range(n) if d != axis else range(1) for d, n in enumerate(shape)]
    starts = [sum(i * step for i, step in zip(index, steps)) for index in itertools.product(*others)]
    return [[start + k * steps[axis] for k in range(shape[axis])] for start in starts]


def total(numbers):
    """Return a sum; plain, where the sum of newer Pythons corrects rounding errors."""
    found = 0
    for x in numbers:
        found += x
    return found


def mean(line):
    """Return the mean of a line."""
    return total(line) / len(line)


def fourier(line, sign):
    """Return the transform of a line, by its definition."""
    n = len(line)
    return [total(x * cmath.exp(sign * 2j * cmath.pi * (j * k % n) / n) for j, x in enumerate(line)) for k in range(n)]


#: What makes one number of a line, and what makes a line of it. Indices count from 0.
REDUCTIONS = {
    "sum": total,
    "prod": math.prod,
    "mean": mean,
    "var": lambda line: mean([abs(x - mean(line)) ** 2 for x in line]),
    "any": lambda line: int(any(line)),
    "all": lambda line: int(all(line)),
}
ORDERED = {
    "max": max,
    "min": min,
    "argmax": lambda line: line.index(max(line)),
    "argmin": lambda line: line.index(min(line)),
}
ALONG = {
    "cumulative_sum": lambda line: list(itertools.accumulate(line)),
    "fft": lambda line: fourier(line, -1),
    "ifft": lambda line: [x / len(line) for x in fourier(line, 1)],
}
ALONG_ORDERED = {"sort": sorted}


def array(shape, values):
    """Return an array as the file has it."""
    made = {"shape": list(shape), "real": [complex(x).real for x in values]}
    if any(isinstance(x, complex) for x in values):
        made["imag"] = [complex(x).imag for x in values]
    return made


def results(shape, values):
    """Return what the operations make of an array."""
    is_complex = any(isinstance(x, complex) for x in values)
    found = []

    def add(name, axis, made_shape, made):
        found.append({"operation": name, "axis": axis, **array(made_shape, made)})

    for name, reduce in (REDUCTIONS if is_complex else REDUCTIONS | ORDERED).items():
        add(name, None, [], [reduce(values)])
        for axis in range(len(shape)):
            made = [reduce([values[k] for k in line]) for line in lines(shape, axis)]
            add(name, axis, [n for d, n in enumerate(shape) if d != axis], made)
    for name, change in (ALONG if is_complex else ALONG | ALONG_ORDERED).items():
        for axis in range(len(shape)):
            made = [0] * len(values)
            for line in lines(shape, axis):
                for k, x in zip(line, change([values[k] for k in line])):
                    made[k] = x
            add(name, axis, shape, made)
    if len(shape) == 2:
        rows, columns = shape
        turned = [values[i * columns + j] for j in range(columns) for i in range(rows)]
        add("transpose", None, (columns, rows), turned)
        product = [
            total(values[i * columns + k] * turned[k * rows + j] for k in range(columns))
            for i in range(rows)
            for j in range(rows)
        ]
        add("times_its_transpose", None, (rows, rows), product)
    return found


def result_cases():
    """Return the arrays of results.json."""
    arrays = []
    for shape in [(1,), (7,), (12,), (3, 5), (8, 4), (2, 3, 4), (2, 3, 2, 3)]:
        size = math.prod(shape)
        integers = [(7 * k * k + 3 * k) % 11 - 5 for k in range(size)]
        arrays.append((shape, integers))
        arrays.append((shape, [x / 8 + 0.5 for x in integers]))
        arrays.append((shape, [complex(x / 4, (5 * k) % 7 - 3) for k, x in enumerate(integers)]))
    return [array(shape, values) | {"results": results(shape, values)} for shape, values in arrays]


# --- files ------------------------------------------------------------------------------------------------------------


def texts():
    """Return the text of each file."""
    files = {
        "maps.json": ("cases", map_cases()),
        "moves.json": ("cases", move_cases()),
        "results.json": ("arrays", result_cases()),
    }
    about = "Made by tests/arrays/vectors.py, which says what is in it. Indices and ranks count from 0, in C order."
    made = {}
    for file, (name, entries) in files.items():
        one_each = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
        made[file] = f'{{"about":{json.dumps(about)},\n"{name}":[\n{one_each}\n]}}\n'
    return made


def alike(one, other):
    """Return whether two values read from JSON are equal, numbers but for rounding errors."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return one == other


def main() -> int:
    """Write the files, or check them."""
    wrong = 0
    for name, text in texts().items():
        path = FOLDER / name
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.is_file() or not alike(json.loads(path.read_text()), json.loads(text)):
            print(f"{path} is not what its oracle gives; hint: run {Path(__file__).name} to write it", file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
