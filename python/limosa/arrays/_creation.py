"""Functions that make distributed arrays: from shapes, values and functions, or like others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from limosa.arrays._array import Array
from limosa.arrays._elementwise import chosen
from limosa.arrays._map import Map
from limosa.arrays._move import Layout

if TYPE_CHECKING:
    from limosa._comm import Comm

Shape: TypeAlias = "int | Sequence[int]"


def _dealt(shape: Shape, map: Map | None) -> tuple[tuple[int, ...], Map]:
    lengths = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(length) for length in shape)
    if any(length < 0 for length in lengths):
        raise ValueError(f"the shape {lengths} has a negative length")
    return lengths, Map.default(len(lengths)) if map is None else map


def _filled(shape: Shape, map: Map | None, make: Callable[[tuple[int, ...]], NDArray[Any]]) -> Array:
    lengths, dealt = _dealt(shape, map)
    return Array(lengths, dealt, make(dealt.local_shape(lengths)))


def empty(shape: Shape, dtype: DTypeLike = float, *, map: Map | None = None, device: Any = None) -> Array:
    """Return an array whose elements have any value. Local.

    Parameters
    ----------
    shape
        The shape of the whole array.
    dtype
        The type of an element.
    map
        How it is dealt; without it the first axis in blocks, to all ranks of `limosa.world`.
    device
        None or ``"cpu"``.

    """
    return _filled(shape, map, lambda part: np.empty(part, dtype))


def zeros(shape: Shape, dtype: DTypeLike = float, *, map: Map | None = None, device: Any = None) -> Array:
    """Return an array of zeros. Arguments as for `empty`. Local."""
    return _filled(shape, map, lambda part: np.zeros(part, dtype))


def ones(shape: Shape, dtype: DTypeLike = float, *, map: Map | None = None, device: Any = None) -> Array:
    """Return an array of ones. Arguments as for `empty`. Local."""
    return _filled(shape, map, lambda part: np.ones(part, dtype))


def full(
    shape: Shape, fill_value: Any, dtype: DTypeLike | None = None, *, map: Map | None = None, device: Any = None
) -> Array:
    """Return an array of elements `fill_value`, with its type without `dtype`. Arguments as for `empty`. Local."""
    return _filled(shape, map, lambda part: np.full(part, fill_value, dtype))


def empty_like(array: Array, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Return an array of the shape, type and map of a given one, whose elements have any value. Local."""
    return Array(array.shape, array.map, np.empty_like(array.local, dtype))


def zeros_like(array: Array, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Return an array of zeros with the shape, type and map of a given one. Local."""
    return Array(array.shape, array.map, np.zeros_like(array.local, dtype))


def ones_like(array: Array, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Return an array of ones with the shape, type and map of a given one. Local."""
    return Array(array.shape, array.map, np.ones_like(array.local, dtype))


def full_like(array: Array, fill_value: Any, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Return an array of equal elements with the shape, type and map of a given one. Local."""
    return Array(array.shape, array.map, np.full_like(array.local, fill_value, dtype))


def from_function(
    function: Callable[..., ArrayLike], shape: Shape, dtype: DTypeLike | None = None, *, map: Map | None = None
) -> Array:
    """Return the array of the values of a function of the indices. Local.

    Parameters
    ----------
    function
        Called once on each rank with one array of indices for each axis, which NumPy broadcasts to the shape of this
        rank's part (as `numpy.ogrid` gives them). It returns the elements, or what is broadcast to them.
    shape, map
        As for `empty`.
    dtype
        The type of an element; without it, that of what the function returns.

    Examples
    --------
    >>> import limosa.arrays as la
    >>> table = la.from_function(lambda i, j: i * j, (10, 10))
    >>> int(la.sum(table))
    2025

    """
    lengths, dealt = _dealt(shape, map)
    indices = np.ix_(*dealt.global_index(lengths))
    values = np.asarray(function(*indices), dtype)
    return Array(lengths, dealt, np.broadcast_to(values, dealt.local_shape(lengths)).copy())


def asarray(
    values: Any, dtype: DTypeLike | None = None, *, map: Map | None = None, device: Any = None, copy: bool | None = None
) -> Array:
    """Return a distributed array with the elements of an array that is the same on all ranks. Local.

    Parameters
    ----------
    values
        What NumPy makes an array of; each rank takes its part. A distributed array is returned as it is, or in another
        map or type.
    dtype
        The type of an element; without it, that of `values`.
    map
        As for `empty`.
    device
        None or ``"cpu"``.
    copy
        True: the elements are copied, also those of a distributed array. False: an error if they must be.

    """
    if isinstance(values, Array):
        made = values if map is None or map == values.map else values.remap(map)
        made = made if dtype is None or made.dtype == np.dtype(dtype) else made.astype(dtype)
        if copy is False and made is not values:
            raise ValueError("another map or type needs a copy; hint: leave out copy=False")
        return made.copy() if copy and made is values else made
    if copy is False:
        raise ValueError("the elements of an array that is not distributed are copied; hint: leave out copy=False")
    whole = np.asarray(values, dtype)
    lengths, dealt = _dealt(whole.shape, map)
    part = Layout(dealt, lengths, stored=True).part(dealt.comm.rank)
    return Array(lengths, dealt, chosen(whole, part))


def scatter(values: Any, map: Map | None = None, root: int = 0, comm: Comm | None = None) -> Array:
    """Return a distributed array with the elements of a NumPy array that one rank has.

    Parameters
    ----------
    values
        The array, on rank `root`; ignored on the others.
    map
        How the result is dealt; without it the first axis in blocks, to all ranks.
    root
        The rank that has the array.
    comm
        The communicator, if there is no map; without it `limosa.world`.

    """
    import limosa

    group = map.comm if map is not None else limosa.world if comm is None else comm
    mine = np.asarray(values, order="C") if group.rank == root else None
    shape, dtype = group.bcast(None if mine is None else (mine.shape, mine.dtype), root)
    held = Array(
        shape,
        Map((1,) * len(shape), ranks=[root], comm=group),
        np.empty([0] * len(shape), dtype) if mine is None else mine,
    )
    return held.remap(Map.default(len(shape), group) if map is None else map)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    map: Map | None = None,
    device: Any = None,
) -> Array:
    """Return the numbers from `start` (or 0) up to, and without, `stop`, in steps. Local."""
    first, end = (0, start) if stop is None else (start, stop)
    length = max(int(np.ceil((end - first) / step)), 0)
    kind = np.result_type(type(first), type(end), type(step)) if dtype is None else np.dtype(dtype)
    return from_function(lambda i: first + i * step, length, kind, map=map)


def linspace(
    start: complex,
    stop: complex,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    endpoint: bool = True,
    map: Map | None = None,
    device: Any = None,
) -> Array:
    """Return `num` numbers at equal distances from `start` to `stop`. Local."""
    step = (stop - start) / max(num - 1 if endpoint else num, 1)
    kind = dtype or (complex if isinstance(step, complex) else float)
    return from_function(
        lambda i: np.where((i == num - 1) & endpoint & (num > 1), stop, start + i * step), num, kind, map=map
    )


def eye(
    rows: int,
    columns: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike = float,
    map: Map | None = None,
    device: Any = None,
) -> Array:
    """Return a matrix with ones on the diagonal `k`, and zeros elsewhere. Local."""
    return from_function(lambda i, j: j - i == k, (rows, rows if columns is None else columns), dtype, map=map)


def tril(array: Array, *, k: int = 0) -> Array:
    """Return the elements on and below the diagonal `k` of the last two axes, zeros above. Local."""
    return _triangle(array, lambda i, j: j - i <= k)


def triu(array: Array, *, k: int = 0) -> Array:
    """Return the elements on and above the diagonal `k` of the last two axes, zeros below. Local."""
    return _triangle(array, lambda i, j: j - i >= k)


def _triangle(array: Array, kept: Callable[..., NDArray[np.bool_]]) -> Array:
    if array.ndim < 2:
        raise ValueError(f"a matrix has two axes; this array has {array.ndim}")
    *_, i, j = array.global_index()
    mask = kept(i[:, None], j[None, :]) if i.size and j.size else np.zeros((i.size, j.size), bool)
    return Array(array.shape, array.map, np.where(mask, array.local, np.zeros((), array.dtype)))
