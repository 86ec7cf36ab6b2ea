"""Limosa, a message-passing library behind the MPI-5 standard ABI.

The package belongs to the wheel that also installs the library, the header ``mpi.h``, the compiler
wrappers ``mpicc`` and ``mpicxx`` and the launcher ``limosa run`` (= ``mpiexec``). Programs talk to the
library through mpi4py or any other MPI binding; what is here tells where the files are.
"""

from importlib.metadata import version

from limosa._files import get_include, get_lib_path

__all__ = ["__version__", "get_include", "get_lib_path"]

__version__ = version("limosa")
