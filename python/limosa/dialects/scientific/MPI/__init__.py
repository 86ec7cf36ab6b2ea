"""ScientificPython's interface (version 2.9): ``from Scientific import MPI`` in scripts that were run by ``mpipython``.

Everything is a method of a communicator; ``world`` is the one of all processes. Arrays are filled in place, strings are
returned::

    from Scientific.MPI import world
    from Scientific import MPI, N

    data = N.zeros(4, N.Float)
    if world.rank == 0:
        world.send(N.arrayrange(4.0), 1, tag=7)
    elif world.rank == 1:
        data, source, tag, count = world.receive(data, 0, 7)
    world.allreduce(N.array([1.0]), data[:1], MPI.sum)

Scripts run under any Python: ``limosa run -n 4 script.py``. MPI starts at the import.

Strings travel as UTF-8. ``receiveString`` gives ``str`` for what was sent as ``str``, ``bytes`` for what was sent as
``bytes`` (these are marked by a byte 0xFF in front, which no UTF-8 text has).

Differs from upstream on purpose:

===================================== =============================================== ==================================
what                                  Scientific.MPI                                  here
===================================== =============================================== ==================================
one process, plain Python             a DummyCommunicator without ``reduce`` and more a real communicator of one process
messages to oneself                   may wait for ever                               are copied, and never wait
arguments                             by position only                                also by keyword
ranks and tags as NumPy integers      TypeError                                       accepted
receiving into a non-contiguous array ValueError                                      filled
``prod`` of complex arrays            real and imaginary parts apart                  the product of complex numbers
second array of ``reduce`` elsewhere  must fit                                        ignored, may be None
than on the root
uncaught exception on one rank        the others wait                                 ends the job
``_C_API``                            for extension modules                           None
===================================== =============================================== ==================================
"""

from __future__ import annotations

from limosa.dialects import end_job_on_exception as _end_job_on_exception
from limosa.dialects.scientific.MPI.core import (
    MPICommunicator,
    MPIError,
    MPIOperationObject,
    MPIRequest,
    PyMPICommunicator,
    band,
    bor,
    bxor,
    land,
    lor,
    lxor,
    max,
    maxloc,
    min,
    minloc,
    prod,
    replace,
    sum,
    world,
)

__all__ = [
    "MPICommunicator",
    "MPIError",
    "MPIOperationObject",
    "MPIRequest",
    "PyMPICommunicator",
    "band",
    "bor",
    "bxor",
    "land",
    "lor",
    "lxor",
    "max",
    "maxloc",
    "min",
    "minloc",
    "prod",
    "replace",
    "sum",
    "world",
]

_C_API = None

_end_job_on_exception()
