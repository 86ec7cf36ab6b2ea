"""Global objects: a local value on each processor, and whether it is valid.

What is done with an invalid value is invalid, too.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterator, Sequence
from functools import reduce as fold
from typing import Any

from limosa.dialects.scientific.BSP.core import numberOfProcessors, processorID, put, send, sync

__all__ = [
    "ParAccumulator",
    "ParConstant",
    "ParData",
    "ParFunction",
    "ParIndex",
    "ParIndexIterator",
    "ParIterator",
    "ParMessages",
    "ParRootFunction",
    "ParRootSequence",
    "ParSequence",
    "ParSlice",
    "ParTuple",
    "ParValue",
    "global_classes",
    "global_object",
    "local",
]

#: From a local class to what makes a global object of an instance; `ParValue` for all others.
global_classes: dict[type, Callable[[Any], Any]] = {}


def global_object(value: Any) -> Any:
    """Global object for a local value."""
    return global_classes.get(type(value), ParValue)(value)


def local(value: Any) -> tuple[Any, bool]:
    """Local value of a global object, and whether it is valid; of anything else, the thing itself."""
    return (value.value, bool(value.valid)) if hasattr(value, "is_parvalue") else (value, True)


def _everyone() -> range:
    return range(numberOfProcessors)


def _operation(function: Callable[[Any, Any], Any]) -> Callable[[ParValue, Any], ParValue]:
    def combine(self: ParValue, other: Any) -> ParValue:
        value, valid = local(other)
        return ParValue(function(self.value, value)) if self.valid and valid else ParValue(None, False)

    return combine


class ParValue:
    """A global object.

    It calculates and compares like its local values, and passes on attributes and calls to them; all results are global
    objects.

    Parameters
    ----------
    value
        Local value.
    valid
        Whether there is one here.
    """

    is_parvalue = 1

    def __init__(self, value: Any, valid: bool = True) -> None:
        self.value = value
        self.valid = valid

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}[{processorID}]({self.value!r})" if self.valid else f"<{name} object (no valid data)>"

    def __len__(self) -> int:
        return len(self.value)

    def __bool__(self) -> bool:
        if not self.valid:
            raise ValueError("an invalid value is neither true nor false")
        return bool(self.value)

    __hash__ = None  # type: ignore[assignment]

    # --- communication
    # ---------------------------------------------------------------------------------------------------

    def put(self, pid_list: ParValue) -> ParValue:
        """Send the value to the processors in a global list; gives the list of what was received."""
        if self.valid:
            put(self.value, _valid_list(pid_list))
        return ParValue(sync())

    def get(self, pid_list: ParValue) -> ParValue:
        """Ask the processors in a global list for their values; gives the list of what was received."""
        put(processorID, _valid_list(pid_list))
        askers = sync()
        if self.valid:
            put(self.value, askers)
        return ParValue(sync())

    def broadcast(self, from_pid: int = 0) -> ParValue:
        """Give all processors the value of one.

        Raises
        ------
        ValueError
            It has no valid value.
        """
        if processorID == from_pid:
            if not self.valid:
                raise ValueError(f"processor {from_pid} has no valid data to broadcast")
            put(self.value, _everyone())
        return ParValue(sync()[0])

    def fullExchange(self) -> ParValue:
        """Give all processors the list of all values."""
        if self.valid:
            put(self.value, _everyone())
        return ParValue(sync())

    def reduce(self, operator: Callable[[Any, Any], Any], zero: Any) -> ParValue:
        """Combine all values, beginning with `zero`. Valid on processor 0."""
        if self.valid:
            put(self.value, [0])
        return ParValue(fold(operator, sync(), zero), processorID == 0)

    def accumulate(self, operator: Callable[[Any, Any], Any], zero: Any) -> ParValue:
        """Combine the values of the processors up to this one, beginning with `zero`."""
        everything = (self if self.valid else ParValue(zero)).get(ParValue(range(processorID + 1)))
        return ParValue(fold(operator, everything.value, zero))

    def alltrue(self) -> bool:
        """Whether all values are true."""
        return self._everywhere(all)

    def anytrue(self) -> bool:
        """Whether one of the values is true."""
        return self._everywhere(any)

    def _everywhere(self, decide: Callable[[list[bool]], bool]) -> bool:
        if self.valid:
            put(bool(self.value), _everyone())
        return decide(sync())

    # --- what is passed on to the local value
    # ------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the local values with the local values of the arguments."""
        pairs = [local(argument) for argument in args]
        named = {name: local(argument) for name, argument in kwargs.items()}
        if not (self.valid and all(valid for _, valid in (*pairs, *named.values()))):
            return ParValue(None, False)
        return global_object(
            self.value(*(value for value, _ in pairs), **{name: value for name, (value, _) in named.items()})
        )

    def __getattr__(self, name: str) -> Any:
        if name in {"value", "valid"} or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return global_object(getattr(self.value, name)) if self.valid else ParValue(None, False)

    def getattr(self, attr: ParValue) -> Any:
        """Attribute whose name is a global object."""
        return global_object(getattr(self.value, attr.value)) if self.valid else ParValue(None, False)

    def map(self, function: Any) -> ParValue:
        """Apply a function to each item of the local values."""
        return ParValue([local(function)[0](item) for item in self.value]) if self.valid else ParValue(None, False)

    def __getitem__(self, item: Any) -> Any:
        return self._item(item, 0)

    def _item(self, item: Any, first: int) -> Any:
        """Item or slice of a local sequence that begins with number `first`."""
        index, valid = (item, item.valid) if hasattr(item, "is_parindex") else local(item)
        if not (self.valid and valid):
            return ParValue(None, False)
        if not hasattr(index, "is_parindex"):
            if first:
                index -= first
                if index < 0:
                    raise IndexError(
                        f"item {index + first} is on another processor: this one has those from {first} on"
                    )
            return global_object(self.value[index])
        start = index.start - first
        if index.skip == 0:
            return global_object(self.value[start]) if 0 <= start < len(self.value) else ParValue(None, False)
        return global_object(self.value[start : None if index.stop is None else index.stop - first : index.skip])

    __eq__ = _operation(operators.eq)  # type: ignore[assignment]
    __ne__ = _operation(operators.ne)  # type: ignore[assignment]
    __lt__ = _operation(operators.lt)
    __le__ = _operation(operators.le)
    __gt__ = _operation(operators.gt)
    __ge__ = _operation(operators.ge)
    __add__ = _operation(operators.add)
    __sub__ = _operation(operators.sub)
    __mul__ = _operation(operators.mul)
    __truediv__ = _operation(operators.truediv)
    __mod__ = _operation(operators.mod)
    __pow__ = _operation(operators.pow)

    def __divmod__(self, other: Any) -> tuple[ParValue, ParValue]:
        return _operation(operators.floordiv)(self, other), self % other

    def __neg__(self) -> ParValue:
        return ParValue(-self.value) if self.valid else ParValue(None, False)


def _valid_list(pid_list: ParValue) -> Sequence[int]:
    if not pid_list.valid:
        raise ValueError("the list of processors is not valid here")
    return list(pid_list.value)


class ParConstant(ParValue):
    """A value that is the same everywhere."""

    def __init__(self, value: Any) -> None:
        super().__init__(local(value)[0])


class ParData(ParValue):
    """A value that each processor calculates: ``function(processor, number of processors)``."""

    def __init__(self, function: Callable[[int, int], Any]) -> None:
        super().__init__(function(processorID, numberOfProcessors))


def _share_of(length: int, pid: int) -> tuple[int, int]:
    """Range of items of one processor: equal blocks, the last ones may be shorter or empty."""
    block = -(-length // numberOfProcessors)
    first = min(pid * block, length)
    return first, min(first + block, length)


class ParSequence(ParValue):
    """A sequence cut into consecutive parts, one for each processor.

    Parameters
    ----------
    full_sequence
        The whole sequence, the same everywhere.
    """

    def __init__(self, full_sequence: Any) -> None:
        whole, valid = local(full_sequence)
        super().__init__(None, valid)
        if valid:
            self.length = len(whole)
            self.first, self.last = _share_of(self.length, processorID)
            self.value = whole[self.first : self.last]

    def totalLength(self) -> ParValue:
        """Length of the whole sequence."""
        return ParValue(self.length)

    def __getitem__(self, item: Any) -> Any:
        if not self.valid:
            return ParValue(None, False)
        return self._item(item, self.first)


class ParRootSequence(ParSequence):
    """A sequence of processor 0, cut into consecutive parts, one for each processor."""

    def __init__(self, full_sequence: ParValue) -> None:
        if processorID == 0:
            whole = full_sequence.value
            for pid in _everyone():
                first, last = _share_of(len(whole), pid)
                put((first, last, len(whole), whole[first:last]), [pid])
        ParValue.__init__(self, None)
        self.first, self.last, self.length, self.value = sync()[0]


class ParMessages(ParValue):
    """A global list of messages, pairs of a processor and an object."""

    def __init__(self, messages: Any) -> None:
        super().__init__(local(messages)[0])

    def processorIds(self) -> ParValue:
        """The processors of all messages."""
        return ParValue([message[0] for message in self.value])

    def data(self) -> ParValue:
        """The objects of all messages."""
        return ParValue([message[1] for message in self.value])

    def exchange(self) -> ParMessages:
        """Send all messages; gives the list of objects received."""
        if self.valid:
            send(self.value)
        return ParMessages(sync())


class ParTuple(ParValue):
    """Several global objects as one, so that they travel together: ``a, b = ParTuple(a, b).put(pids)[0]``."""

    def __init__(self, *args: ParValue) -> None:
        super().__init__([item.value for item in args], all(item.valid for item in args))

    def __getitem__(self, item: Any) -> ParValue:
        return ParValue(self.value[item]) if self.valid else ParValue(None, False)

    def __iter__(self) -> Iterator[ParValue]:
        return (self[index] for index in range(len(self.value)))


class ParAccumulator(ParValue):
    """Collects values one by one, and then over all processors.

    Parameters
    ----------
    operator
        Function of two arguments.
    zero
        What to begin with.
    """

    def __init__(self, operator: Callable[[Any, Any], Any], zero: Any) -> None:
        super().__init__(zero)
        self.operator = operator
        self.zero = zero

    def addValue(self, value: ParValue) -> None:
        """Add a value, if it is valid."""
        if value.valid:
            self.value = self.operator(self.value, value.value)

    def calculateTotal(self) -> ParValue:
        """Total of all processors, valid on processor 0."""
        return self.reduce(self.operator, self.zero)


class ParFunction(ParValue):
    """A function that takes the local values of global objects, and gives a global object."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{processorID}]({getattr(self.value, '__name__', self.value)})"


class ParRootFunction(ParFunction):
    """A function on processor 0, and another on all others, which does nothing if not given."""

    def __init__(self, local_function: Callable[..., Any], other_function: Callable[..., Any] | None = None) -> None:
        super().__init__(local_function if processorID == 0 else other_function or _nothing)


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


class ParIndex:
    """An index that each processor has for itself; comes from `ParIndexIterator`."""

    is_parindex = 1

    def __init__(self, index: Any, valid: bool = True) -> None:
        if hasattr(index, "is_parindex"):
            start, valid = index.start, index.valid
        elif hasattr(index, "is_parvalue"):
            start, valid = (index.value if index.valid else 0), index.valid
        else:
            start = index
        self.start: int = start
        self.stop: int | None = start + 1
        self.skip = 0
        self.valid = valid

    def __repr__(self) -> str:
        return f"ParIndex[{processorID}]({self.start})"


class ParSlice(ParIndex):
    """A slice that each processor has for itself."""

    def __init__(self, start: int = 0, stop: int | None = None, skip: int = 1, valid: bool = True) -> None:
        super().__init__(start, valid)
        self.stop, self.skip = stop, skip

    def __repr__(self) -> str:
        return f"ParSlice[{processorID}]({self.start}, {self.stop}, {self.skip})"


class _Steps:
    """As many steps on every processor as the longest local sequence has items.

    Those without an item get something invalid.
    """

    def __init__(self, sequence: ParValue) -> None:
        self.n = len(sequence.value)
        self.max_n: int = ParValue(self.n).reduce(max, 0).broadcast().value

    def _has(self, item: int) -> bool:
        if item >= self.max_n:
            raise IndexError(item)
        return item < self.n


class ParIterator(_Steps):
    """Loop over the items of a distributed sequence, one of each processor at a time."""

    def __init__(self, sequence: ParValue) -> None:
        super().__init__(sequence)
        self.sequence = sequence.value

    def __getitem__(self, item: int) -> Any:
        return global_object(self.sequence[item]) if self._has(item) else ParValue(None, False)


class ParIndexIterator(_Steps):
    """Loop over the indices of a distributed sequence, one of each processor at a time."""

    def __getitem__(self, item: int) -> ParIndex:
        return ParIndex(item) if self._has(item) else ParIndex(0, False)
