"""Communicators: messages between two ranks."""

import sys
from typing import Any

from mpi4py import MPI

from limosa.dialects._wire import Channel, pack
from limosa.dialects.boostmpi._errors import calls
from limosa.dialects.boostmpi._requests import (
    ReceivedContent,
    ReceivedObject,
    Request,
    RequestWithValue,
    Status,
    finish,
    is_anything_open,
)
from limosa.dialects.boostmpi._skeleton import Content

any_source = MPI.ANY_SOURCE
any_tag = MPI.ANY_TAG

_world_channel = Channel(MPI.COMM_WORLD)


class Communicator:
    """A group of ranks that can talk to each other; ``Communicator()`` is all of them.

    Attributes
    ----------
    rank
        Number of this process in the group, from 0.
    size
        Number of ranks.
    """

    def __init__(self) -> None:
        self._become(_world_channel)

    def _become(self, channel: Channel | None) -> None:
        """Stand for a channel, or for no communicator at all."""
        self._channel: Any = channel
        self._comm: Any = channel.comm if channel else MPI.COMM_NULL
        self._rank = channel.comm.Get_rank() if channel else MPI.UNDEFINED
        self._size = channel.comm.Get_size() if channel else 0

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._size

    def __bool__(self) -> bool:
        return self._channel is not None

    __nonzero__ = __bool__

    def __repr__(self) -> str:
        return f"<Communicator rank={self._rank} size={self._size}>"

    @calls("MPI_Send")
    def send(self, dest: int, tag: int = 0, value: Any = None) -> None:
        """Send a value.

        Parameters
        ----------
        dest
            Rank of the receiver.
        tag
            Tag of the message.
        value
            Anything that can be pickled, or a `Content`.
        """
        if type(value) is Content:
            if is_anything_open():
                finish([Request([self._comm.Isend(value.to_send(), dest, tag)])])
            else:
                self._comm.Send(value.to_send(), dest, tag)
        elif is_anything_open():
            finish([Request(self._channel.isend(pack(value), dest, tag))])
        else:
            self._channel.send(pack(value), dest, tag)

    @calls("MPI_Recv")
    def recv(
        self,
        source: int = any_source,
        tag: int = any_tag,
        *args: Any,
        buffer: Content | None = None,
        return_status: bool = False,
    ) -> Any:
        """Receive a value.

        Called as ``recv(source, tag, return_status=False)`` or ``recv(source, tag, buffer, return_status=False)``.

        Parameters
        ----------
        source, tag
            Of which rank and tag; any by default.
        buffer
            The `Content` to receive into.
        return_status
            Give a `Status` too.

        Returns
        -------
        object or (object, Status)
            The value, or the array to which the content belongs.
        """
        if args and isinstance(args[0], Content):
            buffer, args = args[0], args[1:]
        if args:
            return_status, args = args[0], args[1:]
        if args:
            raise TypeError("recv() takes at most source, tag, buffer and return_status")
        if is_anything_open():
            value, about = self.irecv(source, tag, buffer).wait()
            return (value, about) if return_status else value
        status = MPI.Status()
        if buffer is None:
            value = self._channel.receive(source, tag, status).value
        else:
            self._comm.Recv(buffer.to_receive(), source, tag, status)
            value = buffer.received()
        return (value, Status(status)) if return_status else value

    @calls("MPI_Isend")
    def isend(self, dest: int, tag: int = 0, value: Any = None) -> Request:
        """Start to send a value, as it is now. A content must stay as it is until the request is done."""
        if type(value) is Content:
            return Request([self._comm.Isend(value.to_send(), dest, tag)])
        front, payload, nbytes = pack(value)
        if payload is value and type(value) is not bytes:
            payload = value.copy()
        return Request(self._channel.isend((front, payload, nbytes), dest, tag))

    @calls("MPI_Irecv")
    def irecv(self, source: int = any_source, tag: int = any_tag, buffer: Content | None = None) -> RequestWithValue:
        """Start to receive a value of any length, or into a `Content`."""
        if buffer is None:
            return ReceivedObject(self._channel, source, tag)
        return ReceivedContent(self._channel, source, tag, buffer)

    @calls("MPI_Probe")
    def probe(self, source: int = any_source, tag: int = any_tag) -> Status:
        """Wait for a message without receiving it."""
        status = MPI.Status()
        self._comm.Probe(source, tag, status)
        return Status(status)

    @calls("MPI_Iprobe")
    def iprobe(self, source: int = any_source, tag: int = any_tag) -> Status | None:
        """Tell of a message that is here, or give None."""
        status = MPI.Status()
        return Status(status) if self._comm.Iprobe(source, tag, status) else None

    @calls("MPI_Barrier")
    def barrier(self) -> None:
        """Wait until all ranks are here."""
        if is_anything_open():
            finish([Request([self._comm.Ibarrier()])])
        else:
            self._comm.Barrier()

    @calls("MPI_Comm_split")
    def split(self, color: int, key: int | None = None) -> "Communicator":
        """Make communicators of the ranks that pass the same `color`, in the order of `key` (by default of ranks)."""
        comm = self._comm.Split(color if color >= 0 else MPI.UNDEFINED, self._rank if key is None else key)
        part = Communicator.__new__(Communicator)
        part._become(None if comm == MPI.COMM_NULL else Channel(comm))
        return part

    def abort(self, errcode: int) -> None:
        """End all ranks at once."""
        # What was printed would be lost where the output is no terminal.
        sys.stdout.flush()
        self._comm.Abort(errcode)


world = Communicator()
