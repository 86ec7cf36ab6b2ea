"""Communicators: everything that can be done on one."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn, TextIO, cast, overload

from mpi4py import MPI

from limosa.dialects.pympi import output, reductions, requests, wire
from limosa.dialects.pympi.errors import AbsentCommunicator, raise_translated, translated
from limosa.dialects.pympi.requests import Request, Status

__all__ = ["CartesianCommunicator", "Communicator", "close_all"]

_FINALIZED = "MPI not ready or already finalized"

_all: weakref.WeakValueDictionary[int, Communicator] = (
    weakref.WeakValueDictionary()
)  # by identity: several may be equal
_ABSENT: Any = object()


def close_all() -> None:
    """Let every communicator refuse from now on (MPI is about to end)."""
    for comm in list(_all.values()):
        comm._comm = cast(Any, AbsentCommunicator(_FINALIZED))


class Communicator:
    """A communicator; ``mpi.communicator`` in scripts.

    Also a sequence of its ranks: ``len``, iteration, ``comm[1::2]`` for a list of ranks.

    Parameters
    ----------
    communicator
        Another communicator, or the number of one (``int(comm)``), which is used as it is.
    persist
        Whether the MPI communicator outlives this object.

    Attributes
    ----------
    rank, size, procs : int
        Rank of this process, number of processes (twice).
    persistent : int
        As given by `persist`.
    """

    def __init__(self, communicator: Communicator | MPI.Comm | int | None = None, persist: int = 1) -> None:
        comm = _mpi_communicator(communicator)
        self.persistent = int(persist)
        self._handle = comm.handle
        self._watch = MPI.Wtime()
        if comm == MPI.COMM_NULL:
            self._comm = cast(
                MPI.Intracomm,
                AbsentCommunicator("this is the null communicator: it has no members and cannot communicate"),
            )
            self.rank, self.size = MPI.UNDEFINED, 0
            return
        self._comm = cast(MPI.Intracomm, comm)
        self.rank, self.size = comm.rank, comm.size
        self.world_rank = _world_ranks(comm)
        _all[id(self)] = self

    @property
    def procs(self) -> int:
        """Number of processes, under its older name."""
        return self.size

    # --- messages
    # -------------------------------------------------------------------------------------------------------

    def send(self, message: Any, destination: int, tag: int = 0) -> None:
        """Send any object that can be pickled."""
        first, rest, number = wire.pack(message)
        try:
            self._comm.Send((first, MPI.BYTE), destination, tag)
            if rest is not None and destination >= 0:
                wire.later.Send((rest, MPI.BYTE), self.world_rank(destination), number)
        except MPI.Exception as error:
            raise_translated(error)

    def recv(self, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG) -> tuple[Any, Status]:
        """Receive an object; gives it and the status."""
        room = wire.borrow()
        status = MPI.Status()
        try:
            self._comm.Recv((room, MPI.BYTE), source, tag, status)
            come_from = status.Get_source()
            if come_from < 0:  # MPI_PROC_NULL
                message = None
            elif room[0] == wire.PICKLE:
                message = wire.loads(room)
            else:
                message = wire.unpack(room, partial(self._fetch, come_from))
        except MPI.Exception as error:
            raise_translated(error)
        wire.give_back(room)
        return message, Status(come_from, status.Get_tag(), 0)

    def _fetch(self, source: int, room: Any, number: int) -> None:
        wire.later.Recv((room, MPI.BYTE), self.world_rank(source), number)

    def sendrecv(
        self, message: Any, destination: int, source: int = MPI.ANY_SOURCE, sendtag: int = 0, recvtag: int = MPI.ANY_TAG
    ) -> tuple[Any, Status]:
        """Send one object and receive another at the same time; gives what is received, and the status."""
        sending = self.isend(message, destination, sendtag)
        received = self.recv(source, recvtag)
        sending.wait()
        return received

    def isend(self, message: Any, destination: int, tag: int = 0) -> Request:
        """Begin to send an object."""
        first, rest, number = wire.pack(message)
        with translated():
            parts = [self._comm.Isend((first, MPI.BYTE), destination, tag)]
            if rest is not None and destination >= 0:
                parts.append(wire.later.Isend((rest, MPI.BYTE), self.world_rank(destination), number))
        return Request(parts, message)

    def irecv(self, source: int = MPI.ANY_SOURCE, tag: int = MPI.ANY_TAG) -> Request:
        """Begin to receive an object of any size."""
        with translated():
            return requests.receive(self._comm, source, tag, self.world_rank)

    # --- collectives
    # ----------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until every process has called this."""
        with translated():
            self._comm.Barrier()

    def bcast(self, message: Any = _ABSENT, root: int = 0) -> Any:
        """Give every process the root's object; the others may leave the argument away.

        Raises
        ------
        ValueError
            `root` is not a rank of this communicator, or the root has no message.
        """
        comm = self._comm
        try:
            if self.rank == root:
                if message is _ABSENT:
                    raise ValueError("bcast needs a message on the root")
                first, rest, _ = wire.pack(message, wire.BLOCK)
                comm.Bcast((first.ljust(wire.BLOCK), MPI.BYTE), root)
                if rest is not None:
                    comm.Bcast((rest, MPI.BYTE), root)
                return message
            self._check_root(root)
            room = bytearray(wire.BLOCK)
            comm.Bcast((room, MPI.BYTE), root)
            return wire.unpack(room, lambda rest, _number: comm.Bcast((rest, MPI.BYTE), root))
        except MPI.Exception as error:
            raise_translated(error)

    def scatter(self, message: Any = None, root: int = 0) -> Any:
        """Cut the root's sequence into parts of nearly equal length, one for each process; the first ones are longer.

        What is not a sequence becomes None everywhere.
        """
        self._check_root(root)
        parts: list[Any] | None = None
        if self.rank == root:
            try:
                each, extra = divmod(len(message), self.size)
                ends = [each * rank + min(rank, extra) for rank in range(self.size + 1)]
                parts = [message[start:end] for start, end in itertools.pairwise(ends)]
            except Exception:  # whatever cannot be counted and cut
                parts = [None] * self.size
        with translated():
            return self._comm.scatter(cast(Any, parts), root)

    def gather(self, message: Any, count: int | None = None, root: int = 0) -> list[Any] | None:
        """Join the first `count` items (all of them, if not given) of everyone's sequence to one list on the root.

        Raises
        ------
        ValueError
            `message` is not a sequence.
        RuntimeError
            A sequence has fewer than `count` items.
        """
        self._check_root(root)
        part = _part(message, count)
        with translated():
            return _joined(self._comm.gather(part, root), part)

    def allgather(self, message: Any, count: int | None = None) -> list[Any]:
        """Join the first `count` items (all of them, if not given) of everyone's sequence to one list for all."""
        part = _part(message, count)
        with translated():
            return cast(list[Any], _joined(self._comm.allgather(part), part))

    def reduce(self, message: Any, operator: Any, root: int = 0, ground: Any = None, type: Any = None) -> Any:
        """Combine everyone's object on the root; None elsewhere.

        Parameters
        ----------
        message
            This rank's value.
        operator
            One of ``mpi.SUM``, ``mpi.MAX`` ... or a function of two arguments, applied in the order of ranks.
        root
            Rank that gets the result.
        ground
            Initial value, if any.
        type
            ``float`` or ``int``: all values are such numbers.
        """
        self._check_root(root)
        try:
            return reductions.reduce(self._comm, self.rank, message, operator, root, ground, type)
        except MPI.Exception as error:
            raise_translated(error)

    def allreduce(self, message: Any, operator: Any, root: int = 0, ground: Any = None, type: Any = None) -> Any:
        """Combine everyone's object, for all; see `reduce`."""
        self._check_root(root)
        try:
            return reductions.allreduce(self._comm, self.rank, message, operator, root, ground, type)
        except MPI.Exception as error:
            raise_translated(error)

    def scan(self, message: Any, operator: Any, root: int = 0, ground: Any = None, type: Any = None) -> Any:
        """Combine the objects of the ranks up to this one; see `reduce`."""
        self._check_root(root)
        try:
            return reductions.scan(self._comm, self.rank, message, operator, root, ground, type)
        except MPI.Exception as error:
            raise_translated(error)

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise ValueError(f"invalid root {root}: ranks of this communicator are 0 to {self.size - 1}")

    # --- communicators
    # --------------------------------------------------------------------------------------------------

    def comm_create(self, group: Any) -> Communicator | None:
        """Make a communicator of some ranks; collective over this one.

        Parameters
        ----------
        group
            A sequence of ranks, a single rank, or None.

        Returns
        -------
        Communicator or None
            None on ranks that are not in it (and everywhere if `group` is None); the null communicator if no rank is.

        Raises
        ------
        ValueError
            A rank does not exist or appears twice.
        """
        if group is None:
            return None
        ranks = [int(rank) for rank in group] if hasattr(group, "__getitem__") else [int(group)]
        if not ranks:
            return Communicator(None)
        for position, rank in enumerate(ranks):
            if not 0 <= rank < self.size:
                raise ValueError(f"rank {rank} in position {position} does not exist: ranks are 0 to {self.size - 1}")
            if rank in ranks[:position]:
                raise ValueError(f"rank {rank} in position {position} appears twice")
        with translated():
            whole = self._comm.Get_group()
            chosen = whole.Incl(ranks)
            made = self._comm.Create(chosen)
            whole.Free()
            chosen.Free()
        return None if made == MPI.COMM_NULL else Communicator(made, persist=0)

    def comm_dup(self) -> Communicator:
        """Make another communicator of the same ranks."""
        with translated():
            return Communicator(self._comm.Dup(), persist=0)

    def comm_rank(self) -> int:
        """Rank of this process."""
        return self._comm.Get_rank()

    def comm_size(self) -> int:
        """Number of processes."""
        return self._comm.Get_size()

    def comm_free(self) -> None:
        """Free the communicator.

        Raises
        ------
        RuntimeError
            It is one of MPI's own, or pyMPI's ``mpi.WORLD``.
        """
        if self.persistent:
            raise RuntimeError("a communicator of the system cannot be freed")
        with translated():
            self._comm.Free()
        self._comm = cast(MPI.Intracomm, AbsentCommunicator("this communicator has been freed"))

    def cart_create(
        self, dims: Sequence[int] | None = None, periods: Sequence[int] | None = None, reorder: int = 1
    ) -> CartesianCommunicator:
        """Make a Cartesian communicator; see `CartesianCommunicator`."""
        return CartesianCommunicator(self, dims, periods, reorder)

    def abort(self, errorcode: int = 1) -> NoReturn:
        """End the whole job with this exit code."""
        output.flush()
        self._comm.Abort(errorcode)
        raise SystemExit(errorcode)

    # --- time and output
    # ------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Time in seconds."""
        return MPI.Wtime()

    def tick(self) -> float:
        """Resolution of `time` in seconds."""
        return MPI.Wtick()

    def stopwatch(self) -> float:
        """Seconds since this was last called, or since the communicator was made."""
        before, self._watch = self._watch, MPI.Wtime()
        return self._watch - before

    @overload
    def synchronizeQueuedOutput(self) -> None: ...

    @overload
    def synchronizeQueuedOutput(self, stdout: str | None = ..., stderr: str | None = ...) -> None: ...

    def synchronizeQueuedOutput(self, stdout: Any = _ABSENT, stderr: Any = _ABSENT) -> None:
        """Direct the output of all ranks but 0, or show what is waiting; collective.

        Parameters
        ----------
        stdout, stderr : str or None
            Rank 3 writes to the file ``NAME.out.3`` (``NAME.err.3``); ``/dev/null`` drops the text; None: to the
            terminal again. With neither, what is waiting is shown in the order of ranks.
        """
        output.flush()
        if stdout is _ABSENT and stderr is _ABSENT:
            output.in_turn(self._comm, output.flush)
        if stdout is not _ABSENT and self.rank != 0:
            output.redirect("stdout", stdout, f"out.{self.rank}")
        if stderr is not _ABSENT and self.rank != 0:
            output.redirect("stderr", stderr, f"err.{self.rank}")
        self.barrier()

    def synchronizedWrite(self, *args: Any, file: TextIO | None = None) -> None:
        """Write everyone's arguments, joined with spaces, on rank 0 in the order of ranks; collective."""
        with translated():
            texts = self._comm.gather(" ".join(map(str, args)), 0)
        if texts is not None:
            out = sys.stdout if file is None else file
            out.write("".join(texts))
            out.flush()

    def synchronizedWriteln(self, *args: Any, file: TextIO | None = None) -> None:
        """As `synchronizedWrite`, each rank's on a line of its own."""
        self.synchronizedWrite(" ".join(map(str, args)) + "\n", file=file)

    def map(self, *_args: Any, **_options: Any) -> NoReturn:
        """Not available, as in pyMPI itself."""
        raise NotImplementedError("pyMPI never had this; use scatter and gather")

    mapserver = mapstats = map

    # --- a sequence of ranks
    # ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.size))

    def __getitem__(self, index: Any) -> Any:
        if index is Ellipsis:
            return list(range(self.size))
        chosen = range(self.size)[index]
        return list(chosen) if isinstance(index, slice) else chosen

    def __bool__(self) -> bool:
        return self._handle != MPI.COMM_NULL.handle

    def __int__(self) -> int:
        return self._handle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Communicator) and self._handle == other._handle

    def __hash__(self) -> int:
        return hash(self._handle)

    def __repr__(self) -> str:
        return f"<communicator {self._handle:#x}: rank {self.rank} of {self.size}>" if self else "<null communicator>"


class CartesianCommunicator(Communicator):
    """Ranks on a grid; ``mpi.cartesian_communicator`` in scripts.

    Parameters
    ----------
    communicator
        Whose ranks.
    dims
        Number of ranks in each direction; one row if not given.
    periods
        For each direction: whether it is closed to a ring; all are, if not given.
    reorder
        Whether ranks may be numbered anew.

    Attributes
    ----------
    dims, periods : tuple of int
        As above.
    ndims : int
        Number of directions.
    """

    def __init__(
        self,
        communicator: Communicator | int | None = None,
        dims: Sequence[int] | None = None,
        periods: Sequence[int] | None = None,
        reorder: int = 1,
    ) -> None:
        parent = Communicator(communicator)
        shape = [parent.size] if dims is None else [int(extent) for extent in dims]
        rings = [True] * len(shape) if periods is None else [bool(ring) for ring in periods]
        with translated():
            made = parent._comm.Create_cart(shape, rings, bool(reorder))
        super().__init__(made, persist=0)
        self.dims, self.periods, self.ndims = tuple(shape), tuple(map(int, rings)), len(shape)

    def coords(self, rank: int | None = None) -> tuple[int, ...]:
        """Place of a rank (one's own, if not given) on the grid."""
        with translated():
            return tuple(cast(MPI.Cartcomm, self._comm).Get_coords(self.rank if rank is None else rank))

    def shift(self, direction: int = 0, displacement: int = 1) -> tuple[int, int]:
        """Ranks from which to receive and to which to send when everything moves by `displacement`."""
        with translated():
            return cast(MPI.Cartcomm, self._comm).Shift(direction, displacement)


def _mpi_communicator(communicator: Communicator | MPI.Comm | int | None) -> MPI.Comm:
    if communicator is None:
        return MPI.COMM_NULL
    if isinstance(communicator, MPI.Comm):
        return communicator
    if isinstance(communicator, Communicator) and isinstance(communicator._comm, MPI.Comm):
        return communicator._comm
    for known in (MPI.COMM_WORLD, MPI.COMM_SELF, *(comm._comm for comm in _all.values())):
        if isinstance(known, MPI.Comm) and known.handle == int(communicator):
            return known
    if int(communicator) == MPI.COMM_NULL.handle:
        return MPI.COMM_NULL
    raise ValueError(f"{int(communicator)} is not the number of a communicator of pyMPI")


def _same(rank: int) -> int:
    return rank


def _world_ranks(comm: MPI.Comm) -> Callable[[int], int]:
    """Function from ranks of a communicator to ranks of the world."""
    members, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    ranks = members.Translate_ranks(None, world)
    members.Free()
    world.Free()
    return _same if list(ranks) == list(range(len(ranks))) else list(ranks).__getitem__


def _part(message: Any, count: int | None) -> Any:
    """The first items of a sequence, or the exception that says why there are none; all get it, so no rank waits."""
    if not (hasattr(message, "__len__") and hasattr(message, "__getitem__")) or isinstance(message, dict):
        return ValueError(f"the message to gather is not a sequence but {type(message).__name__}: wrap it as [message]")
    if count is None:
        return message
    if len(message) < count:
        return RuntimeError(f"the sequence to gather has {len(message)} items, fewer than count={count}")
    return message[:count]


def _joined(parts: list[Any] | None, own: Any) -> list[Any] | None:
    for part in (own, *(parts or ())):
        if isinstance(part, Exception):
            raise part
    return None if parts is None else [item for part in parts for item in part]
