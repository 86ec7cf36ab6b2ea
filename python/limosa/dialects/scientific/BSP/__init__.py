"""``Scientific.BSP``: programs that compute and exchange data in turns, without a deadlock (bulk-synchronous parallel).

Every value is a global object with a local value on each processor; operations work on the local values::

    from Scientific.BSP import ParFunction, ParRootFunction, ParSequence, numberOfProcessors
    import operator

    square = ParFunction(lambda items: [item**2 for item in items])
    results = square(ParSequence(range(100)))
    total = results.reduce(operator.add, [])
    ParRootFunction(print)(total)

All communication goes through one exchange of all processors at once, `core.sync`; what comes in is ordered by sender.

Differs from upstream on purpose:

====================================== ======================================== ========================================
what                                   Scientific.BSP                           here
====================================== ======================================== ========================================
order of received data                 undefined                                by sender
an exception on one processor          the others wait                          ends the job
``broadcast`` of invalid data          an error on one processor, the others    the same, which ends the job
                                       wait
remote objects, ``Console``,           parts of the package                     not there
``Tasks``, ``IO``
====================================== ======================================== ========================================
"""

from __future__ import annotations

from limosa.dialects import end_job_on_exception as _end_job_on_exception
from limosa.dialects.scientific.BSP.classes import ParBase, ParClass, ParInvalid, ParMethod, is_invalid
from limosa.dialects.scientific.BSP.core import numberOfProcessors, processorID, put, send, sync
from limosa.dialects.scientific.BSP.values import (
    ParAccumulator,
    ParConstant,
    ParData,
    ParFunction,
    ParIndex,
    ParIndexIterator,
    ParIterator,
    ParMessages,
    ParRootFunction,
    ParRootSequence,
    ParSequence,
    ParSlice,
    ParTuple,
    ParValue,
)

ParRootConstant = ParConstant

__all__ = [
    "ParAccumulator",
    "ParBase",
    "ParClass",
    "ParConstant",
    "ParData",
    "ParFunction",
    "ParIndex",
    "ParIndexIterator",
    "ParInvalid",
    "ParIterator",
    "ParMessages",
    "ParMethod",
    "ParRootConstant",
    "ParRootFunction",
    "ParRootSequence",
    "ParSequence",
    "ParSlice",
    "ParTuple",
    "ParValue",
    "is_invalid",
    "numberOfProcessors",
    "processorID",
    "put",
    "send",
    "sync",
]

_end_job_on_exception()
