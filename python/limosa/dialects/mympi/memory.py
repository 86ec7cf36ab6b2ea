"""New arrays without new memory.

Fresh memory costs more than many a message: the system hands it out page by page, and clears it. Large results
therefore lie in blocks that are used again as soon as the script holds no array in them any more.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

__all__ = ["FEW", "new_array", "new_copy"]

_LARGE = 256 * 1024  # Below, the C library has memory at hand.
#: So many elements of any type are below that.
FEW = 8192

_MOST = 64 * 1024 * 1024  # Bytes that may be kept.

_blocks: list[np.ndarray[Any, Any]] = []
_lock = threading.Lock()


def _users(index: int) -> int:
    """References to a block: that of the list, some of this call, and one for each array that lies in it."""
    return sys.getrefcount(_blocks[index])


_blocks.append(np.empty(1, np.uint8))
_UNUSED = _users(0)
_blocks.clear()


def new_array(count: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Array of one dimension, its elements not set, that shares memory with no other.

    Parameters
    ----------
    count
        Number of elements.
    kind
        Their type.
    """
    size = count * kind.itemsize
    if not _LARGE <= size <= _MOST:
        return np.empty(count, kind)
    with _lock:
        for index in range(len(_blocks)):
            if _users(index) == _UNUSED and size <= _blocks[index].nbytes <= 2 * size:
                return _blocks[index][:size].view(kind)
        for index in reversed(range(len(_blocks))):
            if _users(index) == _UNUSED:
                del _blocks[index]
        block = np.empty(size, np.uint8)
        if size + sum(kept.nbytes for kept in _blocks) <= _MOST:
            _blocks.append(block)
        return block.view(kind)


def new_copy(array: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """Copy of the first elements of a contiguous array, of one dimension."""
    if array.nbytes < _LARGE and array.size == count:
        return array.flatten()
    copy = new_array(count, array.dtype)
    copy[:] = array.reshape(-1)[:count]
    return copy
