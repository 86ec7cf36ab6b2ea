"""Unit tests on several ranks.

::

    import unittest
    import pypar
    from pypar.test import in_parallel, main

    @in_parallel(4)
    class Sum(unittest.TestCase):
        def test_sum(self): ...   # runs on four ranks

    if __name__ == "__main__":
        main()

Run such a file with plain Python (or pytest): each test method is then run by a job of its own, and fails with the
job's output. Within a job (``limosa run -n 4 python file.py``) the methods run as they are. As upstream, except that
neither tblib nor six is needed.
"""

import functools
import inspect
import os
import shutil
import subprocess
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from limosa.dialects import pypar

MPI_CMD = "mpirun"

_IN_JOB = "PYPAR_TEST_IN_JOB"
_T = TypeVar("_T", bound=type[unittest.TestCase])


def _launcher() -> str:
    beside = str(Path(sys.executable).parent)
    found = shutil.which(MPI_CMD, path=beside) or shutil.which(MPI_CMD)
    if found is None:
        raise RuntimeError(
            f"pypar.test: {MPI_CMD} was not found; install Limosa into this environment, or set pypar.test.MPI_CMD"
        )
    return found


def _in_job(cls: type, name: str, method: Callable[..., Any], ncpus: int) -> Callable[..., None]:
    """Make a method that runs the given one in a job."""

    @functools.wraps(method)
    def run(self: unittest.TestCase) -> None:
        script = str(Path(inspect.getsourcefile(method) or "").resolve())
        command = [_launcher(), "-n", str(ncpus), sys.executable, script, f"{cls.__qualname__}.{name}"]
        # The job is a new one, whatever this process is a part of.
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "LIMOSA_JOB"))} | {
            _IN_JOB: "1"
        }
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env
        )
        if done.returncode != 0:
            self.fail(f"on {ncpus} ranks (exit code {done.returncode}):\n{done.stdout}")

    return run


def in_parallel(ncpus: int = 2) -> Callable[[_T], _T]:
    """Let the test methods of a class run on so many ranks."""

    def decorate(cls: _T) -> _T:
        if _IN_JOB not in os.environ and pypar.size() == 1:
            for name, method in inspect.getmembers(cls, inspect.isfunction):
                if name.startswith("test"):
                    setattr(cls, name, _in_job(cls, name, method, ncpus))
        return cls

    return decorate


def main() -> None:
    """Run the tests of the script."""
    unittest.main()
