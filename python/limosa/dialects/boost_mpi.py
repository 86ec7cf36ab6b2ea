"""boost.mpi: `limosa.dialects.boostmpi`, with the names that Boost's own bindings give to the exceptions."""

from limosa.dialects.boostmpi import *  # noqa: F403
from limosa.dialects.boostmpi import Error as Exception  # noqa: F401
from limosa.dialects.boostmpi import ObjectWithoutSkeletonError as ObjectWithoutSkeleton  # noqa: F401

__version__ = "1.38"
__author__ = "Douglas Gregor and Andreas Kloeckner"  # of Boost.MPI's bindings; this module is Limosa's
