"""MYMPI's interface, also known as pydusa (version 4): ``import mpi`` in scripts whose calls look like those of C.

Data goes in as numbers, lists, arrays, or bytes, with count and type; results are new flat NumPy arrays; communicators,
types and operations are integers::

    import sys, mpi

    sys.argv = mpi.mpi_init(len(sys.argv), sys.argv)
    me = mpi.mpi_comm_rank(mpi.MPI_COMM_WORLD)
    total = mpi.mpi_reduce(me, 1, mpi.MPI_INT, mpi.MPI_SUM, 0, mpi.MPI_COMM_WORLD)
    if me == 0:
        print(total[0])
    mpi.mpi_finalize()

Differs from upstream on purpose:

==================================== ===================================== =============================================
what                                 MYMPI                                 here
==================================== ===================================== =============================================
types other than INT, FLOAT, DOUBLE, a message, then treated as INT        carried as what they are
CHAR
a count beyond the data              reads foreign memory                  `mpi.error`
rest of a message shorter than asked whatever the memory held              zeros
for
bytes sent as another type than CHAR reads foreign memory                  as many elements as they make
str as data                          error                                 its UTF-8 bytes
MPI starts                           at ``mpi_init``                       at the import
``mpi_finalize`` forgotten           depends on the library                done at the end of the script
error, default handler               ends the job                          raises `mpi.error`; uncaught, it ends the job
uncaught exception on one rank       the others wait                       ends the job
``mpi_isend``, ``mpi_irecv``,        print that they do not work, and fail NotImplementedError
``mpi_test``, ``mpi_wait``
``par_slu``                          optional                              not there
==================================== ===================================== =============================================
"""

from __future__ import annotations

from typing import NoReturn

from mpi4py import MPI as _MPI

from limosa.dialects import end_job_on_exception as _end_job_on_exception
from limosa.dialects import mpi_choice as _mpi_choice
from limosa.dialects.mympi import messages as _messages
from limosa.dialects.mympi import processes as _processes
from limosa.dialects.mympi.handles import error
from limosa.dialects.mympi.messages import *  # noqa: F403
from limosa.dialects.mympi.processes import *  # noqa: F403

__all__ = [
    "ARRAY_LIBRARY",
    "COPYWRITE",
    "DATE_DOC",
    "DATE_SRC",
    "MPI_2INT",
    "MPI_ANY_SOURCE",
    "MPI_ANY_TAG",
    "MPI_ARGV_NULL",
    "MPI_BAND",
    "MPI_BOR",
    "MPI_BOTTOM",
    "MPI_BSEND_OVERHEAD",
    "MPI_BXOR",
    "MPI_BYTE",
    "MPI_CHAR",
    "MPI_COMM_NULL",
    "MPI_COMM_TYPE_SHARED",
    "MPI_COMM_WORLD",
    "MPI_DATATYPE_NULL",
    "MPI_DOUBLE",
    "MPI_DOUBLE_INT",
    "MPI_ERRHANDLER_NULL",
    "MPI_FLOAT",
    "MPI_FLOAT_INT",
    "MPI_GROUP_NULL",
    "MPI_HOST",
    "MPI_INFO_NULL",
    "MPI_INT",
    "MPI_IO",
    "MPI_KEYVAL_INVALID",
    "MPI_LAND",
    "MPI_LONG",
    "MPI_LONG_DOUBLE",
    "MPI_LONG_DOUBLE_INT",
    "MPI_LONG_INT",
    "MPI_LONG_LONG_INT",
    "MPI_LOR",
    "MPI_LXOR",
    "MPI_MAX",
    "MPI_MAXLOC",
    "MPI_MAX_ERROR_STRING",
    "MPI_MAX_PROCESSOR_NAME",
    "MPI_MIN",
    "MPI_MINLOC",
    "MPI_OP_NULL",
    "MPI_PACKED",
    "MPI_PROC_NULL",
    "MPI_PROD",
    "MPI_REQUEST_NULL",
    "MPI_ROOT",
    "MPI_SHORT",
    "MPI_SHORT_INT",
    "MPI_SUBVERSION",
    "MPI_SUM",
    "MPI_TAG_UB",
    "MPI_UNDEFINED",
    "MPI_UNIVERSE_SIZE",
    "MPI_UNSIGNED",
    "MPI_UNSIGNED_CHAR",
    "MPI_UNSIGNED_LONG",
    "MPI_UNSIGNED_SHORT",
    "MPI_VERSION",
    "MPI_WTIME_IS_GLOBAL",
    "VERSION",
    "MPI_Pack",
    "MPI_Unpack",
    "copywrite",
    "error",
    "pydusa_version",
]  # fmt: skip
__all__ += _messages.__all__ + _processes.__all__

# Types
MPI_CHAR, MPI_BYTE, MPI_SHORT, MPI_INT, MPI_LONG = (
    _MPI.CHAR.handle,
    _MPI.BYTE.handle,
    _MPI.SHORT.handle,
    _MPI.INT.handle,
    _MPI.LONG.handle,
)
MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_LONG_LONG_INT = (
    _MPI.FLOAT.handle,
    _MPI.DOUBLE.handle,
    _MPI.LONG_DOUBLE.handle,
    _MPI.LONG_LONG.handle,
)
MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT = _MPI.UNSIGNED_CHAR.handle, _MPI.UNSIGNED_SHORT.handle
MPI_UNSIGNED, MPI_UNSIGNED_LONG = _MPI.UNSIGNED.handle, _MPI.UNSIGNED_LONG.handle
MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT = _MPI.FLOAT_INT.handle, _MPI.DOUBLE_INT.handle, _MPI.LONG_INT.handle
MPI_SHORT_INT, MPI_2INT, MPI_LONG_DOUBLE_INT = _MPI.SHORT_INT.handle, _MPI.TWOINT.handle, _MPI.LONG_DOUBLE_INT.handle
MPI_PACKED = MPI_Pack = MPI_Unpack = _MPI.PACKED.handle

# Operations
MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD = _MPI.MAX.handle, _MPI.MIN.handle, _MPI.SUM.handle, _MPI.PROD.handle
MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR = _MPI.LAND.handle, _MPI.BAND.handle, _MPI.LOR.handle, _MPI.BOR.handle
MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC = _MPI.LXOR.handle, _MPI.BXOR.handle, _MPI.MINLOC.handle, _MPI.MAXLOC.handle

# Other handles
MPI_COMM_WORLD, MPI_COMM_NULL, MPI_GROUP_NULL = _MPI.COMM_WORLD.handle, _MPI.COMM_NULL.handle, _MPI.GROUP_NULL.handle
MPI_OP_NULL, MPI_DATATYPE_NULL, MPI_REQUEST_NULL = (
    _MPI.OP_NULL.handle,
    _MPI.DATATYPE_NULL.handle,
    _MPI.REQUEST_NULL.handle,
)
MPI_ERRHANDLER_NULL, MPI_INFO_NULL = _MPI.ERRHANDLER_NULL.handle, _MPI.INFO_NULL.handle

# Numbers
MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL, MPI_ROOT = _MPI.ANY_SOURCE, _MPI.ANY_TAG, _MPI.PROC_NULL, _MPI.ROOT
MPI_UNDEFINED, MPI_KEYVAL_INVALID, MPI_BSEND_OVERHEAD = _MPI.UNDEFINED, _MPI.KEYVAL_INVALID, _MPI.BSEND_OVERHEAD
MPI_MAX_PROCESSOR_NAME, MPI_MAX_ERROR_STRING = _MPI.MAX_PROCESSOR_NAME, _MPI.MAX_ERROR_STRING
MPI_TAG_UB, MPI_HOST, MPI_IO = _MPI.TAG_UB, getattr(_MPI, "HOST", _MPI.KEYVAL_INVALID), _MPI.IO
MPI_WTIME_IS_GLOBAL, MPI_UNIVERSE_SIZE, MPI_COMM_TYPE_SHARED = (
    _MPI.WTIME_IS_GLOBAL,
    _MPI.UNIVERSE_SIZE,
    _MPI.COMM_TYPE_SHARED,
)
MPI_VERSION, MPI_SUBVERSION = _MPI.Get_version()
MPI_BOTTOM = MPI_ARGV_NULL = 0

# About the module
VERSION = "4.0.0"
ARRAY_LIBRARY = "NUMPY"
COPYWRITE = "MYMPI's interface as part of Limosa, BSD-3-Clause; print mpi.copywrite() for more"
DATE_DOC = DATE_SRC = "2024-11"  # of the version that this interface is the one of


def copywrite() -> str:
    """The authors."""
    return (
        "This is Limosa's module for the calls of MYMPI (pydusa), which is a work of The Regents of the University of "
        "California."
    )


def pydusa_version() -> str:
    """Version of pydusa whose calls these are."""
    return VERSION


def __getattr__(missing: str) -> NoReturn:
    _mpi_choice.refuse(missing, "mympi")


_end_job_on_exception()
