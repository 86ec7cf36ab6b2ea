"""The parts of packets in transfer, and whole values between two ranks inside a collective call.

The communicator *envelopes* carries the first messages of users' messages, with the users' tags, and the collective
calls of MPI. The communicator *parts* carries everything whose tag is ours: below `NUMBERS` the parts of users'
messages, above it what belongs to collective calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._channel import Verbs, channel_of
from limosa._memory import Array, as_target, is_array_like, spec_of
from limosa._packet import HEAD, NUMBERS, SLOT, Arrival, Encoder, Inbox, has_parts, number_of, opened

FIRST_BYTES = 32768
"""The longest first message, and so the longest pickle that needs no second one."""

INLINE_BYTES = 8192 - HEAD
"""Arrays that are not longer travel in the first message: below, a second message costs more than the copy."""

_BYTE = MPI.BYTE
_FIRST_TAG, PART_TAG = NUMBERS, NUMBERS + 1  # of collective calls

inboxes: list[Inbox] = []
"""Memory for first messages that is not in use."""


def delivered(view: Array, target: Array | None) -> Array:
    """Copy an array out of an inbox."""
    if target is None:
        return view.copy()
    target[...] = view
    return target


class Any_:  # noqa: N801 (users see only its one object)
    """The type of `limosa.ANY`."""

    def __repr__(self) -> str:
        return "limosa.ANY"

    def __reduce__(self) -> str:
        return "ANY"


MISSING: Any = Any_()  # in place of an argument that must be given

ANY: Final = Any_()
"""Any source or any tag, the default of `Comm.recv` and `Comm.probe`."""


class Transfer(Verbs):
    """What communicators send and receive with; users see the subclass `Comm`.

    Parameters
    ----------
    mpi
        The communicator to duplicate.

    """

    def __init__(self, mpi: MPI.Intracomm) -> None:
        self.mpi = mpi
        self._owns_mpi = False
        try:
            self._envelopes = mpi.Dup()
            self._parts = mpi.Dup()
            name = "limosa.world" if mpi == MPI.COMM_WORLD else f"a communicator of {mpi.size} ranks"
            for comm in (self._envelopes, self._parts):
                comm.Set_errhandler(MPI.ERRORS_RETURN)
                comm.Set_name(name)
        except MPI.Exception as error:
            raise errors.from_mpi(error, call="Comm") from None
        self.rank: int = self._envelopes.rank
        self.size: int = self._envelopes.size
        self._encoder = Encoder(self.rank, INLINE_BYTES, FIRST_BYTES)
        self._memory = bytearray(SLOT * self.size)  # for the slots of all ranks
        self._inbox = Inbox(FIRST_BYTES)  # of the channel
        self._channel = channel_of(self._envelopes, self._inbox.raw, ANY, self._encoder.trusted)

    def _start_parts(self, parts: Sequence[Array], to: int, tag: int) -> list[MPI.Request]:
        """Start to send parts."""
        started = []
        for part in parts:
            spec, made = spec_of(part)
            started.append(self._parts.Isend(spec, to, tag))
            if made:
                made.Free()
        return started

    def _send_parts(self, parts: Sequence[Array], to: int, tag: int) -> None:
        """Send parts in turn."""
        for part in parts:
            if part.flags.c_contiguous:
                self._parts.Send([part, part.nbytes, _BYTE], to, tag)
                continue
            spec, made = spec_of(part)
            try:
                self._parts.Send(spec, to, tag)
            finally:
                if made:
                    made.Free()

    def _arrived(
        self,
        first: memoryview,
        target: Array | None,
        source: int | None = None,
        tag: int | None = None,
        limit: int = INLINE_BYTES,
    ) -> Any:
        """Give the value whose first message is here, after receiving its parts.

        Without source and tag they are those of a user's message, which its head says. The limit is that of the
        encoder.
        """
        if not has_parts(first):
            return opened(first, target)
        arrival = Arrival(first, limit, target)
        if source is None or tag is None:
            source, tag = arrival.source, arrival.number
        for stage in arrival.stages():
            for spec in stage:
                self._parts.Recv(spec, source, tag)
        return arrival.finish()

    def _taken(self, inbox: Inbox, target: Array | None) -> Any:
        """Give the value of a user's message whose first message is in an inbox, and give that back."""
        raw = inbox.raw
        if raw.startswith(inbox.last) or inbox.recognise():  # as `_arrived`, but shorter
            fits = target is not None and target.dtype == inbox.dtype and target.shape == inbox.shape
            if inbox.view is not None:
                if target is None or fits:
                    value = delivered(inbox.view, target)
                    inboxes.append(inbox)
                    return value
            elif target is None or (fits and target.flags.carray):
                value = np.empty(inbox.shape, inbox.dtype) if target is None else target
                source, number = inbox.source, number_of(raw)
                inboxes.append(inbox)
                self._parts.Recv([value, value.nbytes, _BYTE], source, number)
                return value
        value = self._arrived(inbox.whole, target)
        inboxes.append(inbox)
        return value

    def _taken_here(self) -> Any:
        """Give the value of a user's message whose first message is in the inbox of the channel, and free that."""
        inbox, view = self._inbox, None
        try:
            if inbox.raw.startswith(inbox.last) or inbox.recognise():
                view = inbox.view
                if view is not None:
                    return view.copy()
                value = np.empty(inbox.shape, inbox.dtype)
                self._parts.Recv([value, value.nbytes, _BYTE], inbox.source, number_of(inbox.raw))
                return value
            return self._arrived(inbox.whole, None)
        finally:
            self._channel.done(view)

    def _push(self, x: Any, to: int) -> None:
        """Send a value to another rank that pulls it, within a collective call."""
        first, parts = self._encoder.encode(x)
        self._parts.Send(first, to, _FIRST_TAG)
        self._send_parts(parts, to, PART_TAG)

    def _start_push(self, x: Any, to: int) -> list[MPI.Request]:
        """Start to send a value to another rank that pulls it."""
        first, parts = self._encoder.encode(x)
        return [self._parts.Isend(first, to, _FIRST_TAG), *self._start_parts(parts, to, PART_TAG)]

    def _pull(self, source: int) -> Any:
        """Receive what another rank pushes."""
        return self._pull_from(source)[0]

    def _pull_from(self, source: int = MPI.ANY_SOURCE, target: Array | None = None) -> tuple[Any, int]:
        """Receive what some rank pushes, and give that rank."""
        inbox = Inbox(FIRST_BYTES)
        found = MPI.Status()
        self._parts.Recv(inbox.raw, source, _FIRST_TAG, found)
        return self._arrived(inbox.whole, target, found.source, PART_TAG), found.source

    # --- errors ------------------------------------------------------------------------------------------------------

    def _error(self, kind: str, message: str, call: str) -> errors.Error:
        """Give the error of an MPI error class, by its name without ``MPI_ERR_``."""
        return errors.BY_CLASS[kind](message, call=call, rank=self.rank)

    def _check(self, call: str, **tried: Any) -> None:
        """Raise an error if one of these ranks and tags is wrong."""
        for name, value in tried.items():
            if value is None or value is ANY:
                continue
            if value is MISSING:
                raise TypeError(f"{call}() is missing the argument {name!r}")
            kind = "TAG" if "tag" in name else "RANK"
            try:
                number = value.__index__()
            except (AttributeError, TypeError):
                hint = ""
                if is_array_like(value):
                    hint = "; hint: a value that is received is returned, out= names an array to receive into"
                raise self._error(kind, f"{name} must be an integer, not {value!r:.80}{hint}", call) from None
            if kind == "TAG" and number < 0:
                raise self._error(kind, f"{name}={number} is negative; hint: tags are non-negative integers", call)
            if kind == "RANK" and not 0 <= number < self.size:
                hint = "; hint: None stands for no process" if number < 0 else ""
                ranks = f"whose ranks are 0 to {self.size - 1}" if self.size > 1 else "whose only rank is 0"
                raise self._error(kind, f"{name}={number} is not in the communicator, {ranks}{hint}", call)

    def _explained(self, error: Exception, call: str, partner: Any, tag: Any) -> NoReturn:
        """Raise the exception for what went wrong in `send` or `recv`."""
        self._explain(error, call, **{"to" if call == "send" else "source": partner}, tag=tag)

    def _explain(self, error: Exception, call: str, **tried: Any) -> NoReturn:
        """Raise the exception of `limosa.errors` for what went wrong in a call with these arguments."""
        if isinstance(error, errors.Error):
            if not error.call:
                error.call, error.rank = call, self.rank
            raise error
        try:
            self._check(call, **tried)
        except errors.Error as found:
            raise found from None
        if isinstance(error, MPI.Exception):
            what = ", ".join(f"{name}={value!r}" for name, value in tried.items())
            raise errors.from_mpi(error, call=call, rank=self.rank, tried=what) from None
        raise error

    def _target(self, out: Any, call: str) -> Array | None:
        """Give the array to receive into, if there is one."""
        if out is None:
            return None
        try:
            return as_target(out)
        except errors.Error as error:
            error.call, error.rank = call, self.rank
            raise
