"""The exceptions of ``import limosa``: one class for each error class of MPI, all derived from `Error`.

Each is also the built-in exception that a Python programmer would expect (`RankError` is a `ValueError`,
`NoMemoryError` a `MemoryError`), so both kinds of ``except`` work. They are made from the table below.

Examples
--------
>>> import limosa
>>> try:
...     limosa.world.send("hello", to=99)
... except limosa.errors.RankError as error:
...     print(error.call, error.error_class == "MPI_ERR_RANK")
send True

"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi4py import MPI


class Error(Exception):
    """Something went wrong in a call of `limosa`.

    Parameters
    ----------
    message
        What is wrong, where, and what to do.
    call
        The method that was called, such as ``"send"``.
    rank
        The rank of this process in the communicator of the call.
    value
        What had been received when the error was found, so that nothing is lost.

    Attributes
    ----------
    error_class : str
        Name of the MPI error class, such as ``"MPI_ERR_RANK"``.
    message, call, rank, value
        As given.

    """

    error_class = "MPI_ERR_OTHER"

    def __init__(self, message: str, *, call: str = "", rank: int | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.call = call
        self.rank = rank
        self.value = value

    def __str__(self) -> str:
        where = f"{self.call} on rank {self.rank}" if self.rank is not None else self.call
        return f"{where}: {self.message}" if where else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"call": self.call, "rank": self.rank, "value": self.value}
        return type(self), (self.message,), state


class MismatchError(Error, ValueError):
    """The ranks of a collective call did not fit together, such as arrays of different shapes in a reduction.

    It is raised on every rank. Nothing was transferred, and the communicator can be used again.
    """

    error_class = "MPI_ERR_ARG"


class PeerError(Error, RuntimeError):
    """Another rank could not take part in a collective call; there, the reason was raised.

    Nothing was transferred, and the communicator can be used again.
    """


# MPI's name of the error class without MPI_ERR_, the name of the exception, the built-in exception it also is, its
# meaning.
_TABLE: tuple[tuple[str, str, type[Exception] | None, str], ...] = (
    ("BUFFER", "BufferError", builtins.BufferError, "The memory of a message cannot be used."),
    ("COUNT", "CountError", ValueError, "A number of elements is not valid."),
    ("TYPE", "DatatypeError", TypeError, "The type of the elements is not valid, or not what was sent."),
    ("TAG", "TagError", ValueError, "A tag is not valid."),
    ("COMM", "CommError", ValueError, "The communicator is not valid, such as one that was freed."),
    ("RANK", "RankError", ValueError, "A rank is not in the communicator."),
    ("REQUEST", "RequestError", ValueError, "A request is not valid."),
    ("ROOT", "RootError", ValueError, "The root of a collective call is not in the communicator."),
    ("GROUP", "GroupError", ValueError, "A group is not valid."),
    ("OP", "OpError", ValueError, "A reduction is not valid, or not defined for these elements."),
    ("TOPOLOGY", "TopologyError", ValueError, "The communicator has no such topology."),
    ("DIMS", "DimsError", ValueError, "The dimensions of a grid are not valid."),
    ("ARG", "ArgumentError", ValueError, "An argument is not valid."),
    ("UNKNOWN", "UnknownError", None, "The library does not know what went wrong."),
    ("TRUNCATE", "TruncateError", ValueError, "A message is larger than the memory provided for it."),
    ("OTHER", "OtherError", RuntimeError, "An error without a class of its own."),
    ("INTERN", "InternalError", RuntimeError, "The MPI library itself is at fault."),
    ("IN_STATUS", "InStatusError", None, "One of several requests failed."),
    ("PENDING", "PendingError", None, "A request is neither complete nor failed."),
    ("KEYVAL", "KeyvalError", ValueError, "A key of an attribute is not valid."),
    ("NO_MEM", "NoMemoryError", MemoryError, "There is not enough memory."),
    ("BASE", "AddressError", ValueError, "An address was not obtained from MPI."),
    ("INFO_KEY", "InfoKeyError", ValueError, "A key of an info object is too long or empty."),
    ("INFO_VALUE", "InfoValueError", ValueError, "A value of an info object is too long or empty."),
    ("INFO_NOKEY", "InfoNoKeyError", KeyError, "An info object has no such key."),
    ("SPAWN", "SpawnError", OSError, "Processes could not be started."),
    ("PORT", "PortError", ValueError, "A port is not valid."),
    ("SERVICE", "ServiceError", ValueError, "A service is not published."),
    ("NAME", "ServiceNameError", LookupError, "A service name is not known."),
    ("WIN", "WindowError", ValueError, "A window is not valid."),
    ("SIZE", "SizeError", ValueError, "A size is not valid."),
    ("DISP", "DisplacementError", ValueError, "A displacement is not valid."),
    ("INFO", "InfoError", ValueError, "An info object is not valid."),
    ("LOCKTYPE", "LockTypeError", ValueError, "A kind of lock is not valid."),
    ("ASSERT", "AssertError", ValueError, "An assertion given to a call is not valid."),
    ("RMA_CONFLICT", "RmaConflictError", None, "Accesses to a window conflict."),
    ("RMA_SYNC", "RmaSyncError", None, "Synchronisation of a window is used wrongly."),
    ("RMA_RANGE", "RmaRangeError", ValueError, "Memory is outside a window."),
    ("RMA_ATTACH", "RmaAttachError", None, "Memory cannot be attached to a window."),
    ("RMA_SHARED", "RmaSharedError", None, "Memory cannot be shared."),
    ("RMA_FLAVOR", "RmaFlavorError", ValueError, "The window is of another kind."),
    ("BAD_FILE", "BadFileError", OSError, "A file name is not valid."),
    ("NO_SUCH_FILE", "NoSuchFileError", FileNotFoundError, "There is no such file."),
    ("FILE_EXISTS", "FileExistsError", builtins.FileExistsError, "The file exists already."),
    ("FILE_IN_USE", "FileInUseError", OSError, "The file is in use."),
    ("AMODE", "AccessModeError", ValueError, "An access mode is not valid."),
    ("ACCESS", "AccessError", PermissionError, "Access is not permitted."),
    ("READ_ONLY", "ReadOnlyError", OSError, "The file or file system can only be read."),
    ("NO_SPACE", "NoSpaceError", OSError, "There is not enough space."),
    ("QUOTA", "QuotaError", OSError, "A quota is exceeded."),
    ("NOT_SAME", "NotSameError", ValueError, "The ranks gave different arguments."),
    ("UNSUPPORTED_DATAREP", "UnsupportedDatarepError", NotImplementedError, "A data representation is not supported."),
    (
        "UNSUPPORTED_OPERATION",
        "UnsupportedOperationError",
        NotImplementedError,
        "The library does not have this function.",
    ),
    ("DUP_DATAREP", "DupDatarepError", ValueError, "A data representation exists already."),
    ("CONVERSION", "ConversionError", ValueError, "Data could not be converted."),
    ("IO", "IOError", OSError, "Reading or writing failed."),
    ("FILE", "FileError", ValueError, "A file handle is not valid."),
    ("SESSION", "SessionError", ValueError, "A session is not valid."),
    ("VALUE_TOO_LARGE", "ValueTooLargeError", OverflowError, "A value does not fit into its type."),
    ("ERRHANDLER", "ErrhandlerError", ValueError, "An error handler is not valid."),
    ("ABI", "AbiError", RuntimeError, "The library's binary interface does not fit."),
    ("PROC_ABORTED", "ProcessAbortedError", RuntimeError, "A process has aborted."),
    ("PROC_FAILED", "ProcessFailedError", RuntimeError, "A process has failed."),
    (
        "PROC_FAILED_PENDING",
        "ProcessFailedPendingError",
        RuntimeError,
        "A process has failed that a receive might wait for.",
    ),
    ("REVOKED", "RevokedError", RuntimeError, "The communicator was revoked."),
)


def _make(mpi_name: str, name: str, also: type[Exception] | None, meaning: str) -> type[Error]:
    bases = (Error,) if also is None else (Error, also)
    return type(
        name,
        bases,
        {
            "__doc__": f"{meaning} (``MPI_ERR_{mpi_name}``)",
            "__module__": __name__,
            "error_class": f"MPI_ERR_{mpi_name}",
        },
    )


BY_CLASS: dict[str, type[Error]] = {row[0]: _make(*row) for row in _TABLE}
"""The exception of each MPI error class, by its name without ``MPI_ERR_``."""

globals().update({made.__name__: made for made in BY_CLASS.values()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[Error]: ...


# They are strings.
__all__ = ["BY_CLASS", "Error", "MismatchError", "PeerError", *(made.__name__ for made in BY_CLASS.values())]  # noqa: PLE0604


def from_mpi(error: MPI.Exception, *, call: str, rank: int | None = None, tried: str = "") -> Error:
    """Translate an exception of mpi4py.

    Parameters
    ----------
    error
        The exception that mpi4py raised.
    call, rank
        The method that was called, and the rank of this process.
    tried
        What the call was asked to do, such as ``"to=9, tag=0"``.

    Returns
    -------
    Error
        The exception of the same error class, to be raised.

    """
    from mpi4py import MPI

    number = error.Get_error_class()
    made = next(
        (kind for name, kind in BY_CLASS.items() if getattr(MPI, f"ERR_{name}", None) == number), BY_CLASS["UNKNOWN"]
    )
    # Limosa puts the C function before its sentence; here the method that was called has that place.
    reason = re.sub(r"^MPI_[A-Z][a-z]\w*: ", "", error.Get_error_string().strip())
    return made(f"{reason} ({tried})" if tried else reason, call=call, rank=rank)
