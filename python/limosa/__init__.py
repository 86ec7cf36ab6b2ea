"""Limosa: message passing between the processes of a parallel program.

::

    import limosa
    import numpy as np

    world = limosa.world
    total = world.allreduce(np.full(3, world.rank))
    if world.rank == 0:
        world.send({"total": total}, to=1)
    elif world.rank == 1:
        print(world.recv(source=0))

Started with ``limosa run -n 4 script.py``, or by any other MPI launcher with an MPI library that has the MPI-5 standard
ABI. The methods of `limosa.world` are those of `Comm`. MPI is initialised when `limosa.world` or another name of the
interface is first used, not when the package is imported: its tools, such as ``limosa doctor``, work without MPI.
"""

from __future__ import annotations

from importlib import import_module

import _limosa_mpi4py  # noqa: F401 - in folders of PYTHONPATH no limosa.pth is read

TYPE_CHECKING = False  # without `typing`, which takes as long as the rest of what tools import
if TYPE_CHECKING:
    from typing import Any

    from IPython.core.interactiveshell import InteractiveShell

    from limosa import arrays, errors, jobs
    from limosa._cart import Cart
    from limosa._comm import Comm
    from limosa._executor import Executor
    from limosa._files import get_include, get_lib_path
    from limosa._graph import Graph
    from limosa._messages import Status
    from limosa._open import File, open
    from limosa._ops import BAND, BOR, BXOR, LAND, LOR, LXOR, MAX, MAXLOC, MIN, MINLOC, PROD, SUM, Op
    from limosa._request import Request, wait_all, wait_any
    from limosa._spawn import Intercomm, spawn
    from limosa._transfer import ANY
    from limosa._windows import Remote, SharedArray, Window

    __version__: str
    world: Comm
    """The communicator of all processes of the job, or of those that were spawned together."""
    parent: Intercomm | None
    """The way to the processes that have spawned this one, if others have."""

# Where each public name is; a module is imported when a name of it is first used.
_HOMES = {
    "limosa._cart": ["Cart"],
    "limosa._comm": ["Comm"],
    "limosa._executor": ["Executor"],
    "limosa._files": ["get_include", "get_lib_path"],
    "limosa._graph": ["Graph"],
    "limosa._messages": ["Status"],
    "limosa._open": ["File", "open"],
    "limosa._ops": [
        "BAND",
        "BOR",
        "BXOR",
        "LAND",
        "LOR",
        "LXOR",
        "MAX",
        "MAXLOC",
        "MIN",
        "MINLOC",
        "PROD",
        "SUM",
        "Op",
    ],
    "limosa._request": ["Request", "wait_all", "wait_any"],
    "limosa._spawn": ["Intercomm", "spawn"],
    "limosa._transfer": ["ANY"],
    "limosa._windows": ["Remote", "SharedArray", "Window"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ANY",
    "BAND",
    "BOR",
    "BXOR",
    "LAND",
    "LOR",
    "LXOR",
    "MAX",
    "MAXLOC",
    "MIN",
    "MINLOC",
    "PROD",
    "SUM",
    "Cart",
    "Comm",
    "Executor",
    "File",
    "Graph",
    "Intercomm",
    "Op",
    "Remote",
    "Request",
    "SharedArray",
    "Status",
    "Window",
    "__version__",
    "arrays",
    "errors",
    "get_include",
    "get_lib_path",
    "jobs",
    "open",
    "parent",
    "spawn",
    "wait_all",
    "wait_any",
    "world",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(_import(_HOME[name]), name)
    elif name in ("arrays", "errors", "jobs"):
        return import_module(f"limosa.{name}")
    elif name == "world":
        value = _world()
    elif name == "parent":
        value = _import("limosa._spawn").parent()
    elif name == "__version__":
        from importlib.metadata import version

        value = version("limosa")
    else:
        if name.startswith("_"):  # Python asks for some, and for modules that are not imported yet
            raise AttributeError(f"module 'limosa' has no attribute {name!r}")
        from limosa._names import no_attribute

        raise no_attribute("module 'limosa'", name, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register the magic ``%%limosa``: what ``%load_ext limosa`` calls (see `limosa.magic`)."""
    from limosa import magic

    magic.load(ipython)


def _world() -> Comm:
    """Make the communicator of all processes, once."""
    comm = _import("limosa._comm")
    from mpi4py import MPI

    from limosa._uncaught import install

    install()
    made: Comm = comm.Comm(MPI.COMM_WORLD)
    return made


def _import(home: str) -> Any:
    try:
        return import_module(home)
    except (ImportError, RuntimeError) as error:
        from limosa._uncaught import MPI4PY_HINT, is_about_mpi4py

        if is_about_mpi4py(error):
            raise ImportError(f"limosa's interface needs mpi4py: {error}; hint: {MPI4PY_HINT}", name="mpi4py") from None
        if isinstance(error, ImportError) and (error.name or "").split(".")[0] == "numpy":
            raise ImportError(
                f"limosa's interface needs {error.name}: {error}; hint: pip install numpy", name=error.name
            ) from error
        raise
