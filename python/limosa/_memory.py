"""The memory of a message: arrays of all kinds as NumPy arrays, and NumPy arrays as mpi4py takes them.

A message is counted in bytes (``MPI_BYTE``). Non-contiguous memory, such as every second column, is described by a
derived datatype and never copied here. No other module computes an address.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI

from limosa import errors

Array: TypeAlias = "np.ndarray[Any, Any]"
Spec: TypeAlias = list[Any]
"""What mpi4py takes for a message: memory, count, datatype."""

_BYTE = MPI.BYTE


def is_array_like(x: object) -> bool:
    """Tell whether an object is sent as raw memory, as a NumPy array.

    So is all that has the buffer protocol, ``__array_interface__``, ``__cuda_array_interface__`` or DLPack. Subclasses
    of NumPy's array are objects with a behaviour of their own, and so are subclasses of `bytes`, `bytearray` and
    `array.array`.
    """
    if isinstance(x, np.ndarray):
        return type(x) in {np.ndarray, np.memmap} and not x.dtype.hasobject
    if isinstance(x, (type, np.generic)):
        return False
    if any(hasattr(x, name) for name in ("__array_interface__", "__dlpack__", "__cuda_array_interface__")):
        return True
    try:
        memoryview(x)  # type: ignore[arg-type]
    except (TypeError, BufferError):
        return False
    return True


def as_array(x: Any) -> Array:
    """Give a NumPy array over the memory of an object, without a copy.

    Raises
    ------
    limosa.errors.BufferError
        If its memory is out of reach, such as on a graphics card.

    """
    if isinstance(x, np.ndarray):
        return x
    try:
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
            return np.from_dlpack(x)
        if hasattr(x, "__cuda_array_interface__"):
            return _managed(x)
        return np.asarray(memoryview(x) if isinstance(x, bytes) else x)  # NumPy takes bytes for a text
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise errors.BufferError(
            f"the memory of this {type(x).__name__} cannot be used: {error}; hint: copy it to a NumPy array (.cpu(), "
            ".get(), .copy_to_host(), numpy.array)"
        ) from error


def is_on_device(x: Any) -> bool:
    """Tell whether the memory of an object belongs to a device, such as a graphics card, and not to the processor."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    try:
        return int(x.__dlpack_device__()[0]) not in (_CPU, _PINNED)
    except (AttributeError, TypeError, ValueError, BufferError, RuntimeError):
        return False


_CPU, _PINNED = 1, 3  # types of devices of DLPack whose memory the processor reads: kDLCPU and kDLCUDAHost


class _Interface:
    """What has ``__cuda_array_interface__``, as NumPy takes it."""

    def __init__(self, x: Any) -> None:
        self.__array_interface__ = {**x.__cuda_array_interface__, "version": 3}
        self.owner = x


def _managed(x: Any) -> Array:
    """Give an array over the memory of an object for graphics cards, which the processor may be able to read."""
    array = np.asarray(_Interface(x))
    reaches = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    first = array.__array_interface__["data"][0]
    lowest = first + sum(reach for reach in reaches if reach < 0)
    highest = first + sum(reach for reach in reaches if reach > 0) + array.itemsize - 1
    if array.size and not (_is_readable(lowest) and _is_readable(highest)):
        raise BufferError(f"the processor cannot read the address {first:#x}, which is on a device")
    return array


def _is_readable(address: int) -> bool:
    """Tell whether this process can read a byte."""
    import ctypes  # few programs need it

    reading, writing = os.pipe()
    try:
        write = ctypes.CDLL(None).write
        return bool(write(writing, ctypes.c_void_p(address), ctypes.c_size_t(1)) == 1)
    finally:
        os.close(reading)
        os.close(writing)


def as_target(out: Any) -> Array:
    """Give a NumPy array over the memory of an object that is to be written to.

    Raises
    ------
    limosa.errors.BufferError
        If it is no array, or cannot be written, or its elements overlap.

    """
    if not isinstance(out, np.ndarray) and not is_array_like(out):
        raise errors.BufferError(
            f"out is a {type(out).__name__}, not an array; hint: out= takes arrays only, use the returned value"
        )
    target = as_array(out)
    if not target.flags.writeable:
        raise errors.BufferError(f"out cannot be written: it is a read-only {type(out).__name__}")
    if (
        target.size
        and 0 in target.strides
        and any(stride == 0 and length > 1 for stride, length in zip(target.strides, target.shape, strict=True))
    ):
        raise errors.BufferError("the elements of out overlap in memory")
    return target


def spec_of(array: Array) -> tuple[Spec, MPI.Datatype | None]:
    """Describe an array for mpi4py.

    Returns
    -------
    tuple
        The message, and the datatype to be freed when the transfer has been started, if one was made.

    """
    if array.flags.c_contiguous:
        return [array, array.nbytes, _BYTE], None
    made = pattern_of(array)
    address = array.__array_interface__["data"][0]
    return [MPI.buffer.fromaddress(address, array.itemsize), 1, made], made


def pattern_of(array: Array, element: MPI.Datatype | None = None) -> MPI.Datatype:
    """Give the datatype of an array, from its first element on; it is to be freed.

    Parameters
    ----------
    array
        An array, which may be non-contiguous. Its memory is not looked at.
    element
        The datatype of an element; by default its bytes.

    """
    block = array.itemsize if element is None else 1  # in units of the basic datatype
    size = 1 if element is None else array.itemsize
    dims: list[tuple[int, int]] = []
    for length, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if length == 1:
            continue
        if stride == block * size and not dims:
            block *= length
        else:
            dims.append((length, stride))
    made = (_BYTE if element is None else element).Create_contiguous(block)
    for length, stride in dims:
        inner, made = made, made.Create_hvector(length, 1, stride)
        inner.Free()
    return made.Commit()


def place_in(shape: tuple[int, ...], dtype: np.dtype[Any], index: Any) -> tuple[Array, int]:
    """Give what an index selects of a contiguous array somewhere else, as an array without memory, and its offset.

    Only the shape and the strides of the result may be used.

    Raises
    ------
    IndexError
        If the index selects nothing, or is not made of numbers and slices.

    """
    indices = index if isinstance(index, tuple) else (index,)
    for one in indices:
        if not (one is None or one is Ellipsis or isinstance(one, slice)) and (
            isinstance(one, (bool, np.bool_)) or not hasattr(one, "__index__") or np.ndim(one)
        ):
            raise IndexError(f"only numbers, slices, ... and None select parts of a window, not {one!r:.60}")
    if not any(one is Ellipsis for one in indices):
        indices = (*indices, Ellipsis)  # so that a single element is an array, too
    strides = np.cumprod([dtype.itemsize, *shape[:0:-1]], dtype=np.intp)[::-1] if shape else ()
    base = np.empty((), dtype)
    selected = np.lib.stride_tricks.as_strided(base, shape, strides)[indices]
    start = selected.__array_interface__["data"][0] - base.__array_interface__["data"][0] if selected.size else 0
    return selected, start


class _Memory:
    """Memory of MPI, as NumPy takes it; lives as long as an array over it."""

    def __init__(self, memory: MPI.buffer, length: int) -> None:
        self.__array_interface__ = {"version": 3, "data": (memory.address, False), "shape": (length,), "typestr": "|u1"}


def array_over(memory: MPI.buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[Array, Callable[[], object]]:
    """Give an array over memory of MPI, and a function that gives None once no array over it is left."""
    owner = _Memory(memory, dtype.itemsize * math.prod(shape))
    return np.asarray(owner).view(dtype).reshape(shape), weakref.ref(owner)
