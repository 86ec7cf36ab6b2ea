"""NumPy's own functions on distributed arrays: which of ours does the work."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

#: NumPy's names that differ from those here.
_NAMES = {"transpose": "permute_dims", "concatenate": "concat", "around": "round", "amax": "max", "amin": "min"}
#: NumPy's options that say what is the case anyway.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "out": (None,),
    "where": (True, np._NoValue),
    "keepdims": (np._NoValue,),
    "initial": (np._NoValue,),
}


def dispatch(function: Any, args: Any, options: dict[str, Any]) -> Any:
    """Do what `Array.__array_function__` is asked for."""
    import limosa.arrays as here

    name = _NAMES.get(function.__name__, function.__name__)
    home: Any = {"numpy.fft": here.fft, "numpy.linalg": here.linalg}.get(function.__module__, here)
    ours = getattr(home, name, None)
    if ours is None or name not in home.__all__:
        raise TypeError(
            f"numpy.{function.__name__} does not work on distributed arrays; "
            "hint: x.local is this rank's part, x.agg_all() the whole array"
        )
    given = {key: value for key, value in options.items() if not _is_neutral(key, value)}
    if "ddof" in given:
        given["correction"] = given.pop("ddof")
    if name == "permute_dims" and len(args) == 1 and not given:
        return args[0].T
    try:
        bound = inspect.signature(ours).bind(*args, **given)
    except TypeError as error:
        raise TypeError(
            f"numpy.{function.__name__} of distributed arrays: {error}; see help(limosa.arrays.{name})"
        ) from None
    return ours(*bound.args, **bound.kwargs)


def _is_neutral(key: str, value: Any) -> bool:
    return any(value is neutral for neutral in _NEUTRAL.get(key, ()))


#: Names of the array API standard that are not here, in a module of the namespace, and what to do instead.
MISSING = {
    "from_dlpack": "asarray(numpy.from_dlpack(x)), of an array that is the same on all ranks",
}


def missing(name: str) -> Any:
    """Return a function that says what to do instead of a function of the standard that is not here.

    Raises
    ------
    AttributeError
        The standard has no such function.

    """
    full = name.removeprefix("limosa.arrays.")
    if full not in MISSING:
        raise AttributeError(f"there is no {name}")

    def call(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{name} is not there; hint: {MISSING[full]}")

    return call


class Info:
    """What the array API standard lets programs ask about a namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Return what the namespace can do."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the only device."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return the only device."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the types that elements have if none is named."""
        kinds = {"real floating": float, "complex floating": complex, "integral": int, "indexing": np.intp}
        return {name: np.dtype(kind) for name, kind in kinds.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the types of the standard, or those of a kind such as ``"real floating"``."""
        names = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
        found = {name: np.dtype(name) for name in [*names, "float32", "float64", "complex64", "complex128"]}
        return {name: each for name, each in found.items() if kind is None or np.isdtype(each, kind)}
