"""Messages between two ranks.

How a message is sent: its first message goes with the user's tag on a private duplicate of the communicator, the
*envelopes*, where the receiver takes it, whatever its length is, with a single receive into memory that is long enough
for all of them. Its parts, if it has any, follow on a second duplicate with the number of the message as their tag. So
the order of messages, wildcards and threads need no care: only the thread that took the first message knows which
parts to receive.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, overload

import numpy as np
from mpi4py import MPI

from limosa import errors
from limosa._channel import NOTHING, OTHER
from limosa._memory import Array
from limosa._names import refuse
from limosa._nonblocking import Nonblocking
from limosa._packet import (
    ARRAY,
    BARE,
    NUMBERS,
    OBJECT,
    OBJECT_APART,
    Arrival,
    Inbox,
    has_parts,
    number_of,
    opened,
    packed_number,
)
from limosa._receive import Handle, Post, Receive, UnexpectedMessage, UnexpectedQueue
from limosa._request import Later, Request, Steps
from limosa._transfer import ANY, FIRST_BYTES, INLINE_BYTES, MISSING, Any_, inboxes

_ndarray = np.ndarray
_empty = np.empty
_loads = pickle.loads
_BYTE = MPI.BYTE
_MPIException = MPI.Exception
_ANY_SOURCE, _ANY_TAG = MPI.ANY_SOURCE, MPI.ANY_TAG


Out = TypeVar("Out")


class Status:
    """Where a message came from.

    Attributes
    ----------
    source : int
        The rank of the sender.
    tag : int
        The tag of the message.

    Examples
    --------
    >>> import limosa
    >>> request = limosa.world.isend("hello", to=0, tag=5)
    >>> limosa.world.probe()
    Status(source=0, tag=5)
    >>> status = limosa.Status()
    >>> limosa.world.recv(status=status), status.tag
    ('hello', 5)

    """

    __slots__ = ("source", "tag")

    def __init__(self, source: int = -1, tag: int = -1) -> None:
        self.source = source
        self.tag = tag

    def __repr__(self) -> str:
        return f"Status(source={self.source}, tag={self.tag})"


class Messages(Nonblocking):
    """The messages of `Comm`."""

    def __init__(self, mpi: MPI.Intracomm) -> None:
        super().__init__(mpi)
        # Looked up for every message; a lookup here is cheaper.
        self._encode = self._encoder.encode
        self._trusted = self._encoder.trusted
        self._numbers = self._encoder.numbers
        self._heads, self._heads_apart = self._encoder.heads, self._encoder.heads_apart
        self._Recv_status = self._envelopes.Recv
        self._unexpected = UnexpectedQueue(self._channel.divert)
        self._use(self._channel)

    def _use(self, channel: Any) -> None:
        """Communicate through this channel."""
        self._channel = channel
        self._Send, self._Recv, self._value = channel.send, channel.recv, channel.value
        self._send_array, self._send_pickled = channel.send_array, channel.send_pickled

    def send(self, x: Any, to: int | None = MISSING, tag: int = 0, **wrong: NoReturn) -> None:
        """Send a value.

        It returns when `x` may be changed again, for large values when the receiver has them.

        Parameters
        ----------
        x
            An array of any shape and dtype, or any object that can be pickled.
        to
            The receiving rank, or None for no process.
        tag
            A non-negative integer by which the receiver can choose messages.

        Raises
        ------
        limosa.errors.RankError, limosa.errors.TagError
            If rank or tag are not valid.
        Exception
            Whatever pickling `x` raises. Nothing has been sent then.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> world = limosa.world
        >>> x = np.arange(12.0).reshape(3, 4)
        >>> request = world.irecv(source=world.rank)
        >>> world.send(x[:, ::2], to=world.rank)  # a slice of shape (3, 2)
        >>> request.wait().shape
        (3, 2)

        """
        if wrong:
            refuse("send", wrong)
        self._long_send(x, to, tag)

    def _long_send(self, x: Any, to: Any, tag: int, stream: bytes | None = None) -> None:
        """Send a value, whose pickle may be there already."""
        if to is None:
            return
        parts: Sequence[Array] = ()
        number = -1
        try:
            if type(to) is not int or type(tag) is not int or to < 0:
                self._check("send", to=to, tag=tag)
            if stream is not None:
                first, parts = self._encoder.encode_pickled(x, stream)
            elif type(x) is _ndarray:  # as `encode`, but shorter
                kind = x.dtype, x.shape
                if (head := self._heads.get(kind)) is not None:
                    if self._send_array(head, x, to, tag) is None:
                        return
                    first = head + x.tobytes()
                elif (head := self._heads_apart.get(kind)) is not None and x.flags.c_contiguous:
                    number = next(self._numbers) % NUMBERS
                    first = head + packed_number(number)
                else:
                    first, parts = self._encode(x)
            elif type(x) in self._trusted:
                first = self._send_pickled(x, to, tag, FIRST_BYTES)
                if first is None:
                    return
                first, parts = self._encoder.encode_pickled(x, first)
            else:
                first, parts = self._encode(x)
            self._Send(first, to, tag)
            if number >= 0:
                self._parts.Send([x, x.nbytes, _BYTE], to, number)
            elif parts:
                self._send_parts(parts, to, number_of(first))
        except (_MPIException, TypeError, OverflowError) as error:
            self._explain(error, "send", to=to, tag=tag)

    @overload
    def recv(
        self, source: int | Any_ | None = ..., tag: int | Any_ = ..., *, out: None = ..., status: Status | None = ...
    ) -> Any: ...

    @overload
    def recv(
        self, source: int | Any_ | None = ..., tag: int | Any_ = ..., *, out: Out, status: Status | None = ...
    ) -> Out: ...

    def recv(
        self,
        source: int | Any_ | None = ANY,
        tag: int | Any_ = ANY,
        *,
        out: Any = None,
        status: Status | None = None,
        **wrong: NoReturn,
    ) -> Any:
        """Receive a value.

        Parameters
        ----------
        source
            The rank to receive from; by default any. None gives `out` at once.
        tag
            Only a message with this tag; by default any.
        out
            An array to receive into, of the dtype and shape of what arrives. It may be non-contiguous.
        status
            Gets source and tag of the message.

        Returns
        -------
        object
            What was sent: a new array or object, or `out` if it was given.

        Raises
        ------
        limosa.errors.RankError, limosa.errors.TagError
            If rank or tag are not valid.
        limosa.errors.TruncateError
            If `out` is too small. The error's `value` has what arrived; so it is with the next two.
        limosa.errors.DatatypeError
            If `out` has another dtype, or what arrived is not an array.
        limosa.errors.ArgumentError
            If `out` has another shape.
        limosa.errors.BufferError
            If `out` cannot be written to. Nothing has been received then.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> out = np.zeros((2, 3))
        >>> request = limosa.world.isend(np.ones(2), to=0)
        >>> limosa.world.recv(out=out[:, 1])
        array([1., 1.])
        >>> out
        array([[0., 1., 0.],
               [0., 1., 0.]])

        """
        if wrong:
            refuse("recv", wrong)
        return self._long_recv(source, tag, out, status)

    def _long_recv(self, source: Any, tag: Any, out: Any, status: Status | None, here: bool = False) -> Any:
        """Receive a value, whose first message may be in the inbox of the channel."""
        if source is None:
            return out
        if not here and not self._unexpected.is_empty:
            unexpected = self._unexpected.find(*self._where(source, tag, "recv"), take=True)
            if unexpected is not None:
                return self._from_unexpected(unexpected, source, tag, out, status)
        if out is None and status is None and (value := self._from_channel(source, tag, here)) is not NOTHING:
            return value
        return self._general_recv(source, tag, out, status)

    def _general_recv(self, source: Any, tag: Any, out: Any, status: Status | None) -> Any:
        """Receive a value with mpi4py."""
        target = out if out is None or (type(out) is _ndarray and out.flags.carray) else self._target(out, "recv")
        try:
            inbox = inboxes.pop()
        except IndexError:
            inbox = Inbox(FIRST_BYTES)
        raw = inbox.raw
        try:
            # As `_where`, but shorter.
            rank = (
                _ANY_SOURCE
                if source is ANY
                else source
                if type(source) is int and source >= 0
                else self._whole("recv", source=source)
            )
            number = _ANY_TAG if tag is ANY else tag if type(tag) is int and tag >= 0 else self._whole("recv", tag=tag)
            if status is None:
                self._Recv(raw, rank, number)
            else:
                found = MPI.Status()
                self._Recv_status(raw, rank, number, found)
                status.source, status.tag = found.source, found.tag
        except (_MPIException, TypeError, OverflowError) as error:
            self._explain(error, "recv", source=source, tag=tag)
        if raw.startswith(inbox.last):
            view = inbox.view
            if view is not None:
                if target is None:
                    value = view.copy()
                    inboxes.append(inbox)
                    return value
                if target.dtype == inbox.dtype and target.shape == inbox.shape:
                    target[...] = view
                    inboxes.append(inbox)
                    return out
            elif target is None or (
                target.dtype == inbox.dtype and target.shape == inbox.shape and target.flags.carray
            ):
                value = _empty(inbox.shape, inbox.dtype) if target is None else target
                rank, number = inbox.source, number_of(raw)
                inboxes.append(inbox)
                try:
                    self._parts.Recv([value, value.nbytes, _BYTE], rank, number)
                except _MPIException as error:
                    self._explain(error, "recv", source=source, tag=tag)
                return value if target is None else out
        elif raw[0] == BARE and target is None:
            value = _loads(raw)
            inboxes.append(inbox)
            return value
        try:
            value = self._taken(inbox, target)
        except (_MPIException, errors.Error) as error:
            self._explain(error, "recv", source=source, tag=tag)
        return value if target is None else out

    def _from_unexpected(
        self, unexpected: UnexpectedMessage, source: Any, tag: Any, out: Any, status: Status | None
    ) -> Any:
        """Receive a value that an abandoned receive has left."""
        try:
            value = unexpected.value(None if out is None else self._target(out, "recv"), out)
        except errors.Error as error:
            self._explain(error, "recv", source=source, tag=tag)
        except BaseException:
            if not unexpected.request.done:
                self._unexpected.keep(unexpected)
            raise
        if status is not None:
            status.source, status.tag = unexpected.source, unexpected.tag
        return value

    def _from_channel(self, source: Any, tag: Any, here: bool) -> Any:
        """Receive a value with the channel, if it can do that."""
        try:
            value = OTHER if here else self._value(source, tag)
            return self._taken_here() if value is OTHER else value
        except (_MPIException, errors.Error, OverflowError) as error:
            self._explain(error, "recv", source=source, tag=tag)

    @overload
    def sendrecv(
        self,
        x: object,
        to: int | None,
        source: int | Any_ | None = ...,
        tag: int = ...,
        recvtag: int | Any_ | None = ...,
        *,
        out: None = ...,
        status: Status | None = ...,
    ) -> Any: ...

    @overload
    def sendrecv(
        self,
        x: object,
        to: int | None,
        source: int | Any_ | None = ...,
        tag: int = ...,
        recvtag: int | Any_ | None = ...,
        *,
        out: Out,
        status: Status | None = ...,
    ) -> Out: ...

    def sendrecv(
        self,
        x: Any,
        to: int | None = MISSING,
        source: int | Any_ | None = ANY,
        tag: int = 0,
        recvtag: int | Any_ | None = None,
        *,
        out: Any = None,
        status: Status | None = None,
        **wrong: NoReturn,
    ) -> Any:
        """Send a value and receive one, at the same time.

        Parameters
        ----------
        x, to, tag
            As for `send`.
        source, out, status
            As for `recv`.
        recvtag
            The tag of the message to receive; by default as `tag`.

        Returns
        -------
        object
            What was received, or `out` if it was given.

        Raises
        ------
        limosa.errors.Error
            As `send` and `recv`.

        Examples
        --------
        >>> import limosa
        >>> world = limosa.world
        >>> right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        >>> world.sendrecv(world.rank, to=right, source=left) == left
        True

        """
        if wrong:
            refuse("sendrecv", wrong)
        if recvtag is None:
            recvtag = tag
        if source is None:
            self.send(x, to, tag)
            return out
        if to is None:
            return self.recv(source, recvtag, out=out, status=status)
        target = self._target(out, "sendrecv") if out is not None else None
        if self._unexpected.find(*self._where(source, recvtag, "sendrecv"), take=False) is not None:
            sent = self.isend(x, to, tag)
            value = self.recv(source, recvtag, out=out, status=status)
            sent.wait()
            return value
        first, parts = self._encode(x)
        rest: Request[None] | None = None
        inbox = inboxes.pop() if inboxes else Inbox(FIRST_BYTES)
        try:
            where = self._where(source, recvtag, "sendrecv")
            if type(to) is not int or type(tag) is not int or to < 0:
                self._check("sendrecv", to=to, tag=tag)
            found = None if status is None else MPI.Status()
            if parts:
                rest = Request(
                    self._started(first, parts, to, tag), None, "isend", self.rank
                )  # completes them if an error comes between
                self._Recv_status(inbox.raw, *where, found)
            else:
                self._envelopes.Sendrecv(first, to, tag, inbox.raw, *where, found)
            if status is not None and found is not None:
                status.source, status.tag = found.source, found.tag
            value = self._taken(inbox, target)
            if rest is not None:
                rest.wait()
        except (_MPIException, TypeError, OverflowError, errors.Error) as error:
            self._explain(error, "sendrecv", to=to, tag=tag, source=source, recvtag=recvtag)
        return value if target is None else out

    def isend(self, x: Any, to: int | None = MISSING, tag: int = 0, **wrong: NoReturn) -> Request[None]:
        """Start to send a value.

        Parameters
        ----------
        x, to, tag
            As for `send`. A large array must not be changed until the request is complete.

        Returns
        -------
        limosa.Request
            To be waited for. If it is dropped, the value is sent all the same.

        Raises
        ------
        limosa.errors.Error
            As `send`.

        Examples
        --------
        >>> import limosa
        >>> request = limosa.world.isend("hello", to=0)
        >>> limosa.world.recv()
        'hello'
        >>> request.wait()

        """
        if wrong:
            refuse("isend", wrong)
        if to is None:
            return Request([MPI.REQUEST_NULL], None, "isend", self.rank)
        first, parts = self._encode(x)
        try:
            if type(to) is not int or type(tag) is not int or to < 0:
                self._check("isend", to=to, tag=tag)
            active = self._started(first, parts, to, tag)
        except (_MPIException, TypeError, OverflowError) as error:
            self._explain(error, "isend", to=to, tag=tag)
        return Request(active, None, "isend", self.rank)

    @overload
    def irecv(self, source: int | Any_ | None = ..., tag: int | Any_ = ..., *, out: None = ...) -> Request[Any]: ...

    @overload
    def irecv(self, source: int | Any_ | None = ..., tag: int | Any_ = ..., *, out: Out) -> Request[Out]: ...

    def irecv(
        self, source: int | Any_ | None = ANY, tag: int | Any_ = ANY, *, out: Any = None, **wrong: NoReturn
    ) -> Request[Any]:
        """Start to receive a value.

        Parameters
        ----------
        source, tag, out
            As for `recv`.

        Returns
        -------
        limosa.Request
            A request whose `wait` returns the value that was received.

        Raises
        ------
        limosa.errors.Error
            If an argument is not valid. What is wrong with the message is raised by the request.

        Examples
        --------
        >>> import limosa
        >>> request = limosa.world.irecv(source=0, tag=3)
        >>> limosa.world.send({"a": 1}, to=0, tag=3)
        >>> request.wait()
        {'a': 1}

        """
        if wrong:
            refuse("irecv", wrong)
        target = self._target(out, "irecv") if out is not None else None
        if source is None:
            return Request([MPI.REQUEST_NULL], self._nothing(out), "irecv", self.rank)
        where = self._where(source, tag, "irecv")
        try:
            return Handle(Receive(self, where, target, out))
        except (_MPIException, TypeError, OverflowError) as error:
            self._explain(error, "irecv", source=source, tag=tag)

    def probe(self, source: int | Any_ = ANY, tag: int | Any_ = ANY, **wrong: NoReturn) -> Status:
        """Wait until a message is there that `recv` would receive, and leave it there.

        Parameters
        ----------
        source, tag
            As for `recv`.

        Returns
        -------
        limosa.Status
            Source and tag of the message.

        Raises
        ------
        limosa.errors.RankError, limosa.errors.TagError
            If rank or tag are not valid.

        Examples
        --------
        >>> import limosa
        >>> request = limosa.world.isend("hello", to=0, tag=5)
        >>> limosa.world.probe().tag
        5
        >>> limosa.world.recv(tag=5)
        'hello'

        """
        if wrong:
            refuse("probe", wrong)
        found = MPI.Status()
        where = self._where(source, tag, "probe")
        if (unexpected := self._unexpected.find(*where, take=False)) is not None:
            return Status(unexpected.source, unexpected.tag)
        try:
            self._envelopes.Probe(*where, found)
        except (_MPIException, TypeError, OverflowError) as error:
            self._explain(error, "probe", source=source, tag=tag)
        return Status(found.source, found.tag)

    def iprobe(self, source: int | Any_ = ANY, tag: int | Any_ = ANY, **wrong: NoReturn) -> Status | None:
        """Look whether a message is there that `recv` would receive.

        Parameters
        ----------
        source, tag
            As for `recv`.

        Returns
        -------
        limosa.Status or None
            Source and tag of the message; None if there is none.

        Raises
        ------
        limosa.errors.RankError, limosa.errors.TagError
            If rank or tag are not valid.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.iprobe(tag=17)

        """
        if wrong:
            refuse("iprobe", wrong)
        found = MPI.Status()
        where = self._where(source, tag, "iprobe")
        if (unexpected := self._unexpected.find(*where, take=False)) is not None:
            return Status(unexpected.source, unexpected.tag)
        try:
            there = self._envelopes.Iprobe(*where, found)
        except (_MPIException, TypeError, OverflowError) as error:
            self._explain(error, "iprobe", source=source, tag=tag)
        return Status(found.source, found.tag) if there else None

    # --- inside ------------------------------------------------------------------------------------------------------

    def _where(self, source: int | Any_ | None, tag: int | Any_ | None, call: str) -> tuple[int, int]:
        """Give source and tag as MPI numbers them."""
        return (
            _ANY_SOURCE
            if source is ANY
            else source
            if type(source) is int and source >= 0
            else self._whole(call, source=source),
            _ANY_TAG if tag is ANY else tag if type(tag) is int and tag >= 0 else self._whole(call, tag=tag),
        )

    def _whole(self, call: str, **argument: Any) -> int:
        """Give the number that an argument stands for."""
        self._check(call, **argument)
        (value,) = argument.values()
        return int(value.__index__())

    def _started(self, first: bytes, parts: Sequence[Array], to: int, tag: int) -> list[MPI.Request]:
        """Start to send a packet."""
        started = [self._envelopes.Isend(first, to, tag)]
        if parts:
            started += self._start_parts(parts, to, number_of(first))
        return started

    def _arriving(self, post: Post, target: Array | None, out: Any) -> Steps:
        """The steps of a receive: of a message that an abandoned one has left, else of one that is still to come."""
        post.unexpected = unexpected = self._unexpected.find(*post.where, take=True)
        if unexpected is not None:
            yield None
            while not unexpected.request._look():
                yield None
            return Later(lambda: unexpected.value(target, out))
        post.inbox = inbox = inboxes.pop() if inboxes else Inbox(FIRST_BYTES)
        yield [self._envelopes.Irecv(inbox.raw, *post.where)]
        post.matched(post.status)
        post.inbox = None
        return (yield from self._receiving(inbox, target, out))

    def _receiving(self, inbox: Inbox, target: Array | None, out: Any) -> Steps:
        """The steps of a receive whose first message is complete: a generator for `Request`."""
        first = inbox.whole
        kind = first[0]
        make: Callable[[], Any]
        if has_parts(first):
            arrival = Arrival(first, INLINE_BYTES, target)
            inboxes.append(inbox)
            for stage in arrival.stages():
                yield [self._parts.Irecv(spec, arrival.source, arrival.number) for spec in stage]
            make = arrival.finish
        else:
            make = functools.partial(opened, first if kind == ARRAY else memoryview(bytes(first)), target)
            if kind != ARRAY:
                inboxes.append(inbox)
        if kind in (BARE, OBJECT, OBJECT_APART):  # unpickling may call functions of the program
            return Later(lambda: make() if target is None else (make(), out)[1])
        value = make()
        if kind == ARRAY:
            inboxes.append(inbox)
        return value if target is None else out

    def _nothing(self, out: Any) -> Steps:
        """The steps of a receive from no process."""
        return out
        yield []
