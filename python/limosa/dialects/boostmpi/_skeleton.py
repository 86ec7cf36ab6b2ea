"""Skeleton and content: send the form of an array once, and its numbers often.

Upstream this works for C++ types that C++ code has registered. Here NumPy arrays of numbers are what is registered.
"""

from typing import Any

import numpy as np

from limosa.dialects._wire import NUMBER_TYPES, Array
from limosa.dialects.boostmpi._errors import ObjectWithoutSkeletonError


def _check(x: Any) -> Array:
    if type(x) is np.ndarray and x.dtype in NUMBER_TYPES:
        return x
    raise ObjectWithoutSkeletonError(x)


class SkeletonProxy:
    """The form of an array. Sent to another rank it becomes one for a new array of that form there.

    Attributes
    ----------
    object
        The array.
    """

    def __init__(self, object: Array) -> None:
        self.object = object

    def __reduce__(self) -> tuple[Any, ...]:
        return _empty_proxy, (self.object.shape, self.object.dtype)


def _empty_proxy(shape: tuple[int, ...], dtype: np.dtype[Any]) -> SkeletonProxy:
    return SkeletonProxy(np.zeros(shape, dtype))


class Content:
    """The numbers of an array: what is sent is what they are then, and receiving changes them.

    Attributes
    ----------
    object
        The array.
    """

    def __init__(self, object: Array) -> None:
        self.object = object
        self._memory = object

    def to_send(self) -> Array:
        """Give contiguous memory with the numbers."""
        return self.object if self.object.flags.c_contiguous else np.ascontiguousarray(self.object)

    def to_receive(self) -> Array:
        """Give contiguous memory for the numbers; `received` must follow."""
        self._memory = self.to_send()
        return self._memory

    def received(self) -> Array:
        """Put what was received where it belongs; give the array."""
        if self._memory is not self.object:
            self.object[...] = self._memory
        return self.object


def skeleton(object: Any) -> SkeletonProxy:
    """Give the form of an array, to be sent or broadcast.

    Raises
    ------
    ObjectWithoutSkeletonError
        `object` is no array of numbers.
    """
    return SkeletonProxy(_check(object))


def get_content(object: Any) -> Content:
    """Give the numbers of an array (or of a skeleton's), to be sent, broadcast, or received into.

    Raises
    ------
    ObjectWithoutSkeletonError
        `object` is no array of numbers.
    """
    return Content(_check(object.object if isinstance(object, SkeletonProxy) else object))
