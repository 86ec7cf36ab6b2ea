"""What mpi4py's names are called here: for the errors that programs get which use those."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

_VERBS = (
    *("send", "recv", "isend", "irecv", "sendrecv", "probe", "iprobe", "barrier", "bcast", "gather", "scatter"),
    *("allgather", "alltoall", "reduce", "allreduce", "reduce_scatter", "scan", "exscan", "split", "dup", "free"),
    *("abort", "wait", "test", "cancel"),
)
_ENDINGS = ("", "_block", "_init", "v", "w")
_OTHERS = {
    "Get_rank": "rank",
    "Get_size": "size",
    "Create_cart": "cart",
    "Clone": "dup",
    "Wtime": "time",
    "Get_topo": "dims`, `periodic` and `coords",
    "Get_dim": "dims",
    "Get_coords": "coords_of",
    "Get_cart_rank": "rank_at",
    "Shift": "shift",
    "Sub": "sub",
    "Disconnect": "free",
    "py2f": "mpi.py2f",
    "handle": "mpi.handle",
    "Waitall": "wait_all",
    "waitall": "wait_all",
    "waitany": "wait_any",
}
_KEYWORDS = {
    "dest": "to",
    "obj": "x",
    "sendobj": "x",
    "sendbuf": "x",
    "sendtag": "tag",
    "recvbuf": "out",
    "recvobj": "out",
    "buf": "x (to send) or out (to receive into)",
}
_COMMUNICATORS = {"COMM_WORLD": "world", "COMM_SELF": "Comm(mpi4py.MPI.COMM_SELF)"}


def equivalent(name: str) -> str | None:
    """Give what an attribute of mpi4py's objects is called here, if there is such a thing."""
    found = _OTHERS.get(name) or _COMMUNICATORS.get(name)
    if found:
        return found
    lower = name.lower()
    for ending in _ENDINGS:
        verb = lower.removesuffix(ending) if ending else lower
        if verb != name and lower.endswith(ending) and (verb in _VERBS or verb.removeprefix("i") in _VERBS):
            return verb
    return None


class Elsewhere:
    """Stands in a class for a name of mpi4py's, and gives the error that says what it is called here.

    With ``__getattr__`` the class would do the same, but then Python would look up all its attributes in a slower way.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise no_attribute(f"limosa.{owner.__name__}", self._name, {*dir(owner), *vars(instance or owner)})


class Hinting(type):
    """Classes that say what the names of mpi4py that they have not are called here. Nothing lists these names."""

    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> None:
        super().__init__(name, bases, members)
        if any(isinstance(base, Hinting) for base in bases):
            return
        forms = [f"{start}{verb}{ending}" for start in ("", "i") for verb in _VERBS for ending in _ENDINGS]
        known = type.__dir__(cls)
        for form in (*_OTHERS, *forms, *(form.capitalize() for form in forms)):
            if form not in known and equivalent(form) is not None:
                setattr(cls, form, Elsewhere(form))

    def __dir__(cls) -> list[str]:
        found = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
        return [name for name, value in found.items() if not isinstance(value, Elsewhere)]


def no_attribute(kind: str, name: str, known: Iterable[str]) -> AttributeError:
    """Give the error for an attribute that is not there."""
    text = f"{kind} has no attribute {name!r}"
    here = equivalent(name)
    if here is not None and here.split("`")[0].split(".")[0].split("(")[0] in known:
        text += f"; hint: `{name}` -> `{here}`"
    return AttributeError(text)


def refuse(call: str, wrong: dict[str, Any]) -> NoReturn:
    """Raise the error for keywords that a method does not have."""
    name = next(iter(wrong))
    hint = f"; hint: `{name}` -> `{_KEYWORDS[name]}`" if name in _KEYWORDS else ""
    raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{hint}")
