"""MPI libraries from the Python package index, each in a virtual environment of its own.

They live in ``${XDG_CACHE_HOME:-~/.cache}/limosa/peers/NAME`` and are used again while they are there; delete the
folder to get a newer version. An environment of its own because their files (``bin/mpiexec``, ``lib/libmpi_abi.so.1``)
have the names of Limosa's: in one environment the package installed last would overwrite files of the first.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

COMPLETE = ".limosa-complete"
"""The file that says that an environment is complete: the last step of making one."""


class InstallError(Exception):
    """A package could not be installed; the message names the command, whose own messages are on standard error."""


def cache_folder() -> Path:
    """Give the user's cache folder of Limosa."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "limosa"


def folder_of(name: str) -> Path:
    """Give the folder of a library's environment, whether it exists or not."""
    return cache_folder() / "peers" / name


def is_installed(name: str) -> bool:
    """Tell whether a library's environment is there and complete."""
    return (folder_of(name) / COMPLETE).exists()


def install(name: str, title: str, package: str, say: Callable[[str], None]) -> Path:
    """Give the environment that holds a package, made now if it is not there yet.

    Parameters
    ----------
    name
        Name of the folder.
    title
        Name of the library as people write it.
    package
        Name of the package.
    say
        Called with one sentence if something is installed.

    Returns
    -------
    Path
        Prefix of the environment.

    Raises
    ------
    InstallError
        If the environment cannot be made, for instance without a connection to the package index.
    """
    import fcntl
    import shutil

    prefix = folder_of(name)
    if is_installed(name):
        return prefix
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with (prefix.parent / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two jobs that start at once make one environment
        if not is_installed(name):
            say(f"installing {title} (package {package}) into {prefix}, once")
            shutil.rmtree(prefix, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(prefix)])
            _run(
                [
                    str(prefix / "bin" / "python"),
                    "-m",
                    "pip",
                    "--quiet",
                    "--disable-pip-version-check",
                    "install",
                    package,
                ]
            )
            (prefix / COMPLETE).touch()
    return prefix


def _run(command: list[str]) -> None:
    """Run a command whose output goes to standard error."""
    import subprocess

    code = subprocess.run(command, stdout=sys.stderr).returncode
    if code != 0:
        raise InstallError(f"`{' '.join(command)}` failed with exit code {code}; its messages are above")
