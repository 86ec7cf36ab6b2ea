"""`Array`, the distributed array: its parts, layout and methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from limosa.arrays._map import Map
from limosa.arrays._move import Layout, Move, Plan, Wanted, agreed, checked, exchanged, move, only, whole

if TYPE_CHECKING:
    from limosa._comm import Comm
    from limosa.arrays._pieces import Indices


def _method(name: str) -> Callable[..., Array]:
    """Return the method that is a function of `limosa.arrays` of an array."""

    def method(self: Array, *args: Any, **options: Any) -> Array:
        return self._call(name, *args, **options)  # type: ignore[no-any-return]

    method.__name__, method.__qualname__ = name, f"Array.{name}"
    method.__doc__ = f"Return `limosa.arrays.{name}` of this array."
    return method


class Array(NDArrayOperatorsMixin):
    """An array whose elements are dealt to the ranks of a communicator.

    Arrays are made by `zeros`, `ones`, `full`, `from_function` and the other functions of `limosa.arrays`. Every rank
    makes an array, and calls its methods, together with the others, unless the method says that it is local.

    NumPy's functions and operators work on them: element by element without communication if the operands have the same
    map, or are scalars or NumPy arrays, of which each rank takes what stands beside its own part. An operand with
    another map is moved first. The result has the map of the first operand that has the result's shape.

    Attributes
    ----------
    shape : tuple of int
        The shape of the whole array.
    dtype : numpy.dtype
        The type of an element.
    map : Map
        How it is dealt.
    local : numpy.ndarray
        The part of this rank, overlap included: not a copy. Assigning to it is `put_local`.

    Examples
    --------
    >>> import limosa.arrays as la
    >>> x = la.ones((4, 6)) * 2
    >>> float(la.sum(x))
    48.0

    """

    __slots__ = ("_exchange", "_local", "map", "shape")

    #: NumPy's scalars and arrays leave operators to this class.
    __array_priority__ = 1000

    def __init__(self, shape: Sequence[int], map: Map, local: NDArray[Any]) -> None:
        self.shape = tuple(int(length) for length in shape)
        self.map = map
        self._local = np.asarray(local)
        self._exchange: tuple[Plan, int] | None = None
        if self._local.shape != map.local_shape(self.shape):
            raise ValueError(
                f"rank {map.comm.rank} stores a part of shape {map.local_shape(self.shape)} of an array of shape "
                f"{self.shape} with {map}; given was one of shape {self._local.shape}"
            )

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        return self._local.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements of the whole array."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the elements of the whole array."""
        return self.size * self.dtype.itemsize

    @property
    def comm(self) -> Comm:
        """The communicator."""
        return self.map.comm

    @property
    def device(self) -> str:
        """Where the elements are: always ``"cpu"``."""
        return "cpu"

    @property
    def local(self) -> NDArray[Any]:
        """The part of this rank, overlap included. It is not a copy."""
        return self._local

    @local.setter
    def local(self, values: Any) -> None:
        self.put_local(values)

    @property
    def owned(self) -> NDArray[Any]:
        """The part of this rank without overlap. It is not a copy."""
        cell = self.map.cell()
        if cell is None:
            return self._local
        counts = [axis.owned_count(i) for axis, i in zip(self.map.axes(self.shape), cell, strict=True)]
        key: Any = (*(slice(count) for count in counts), ...)
        part: NDArray[Any] = self._local[key]
        return part

    def put_local(self, values: Any) -> None:
        """Replace the part of this rank. Local.

        Parameters
        ----------
        values
            The new elements: of the shape of `local`, or what NumPy broadcasts to it.

        Raises
        ------
        ValueError
            The shape differs.

        """
        given = np.shape(values)
        try:
            np.copyto(self._local, values, casting="same_kind")
        except ValueError:
            raise ValueError(
                f"the part of rank {self.comm.rank} has the shape {self._local.shape}; given was one of shape {given}"
            ) from None

    def global_index(self) -> tuple[Indices, ...]:
        """Return, for each axis, the indices in the whole array of the elements in `local`. Local."""
        return self.map.global_index(self.shape)

    def __repr__(self) -> str:
        return f"limosa.arrays.Array(shape={self.shape}, dtype={self.dtype}, map={self.map})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __contains__(self, value: Any) -> bool:
        from limosa.arrays._reductions import any

        return bool(any(self == value))

    # --- moving it ---------------------------------------------------------------------------------------------------

    def remap(self, map: Map) -> Array:
        """Return a copy that is dealt in another way: one all-to-all.

        Parameters
        ----------
        map
            The map of the copy, of the same communicator.

        """
        check_comm(self, map)
        made = np.empty(map.local_shape(self.shape), self.dtype)
        if map == self.map:
            checked(self.comm, f"remap to {map}: an array of the shape {self.shape}, {self.dtype}, {self.map}")
            made[...] = self._local
        else:
            self.fetch(f"remap to {map}", made, Layout(map, self.shape, stored=True))
        return Array(self.shape, map, made)

    def agg(self, root: int = 0) -> NDArray[Any] | None:
        """Gather the whole array on one rank.

        Of each other host, one rank collects what its ranks have, and sends it in one message.

        Parameters
        ----------
        root
            The rank that gets it.

        Returns
        -------
        numpy.ndarray or None
            The whole array on rank `root`, None on the others.

        """
        from limosa.arrays._gather import gather, on_several_hosts

        if not 0 <= root < self.comm.size:
            raise ValueError(f"there is no rank {root}: the communicator has {self.comm.size} ranks, from 0")
        mine = self.comm.rank == root
        made = np.empty(self.shape if mine else (0,) * self.ndim, self.dtype)
        what = f"agg to rank {root}"
        if not self.map.everywhere:
            exchanged(self.comm, f"{what}: an array of the shape {self.shape}, {self.dtype}, {self.map}", None)
        if not self.map.everywhere and on_several_hosts(self.comm):
            gather(self, root, made)
        else:
            self.fetch(what, made, only(root, whole(self.shape)))
        return made if mine else None

    def agg_all(self) -> NDArray[Any]:
        """Gather the whole array on all ranks."""
        made = np.empty(self.shape, self.dtype)
        self.fetch("agg_all", made, whole(self.shape))
        return made

    def synch(self) -> None:
        """Fill the overlaps from their owners."""
        self.isynch().wait()

    def isynch(self) -> Synch:
        """Begin to fill the overlaps from their owners; the result's `wait` ends it.

        Until then this rank may compute with its own elements, but not change those that others' overlaps need.
        """
        return Synch(self)

    def exchange(self) -> tuple[Plan, int]:
        """Return the plan of the overlap exchange, on which the ranks agree at the first one."""
        if self._exchange is None:
            owned, stored = (Layout(self.map, self.shape, stored=with_overlap) for with_overlap in (False, True))
            self._exchange = agreed("synch", owned, stored, self.dtype, self.shape)
        return self._exchange

    def fetch(self, what: str, into: NDArray[Any], targets: Wanted) -> None:
        """Copy the elements that each rank wants into an array of its own (see `limosa.arrays._move`)."""
        move(what, self._local, Layout(self.map, self.shape), into, targets, self.shape)

    # --- NumPy's and the array API's protocols -----------------------------------------------------------------------

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Gather the whole array on all ranks, which call ``numpy.asarray`` together."""
        if copy is False:
            raise ValueError(
                "a distributed array becomes a NumPy array by a copy only; hint: x.local is this rank's part"
            )
        return np.asarray(self.agg_all(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        from limosa.arrays._elementwise import apply

        return apply(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from limosa.arrays._namespace import dispatch

        return dispatch(function, args, options)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        import limosa.arrays

        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"there is no version {api_version!r} of the array API here; hint: '2024.12'")
        return limosa.arrays

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("the elements of a distributed array are on many ranks; hint: x.local is this rank's part")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the processor

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """Return this array, which is on the only device."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"there is no device {device!r}: arrays are on 'cpu', without streams")
        return self

    def _value(self, kind: str) -> Any:
        if self.size != 1:
            raise TypeError(f"only an array of one element becomes a {kind}; this one has the shape {self.shape}")
        return self.agg_all().reshape(())[()]

    def __bool__(self) -> bool:
        return bool(self._value("bool"))

    def __int__(self) -> int:
        return int(self._value("int"))

    def __float__(self) -> float:
        return float(self._value("float"))

    def __complex__(self) -> complex:
        return complex(self._value("complex"))

    def __index__(self) -> int:
        return self._value("index").__index__()  # type: ignore[no-any-return]

    def item(self) -> Any:
        """Return the only element as a Python number, on all ranks."""
        return self._value("number").item()

    # --- indexing ----------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Array:
        from limosa.arrays._indexing import get

        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from limosa.arrays._indexing import put

        put(self, key, value)

    # --- the methods that NumPy's arrays have ------------------------------------------------------------------------

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        import limosa.arrays

        return getattr(limosa.arrays, name)(self, *args, **options)

    def copy(self) -> Array:
        """Return a copy with the same map. Local."""
        return Array(self.shape, self.map, self._local.copy())

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Array:
        """Return the array with elements of another type. Local."""
        return Array(self.shape, self.map, self._local.astype(dtype, copy=copy))

    def fill(self, value: Any) -> None:
        """Set all elements. Local."""
        self._local.fill(value)

    @property
    def T(self) -> Array:  # noqa: N802 - NumPy's name
        """The transposed array: no element moves to another rank. Local."""
        return self.transpose()

    @property
    def mT(self) -> Array:  # noqa: N802 - the array API's name
        """The array with its last two axes exchanged. Local."""
        if self.ndim < 2:
            raise ValueError(f"mT needs two axes; this array has {self.ndim}")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    @property
    def real(self) -> Array:
        """The real parts. Local."""
        return Array(self.shape, self.map, self._local.real)

    @property
    def imag(self) -> Array:
        """The imaginary parts. Local."""
        return Array(self.shape, self.map, self._local.imag)

    def transpose(self, *axes: int) -> Array:
        """Return the array with permuted axes, reversed if none are given. Local."""
        return self._call("permute_dims", axes or tuple(reversed(range(self.ndim))))  # type: ignore[no-any-return]

    def reshape(self, *shape: int) -> Array:
        """Return the elements, in C order, in another shape."""
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._call("reshape", given)  # type: ignore[no-any-return]

    sum = _method("sum")
    prod = _method("prod")
    max = _method("max")
    min = _method("min")
    mean = _method("mean")
    std = _method("std")
    var = _method("var")
    any = _method("any")
    all = _method("all")
    argmax = _method("argmax")
    argmin = _method("argmin")


class Synch:
    """An overlap exchange under way (see `Array.isynch`)."""

    def __init__(self, array: Array) -> None:
        self._move: Move | None = None
        if any(array.map.overlap) and not array.map.everywhere:
            self._move = Move(array.local, array.local, *array.exchange(), array.comm)
            self._move.start()

    def wait(self) -> None:
        """Wait until the overlaps are filled."""
        if self._move is not None:
            self._move.finish()
            self._move = None


def check_comm(array: Array, map: Map) -> None:
    """Refuse a map of another communicator."""
    if array.map.comm is not map.comm:
        raise ValueError("the two arrays belong to different communicators; hint: make their maps with the same `comm`")
