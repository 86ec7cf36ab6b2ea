"""How the ranks of a collective call agree: slots, tables of them, and the values that do not fit into a slot."""

from __future__ import annotations

import functools
import math
import pickle
import struct
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._memory import Array, as_array, as_target, spec_of
from limosa._ops import NAMES, Op
from limosa._packet import (
    ARRAY,
    ARRAY_APART,
    DESCRIPTION,
    HEAD,
    NUMBER,
    OBJECT,
    SCALAR,
    WIDE,
    Arrival,
    Encoder,
    Inbox,
    described,
    has_parts,
    into,
    misfit,
    opened,
)
from limosa._transfer import PART_TAG, Transfer, delivered

SLOT = 256  # bytes that each rank contributes where all hear from all
BCAST_SLOT = 1024  # the same where all hear from one: it costs little more
_FAILURE_BYTES = SLOT - HEAD - 32  # of the reason of a failure; the rest is for the pickle around it

_WHOLE = {ARRAY, OBJECT}  # kinds of first messages without parts
_loads = pickle.loads
_PLANS = 256  # that are kept

_CALLS = (
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "alltoall of a block",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
)
_NUMBER_OF = {name: number + 1 for number, name in enumerate(_CALLS)}
_MARK = struct.Struct("<Bi36xI")  # call, root, digest of the reduction; see the head in _packet
_CALL, _DIGEST = struct.Struct("<Bi"), struct.Struct("<I")  # its two pieces
_MARK_OFFSET = 3


class Failed:
    """What a rank has instead of a value."""

    def __init__(self, text: str, rank: int) -> None:
        self.text = text
        self.rank = rank


def described_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".encode()[:_FAILURE_BYTES].decode(errors="ignore")


class Table:
    """The slots of all ranks.

    Parameters
    ----------
    memory
        The slots, one behind the other.
    heads
        Their heads, one behind the other.
    rank
        The rank of this process.

    """

    def __init__(self, memory: bytes, heads: bytes, rank: int) -> None:
        self._memory = memory
        self._size = len(heads) // HEAD
        self._length = len(memory) // self._size
        self._heads = heads
        self.own = self._head(rank)
        self.uniform = heads == self.own * self._size
        """Whether all slots announce the same: arrays of the same dtype and shape, or short objects."""
        self.any_parts = self.own[0] not in _WHOLE if self.uniform else not _WHOLE.issuperset(heads[::HEAD])
        """Whether not all is in the slots."""

    def _head(self, rank: int) -> bytes:
        return self._heads[rank * HEAD : (rank + 1) * HEAD]

    def values(self, number: int) -> list[Any]:
        """Give the values of the first ranks, which are in their slots."""
        if self.uniform and self.own[0] == OBJECT:
            memory, length = self._memory, self._length
            return [_loads(memory[place + HEAD : place + length]) for place in range(0, number * length, length)]
        return [opened(self.slot(rank), None) for rank in range(number)]

    def _all_heads(self) -> list[bytes]:
        return [self._head(rank) for rank in range(self._size)]

    def slot(self, rank: int) -> memoryview:
        """Give the slot of a rank."""
        return memoryview(self._memory)[rank * self._length : (rank + 1) * self._length]

    def is_array(self, rank: int, *, scalars: bool = False) -> bool:
        """Tell whether a rank has an array, or a NumPy scalar."""
        head = self._head(rank)
        return head[0] in (ARRAY, ARRAY_APART, WIDE) and (not head[1] or (scalars and head[1] == SCALAR))

    @property
    def arrays(self) -> bool:
        """Whether all ranks have arrays of the same dtype and shape."""
        return self.uniform and self.is_array(0)

    @property
    def all_in_slots(self) -> bool:
        """Whether the values are in the slots."""
        return not self.any_parts

    def folded(self, reduction: Op, number: int) -> Any:
        """Combine the values of the first ranks, which are in their slots."""
        result = functools.reduce(reduction.function, self.values(number))
        return np.asarray(result) if self.arrays and reduction.ufunc is not None else result

    def failed(self, rank: int) -> bool:
        """Tell whether a rank cannot take part."""
        return self._head(rank)[0] == OBJECT and self._head(rank)[1] == 1

    def marks(self) -> list[tuple[Any, ...]]:
        """Give call, root and digest of the reduction of each rank."""
        return [_MARK.unpack_from(head, _MARK_OFFSET) for head in self._all_heads()]

    def stacked(self) -> Array:
        """Give the arrays that are all in the slots, one above the other."""
        dtype, shape = described(self.own[DESCRIPTION:NUMBER])
        data = np.frombuffer(self._memory, np.uint8).reshape(self._size, self._length)
        length = dtype.itemsize * math.prod(shape)
        result = np.empty((self._size, *shape), dtype)
        if length:
            result.reshape(self._size, -1).view(np.uint8)[...] = data[:, HEAD : HEAD + length]
        return result

    def describe(self) -> str:
        """Say what each rank has."""
        names = []
        for rank, head in enumerate(self._all_heads()):
            if head[0] in (ARRAY, ARRAY_APART):
                dtype, shape = described(head[DESCRIPTION:NUMBER])
                what = f"{dtype} {shape}"
            else:
                what = "an array" if head[0] == WIDE else "an object"
            names.append(f"rank {rank}: {what}")
        return ", ".join(names)


class Plan:
    """What equal calls with arrays of one dtype and shape have in common; made at the first of them.

    Parameters
    ----------
    slot
        The marked slot of such an array.
    memory
        Where the slots of all ranks arrive; it may have no room for them.
    size
        The number of slots that arrive.
    like
        Such an array.

    """

    __slots__ = ("_rows", "all_in_slots", "data", "expected", "slot", "stack")

    arrays = True

    def __init__(self, slot: bytearray, memory: bytearray, size: int, like: Array) -> None:
        self.slot = slot
        self.expected = bytes(slot[:HEAD]) * size
        """The heads of all slots, if all ranks do the same."""
        inline = slot[0] == ARRAY
        self.data = np.ndarray(like.shape, like.dtype, slot, HEAD) if inline else None
        """The place of the array in the slot, if it fits there."""
        self.stack = None
        """Then the arrays of all ranks, in their slots."""
        if inline and size * len(slot) <= len(memory):
            strides = np.empty(like.shape, like.dtype).strides
            self.stack = np.ndarray((size, *like.shape), like.dtype, memory, HEAD, (len(slot), *strides))
        self.all_in_slots = self.stack is not None
        self._rows = [] if self.stack is None else [self.stack[rank, ...] for rank in range(size)]

    def folded(self, reduction: Op, number: int) -> Array:
        """Combine the arrays of the first ranks, which are in their slots."""
        first, *others = self._rows[:number]
        if not others:
            return first.copy()
        for row in others:
            # A new array each time: NumPy takes longer to find out that it may write into one that it reads.
            first = reduction.ufunc(first, row, np.empty(first.shape, first.dtype))
        return first


class Agreement(Transfer):
    """What collective calls are made of."""

    def __init__(self, mpi: MPI.Intracomm) -> None:
        super().__init__(mpi)
        self._slots = Encoder(0, SLOT - HEAD)
        self._bcast_slots = Encoder(0, BCAST_SLOT - HEAD)
        # Used again and again: at any time at most one thread is in a collective call of a communicator.
        self._bcast_inbox = Inbox(BCAST_SLOT)
        self._memory = bytearray(SLOT * self.size)
        self._heads_seen = np.ndarray((self.size, HEAD), np.uint8, self._memory, 0, (SLOT, 1))
        self._plans: dict[tuple[Any, ...], Plan | None] = {}

    # --- agreeing ----------------------------------------------------------------------------------------------------

    def _plan(self, x: Any, call: str, root: int = 0, reduction: Op | None = None) -> Plan | None:
        """Give the plan for a call with an array, or None if nothing is shorter for such calls than the general way."""
        if type(x) is not np.ndarray:
            return None
        key = (call, root, reduction, x.dtype, x.shape)
        try:
            return self._plans[key]
        except KeyError:
            pass
        plan = None
        if not x.dtype.hasobject and (reduction is None or reduction.native(x.dtype) is not None):
            slots, length = (self._bcast_slots, BCAST_SLOT) if call == "bcast" else (self._slots, SLOT)
            first, _ = slots.encode(x)
            if first[0] in (ARRAY, ARRAY_APART):
                slot = marked(first, length, call, root, reduction.digest if reduction is not None else 0)
                plan = Plan(bytearray(slot), self._memory, self.size, x)
        if len(self._plans) >= _PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def _agree_by_plan(self, plan: Plan, x: Array) -> Table | None:
        """As `_agree`, but short if all ranks have such an array, and then without a table."""
        if plan.data is not None:
            plan.data[...] = x
        self._envelopes.Allgather(plan.slot, self._memory)
        if self._heads_seen.tobytes() == plan.expected:
            return None
        table = self._table()
        self._report(table)
        return table

    def _encoded(self, x: Any) -> tuple[bytes, Sequence[Array], Exception | None]:
        """Give the packet of a value, or that of a failure and its reason."""
        try:
            return *self._slots.encode(x), None
        except Exception as error:
            return self._slots.failure(described_error(error)), (), error

    def _encoded_items(
        self, values: Any, item: Callable[[int], Any]
    ) -> tuple[list[tuple[bytes, Sequence[Array]]], Exception | None]:
        """Give the packets of one item for each rank, or those of a failure and its reason."""
        try:
            if not isinstance(values, (list, tuple, np.ndarray)):
                raise errors.BY_CLASS["COUNT"](
                    f"a list, tuple or array with an item for each of the {self.size} ranks is needed, not "
                    f"{values!r:.60}"
                )
            if np.ndim(values) == 0 if isinstance(values, np.ndarray) else False:
                raise errors.BY_CLASS["COUNT"](
                    f"an array whose first axis has the length {self.size} is needed, not a single number"
                )
            if len(values) != self.size:
                raise errors.BY_CLASS["COUNT"](
                    f"there are {len(values)} items for {self.size} ranks; hint: numpy.array_split divides an array "
                    "into so many parts"
                )
            return [self._slots.encode(item(rank)) for rank in range(self.size)], None
        except Exception as error:
            return [(self._slots.failure(described_error(error)), ())] * self.size, error

    def _table(self) -> Table:
        """Give the table of the slots that have arrived."""
        return Table(bytes(self._memory), self._heads_seen.tobytes(), self.rank)

    def _agree(self, first: bytes, call: str, problem: Exception | None, root: int = 0, digest: int = 0) -> Table:
        """Exchange slots among all; raise on all ranks if one cannot take part or takes part in something else."""
        if problem is not None:
            first = self._slots.failure(described_error(problem))
        self._envelopes.Allgather(marked(first, SLOT, call, root, digest), self._memory)
        table = self._table()
        if problem is not None:
            raise problem
        if not table.uniform:
            self._report(table)
        return table

    def _report(self, table: Table) -> None:
        """Raise what the slots say is wrong."""
        for rank in range(self.size):
            if table.failed(rank):
                raise self._peer_error(Failed(opened(table.slot(rank), None), rank))
        marks = table.marks()
        if len({_spoken(*mark) for mark in marks}) > 1:
            calls = ", ".join(f"rank {rank}: {_spoken(*mark)}" for rank, mark in enumerate(marks))
            raise errors.MismatchError(f"the ranks called different things: {calls}")

    def _check_root(self, root: int) -> None:
        if type(root) is not int or not 0 <= root < self.size:
            try:
                number = root.__index__()
            except (AttributeError, TypeError):
                raise errors.BY_CLASS["ROOT"](f"root must be a rank, not {root!r}") from None
            if not 0 <= number < self.size:
                raise errors.BY_CLASS["ROOT"](
                    f"root={root} is not in the communicator, whose ranks are 0 to {self.size - 1}"
                )

    def _target_or_problem(self, out: Any) -> tuple[Array | None, Exception | None]:
        """Give the array to receive into, if there is one, or why it cannot be used."""
        if out is None:
            return None, None
        if type(out) is np.ndarray and out.flags.carray:
            return out, None
        try:
            return as_target(out), None
        except errors.Error as error:
            return None, error

    def _blame(self, error: MPI.Exception | errors.Error, call: str) -> NoReturn:
        """Raise an error as one of ours that says which call it is about."""
        if isinstance(error, MPI.Exception):
            raise errors.from_mpi(error, call=call, rank=self.rank) from None
        if not error.call:
            error.call, error.rank = call, self.rank
        raise error

    def _peer_error(self, failed: Failed) -> errors.PeerError:
        return errors.PeerError(f"rank {failed.rank} could not take part: {failed.text}")

    # --- values ------------------------------------------------------------------------------------------------------

    def _share(self, x: Any, root: int, call: str) -> None:
        """Send a value to all others, or that it cannot be sent; this is the root."""
        problem: Exception | None = None
        try:
            if isinstance(x, Failed):
                raise self._peer_error(x)
            first, parts = self._bcast_slots.encode(x)
        except Exception as error:
            problem, parts = error, ()
            first = self._bcast_slots.failure(described_error(error) if not isinstance(x, Failed) else x.text)
        self._envelopes.Bcast(marked(first, BCAST_SLOT, call, x.rank if isinstance(x, Failed) else root), root)
        if problem is not None:
            raise problem
        self._share_parts(parts, root)

    def _shared(self, root: int, target: Array | None) -> Any:
        """Receive what the root shares."""
        inbox, first = self._bcast_inbox, self._bcast_inbox.whole
        self._envelopes.Bcast(inbox.raw, root)
        if inbox.raw.startswith(inbox.last) or inbox.recognise():  # as `_shared_parts`, but shorter
            fits = target is not None and target.dtype == inbox.dtype and target.shape == inbox.shape
            if inbox.view is not None:
                if target is None or fits:
                    return delivered(inbox.view, target)
            elif target is None or (fits and target.flags.carray):
                value = np.empty(inbox.shape, inbox.dtype) if target is None else target
                self._envelopes.Bcast([value, value.nbytes, MPI.BYTE], root)
                return value
        if first[0] == OBJECT and first[1] == 1:
            _, rank, _ = _MARK.unpack_from(first, _MARK_OFFSET)
            raise self._peer_error(Failed(opened(first, None), rank))
        return self._shared_parts(first, target, root)

    def _share_parts(self, parts: Sequence[Array], root: int) -> None:
        for part in parts:
            spec, made = spec_of(part)
            try:
                self._envelopes.Bcast(spec, root)
            finally:
                if made:
                    made.Free()

    def _shared_parts(self, first: memoryview, target: Array | None, root: int) -> Any:
        if not has_parts(first):
            return opened(first, target)
        arrival = Arrival(first, len(first) - HEAD, target)
        for stage in arrival.stages():
            for spec in stage:
                self._envelopes.Bcast(spec, root)
        return arrival.finish()

    def _collected(self, table: Table, own: Any, target: Array | None) -> Any:
        """Receive the values that the slots announce, one from each rank.

        All parts are received even if something is wrong.
        """
        if table.arrays and table.any_parts:
            array = as_array(own)
            shape = (self.size, *array.shape)
            fits = target is not None and misfit(target, array.dtype, shape) is None
            rows = target if fits and target is not None else np.empty(shape, array.dtype)
            for rank in range(self.size):
                if rank == self.rank:
                    rows[rank] = array
                else:
                    self._arrived(table.slot(rank), rows[rank], rank, PART_TAG, SLOT - HEAD)
            return rows
        if table.arrays:
            return table.stacked()
        if not table.any_parts:
            return table.values(self.size)
        return [
            own
            if rank == self.rank and has_parts(table.slot(rank))
            else self._arrived(table.slot(rank), None, rank, PART_TAG, SLOT - HEAD)
            for rank in range(self.size)
        ]

    def _delivered(self, value: Any, target: Array | None, out: Any) -> Any:
        """Give a value, in `out` if there is one."""
        if target is None:
            return value
        if type(value) is np.ndarray and value.dtype == target.dtype and value.shape == target.shape:
            if value is not target:
                target[...] = value
        else:
            into(value, target)
        return out


@functools.lru_cache(maxsize=_PLANS)
def _mark(call: str, root: int, digest: int) -> tuple[bytes, bytes]:
    """Give the pieces of a head that say what the call is."""
    return _CALL.pack(_NUMBER_OF[call], root), _DIGEST.pack(digest)


def marked(first: bytes, length: int, call: str, root: int = 0, digest: int = 0) -> bytes:
    """Make a slot of a first message."""
    what, how = _mark(call, root, digest)
    return b"".join((first[:_MARK_OFFSET], what, first[DESCRIPTION:NUMBER], how, first[HEAD:])).ljust(length, b"\0")


def _spoken(call: int, root: int, digest: int) -> str:
    """Say what the mark of a slot means."""
    name = _CALLS[call - 1].removesuffix(" of a block")
    details = [f"root={root}"] if name in ("gather", "reduce") else []
    if name in ("reduce", "allreduce", "scan", "exscan"):
        details.append(f"op={next((op.name for op in NAMES.values() if op.digest == digest), 'a function')}")
    return f"{name}({', '.join(details)})"
