"""Finds ``mpi4py.MPI`` for the MPI-5 standard ABI, which mpi4py's wheels lack, among Limosa's files.

``limosa.pth`` imports this module when Python starts, so it is small. `Finder` is asked after Python's own finder: a
module beside mpi4py, such as one that was compiled for some MPI library, comes first. mpi4py's own finder, which looks
for libraries with older ABIs, is asked last.

`FuturesFinder` is asked first, and has `limosa._futures` adapt the pools of ``mpi4py.futures`` as they are loaded.

``MPI4PY_MPIABI`` and ``MPI4PY_LIBMPI`` choose another ABI or library, as without Limosa.

PYTEST_DONT_REWRITE: pytest would warn that this module, of a package with a plugin, is imported already.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

SERVED = "4.1"
"""The releases of mpi4py that the modules fit: 4.1.0 and later ones, not 4.2."""


class Finder:
    """Finder of one module, for `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """Find the module that Limosa brings; None for all others, and where mpi4py is to use another.

        Raises
        ------
        ImportError
            In a job of Limosa, if there is none: mpi4py would look for another library, and each rank would be alone.
        """
        mpi4py = sys.modules.get("mpi4py")
        if name != "mpi4py.MPI" or mpi4py is None or _is_served(mpi4py):
            return None

        import os
        from importlib.machinery import EXTENSION_SUFFIXES
        from importlib.util import spec_from_file_location

        version = getattr(mpi4py, "__version__", "of an unknown version")
        is_free_threaded = "t" in getattr(sys, "abiflags", "")
        reason = "it has none that this Python can load"
        if not version.startswith(f"{SERVED}."):
            reason = f"it has one for mpi4py {SERVED}"
        else:
            for suffix in EXTENSION_SUFFIXES:
                file = os.path.join(os.path.dirname(__file__), "limosa", f"_mpi4py{suffix}")  # noqa: PTH118, PTH120
                if os.path.exists(file) and not (is_free_threaded and "abi3" in suffix):  # noqa: PTH110
                    return spec_from_file_location(name, file)
        if "LIMOSA_RANK" in os.environ:
            raise ImportError(f"Limosa has no module for mpi4py {version} of {sys.executable}: {reason}", name=name)
        return None


def _is_served(mpi4py: "ModuleType") -> bool:
    """Tell whether mpi4py has a module for the standard ABI itself, or a variable names a library with another ABI."""
    from os import environ

    try:
        abi = mpi4py._mpiabi
        if "mpiabi" in abi._registry.get("mpi4py.MPI", ()):
            return True
        chosen = abi.MPIABI or abi.LIBMPI or environ.get("MPI4PY_MPIABI") or environ.get("MPI4PY_LIBMPI")
        return bool(chosen) and abi._get_mpiabi() != "mpiabi"
    except (AttributeError, RuntimeError):  # another release of mpi4py; no such library
        return False


class FuturesFinder:
    """Finder of mpi4py's module of pools."""

    @staticmethod
    def find_spec(name: str, path: "Sequence[str] | None" = None, target: object = None) -> "ModuleSpec | None":
        """Find the module where Python finds it, with a loader that adapts it; None for all others."""
        if name != "mpi4py.futures._core":
            return None

        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        loader = spec.loader if spec is not None else None
        if loader is not None:
            load = loader.exec_module

            def load_and_adapt(module: "ModuleType") -> None:
                load(module)
                from limosa._futures import adapt

                adapt(module)

            loader.exec_module = load_and_adapt  # type: ignore[method-assign]
        return spec


if Finder not in sys.meta_path:
    sys.meta_path.append(Finder)
    sys.meta_path.insert(0, FuturesFinder)
