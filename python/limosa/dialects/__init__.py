"""Dialects: modules of Python's early MPI interfaces, so that scripts written for them run on any MPI library of today.

Each dialect is a package here, built on mpi4py and nothing else, and is imported under the name its scripts use:

========================  =========================================  ==============================
a script says             and gets                                   written for
========================  =========================================  ==============================
``import pypar``          `limosa.dialects.pypar`                    pypar 1.9, 2.0 and 2.1
``import boostmpi``       `limosa.dialects.boostmpi`                 boostmpi 1.38
``import boost.mpi``      `limosa.dialects.boost_mpi`                the Python bindings of Boost.MPI
``import mpi``            `limosa.dialects.pympi`, ``.mympi`` or     pyMPI 2, MYMPI and pydusa, and the tests
                          ``.boost_mpi``                             of Boost.MPI's bindings
``import Scientific.MPI`` `limosa.dialects.scientific`               ScientificPython 2.9
========================  =========================================  ==============================

The names on the left are thin modules in ``python/toplevel/``, which the wheel puts beside ``limosa``. They are plain
files, not packages, and ``boost`` and ``Scientific`` are namespace packages: where the real thing is installed in the
same folder, Python finds that first. A thin module calls `stand_in`, which puts the dialect in its place; submodules
(``pypar.ext.functional``) are then found inside the dialect by Python itself.

The originals left the other ranks waiting for ever when one raised an exception; a dialect calls
`end_job_on_exception`.

What a dialect must do: names, defaults, return values and harmless quirks are those of the original. What
differs on purpose stands in a table in the docstring of its module.
"""

import importlib
import sys

from limosa._uncaught import MPI4PY_HINT, is_about_mpi4py
from limosa._uncaught import install as end_job_on_exception

__all__ = ["end_job_on_exception", "stand_in"]


def stand_in(name: str, dialect: str) -> None:
    """Put a dialect under the name that scripts import.

    Parameters
    ----------
    name
        Name of the module that is being imported: the ``__name__`` of the thin module that calls.
    dialect
        Name of the module below `limosa.dialects`.

    Raises
    ------
    ImportError
        mpi4py or NumPy is missing or does not work; the message says how to install it.
    """
    try:
        sys.modules[name] = importlib.import_module(f"limosa.dialects.{dialect}")
    except (ImportError, RuntimeError) as error:
        if is_about_mpi4py(error):
            kind = ModuleNotFoundError if isinstance(error, ModuleNotFoundError) else ImportError
            raise kind(f"{name} needs mpi4py: {error}; hint: {MPI4PY_HINT}", name="mpi4py") from None
        if not isinstance(error, ModuleNotFoundError) or error.name != "numpy":
            raise
        raise ModuleNotFoundError(
            f"{name} needs numpy, which is not installed: python -m pip install numpy", name="numpy"
        ) from None
