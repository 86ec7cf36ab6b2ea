"""The first messages of users' messages, and the first exchange of collective calls: compiled where that is possible.

`channel_of` gives a `limosa._fast_path.Channel` if mpi4py runs on a library with the standard's ABI and the module was
built, else the `Channel` of this module, which does the same with mpi4py and leaves more to its callers. Setting
``LIMOSA_PYTHON_FAST_PATH=0`` chooses the latter.

Contract
--------
``send(data, to, tag)`` and ``recv(room, source, tag)`` are calls of MPI.

``send_array(head, x, to, tag)``
    Sends a first message: the head and the memory of an array. False if that cannot be done; nothing has been sent.
``send_pickled(x, to, tag, most)``
    Sends a first message: the pickle of an object. If it is longer than `most`, it is given and has not been sent.
``value(source, tag)``
    Receives a first message into the inbox, and gives its value if it is a pickle, or an array as `done` has described
    one. For others it gives `OTHER`, and the inbox stays reserved until `done` is called. `NOTHING` if none has been
    received.
``divert(yes)``
    Says whether `value` shall receive nothing: there are messages elsewhere, at which the caller looks first.
``done(view)``
    Gives the inbox back; `view` is the array that is in it, or None.

The others have the names of collective calls and take their arguments, without ``out=``. Each exchanges what the ranks
call, with their values if these are short, and gives

* the result of the call, or
* NotImplemented, on all ranks: something is long or unusual, or the ranks differ. Then the general way follows.

``announce()`` takes part in this exchange for a call that goes the general way anyway; it gives NotImplemented. So
every collective call begins with this exchange.

At most one thread at a time is in a collective call of a communicator.
"""

from __future__ import annotations

import importlib
import os
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from limosa._ops import KNOWN, NAMES
from limosa._packet import PICKLED

OTHER = object()
"""What `value` gives if it has received a message of another kind."""
NOTHING = object()
"""What `value` gives if it has received no message."""

_ANNOUNCEMENT = bytes(48)
"""The slot of a rank that goes the general way; see ``python/compiled/collectives.c``."""

_DTYPES = tuple(map(np.dtype, "?bBhHiIlLfdFD"))
_SCALARS = tuple(dtype.type for dtype in _DTYPES)
_REDUCTIONS: dict[Any, tuple[int, Callable[[Any, Any], Any]]] = {
    name: (number, op.function)
    for number, op in enumerate(NAMES.values(), 1)
    for name in (op.name, op, *(function for function, known in KNOWN.items() if known is op))
}
"""Numbers and functions of the reductions that have names."""


class Channel:
    """What the fast path does, as far as mpi4py does it without loss.

    Parameters
    ----------
    comm
        The communicator.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.send = comm.Send
        self.recv = comm.Recv
        self._allgather = comm.Allgather
        self._heard = bytearray(comm.size * len(_ANNOUNCEMENT)) if comm != MPI.COMM_NULL else bytearray()

    def announce(self, *_arguments: Any) -> Any:
        """Take part in the exchange at the beginning of a collective call."""
        self._allgather(_ANNOUNCEMENT, self._heard)
        return NotImplemented

    barrier = bcast = gather = allgather = scatter = alltoall = announce
    reduce = allreduce = scan = exscan = reduce_scatter = announce

    def value(self, *_arguments: Any) -> Any:
        """Do nothing."""
        return NOTHING

    def send_array(self, *_arguments: Any) -> bool:
        """Do nothing."""
        return False

    def send_pickled(self, x: Any, to: int, tag: int, most: int) -> bytes | None:
        """Send the pickle of an object; give it, unsent, if it is longer than `most`."""
        stream = pickle.dumps(x, 5)
        if len(stream) > most:
            return stream
        self.send(stream, to, tag)
        return None

    def divert(self, *_arguments: Any) -> None:
        """Do nothing."""

    done = divert


def channel_of(comm: MPI.Intracomm, inbox: bytearray, anything: object, trusted: set[type]) -> Any:
    """Give the fastest channel for a communicator.

    Parameters
    ----------
    comm
        The communicator.
    inbox
        Room for a first message.
    anything
        What stands for any source or any tag.
    trusted
        Types whose objects are pickled at once.

    """
    if _compiled is None:
        return Channel(comm)
    try:
        return _compiled.Channel(
            MPI._handleof(comm),
            comm.rank,
            comm.size,
            inbox,
            MPI.Exception,
            np.ndarray,
            anything,
            OTHER,
            NOTHING,
            _DTYPES,
            _SCALARS,
            _REDUCTIONS,
            PICKLED,
            trusted,
        )
    except ImportError:  # NumPy's arrays are not as expected
        return Channel(comm)


def _fast() -> Any:
    """Give the compiled module, if it can be used with the library that mpi4py has loaded."""
    version = getattr(MPI, "Get_abi_version", lambda: (-1, -1))()
    if version[0] < 1 or os.environ.get("LIMOSA_PYTHON_FAST_PATH") == "0":
        return None
    try:
        return importlib.import_module("limosa._fast_path")
    except ImportError:  # not built, or no library of the standard's name is loaded
        return None


_compiled = _fast()

compiled_methods = True
"""Whether `limosa.Comm` has compiled methods.

Not so in the ranks of `limosa shell` and of notebooks: reports of hangs tell the name of a method from its frame, or
else from the text of the user's line, which is in no file there.
"""

if TYPE_CHECKING or _compiled is None:

    class Verbs:
        """What communicators are derived from."""

        _channel: Any

else:
    Verbs = _compiled.Verbs


def adopt(comm: type[Verbs], faults: tuple[type[Exception], ...], anything: object) -> None:
    """Put compiled methods for short values before those of the class of communicators, where there are some.

    Parameters
    ----------
    comm
        The class.
    faults
        The exceptions that its methods translate.
    anything
        What stands for any source or any tag.

    """
    if _compiled is not None and compiled_methods:
        _compiled.adopt(comm, anything, faults)
