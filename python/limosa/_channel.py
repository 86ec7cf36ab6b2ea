"""The exchange of slots and of first messages: compiled where that is possible, in Python elsewhere.

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
``done(view)``
    Gives the inbox back; `view` is the array that is in it, or None.

All others but `remember` and `expected` exchange the slots of a collective call. They give

* the result of the call, or
* NotImplemented: nothing has been exchanged, because the arguments are not those of a call that is known; or
* False: the slots have been exchanged, and the ranks differ; or
* True: they have been exchanged and do not differ, but the result is still to be made.

``met(slot)``
    Exchanges slots whatever is in them; compares call and root.
``given(call, x, root)``
    The same with the slot of an array, which this rank gives to others.
``received(slot, root)``
    The same; gives the array that the root has given if `expected` has described such arrays.
``reduced(call, x, op, root, number)``
    Compares heads; gives the reduction over the first ranks, None if their number is 0.
``stacked(call, x, root, wanted)``
    Compares heads; gives the arrays of all ranks, one above the other, None if they are not wanted.
``remember(call, root, op, x, slot, stack, kind, fold)``
    Makes calls with arrays like `x` known to `given`, `reduced` and `stacked`. `slot` is the marked slot of such an
    array, `stack` what the call gives of the slots of all ranks. `kind` and `fold` say how elements are combined, for
    `reduced`: a letter of `KINDS`, a character of `FOLDS`.
``expected(root, view)``
    Makes arrays known to `received` whose slots begin as the one that the root has just given; `view` is the array in
    that slot, or the part of it that this rank gets.

At most one thread at a time is in a collective call of a communicator.
"""

from __future__ import annotations

import importlib
import os
import pickle
from typing import Any

import numpy as np
from mpi4py import MPI

from limosa._packet import CALL, SLOT

KINDS = {"d": "d", "f": "f", "l": "l", "q": "l", "L": "L", "Q": "L", "i": "i", "I": "I"}
"""Characters of the dtypes whose elements are combined by the fast path, and the letters it has for them."""

FOLDS = {"sum": "+", "prod": "*", "max": ">", "min": "<"}
"""Names of the reductions that are done there, and their characters."""

OTHER = object()
"""What `value` gives if it has received a message of another kind."""
NOTHING = object()
"""What `value` gives if it has received no message."""


class Channel:
    """What the fast path does, as far as mpi4py does it without loss.

    Parameters
    ----------
    comm
        The communicator.
    memory
        Where the slots of all ranks arrive, one behind the other.

    """

    def __init__(self, comm: MPI.Intracomm, memory: bytearray) -> None:
        self.send = comm.Send
        self.recv = comm.Recv
        self._allgather = comm.Allgather
        self._memory = memory
        self._size = len(memory) // SLOT
        self._calls = np.ndarray((self._size, CALL.stop - CALL.start), np.uint8, memory, CALL.start, (SLOT, 1))

    def met(self, slot: bytes | bytearray) -> bool:
        """Exchange slots; tell whether all ranks make the same call with the same root."""
        self._allgather(slot, self._memory)
        return self._calls.tobytes() == bytes(slot[CALL]) * self._size

    def received(self, slot: bytes, _root: int) -> bool:
        """As `met`."""
        return self.met(slot)

    def given(self, *_arguments: Any) -> Any:
        """Do nothing."""
        return NotImplemented

    reduced = stacked = given

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

    def remember(self, *_arguments: Any) -> None:
        """Do nothing."""

    expected = done = remember


def channel_of(comm: MPI.Intracomm, memory: bytearray, inbox: bytearray, anything: object) -> Any:
    """Give the fastest channel for a communicator.

    Parameters
    ----------
    comm
        The communicator.
    memory
        Room for a slot of each rank.
    inbox
        Room for a first message.
    anything
        What stands for any source or any tag.

    """
    if _Fast is None:
        return Channel(comm, memory)
    handle = MPI._handleof(comm)
    return _Fast(handle, comm.rank, comm.size, memory, inbox, MPI.Exception, np.ndarray, anything, OTHER, NOTHING)


def _fast() -> Any:
    """Give the compiled channel, if it can be used with the library that mpi4py has loaded."""
    version = getattr(MPI, "Get_abi_version", lambda: (-1, -1))()
    if version[0] < 1 or os.environ.get("LIMOSA_PYTHON_FAST_PATH") == "0":
        return None
    try:
        return importlib.import_module("limosa._fast_path").Channel
    except ImportError:  # not built, or no library of the standard's name is loaded
        return None


_Fast = _fast()
