"""Global classes: an instance of a local class on each processor, used as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import MethodType
from typing import Any

from limosa.dialects.scientific.BSP.core import numberOfProcessors, processorID, put, send, sync
from limosa.dialects.scientific.BSP.values import ParFunction, ParValue, global_classes, global_object, local

__all__ = ["ParBase", "ParClass", "ParInvalid", "ParMethod", "is_invalid"]


class _ParInvalid:
    """What a method of a local class gets for an invalid argument, and may return."""

    def __repr__(self) -> str:
        return "ParInvalid"


ParInvalid = _ParInvalid()
global_classes[_ParInvalid] = lambda _value: ParValue(None, False)


def is_invalid(obj: Any) -> bool:
    """Whether this is what stands for an invalid value."""
    return isinstance(obj, _ParInvalid)


def _argument(value: Any) -> Any:
    plain, valid = local(value)
    return plain if valid else ParInvalid


class ParMethod(ParFunction):
    """Method of a global class; made by `ParClass`.

    It is called also with invalid arguments, which it sees as `ParInvalid`.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with the local values."""
        return global_object(
            self.value(*map(_argument, args), **{name: _argument(value) for name, value in kwargs.items()})
        )


class _Global:
    """An instance of a global class: attributes are global objects, methods take global objects."""

    is_parvalue = 1

    def __init__(self, local_class: type, instance: Any) -> None:
        self.__dict__.update(local_class=local_class, value=instance, valid=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        found = getattr(self.value, name)
        return ParMethod(found) if isinstance(found, MethodType) else global_object(found)

    def __getitem__(self, item: Any) -> Any:
        index, valid = local(item)
        return global_object(self.value[index]) if valid else ParValue(None, False)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return ParValue(self.value)(*args, **kwargs)

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"ParClass{{{self.local_class.__name__}}}[{processorID}]({self.value!r})"


def _operator(name: str) -> Callable[..., Any]:
    """Give the operator of global objects that calls the method of this name of the local class."""

    def operate(self: _Global, *others: Any) -> Any:
        method = getattr(type(self.value), name, None)
        if method is None or method is getattr(object, name, None):
            return NotImplemented
        result = method(self.value, *map(_argument, others))
        return NotImplemented if result is NotImplemented else global_object(result)

    operate.__name__ = name
    return operate


_BINARY = "add sub mul truediv floordiv mod divmod pow lshift rshift and or xor matmul".split()
for _name in (*_BINARY, *(f"r{name}" for name in _BINARY), *(f"i{name}" for name in _BINARY if name != "divmod")):
    setattr(_Global, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
    setattr(_Global, f"__{_name}__", _operator(f"__{_name}__"))


class ParClass:
    """A global class made from a local one.

    Parameters
    ----------
    local_class
        A class derived from `ParBase`. Instead of ``__init__`` its method ``__parinit__`` is called, with the number of
        the processor, the number of processors, and the local values of the arguments.
    """

    def __init__(self, local_class: type) -> None:
        self.local_class = local_class
        global_classes[local_class] = self._wrapped

    def _wrapped(self, instance: Any) -> _Global:
        return _Global(self.local_class, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> _Global:
        """Make an instance on each processor."""
        instance: Any = object.__new__(self.local_class)
        start: Callable[..., None] = partial(instance.__parinit__, processorID, numberOfProcessors)
        start(*map(_argument, args), **{name: _argument(value) for name, value in kwargs.items()})
        return self._wrapped(instance)


class ParBase:
    """Base of local classes for `ParClass`; its methods communicate. All processors must call them."""

    is_parclass = 1

    def put(self, data: Any, pid_list: Iterable[int]) -> list[Any]:
        """Send data to some processors; gives what was received."""
        put(data, pid_list)
        return sync()

    def get(self, data: Any, pid_list: Iterable[int]) -> list[Any]:
        """Ask some processors for their data; gives what was received."""
        put(processorID, pid_list)
        put(data, sync())
        return sync()

    def broadcast(self, data: Any, from_pid: int = 0) -> Any:
        """Data of one processor, for all."""
        if processorID == from_pid:
            put(data, range(numberOfProcessors))
        return sync()[0]

    def exchangeMessages(self, message_list: Iterable[tuple[int, Any]]) -> list[Any]:
        """Send messages, pairs of a processor and data; gives the data received."""
        send(message_list)
        return sync()
