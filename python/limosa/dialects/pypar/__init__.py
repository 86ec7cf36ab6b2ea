"""pypar: parallel Python with few, easy functions, as in pypar 2.1.5 (with the names of 1.9 and the defaults of 2.2).

MPI is initialised by the import; everything goes through the communicator of all ranks.

Differs from upstream
---------------------

==========================================  ============================================================================
upstream                                    here
==========================================  ============================================================================
messages with different tags from one       the tag always counts
sender could be mixed up, because what
described them had one common tag
a received string appears in the variable   Python's strings cannot be changed: use the value that is returned; a
given as buffer (also broadcast, gather,    ``bytearray`` is filled in place. ``str`` travels as UTF-8 and comes out as
scatter)                                    ``str``, ``bytes`` as ``bytes``
a message of the wrong form (with and       RuntimeError that says what to do, where the receiver can see it
without ``use_buffer``) hangs or corrupts
arrays of types other than i l f d F D      all numbers and bools travel as arrays, silently; other types are pickled
are pickled, with a printed warning
objects broadcast must be about equally     objects may have any size, and need to exist on the root only
long on all ranks
``reduce`` without ``buffer`` fails on      gives the result on the root, zeros elsewhere
more than one rank
NumPy integers as ranks: AssertionError     accepted
receive buffers must be contiguous          any array may be filled
TypeErrors where scatter, gather, reduce    TypeError that says what to do
got an unsuitable object
2.1 prints a line when it is imported       nothing is printed (as in 2.2)
``max_tag`` is a number without meaning     the largest tag
``finalize()`` must be called, once         need not be called, may be called twice; ``rank()`` and ``size()`` work
                                            after it
an exception on one rank leaves the others  its traceback is shown and the job ends
waiting for ever
without MPI, ``send`` and others fail       one process is a job of one rank
==========================================  ============================================================================

As upstream: ``receive`` without ``tag`` takes messages of tag 1 only; ``send`` to oneself of a long message blocks.
"""

# ruff: noqa: F401, F403
# No __all__: `from pypar import *` gave scripts whatever the module had imported, and some came to rely on it.
import os
import string
import sys
import types
from ctypes import *
from importlib import import_module
from warnings import warn

from mpi4py import MPI as _MPI
from numpy import prod as product
from numpy import reshape, zeros

from limosa.dialects import end_job_on_exception as _end_job_on_exception
from limosa.dialects.pypar import _base
from limosa.dialects.pypar._base import *
from limosa.dialects.pypar._collectives import *
from limosa.dialects.pypar._messages import *

__version__ = "2.1.5"
__date__ = "2013"
__author__ = "Ole Nielsen"  # of pypar; this module is Limosa's

_end_job_on_exception()


def size() -> int:
    """Give the number of ranks."""
    return _base.number_of_ranks


def rank() -> int:
    """Give the number of this process, from 0."""
    return _base.own_rank


def get_processor_name() -> str:
    """Give the name of the machine."""
    return _MPI.Get_processor_name()


def time() -> float:
    """Give the time in seconds since some moment in the past."""
    return _MPI.Wtime()


def barrier() -> None:
    """Wait until all ranks are here."""
    _base.comm.Barrier()


def init(argv: object = None) -> None:
    """Do nothing: MPI was initialised by the import."""


def initialized() -> int:
    """Tell whether MPI is initialised: 1 or 0."""
    return int(_MPI.Is_initialized())


def finalize() -> None:
    """Leave MPI; nothing can be communicated after it."""
    if not _MPI.Is_finalized():
        _MPI.Finalize()


def abort() -> None:
    """End all ranks at once."""
    sys.stdout.flush()
    _base.comm.Abort(0)


def balance(N: int, P: int, p: int) -> tuple[int, int]:
    """Divide the range 0 to N into P parts whose lengths differ by one at most; the first ones are longer.

    Returns
    -------
    int, int
        Start and end (exclusive) of part p; ``(N, N)`` for a part that does not exist (p >= P).

    Examples
    --------
    >>> [balance(29, 4, p) for p in range(4)]
    [(0, 8), (8, 15), (15, 22), (22, 29)]
    """
    if p >= P:
        return N, N
    length = int(N // P)
    longer = int(N - P * length)
    start = p * length + min(p, longer)
    return start, start + length + (p < longer)


def Wtime() -> float:
    """Give `time()`; the older name."""
    warn("pypar.Wtime will become obsolete soon. Please use pypar.time", stacklevel=2)
    return time()


def Get_processor_name() -> str:
    """Give `get_processor_name()`; the older name."""
    warn("pypar.Get_processor_name will become obsolete soon. Please use pypar.get_processor_name", stacklevel=2)
    return get_processor_name()


# The names of pypar 1.9.
Initialized, Finalize, Abort, Barrier = initialized, finalize, abort, barrier


def __getattr__(name: str) -> object:
    """Give `pypar.test`, which upstream imports at once."""
    if name == "test":
        return import_module("limosa.dialects.pypar.test")
    raise AttributeError(f"module 'pypar' has no attribute {name!r}")
