"""Run a Python script under pdb, for ``limosa run --debug pdb script.py``.

The script runs once, as under `limosa.run_script`, from its first line on. An exception that the program does not
handle stops in the frame that raised it, and ends the rank afterwards. A rank whose debugger is left ends without
``MPI_Finalize``, in which it would wait for the others.
"""

import os
import pdb
import sys
import traceback

from limosa import run_script

__all__ = ["main"]


class _Debugger(pdb.Pdb):
    """pdb that begins with the program's first line, and ends the process when the user leaves it."""

    has_begun = False

    def is_skipped_module(self, module_name: str) -> bool:
        self.has_begun = self.has_begun or module_name == "__main__"
        return not self.has_begun or super().is_skipped_module(module_name)

    def set_quit(self) -> None:
        _leave(0)


def main() -> None:
    """Run the script, or with ``-m`` the module, that the first argument names.

    Raises
    ------
    SystemExit
        As the script raises it.
    """
    debugger = _Debugger(skip=["runpy", "limosa", "limosa.*"])
    try:
        run_script.main(debugger.run, debugger.runcall)
    except pdb.Restart:
        print("The job cannot begin anew with one rank: leave the debugger and start it again")
        _leave(1)
    except SystemExit:
        raise
    except BaseException as error:
        traceback.print_exc()
        pdb.post_mortem(error.__traceback__)
        _leave(1)


def _leave(code: int) -> None:
    """End the process, without exit handlers."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
