"""Communicators: what users see. Messages are in `limosa._messages`, collective calls in `limosa._collectives`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from mpi4py import MPI

from limosa import errors
from limosa._agreement import FAULTS
from limosa._channel import Channel, adopt
from limosa._messages import Messages
from limosa._names import Hinting
from limosa._transfer import ANY

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import DTypeLike

    from limosa._cart import Cart
    from limosa._graph import Graph
    from limosa._windows import SharedArray, Window

Item = TypeVar("Item")
Result = TypeVar("Result")
Self = TypeVar("Self", bound="Comm")


class Comm(Messages, metaclass=Hinting):
    """A group of processes, the *ranks*, that send each other messages.

    `limosa.world` holds all processes of the job. Others are made from it with `split`, `dup` and `cart`, or from a
    communicator of mpi4py.

    Parameters
    ----------
    mpi
        A communicator of mpi4py. All its ranks must call this together. Messages of the two do not mix.

    Attributes
    ----------
    rank : int
        The rank of this process, from 0.
    size : int
        The number of processes.
    mpi : mpi4py.MPI.Intracomm
        A communicator of mpi4py with the same ranks, for what this class does not offer. It is that given as `mpi`, or
        belongs to this communicator, and is freed with it.

    Notes
    -----
    One verb serves every value. Arrays (NumPy's, and all with the buffer protocol, ``__array_interface__`` or DLPack)
    are sent as raw memory, also if they are not contiguous; they arrive as NumPy arrays. `bytes`, `bytearray`,
    `array.array` and NumPy scalars are sent the same way, and keep their type. Everything else is pickled; large arrays
    inside are not copied.

    ``out=`` names an array to receive into; it is returned. It must have the dtype and the shape of what arrives. If
    not, an error is raised, which has what arrived as its attribute `value`: the message is consumed, and the
    communicator stays usable.

    Instead of a rank, None means no process, as at the edge of a grid: sending does nothing, and receiving gives None,
    or leaves ``out`` as it is.

    Examples
    --------
    >>> import limosa, mpi4py.MPI
    >>> with limosa.Comm(mpi4py.MPI.COMM_SELF) as alone:
    ...     print(alone.rank, alone.size)
    0 1

    """

    def __repr__(self) -> str:
        return f"<limosa.{type(self).__name__}: rank {self.rank} of {self.size}>"

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *vars(self)]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a communicator belongs to its process and cannot be pickled or sent")

    @property
    def local_rank(self) -> int:
        """The number of this rank among those on its host, from 0: for the choice of a device, or a folder.

        With another library than Limosa, all ranks must read this or `local_size` together the first time.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.local_rank, limosa.world.local_size
        (0, 1)

        """
        return self._local[0]

    @property
    def local_size(self) -> int:
        """The number of ranks on the host of this rank; see `local_rank`."""
        return self._local[1]

    @functools.cached_property
    def _local(self) -> tuple[int, int]:
        info = self._envelopes.Get_info()
        found = info.Get("limosa_local")
        info.Free()
        if found is None:  # another library
            here = self._envelopes.Split_type(MPI.COMM_TYPE_SHARED)
            place = here.rank, here.size
            here.Free()
            return place
        rank, size = map(int, found.split(":"))
        return rank, size

    @overload
    def split(self, color: int, key: int = ...) -> Comm: ...

    @overload
    def split(self, color: None, key: int = ...) -> None: ...

    @overload
    def split(self, color: int | None, key: int = ...) -> Comm | None: ...

    def split(self, color: int | None, key: int = 0) -> Comm | None:
        """Divide the ranks into communicators, one for each color.

        Parameters
        ----------
        color
            A non-negative integer: ranks with the same color are in one communicator. None: this rank is in none.
        key
            Ranks are numbered in the order of their keys, those with equal keys in their present order.

        Returns
        -------
        Comm or None
            The communicator of this color.

        Raises
        ------
        limosa.errors.ArgumentError
            On every rank, if a color is negative or not a number.

        Examples
        --------
        >>> import limosa
        >>> half = limosa.world.split(limosa.world.rank % 2)
        >>> half.size
        1

        """
        problem: str | None = None
        for name, number in (("color", color), ("key", key)):
            if number is not None and (not hasattr(number, "__index__") or (name == "color" and number < 0)):
                problem = (
                    f"{name}={number!r} is not valid; hint: a color is a non-negative integer or None, a key an integer"
                )
        try:
            texts = self._agree_on_arguments("split", problem and problem[:150])
        except (MPI.Exception, errors.Error) as error:
            self._blame(error, "split")
        problems = [(rank, text) for rank, text in enumerate(texts) if text]
        if problems:
            raise errors.BY_CLASS["ARG"](
                "; ".join(f"rank {rank}: {text}" for rank, text in problems), call="split", rank=self.rank
            )
        try:
            part = self._envelopes.Split(MPI.UNDEFINED if color is None else color, key)
        except MPI.Exception as error:
            raise errors.from_mpi(error, call="split", rank=self.rank) from None
        return None if part == MPI.COMM_NULL else _owned(part)  # type: ignore[arg-type]

    def dup(self) -> Comm:
        """Give a communicator of the same ranks whose messages do not mix with those of this one.

        All ranks must call it together.

        Examples
        --------
        >>> import limosa
        >>> with limosa.world.dup() as private:
        ...     private.size
        1

        """
        try:
            self._begin("dup")
        except (MPI.Exception, errors.Error) as error:
            self._blame(error, "dup")
        return _owned(self._envelopes.Dup())

    def time(self) -> float:
        """Give the time in seconds since a moment in the past, to measure how long something takes.

        Examples
        --------
        >>> import limosa
        >>> start = limosa.world.time()
        >>> limosa.world.time() >= start
        True

        """
        return MPI.Wtime()

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item] | None = None, root: int = 0, *, chunk: int = 1
    ) -> list[Result]:
        """Call a function for many items on all ranks, each of which gets the next item when it has done the last.

        All ranks must call this together; the function must not communicate through this communicator.

        Parameters
        ----------
        function
            Is called with one item, on some rank. All ranks give the same.
        items
            The items, on the root; ignored on the others.
        root
            The rank that has the items. It works on them too, while one of its threads hands them out.
        chunk
            How many items a rank gets at once: more of them for a function that takes less than a millisecond.

        Returns
        -------
        list
            The results in the order of the items, on all ranks.

        Raises
        ------
        Exception
            What the function raised, on all ranks, with a note that says for which item; of several, that of the first
            item. The items that no rank has begun with are left out then.
        limosa.errors.PeerError
            If that cannot be pickled, or if another rank could not take part.

        Examples
        --------
        >>> import limosa
        >>> limosa.world.map(lambda x: x * x, range(5))
        [0, 1, 4, 9, 16]

        """
        from limosa._map import run

        return run(self, function, items, root, chunk)

    def free(self) -> None:
        """Give the communicator back to the library.

        All ranks must call it together; afterwards every call is an error.

        ``with world.split(...) as part:`` does it at the end of the block.
        """
        for comm in (self._envelopes, self._parts, *((self.mpi,) if self._owns_mpi else ())):
            if comm != MPI.COMM_NULL:
                comm.Free()
        self._use(Channel(self._envelopes))  # whose calls are errors from now on

    def cart(
        self, dims: int | Sequence[int], periodic: bool | Sequence[bool] = False, *, reorder: bool = False
    ) -> Cart:
        """Arrange the ranks in a grid.

        Parameters
        ----------
        dims
            The number of axes, or the number of ranks along each, with 0 for those to be chosen. All ranks must fit
            in.
        periodic
            Whether the last rank along an axis is followed by the first, for all axes or for each.
        reorder
            Whether ranks may be renumbered.

        Returns
        -------
        Cart
            The communicator with this grid.

        Raises
        ------
        limosa.errors.DimsError
            If the ranks do not fill such a grid.
        limosa.errors.MismatchError
            On every rank, if the ranks ask for different grids.

        Examples
        --------
        >>> import limosa
        >>> grid = limosa.world.cart(2)
        >>> grid.dims, grid.coords, grid.neighbours
        ((1, 1), (0, 0), ((None, None), (None, None)))

        """
        from limosa._cart import make

        return make(self, dims, periodic, reorder)

    def graph(self, neighbours: Iterable[int], *, sources: Iterable[int] | None = None) -> Graph:
        """Tell the neighbours of each rank, for exchanges between them.

        Parameters
        ----------
        neighbours
            The ranks that this one sends to; it also receives from them, unless `sources` says otherwise.
        sources
            The ranks that this one receives from, if these are others.

        Returns
        -------
        Graph
            The communicator with these neighbours.

        Raises
        ------
        limosa.errors.RankError
            If a neighbour is no rank. The others raise `limosa.errors.PeerError`.
        limosa.errors.MismatchError
            On every rank, if a rank has a neighbour that does not expect it.

        Examples
        --------
        >>> import limosa
        >>> mesh = limosa.world.graph([])
        >>> mesh.neighbours
        ()

        """
        from limosa._graph import make

        return make(self, neighbours, sources)

    def split_by_host(self, key: int = 0) -> Comm:
        """Give the communicator of the ranks that share this rank's memory.

        Parameters
        ----------
        key
            Ranks are numbered in the order of their keys, those with equal keys in their present order.

        Examples
        --------
        >>> import limosa
        >>> with limosa.world.split_by_host() as host:
        ...     host.size
        1

        """
        if not hasattr(key, "__index__"):
            raise self._error("ARG", f"key={key!r} is not an integer", "split_by_host")
        try:
            self._begin("split_by_host")
            return _owned(self._envelopes.Split_type(MPI.COMM_TYPE_SHARED, key))  # type: ignore[arg-type]
        except (MPI.Exception, errors.Error) as error:
            self._blame(error, "split_by_host")

    def shared_array(self, shape: int | Sequence[int], dtype: DTypeLike = float, fill: Any = None) -> SharedArray:
        """Make an array that all ranks share: each reads and writes the same memory. They must be on one host.

        Parameters
        ----------
        shape, dtype
            Those of the array, the same on all ranks.
        fill
            Its elements at first, as rank 0 gives them; zero by default.

        Returns
        -------
        SharedArray
            The array, to be used in a ``with`` block, or to be freed by all ranks.

        Raises
        ------
        limosa.errors.RmaSharedError
            On every rank, if the ranks are on several hosts.
        limosa.errors.MismatchError
            On every rank, if the ranks ask for different arrays.

        Examples
        --------
        >>> import limosa
        >>> with limosa.world.shared_array((2, 3), fill=1.5) as table:
        ...     float(table.array.sum())
        9.0

        """
        from limosa._windows import shared_array

        return shared_array(self, shape, dtype, fill)

    def window(self, array: Any) -> Window:
        """Let all ranks reach an array of this one, wherever they are.

        All ranks must call this together.

        Parameters
        ----------
        array
            A contiguous array, of any shape and dtype on each rank, or None. It stays the memory of this rank.

        Returns
        -------
        Window
            The arrays of all ranks, to be used in a ``with`` block, or to be freed by all ranks.

        Examples
        --------
        >>> import limosa, numpy as np
        >>> with limosa.world.window(np.arange(4.0)) as window:
        ...     with window.lock(0) as there:
        ...         there[1:] *= 10
        ...         there[:]
        array([ 0., 10., 20., 30.])

        """
        from limosa._windows import window

        return window(self, array)

    def abort(self, code: int = 1) -> NoReturn:
        """End all processes of the job at once.

        Parameters
        ----------
        code
            The exit code of the job.

        """
        MPI.COMM_WORLD.Abort(code)
        raise SystemExit(code)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Ranks that left the block by different ways could not free it together.
        if kind is None:
            self.free()


def _owned(mpi: MPI.Intracomm) -> Comm:
    """Give the communicator for one of mpi4py that belongs to it."""
    made = Comm(mpi)
    made._owns_mpi = True
    return made


adopt(Comm, FAULTS, ANY)
