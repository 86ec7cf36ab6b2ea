"""Exceptions, and the translation of mpi4py's."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from mpi4py import MPI

from limosa.dialects._wire import WrongFormError

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Error(Exception):
    """An MPI call failed.

    Attributes
    ----------
    what
        What is wrong, with the name of the call.
    routine
        Name of the MPI function.
    result_code
        MPI error code.
    """

    def __init__(self, routine: str, result_code: int, text: str) -> None:
        self.routine = routine
        self.result_code = result_code
        self.what = f"{routine}: {text}"
        super().__init__(self.what)

    def __str__(self) -> str:
        return f"{self.what} (code {self.result_code})"


class ObjectWithoutSkeletonError(Exception):
    """Something other than an array of numbers was given to `skeleton` or `get_content`; it is in `object`."""

    def __init__(self, object: object) -> None:
        self.object = object
        super().__init__(
            f"an object of type {type(object).__name__} has no skeleton: only NumPy arrays of numbers have one; send "
            "the object itself"
        )


def calls(routine: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function that stands for an MPI function raise `Error` when MPI fails."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def translated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return function(*args, **kwargs)
            except MPI.Exception as error:
                # Limosa's texts begin with the function, as ours do.
                text = error.Get_error_string()
                raise Error(
                    routine, error.Get_error_code(), text.removeprefix(f"{routine}: ").removeprefix(f"{routine}_c: ")
                ) from None
            except WrongFormError as error:
                raise Error(
                    routine, MPI.ERR_TYPE, f"{error}; was it sent as Content? Then receive it with buffer="
                ) from None

        return translated

    return decorate
