"""For programs that are a list of cases.

Every function of the main module whose name begins with ``case_`` is run on all ranks.
"""

from __future__ import annotations

import contextlib
import sys

import limosa


def run() -> None:
    """Run all cases; print how many went well, on rank 0."""
    done = 0
    for name, case in list(vars(sys.modules["__main__"]).items()):
        if name.startswith("case_"):
            case()
            limosa.world.barrier()
            status = limosa.world.iprobe()
            assert status is None, f"{name} left a message: {status}"
            limosa.world.barrier()
            done += 1
    if limosa.world.rank == 0:
        print(f"{done} cases went well on {limosa.world.size} ranks")


@contextlib.contextmanager
def raises(kind: type[BaseException] | tuple[type[BaseException], ...], *words: str):
    """Assert that the block raises an exception of this kind whose text has these words; gives a list to hold it."""
    caught: list[BaseException] = []
    try:
        yield caught
    except kind as error:
        text = str(error)
        missing = [word for word in words if word not in text]
        assert not missing, f"{missing} is not in: {text}"
        caught.append(error)
    else:
        raise AssertionError(f"no {kind.__name__} was raised")
