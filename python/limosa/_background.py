"""How collective calls go on that do not wait; the calls themselves are in `limosa._nonblocking`.

They agree as the blocking ones do (`limosa._collectives`), by slots that an ``MPI_Iallgather`` carries. It is started
by the call itself, so that all ranks start these in the same order. What comes next depends on the slots and is started
by the first to look at the request: the program or the helper thread (`limosa._request`). Where it is a collective of
MPI, it goes on the communicator for parts, and requests take turns to start theirs: so there, too, all ranks start them
in the same order. Everything else goes by messages with a tag of the call's own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._agreement import Table, block_of, fitting, marked, scalar_or_array
from limosa._collectives import Collectives
from limosa._memory import Array, as_array, spec_of
from limosa._packet import ARRAY, HEAD, NUMBERS, OBJECT, SLOT, Arrival, announced, has_parts, opened
from limosa._request import Later, Request
from limosa._transfer import PART_TAG

_FIRST_TAG, _TAGS = PART_TAG + 1, NUMBERS // 2
_Parts = Sequence[Array]


class Turn:
    """The place of a call in the order in which calls start collectives of MPI on the communicator for parts."""

    def __init__(self, order: deque[Turn], tag: int) -> None:
        self.tag = tag
        self._order = order
        self.request: Request[Any] | None = None
        order.append(self)

    def come(self) -> Generator[None, None, None]:
        """Wait until the calls before this one need no collective of MPI any more."""
        while self._order and self._order[0] is not self and self in self._order:
            first = self._order[0]
            if first.request is not None:
                first.request._look()
            if self._order and self._order[0] is first:
                yield None

    def over(self) -> None:
        """Let the next one start."""
        if self in self._order:
            self._order.remove(self)


Plan = Callable[[Table, Turn], Generator[Any, None, Any]]


class Background(Collectives):
    """What the collective calls that do not wait are made of."""

    def __init__(self, mpi: MPI.Intracomm) -> None:
        super().__init__(mpi)
        self._order: deque[Turn] = deque()
        self._started_calls = 0

    def _next_turn(self) -> Turn:
        self._started_calls += 1
        return Turn(self._order, _FIRST_TAG + self._started_calls % _TAGS)

    def _start(
        self, call: str, first: bytes, problem: Exception | None, then: Plan, root: int = 0, digest: int = 0
    ) -> Request[Any]:
        """Exchange slots in the background; `then` gives the further steps.

        Raises a problem, which the others learn.
        """
        slot = marked(first, SLOT, call, root, digest) if problem is None else self._refusal(problem, call, root)
        memory = bytearray(SLOT * self.size)
        try:
            active = [self._envelopes.Iallgather(slot, memory)]
        except MPI.Exception as error:
            raise errors.from_mpi(error, call=call, rank=self.rank) from None
        turn = self._next_turn()
        request: Request[Any] = Request(active, self._steps(slot, memory, turn, problem, then), call, self.rank)
        turn.request = request
        if problem is not None:
            if isinstance(problem, errors.Error):
                self._blame(problem, call)
            raise problem
        return request

    def _steps(
        self, slot: bytes, memory: bytearray, turn: Turn, problem: Exception | None, then: Plan
    ) -> Generator[Any, None, Any]:
        """Give the steps of a request whose slots have been exchanged; `slot` is kept until then."""
        try:
            if problem is not None:
                turn.over()
                return None
            table = self._table(memory)
            if not table.uniform:
                self._report(table)
        except BaseException:
            turn.over()
            raise
        return (yield from self._in_turn(table, turn, then))

    def _in_turn(self, table: Table, turn: Turn, then: Plan) -> Generator[Any, None, Any]:
        try:
            return (yield from then(table, turn))
        finally:
            turn.over()

    def _started_part(self, part: Array, start: Callable[[Any], MPI.Request]) -> MPI.Request:
        spec, made = spec_of(part)
        request = start(spec)
        if made:
            made.Free()
        return request

    def _gather_arrays(
        self, array: Array, target: Array | None, root: int | None, turn: Turn
    ) -> Generator[Any, None, Array | None]:
        """Collect arrays of the same dtype and shape on the root, or on all ranks."""
        rows = self._rows(array, target) if root in (None, self.rank) else None
        receive = [rows, MPI.BYTE] if rows is not None else None
        yield from turn.come()
        if root is None:
            request = self._started_part(array, lambda spec: self._parts.Iallgather(spec, receive))
        else:
            request = self._started_part(array, lambda spec: self._parts.Igather(spec, receive, root))
        turn.over()
        yield [request]
        return rows

    def _collect(
        self, table: Table, own: Any, sends: Iterable[tuple[int, _Parts]], turn: Turn, number: int
    ) -> Generator[Any, None, Any]:
        """Collect the values of the first ranks; give an array, or a `Later` for a list."""
        if table.arrays and not table.any_parts:
            return table.stacked()
        under_way = [request for rank, parts in sends for request in self._start_parts(parts, rank, turn.tag)]
        slots = [table.slot(rank) for rank in range(number)]
        arrivals = yield from self._receive_parts(slots, turn)
        yield under_way
        return Later(lambda: self._opened(slots, arrivals, own))

    def _receive_parts(self, slots: list[memoryview], turn: Turn) -> Generator[Any, None, dict[int, Arrival]]:
        """Receive what the slots of the other ranks announce."""
        arrivals = {}
        for rank, slot in enumerate(slots):
            if rank == self.rank or not has_parts(slot):
                continue
            arrivals[rank] = Arrival(slot, SLOT - HEAD, None)
            for stage in arrivals[rank].stages():
                yield [self._parts.Irecv(spec, rank, turn.tag) for spec in stage]
        return arrivals

    def _opened(self, slots: list[memoryview], arrivals: dict[int, Arrival], own: Any) -> list[Any]:
        return [
            arrivals[rank].finish() if rank in arrivals else own if has_parts(slot) else opened(slot, None)
            for rank, slot in enumerate(slots)
        ]

    def _sent_packets(self, packets: list[tuple[bytes, _Parts]], tag: int) -> list[MPI.Request]:
        """Start to send each other rank its item."""
        under_way = []
        for rank, (packet, parts) in enumerate(packets):
            if rank != self.rank:
                under_way.append(self._parts.Isend(packet.ljust(SLOT, b"\0"), rank, tag))
                under_way += self._start_parts(parts, rank, tag)
        return under_way

    def _receive_item(
        self, first: memoryview, root: int, target: Array | None, out: Any, turn: Turn
    ) -> Generator[Any, None, Any]:
        """Receive the item of this rank; the first message of the root announces all items."""
        if first[0] == OBJECT:
            slot = memoryview(bytearray(SLOT))
            yield [self._parts.Irecv(slot, root, turn.tag)]
            if not has_parts(slot):
                return later_opened(slot, target, out)
            arrival = Arrival(slot, SLOT - HEAD, target)
            for stage in arrival.stages():
                yield [self._parts.Irecv(spec, root, turn.tag) for spec in stage]
            return finished(arrival, target, out)
        if first[0] == ARRAY:
            row = opened(first, None)[self.rank, ...].copy()
            return scalar_or_array(row, target) if target is None else self._delivered(row, target, out)
        dtype, (_, *shape) = announced(first)
        value = fitting(target, dtype, tuple(shape))
        yield from turn.come()
        request = self._parts.Iscatter(None, [value, MPI.BYTE], root)
        turn.over()
        yield [request]
        return scalar_or_array(value, None) if target is None else self._delivered(value, target, out)

    def _exchange_of(self, values: Any, target: Array | None) -> tuple[bytes, Exception | None, Plan]:
        """Give the slot, what is wrong, and the further steps of an exchange of items."""
        packets, problem = self._encoded_items(
            values, lambda rank: values[rank, ...] if isinstance(values, np.ndarray) else values[rank]
        )
        block = block_of(values) if problem is None else None

        def then(table: Table, turn: Turn) -> Generator[Any, None, Any]:
            if block is not None and table.arrays:
                if not table.any_parts:
                    return table.stacked()[:, self.rank].copy()
                result = self._rows(block[0, ...], target)
                yield from turn.come()
                request = self._parts.Ialltoall([block, MPI.BYTE], [result, MPI.BYTE])
                turn.over()
                yield [request]
                return result
            items = packets if block is None else [self._slots.encode(row) for row in block]
            under_way = self._sent_packets(items, turn.tag)
            slots = [memoryview(bytearray(SLOT)) for _ in range(self.size)]
            slots[self.rank] = memoryview(items[self.rank][0])
            yield [self._parts.Irecv(slots[rank], rank, turn.tag) for rank in range(self.size) if rank != self.rank]
            arrivals = yield from self._receive_parts(slots, turn)
            yield under_way
            own = values[self.rank, ...] if isinstance(values, np.ndarray) else values[self.rank]
            # What differs between slots of like items is overwritten by the mark.
            seen = self._table(bytearray(b"".join(marked(bytes(slot), SLOT, "ialltoall") for slot in slots)))
            return Later(lambda: _stacked(seen, self._opened(slots, arrivals, own)))

        return self._slots.encode(block)[0] if block is not None else self._slots.object_head, problem, then


def later_opened(first: memoryview, target: Array | None, out: Any) -> Any:
    """Give the value of a first message without parts; if it is pickled, later."""

    def make() -> Any:
        value = opened(first, target)
        return value if target is None else out

    return Later(make) if first[0] == OBJECT else make()


def finished(arrival: Arrival, target: Array | None, out: Any) -> Later:
    def make() -> Any:
        value = arrival.finish()
        return value if target is None else out

    return Later(make)


def later_delivered(comm: Collectives, value: Any, target: Array | None, out: Any) -> Later:
    """Give a value, in `out` if there is one, when the program asks for it."""
    return Later(lambda: comm._delivered(value.make() if type(value) is Later else value, target, out))


def _stacked(table: Table, values: list[Any]) -> Any:
    """Give values as one array if their slots say that they are arrays of the same dtype and shape."""
    if not table.arrays:
        return values
    first = as_array(values[0])
    rows = np.empty((len(values), *first.shape), first.dtype)
    for rank, value in enumerate(values):
        rows[rank] = as_array(value)
    return rows


def completed(steps: Generator[Any, None, Any]) -> Any:
    """Go through the steps of a blocking call."""
    try:
        while True:
            active = next(steps)
            if active is None:
                time.sleep(1e-4)
            else:
                MPI.Request.Waitall(active)
    except StopIteration as end:
        return end.value.make() if type(end.value) is Later else end.value
