"""NumPy's universal functions on distributed arrays: each rank computes its part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limosa.arrays._array import Array, check_comm
from limosa.arrays._map import Map
from limosa.arrays._move import Layout, Part, Wanted, checked, regions
from limosa.arrays._pieces import all_of, count_of

#: Universal functions whose `reduce` is a function of `limosa.arrays`.
_REDUCTIONS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}


def apply(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Do what `Array.__array_ufunc__` is asked for."""
    import limosa.arrays as namespace

    if ufunc is np.matmul and method == "__call__" and not options:
        return namespace.matmul(*inputs)
    if method == "reduce" and ufunc in _REDUCTIONS and options.pop("out", None) is None:
        return getattr(namespace, _REDUCTIONS[ufunc])(*inputs, **options)
    if method == "at" and len(inputs) == 3 and isinstance(inputs[0], Array):
        from limosa.arrays._indexing import combine_at

        return combine_at(ufunc, *inputs)
    if method != "__call__" or ufunc.signature is not None:
        raise TypeError(
            f"numpy.{'.'.join([ufunc.__name__, method])} does not work on distributed arrays; "
            "hint: x.local is this rank's part, x.agg_all() the whole array"
        )
    out = options.pop("out", None)
    if out is not None:
        return _into(ufunc, inputs, out, options)
    return elementwise(ufunc, inputs, options)


def elementwise(function: Callable[..., Any], inputs: Sequence[Any], options: dict[str, Any] | None = None) -> Any:
    """Return what a function of NumPy that works element by element makes of arrays, scalars and NumPy arrays.

    Parameters
    ----------
    function
        Called with this rank's parts; it returns an array, or a tuple of arrays, of their common shape.
    inputs
        The operands.
    options
        Named arguments of `function`; arrays among them are operands too.

    """
    options = options or {}
    shape, map = common_map([*inputs, *options.values()])
    checked(map.comm, f"{getattr(function, '__name__', 'function')} of arrays of the shape {shape}, {map}")
    made = function(
        *(part_of(each, map, shape) for each in inputs),
        **{name: part_of(each, map, shape) for name, each in options.items()},
    )
    if isinstance(made, tuple):
        return tuple(_made(each, map, shape) for each in made)
    return _made(made, map, shape)


def _made(local: Any, map: Map, shape: tuple[int, ...]) -> Array:
    return Array(shape, map, np.asarray(local))


def _into(ufunc: np.ufunc, inputs: Sequence[Any], out: Any, options: dict[str, Any]) -> Any:
    """Compute into arrays that exist."""
    outs = out if isinstance(out, tuple) else (out,)
    shape, _ = common_map(inputs)
    for each in outs:
        if not isinstance(each, Array):
            raise TypeError(
                f"out= is a {type(each).__name__}, but the operands are distributed; hint: a distributed array"
            )
        if each.shape != shape:
            raise ValueError(f"out= has the shape {each.shape}, but the result the shape {shape}")
    if len({each.map for each in outs}) == 1:
        map = outs[0].map
        ufunc(
            *(part_of(each, map, shape) for each in inputs),
            out=tuple(each.local for each in outs),
            **{name: part_of(each, map, shape) for name, each in options.items()},
        )
    else:
        made = elementwise(ufunc, inputs, options)
        for each, result in zip(outs, made if isinstance(made, tuple) else (made,), strict=True):
            each[...] = result
    return outs if len(outs) > 1 else outs[0]


def common_map(operands: Sequence[Any]) -> tuple[tuple[int, ...], Map]:
    """Return the shape of the result of an element-by-element function, and how it is dealt."""
    arrays = [each for each in operands if isinstance(each, Array)]
    for each in arrays[1:]:
        check_comm(each, arrays[0].map)
    shapes = [each.shape for each in operands if isinstance(each, (Array, np.ndarray))]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"arrays of the shapes {', '.join(map(str, shapes))} do not fit together") from None
    dealt = [each for each in arrays if not each.map.everywhere]
    for each in dealt:
        if each.shape == shape:
            return shape, each.map
    comm = arrays[0].comm
    return shape, Map.default(len(shape), comm) if dealt else Map.replicated(len(shape), comm)


def part_of(operand: Any, map: Map, shape: tuple[int, ...]) -> Any:
    """Return what stands beside this rank's part of an array of a map and shape, as NumPy broadcasts it."""
    if isinstance(operand, Array):
        if operand.map == map and operand.shape == shape:
            return operand.local
        if operand.ndim == 0 and operand.map.everywhere:
            return operand.local
        stored, own = Layout(map, shape, stored=True), operand.shape
        beside = Wanted(("beside", stored.key), lambda rank: _beside(own, shape, stored.part(rank)))
        return fetched(f"an operand of an operation on arrays of the shape {shape}, {map}", operand, beside)
    if isinstance(operand, np.ndarray) and operand.ndim > 0:
        wanted = _beside(operand.shape, shape, Layout(map, shape, stored=True).part(map.comm.rank))
        return chosen(operand, wanted)
    return operand


def fetched(what: str, array: Array, targets: Wanted) -> NDArray[Any]:
    """Return the elements of an array that this rank wants. All ranks call this together."""
    wanted = targets.part(array.comm.rank)
    made = _room(array.ndim, wanted, array.dtype)
    array.fetch(what, made, targets)
    return made


def chosen(values: NDArray[Any], wanted: Part) -> NDArray[Any]:
    """Return a part of a NumPy array that is the same on all ranks. Local."""
    made = _room(values.ndim, wanted, values.dtype)
    for there, here, _ in regions([all_of(length) for length in values.shape], wanted):
        made[here] = values[there]
    return made


def _room(ndim: int, wanted: Part, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.empty([0] * ndim if wanted is None else [count_of(pieces) for pieces in wanted], dtype)


def _beside(shape: tuple[int, ...], whole: tuple[int, ...], part: Part) -> Part:
    """Return which part of an array of a shape stands beside a part of the result, which has the shape `whole`."""
    if part is None:
        return None
    first = len(whole) - len(shape)
    return [pieces if n == m else all_of(1) for n, m, pieces in zip(shape, whole[first:], part[first:], strict=True)]
