"""Distributed arrays: `Array`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from limosa.arrays._map import Map
from limosa.arrays._move import Layout, Move, Part, move, only, whole

if TYPE_CHECKING:
    from limosa._comm import Comm
    from limosa.arrays._pieces import Indices


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

    __slots__ = ("_local", "map", "shape")

    #: NumPy's scalars and arrays leave operators to this class.
    __array_priority__ = 1000

    def __init__(self, shape: Sequence[int], map: Map, local: NDArray[Any]) -> None:
        self.shape = tuple(int(length) for length in shape)
        self.map = map
        self._local = np.asarray(local)
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
            The shape is another one.

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
            made[...] = self._local
        else:
            move(self._local, Layout(self.map, self.shape), made, Layout(map, self.shape, stored=True).part, self._mpi)
        return Array(self.shape, map, made)

    def agg(self, root: int = 0) -> NDArray[Any] | None:
        """Gather the whole array.

        Parameters
        ----------
        root
            The rank that gets it.

        Returns
        -------
        numpy.ndarray or None
            The whole array on rank `root`, None on the others.

        """
        mine = self.comm.rank == root
        made = np.empty(self.shape if mine else (0,) * self.ndim, self.dtype)
        self.fetch(made, only(root, whole(self.shape)))
        return made if mine else None

    def agg_all(self) -> NDArray[Any]:
        """Gather the whole array on all ranks."""
        made = np.empty(self.shape, self.dtype)
        self.fetch(made, whole(self.shape))
        return made

    def synch(self) -> None:
        """Fill the overlaps from their owners."""
        self.isynch().wait()

    def isynch(self) -> Synch:
        """Begin to fill the overlaps from their owners; the result's `wait` ends it.

        Until then this rank may compute with its own elements, but not change those that others' overlaps need.
        """
        return Synch(self)

    def fetch(self, into: NDArray[Any], targets: Callable[[int], Part]) -> None:
        """Copy the elements that each rank wants into an array of its own (see `limosa.arrays._move`)."""
        move(self._local, Layout(self.map, self.shape), into, targets, self._mpi)

    @property
    def _mpi(self) -> Any:
        return self.comm.mpi

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

        return limosa.arrays

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

    def sum(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.sum` of this array."""
        return self._call("sum", axis=axis, **options)  # type: ignore[no-any-return]

    def prod(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.prod` of this array."""
        return self._call("prod", axis=axis, **options)  # type: ignore[no-any-return]

    def max(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.max` of this array."""
        return self._call("max", axis=axis, **options)  # type: ignore[no-any-return]

    def min(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.min` of this array."""
        return self._call("min", axis=axis, **options)  # type: ignore[no-any-return]

    def mean(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.mean` of this array."""
        return self._call("mean", axis=axis, **options)  # type: ignore[no-any-return]

    def std(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.std` of this array."""
        return self._call("std", axis=axis, **options)  # type: ignore[no-any-return]

    def var(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.var` of this array."""
        return self._call("var", axis=axis, **options)  # type: ignore[no-any-return]

    def any(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.any` of this array."""
        return self._call("any", axis=axis, **options)  # type: ignore[no-any-return]

    def all(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.all` of this array."""
        return self._call("all", axis=axis, **options)  # type: ignore[no-any-return]

    def argmax(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.argmax` of this array."""
        return self._call("argmax", axis=axis, **options)  # type: ignore[no-any-return]

    def argmin(self, axis: Any = None, **options: Any) -> Array:
        """Return `limosa.arrays.argmin` of this array."""
        return self._call("argmin", axis=axis, **options)  # type: ignore[no-any-return]


class Synch:
    """An overlap exchange under way (see `Array.isynch`)."""

    def __init__(self, array: Array) -> None:
        layout = Layout(array.map, array.shape)
        stored = Layout(array.map, array.shape, stored=True)
        self._move: Move | None = None
        if any(array.map.overlap) and not array.map.everywhere:
            self._move = Move(array.local, layout, array.local, stored.part, array.comm.mpi)
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
