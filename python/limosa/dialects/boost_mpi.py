"""boost.mpi: `limosa.dialects.boostmpi`, with the names that Boost's own bindings give to the exceptions."""

import sys
from typing import NoReturn

from limosa.dialects import mpi_choice
from limosa.dialects.boostmpi import *  # noqa: F403
from limosa.dialects.boostmpi import Error as Exception  # noqa: F401
from limosa.dialects.boostmpi import ObjectWithoutSkeletonError as ObjectWithoutSkeleton  # noqa: F401


def __getattr__(name: str) -> NoReturn:
    """Say which interface this is if a script that imported `mpi` expects a different one."""
    if sys.modules.get("mpi") is sys.modules[__name__] and not name.startswith("__"):
        mpi_choice.refuse(name, "boost")
    raise AttributeError(f"module 'boost.mpi' has no attribute {name!r}")


__version__ = "1.38"
__author__ = "Douglas Gregor and Andreas Kloeckner"  # of Boost.MPI's bindings; this module is Limosa's
