"""How the ranks of a collective call agree: slots, tables of them, and the values that do not fit into a slot."""

from __future__ import annotations

import functools
import math
import operator
import pickle
import struct
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._memory import Array, as_array, as_target, is_array_like, spec_of
from limosa._ops import NAMES, Op
from limosa._packet import (
    ARRAY,
    ARRAY_APART,
    CALL,
    DESCRIPTION,
    HEAD,
    NUMBER,
    OBJECT,
    SCALAR,
    SLOT,
    WIDE,
    Arrival,
    Encoder,
    described,
    has_parts,
    into,
    misfit,
    opened,
)
from limosa._transfer import PART_TAG, Transfer

BCAST_SLOT = 1024  # the same where all hear from one
_MOST_ARGUMENTS = 150  # characters of arguments as text, which fit a slot
_FAILURE_BYTES = SLOT - HEAD - 32  # of the reason of a failure; the rest is for the pickle around it

_WHOLE = {ARRAY, OBJECT}  # kinds of first messages without parts
_loads = pickle.loads
_PLANS = 256  # that are kept

_BLOCKING = (
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "scan",
    "exscan",
)
_CALLS = (
    *_BLOCKING,
    *(f"i{name}" for name in _BLOCKING),
    *("split", "dup", "cart", "sub", "map", "graph", "split_by_host", "shared_array", "window", "fence", "executor"),
    *("spawn", "open", "read", "write", "read_block", "write_block", "resize", "sync", "close"),
)
_ROOTED = ("bcast", "gather", "scatter", "reduce", "map")
_REDUCING = ("reduce", "allreduce", "reduce_scatter", "scan", "exscan")
_FAILURE = 0x80  # this bit of the call's number is set if the rank cannot take part
_NUMBER_OF = {name: number + 1 for number, name in enumerate(_CALLS)}
_MARK = struct.Struct("<Bi36xI")  # call (and whether it failed), root, digest of the reduction; see the head in _packet
_CALL, _DIGEST = struct.Struct("<Bi"), struct.Struct("<I")  # its two pieces
_MARK_OFFSET = 3


Method = TypeVar("Method", bound=Callable[..., Any])

FAULTS = (MPI.Exception, errors.Error)


def collective(method: Method) -> Method:
    """Translate the exceptions of mpi4py that leave a method, and say in those of ours where they come from."""

    @functools.wraps(method)
    def call(self: Agreement, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except FAULTS as error:
            self._blame(error, method.__name__)

    return cast("Method", call)


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
        The slots, in the order of ranks.
    heads
        Their heads, in the order of ranks.
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
        return bool(self._head(rank)[_MARK_OFFSET] & _FAILURE)

    def marks(self) -> list[tuple[Any, ...]]:
        """Give call, root and digest of the reduction of each rank."""
        return [_MARK.unpack_from(head, _MARK_OFFSET) for head in self._all_heads()]

    def stacked(self) -> Array:
        """Give the arrays that are all in the slots, stacked along a new first axis."""
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
        for head in self._all_heads():
            if head[0] in (ARRAY, ARRAY_APART):
                dtype, shape = described(head[DESCRIPTION:NUMBER])
                what = f"{dtype} {shape}"
            else:
                what = "an array" if head[0] == WIDE else "an object"
            names.append(what)
        return by_rank(names)


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
        self._heads_seen = np.ndarray((self.size, HEAD), np.uint8, self._memory, 0, (SLOT, 1))
        self._calls_seen = self._heads_seen[:, CALL]
        self._bare_slots: dict[tuple[str, int], bytes] = {}
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
            first, _ = self._slots.encode(x)
            if first[0] in (ARRAY, ARRAY_APART):
                slot = marked(first, SLOT, call, root, reduction.digest if reduction is not None else 0)
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
        """Give the packets of one item for each rank, none for an array of raw memory; or why that is not possible."""
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
                    "into that many parts"
                )
            if block_of(values) is not None:
                return [], None
            return [self._slots.encode(item(rank)) for rank in range(self.size)], None
        except Exception as error:
            return [], error

    def _table(self, memory: bytearray | None = None) -> Table:
        """Give the table of the slots that have arrived, in the communicator's memory or in the given one."""
        if memory is None:
            return Table(bytes(self._memory), self._heads_seen.tobytes(), self.rank)
        heads = np.ndarray((self.size, HEAD), np.uint8, memory, 0, (SLOT, 1)).tobytes()
        return Table(bytes(memory), heads, self.rank)

    def _meet(self, slot: bytes | bytearray, problem: Exception | None = None) -> None:
        """Exchange marked slots among all, whatever values are in them.

        Raises on all ranks if one cannot take part, or makes another call or names another root.
        """
        self._envelopes.Allgather(slot, self._memory)
        if problem is not None:
            raise problem
        if self._calls_seen.tobytes() != bytes(slot[CALL]) * self.size:
            self._report(self._table())

    def _begin(self, call: str) -> None:
        """Agree on a call that has no values."""
        self._channel.announce()
        self._meet(self._bare_slot(call))

    def _bare_slot(self, call: str, root: int = 0) -> bytes:
        """Give the slot of a rank that has no value."""
        found = self._bare_slots.get((call, root))
        if found is None:
            found = self._bare_slots[call, root] = marked(self._slots.object_head, SLOT, call, root)
        return found

    def _agree_on_arguments(self, call: str, arguments: Any, problem: Exception | None = None) -> list[Any]:
        """Give the arguments of all ranks, which are short; raise on all ranks if one has a problem."""
        first, _, misuse = self._encoded(arguments)
        self._channel.announce()
        return self._agree(first, call, problem or misuse).values(self.size)

    def _slot_seen(self, rank: int) -> memoryview:
        """Give a copy of the slot that arrived from a rank."""
        return memoryview(bytes(memoryview(self._memory)[rank * SLOT : (rank + 1) * SLOT]))

    def _refusal(self, problem: Exception, call: str, root: Any = 0) -> bytes:
        """Give the slot of a rank that cannot take part in a call."""
        root = root if type(root) is int and 0 <= root < self.size else 0
        return marked(self._slots.failure(described_error(problem)), SLOT, call, root)

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
        calls = [_spoken(*mark) for mark in table.marks()]
        if len(set(calls)) > 1:
            raise errors.MismatchError(f"the ranks called different things: {by_rank(calls)}")

    def _root_or_problem(self, root: Any) -> tuple[int, Exception | None]:
        """Give the root as a number, or why it is none."""
        if type(root) is int and 0 <= root < self.size:
            return root, None
        try:
            number = operator.index(root)
        except TypeError:
            return 0, errors.BY_CLASS["ROOT"](f"root must be a rank, not {root!r}")
        if not 0 <= number < self.size:
            return 0, errors.BY_CLASS["ROOT"](
                f"root={root} is not in the communicator, whose ranks are 0 to {self.size - 1}"
            )
        return number, None

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

    def _shared(self, root: int) -> Any:
        """Receive what the root shares."""
        first = memoryview(bytearray(BCAST_SLOT))
        self._envelopes.Bcast(first, root)
        if first[0] == OBJECT and first[1] == 1:
            _, rank, _ = _MARK.unpack_from(first, _MARK_OFFSET)
            raise self._peer_error(Failed(opened(first, None), rank))
        return self._shared_parts(first, None, root)

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


def block_of(values: Any) -> Array | None:
    """Give items that are an array of raw memory as a contiguous one, None if they are not."""
    if isinstance(values, np.ndarray) and is_array_like(values):
        return np.ascontiguousarray(values)
    return None


@functools.lru_cache(maxsize=_PLANS)
def _mark(call: str, root: int, digest: int, failure: bool) -> tuple[bytes, bytes]:
    """Give the pieces of a head that say what the call is."""
    return _CALL.pack(_NUMBER_OF[call] | (_FAILURE if failure else 0), root), _DIGEST.pack(digest)


def marked(first: bytes, length: int, call: str, root: int = 0, digest: int = 0) -> bytes:
    """Make a slot of a first message."""
    what, how = _mark(call, root, digest, first[0] == OBJECT and first[1] == 1)
    return b"".join((first[:_MARK_OFFSET], what, first[DESCRIPTION:NUMBER], how, first[HEAD:])).ljust(length, b"\0")


def _spoken(call: int, root: int, digest: int) -> str:
    """Say what the mark of a slot means."""
    name = _CALLS[(call & ~_FAILURE) - 1]
    details = [f"root={root}"] if name in _ROOTED or name[1:] in _ROOTED else []
    if name in _REDUCING or name[1:] in _REDUCING:
        details.append(f"op={next((op.name for op in NAMES.values() if op.digest == digest), 'a function')}")
    return f"{name}({', '.join(details)})"


def by_rank(texts: Sequence[str]) -> str:
    """List what is said of each rank, those of which the same is said together."""
    ranks: dict[str, list[int]] = {}
    for rank, text in enumerate(texts):
        ranks.setdefault(text, []).append(rank)
    return ", ".join(f"rank{'s' * (len(those) > 1)} {_numbers(those)}: {text}" for text, those in ranks.items())


def agree(comm: Agreement, call: str, arguments: dict[str, Any], problem: errors.Error | None) -> None:
    """Raise on all ranks if a rank has a problem, or if calls or arguments differ between ranks."""
    try:
        shown = ", ".join(f"{name}={value}" for name, value in arguments.items())
        texts = comm._agree_on_arguments(call, shown[:_MOST_ARGUMENTS], problem)
        if len(set(texts)) > 1:
            calls = by_rank([f"{call}({text})" for text in texts])
            raise errors.MismatchError(f"the ranks called different things: {calls}")
    except (MPI.Exception, errors.Error) as error:
        comm._blame(error, call)


def _numbers(ranks: list[int]) -> str:
    """Write ranks as a list of ranges, such as ``0, 2-5``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def fitting(
    target: Array | None, dtype: np.dtype[Any], shape: tuple[int, ...], apart_from: Array | None = None
) -> Array:
    """Give the target if such an array can be received there at once, else a new array."""
    if target is None or not target.flags.carray or misfit(target, dtype, shape) is not None:
        return np.empty(shape, dtype)
    if apart_from is not None and np.may_share_memory(target, apart_from):
        return np.empty(shape, dtype)
    return target


def scalar_or_array(row: Array, target: Array | None) -> Any:
    """Give the row of an array as indexing would, or copy it into the target."""
    return into(row, target) if target is not None or row.ndim else row[()]
