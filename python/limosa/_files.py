"""Where the wheel's files are after installation.

An installer puts them under the prefix of the environment (``lib``, ``include``, ``bin``) and keeps a
record of it; the record is asked, so the answer is right for virtual environments, ``--user`` and
``--prefix`` alike.
"""

from importlib.metadata import distribution
from pathlib import Path


def installed_file(name: str) -> Path:
    """Give the place of an installed file of the wheel.

    Parameters
    ----------
    name
        The last parts of its path, such as ``lib/libmpi_abi.so.1``.

    Returns
    -------
    Path
        Absolute path of the file.

    Raises
    ------
    FileNotFoundError
        If the installation has no such file.

    """
    wanted = Path(name).parts
    for file in distribution("limosa").files or []:
        if file.name != wanted[-1]:
            continue
        path = Path(str(file.locate())).resolve()
        if path.parts[-len(wanted) :] == wanted and path.exists():
            return path
    raise FileNotFoundError(
        f"{name} is not part of this installation of limosa; install the wheel again: pip install --force-reinstall "
        "limosa"
    )


def get_lib_path() -> str:
    """Give the path of the MPI library.

    Returns
    -------
    str
        Absolute path of ``libmpi_abi.so.1``.

    Examples
    --------
    >>> import limosa
    >>> limosa.get_lib_path().endswith("lib/libmpi_abi.so.1")
    True

    """
    return str(installed_file("lib/libmpi_abi.so.1"))


def get_include() -> str:
    """Give the folder of the C header.

    Returns
    -------
    str
        Absolute path of the folder that holds ``mpi.h``.

    Examples
    --------
    >>> import limosa, pathlib
    >>> (pathlib.Path(limosa.get_include()) / "mpi.h").is_file()
    True

    """
    return str(installed_file("include/mpi.h").parent)
