"""Run a Python script as ``limosa run script.py`` does.

That is as ``python script.py`` would, but an uncaught exception ends the job.

``python -m limosa.run_script -m module arguments...`` does the same for a module.
``python -m limosa.run_script script.py arguments...`` runs the script in ``__main__`` with its own `sys.argv` and
`sys.path`. What differs from plain Python is described in `limosa._uncaught`, and on libraries other than Limosa, whose
launchers do not end the job by themselves while a rank that has left waits in ``MPI_Finalize``: there ``sys.exit`` with
an error aborts it.
"""

import io
import os
import runpy
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from limosa import _uncaught

__all__ = ["main"]


def _call(function: Callable[..., object], *args: object, **keywords: object) -> object:
    """Call the function."""
    return function(*args, **keywords)


def main(execute: Callable[[CodeType, dict[str, Any]], object] = exec, call: Callable[..., object] = _call) -> None:
    """Run the script that the first argument names.

    Parameters
    ----------
    execute
        Runs the code of a script in a namespace.
    call
        Calls the function that runs a module, with its arguments.

    Raises
    ------
    SystemExit
        As the script raises it; with code 2 if there is no script.
    """
    if len(sys.argv) < 2:
        sys.exit("usage: python -m limosa.run_script SCRIPT [ARGUMENTS]...")
    del sys.argv[0]
    if sys.argv[0] == "-m":
        _run_module(call)
        return
    script = os.path.abspath(sys.argv[0])  # noqa: PTH100 - pathlib is not needed to run a script
    if not _is_path_safe():
        sys.path.insert(0, os.path.dirname(os.path.realpath(script)))  # noqa: PTH120
    _uncaught.hide_frames_of(__file__)
    _uncaught.hide_frames_of("<string>")
    _uncaught.hide_frames_of("<frozen runpy>")
    _uncaught.install()
    with io.open_code(script) as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    names = vars(sys.modules["__main__"])
    for name in names.keys() - {"__annotations__", "__builtins__", "__name__"}:
        del names[name]
    names.update(
        __file__=script, __loader__=SourceFileLoader("__main__", script), __spec__=None, __package__=None, __doc__=None
    )
    try:
        execute(code, names)
    except SystemExit as leaving:
        if leaving.code and "LIMOSA_RANK" not in os.environ and "mpi4py.MPI" in sys.modules:
            from mpi4py.run import set_abort_status

            set_abort_status(leaving)
        raise


def _run_module(call: Callable[..., object]) -> None:
    """Run a module as ``python -m MODULE`` does."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m limosa.run_script -m MODULE [ARGUMENTS]...")
    del sys.argv[0]
    if not _is_path_safe():
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - pathlib is not needed to run a module
    for ours in (__file__, "<string>", "<frozen runpy>", runpy.__file__):
        _uncaught.hide_frames_of(ours)
    _uncaught.install()
    call(runpy.run_module, sys.argv[0], run_name="__main__", alter_sys=True)


def _is_path_safe() -> bool:
    """Tell whether Python was asked to keep the folder of the script out of `sys.path` (``-P``, from 3.11 on)."""
    return bool(getattr(sys.flags, "safe_path", False)) or bool(sys.flags.isolated)


if __name__ == "__main__":
    if not _is_path_safe():
        del sys.path[0]
    import_module("limosa.run_script").main()  # a second copy: the names of this one make room for the script's
