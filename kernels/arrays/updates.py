"""RandomAccess: elements of a long table at random places are changed, most of them on other ranks.

The same changes done twice cancel each other; then the table must be as before.
"""

from __future__ import annotations

import argparse

import limosa.arrays as la
import numpy as np
from report import finish, timed


def main(n: int, updates: int, together: int) -> None:
    """Do the updates, and do them again."""
    table = la.arange(n, dtype=np.int64)

    def change() -> None:
        for turn in range(0, updates, together):
            values = la.random.integers(min(together, updates - turn), 0, 1 << 52, seed=turn)
            np.bitwise_xor.at(table, values % n, values)

    _, seconds = timed(change)
    changed = int(la.count_nonzero(table != la.arange(n)))
    change()
    left = int(la.count_nonzero(table != la.arange(n)))
    finish(f"RandomAccess in {n} elements: {updates / seconds / 1e6:.2f} million updates/s", left if changed else 1, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1 << 20, help="elements of the table")
    parser.add_argument("--updates", type=int, default=1 << 21)
    parser.add_argument("--together", type=int, default=1 << 18, help="updates that all ranks make together")
    options = parser.parse_args()
    main(options.n, options.updates, options.together)
