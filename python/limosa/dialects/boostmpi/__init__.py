"""boostmpi: Boost.MPI's Python interface as in boostmpi 1.38, with what Boost's own bindings gained since.

MPI is initialised by the import. `limosa.dialects.boost_mpi` is the same under the names of Boost's own bindings.

Differs from upstream
---------------------

==========================================  ============================================================================
upstream                                    here
==========================================  ============================================================================
a collective without a communicator takes   ``all_reduce(x, f)``, as the manual writes it, works too
keywords only
skeletons exist for C++ types that C++      skeletons exist for NumPy arrays of numbers
code has registered
``Request.test()`` fails (boostmpi 1.38)    works
``wait_any`` and others take a RequestList  any list will do
the truth value of a communicator exists    exists; false for ``split`` with a negative colour
for Python 2 only
a long object that is received by           it is received by whatever waits in this module (but collectives other than
``irecv`` flows in ``wait`` and ``test``    ``barrier``), so that two ranks that both irecv, then send, then wait go on
only
``Communicator.split`` with a negative      as MPI_UNDEFINED: no communicator
colour is an error
``host_rank``                               None: MPI 5 has no such thing
==========================================  ============================================================================

As upstream: collectives are functions of the module, `root` has no default, requests that are done stay in their list.
"""

import sys
from typing import Any

from mpi4py import MPI

from limosa.dialects import end_job_on_exception
from limosa.dialects.boostmpi._collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    reduce,
    scan,
    scatter,
)
from limosa.dialects.boostmpi._communicator import Communicator, any_source, any_tag, world
from limosa.dialects.boostmpi._errors import Error, ObjectWithoutSkeletonError
from limosa.dialects.boostmpi._requests import (
    Request,
    RequestList,
    RequestWithValue,
    Status,
    test_all,
    test_any,
    test_some,
    wait_all,
    wait_any,
    wait_some,
)
from limosa.dialects.boostmpi._skeleton import Content, SkeletonProxy, get_content, skeleton

__all__ = [
    "Communicator",
    "Content",
    "Error",
    "ObjectWithoutSkeletonError",
    "Request",
    "RequestList",
    "RequestWithValue",
    "SkeletonProxy",
    "Status",
    "Timer",
    "abort",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "any_source",
    "any_tag",
    "broadcast",
    "collectives_tag",
    "finalize",
    "finalized",
    "gather",
    "get_content",
    "host_rank",
    "init",
    "initialized",
    "io_rank",
    "max_tag",
    "processor_name",
    "rank",
    "reduce",
    "scan",
    "scatter",
    "size",
    "skeleton",
    "test_all",
    "test_any",
    "test_some",
    "wait_all",
    "wait_any",
    "wait_some",
    "world",
]

end_job_on_exception()

rank = world.rank
size = world.size
collectives_tag = int(MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) or 32767)
max_tag = collectives_tag - 1
processor_name = MPI.Get_processor_name()
host_rank: int | None = None
io_rank: int | None = MPI.COMM_WORLD.Get_attr(MPI.IO)


def init(argv: Any = None, abort_on_exception: bool = True) -> bool:
    """Initialise MPI, which the import has done; give False to say so."""
    return False


def finalize() -> None:
    """Leave MPI, which otherwise happens when the program ends."""
    if not MPI.Is_finalized():
        MPI.Finalize()


def abort(errcode: int) -> None:
    """End all ranks at once."""
    world.abort(errcode)


def initialized() -> bool:
    """Tell whether MPI is initialised."""
    return MPI.Is_initialized()


def finalized() -> bool:
    """Tell whether MPI has been left."""
    return MPI.Is_finalized()


class Timer:
    """A clock that starts when it is made.

    Attributes
    ----------
    elapsed
        Seconds since the start.
    elapsed_min, elapsed_max
        The smallest and the largest time that can be measured.
    time_is_global
        Whether the clocks of all ranks show the same time.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start again from 0."""
        self._start = MPI.Wtime()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return MPI.Wtime() - self._start

    @property
    def elapsed_min(self) -> float:
        """The smallest time that can be measured."""
        return MPI.Wtick()

    @property
    def elapsed_max(self) -> float:
        """The largest time that can be measured."""
        return sys.float_info.max

    @property
    def time_is_global(self) -> bool:
        """Whether the clocks of all ranks show the same time."""
        return bool(MPI.COMM_WORLD.Get_attr(MPI.WTIME_IS_GLOBAL))
