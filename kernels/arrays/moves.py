"""How fast arrays are dealt anew and gathered: rows to columns, and `agg`, beside a copy of what a rank has.

The first use of memory can take longer than its later ones; the best of some repetitions counts.
"""

from __future__ import annotations

import argparse

import limosa
import limosa.arrays as la
import numpy as np
from report import finish, timed


def main(n: int, repetitions: int) -> None:
    """Move a matrix of n x n numbers."""
    size = limosa.world.size
    x = la.from_function(lambda i, j: i * n + j, (n, n), float, map=la.Map((size, 1)))
    gigabytes = x.nbytes / 1e9
    _, copied = timed(x.local.copy, repetitions)
    columns, moved = timed(lambda: x.remap(la.Map((1, size))), repetitions)
    i, j = np.ix_(*columns.global_index())
    error = limosa.world.allreduce(int(np.count_nonzero(columns.local != i * n + j)))
    del columns
    whole, gathered = timed(x.agg, repetitions)
    if whole is not None:
        error += int(np.count_nonzero(whole.reshape(-1) != np.arange(n * n)))
    rates = ", ".join(
        f"{name} {gigabytes / seconds:.2f} GB/s"
        for name, seconds in (("copied", copied), ("from rows to columns", moved), ("gathered", gathered))
    )
    finish(f"{1000 * gigabytes:.0f} MB: {rates}", limosa.world.bcast(error), 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=11585, help="rows and columns; 11585 is 1 GB")
    parser.add_argument("--repetitions", type=int, default=4)
    options = parser.parse_args()
    main(options.n, options.repetitions)
