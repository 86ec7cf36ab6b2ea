"""A pool of processes in the manner of `multiprocessing`, on the ranks of the job.

All ranks call `start`; it returns on the first one only, where `Pool` is then a `PyparPool`. The other ranks work until
the pool is closed, and exit. On one rank `Pool` is `multiprocessing.Pool`.

As upstream: ``imap`` gives results in the order in which they are ready, and an exception of the function as a result.
Differs: functions may use the names that the script has defined before `start`; exceptions while a worker receives are
not hidden.
"""

import atexit
import functools
import logging
import marshal
import multiprocessing
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Any, TypeVar

from limosa.dialects import pypar

RUN = 1
DIE = 2

_F = TypeVar("_F", bound=Callable[..., Any])


def mute_worker_output(f: _F) -> _F:
    """Make a function that prints and logs nothing on all ranks but the first."""
    if pypar.rank() == 0:
        return f
    logging.getLogger().disabled = True

    @functools.wraps(f)
    def muted(*args: Any, **kwargs: Any) -> Any:
        streams = sys.stdout, sys.stderr
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            sys.stdout = sys.stderr = nowhere
            try:
                return f(*args, **kwargs)
            finally:
                sys.stdout, sys.stderr = streams

    return muted  # type: ignore[return-value]


def _pack(function: Callable[..., Any]) -> Any:
    """Make something of a function that can be sent: Python's functions by code, because a worker may lack the name."""
    if not isinstance(function, types.FunctionType):
        return function
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return marshal.dumps(function.__code__), function.__module__, function.__name__, function.__defaults__, cells


def _unpack(packed: Any) -> Callable[..., Any]:
    if not isinstance(packed, tuple):
        return packed  # type: ignore[no-any-return]
    code, module, name, defaults, cells = packed
    names = vars(sys.modules.get(module) or sys.modules["__main__"])
    made = marshal.loads(code)  # noqa: S302 - from our own job
    return types.FunctionType(made, names, name, defaults, tuple(map(types.CellType, cells)))


class Singleton(type):
    """Of each class of this kind there is one instance."""

    _instances: dict[type, Any] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Give the instance."""
        if cls not in cls._instances:
            cls._instances[cls] = super().__call__(*args, **kwargs)
        return cls._instances[cls]


class PyparPool(metaclass=Singleton):
    """The pool on the first rank; its arguments are those of `multiprocessing.Pool` without effect (see `start`)."""

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
    ) -> None:
        self.initializer = initializer
        self.initargs = initargs
        self.maxtasks = maxtasksperchild
        self.state = RUN
        self._terminated = False
        if pypar.rank() == 0 and pypar.size() > 1:
            atexit.register(self.terminate)  # in case the program does not

    def imap(self, f: Callable[..., Any], work: Iterable[Any]) -> Iterator[Any]:
        """Call ``f(element)`` on the workers for each element; give the results as they come."""
        if self.state != RUN:
            raise AssertionError("the pool is closed")
        if pypar.size() < 2 or pypar.rank() != 0:
            raise AssertionError("imap is for the first of several ranks")
        return self._imap_master(f, work)

    def _imap_master(self, func: Callable[..., Any], iterable: Iterable[Any]) -> Iterator[Any]:
        function = _pack(func)
        tasks: Iterator[Any] = ((i, function, (x,), {}) for i, x in enumerate(iterable))
        pending = 0
        # The range comes first: no task gets lost.
        for worker_rank, task in zip(range(1, pypar.size()), tasks):  # noqa: B905
            pypar.send(task, destination=worker_rank, tag=RUN)
            pending += 1
        while pending:
            result, status = pypar.receive(source=pypar.any_source, tag=RUN, return_status=True)
            pending -= 1
            for task in islice(tasks, 1):
                pypar.send(task, destination=status.source, tag=RUN)
                pending += 1
            yield result
        if self.state == DIE:
            self.terminate()

    def close(self) -> None:
        """Let the workers exit when the results have been taken."""
        self.state = DIE

    def terminate(self) -> None:
        """Let the workers exit, and leave MPI."""
        if not self._terminated:
            self._terminated = True
            for worker_rank in range(1, pypar.size()):
                pypar.send(None, destination=worker_rank, tag=DIE)
            pypar.finalize()


class DummyPool(metaclass=Singleton):
    """A pool without processes; what `Pool` is before `start`."""

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
    ) -> None:
        self.initializer = initializer
        self.initargs = initargs
        self.maxtasks = maxtasksperchild

    def imap(self, f: Callable[..., Any], work: Iterable[Any]) -> Iterator[Any]:
        """Call ``f(element)`` for each element."""
        if self.initializer is not None:
            self.initializer(*self.initargs)
        return map(f, work)

    def close(self) -> None:
        """Do nothing."""

    def terminate(self) -> None:
        """Do nothing."""


def worker(
    initializer: Callable[..., Any] | None = None, initargs: Iterable[Any] = (), maxtasks: int | None = None
) -> None:
    """Work for the first rank, then exit."""
    if maxtasks is not None and maxtasks < 1:
        raise AssertionError(f"maxtasks must be a positive number or None, not {maxtasks}")
    if initializer is not None:
        initializer(*initargs)
    for _ in count() if maxtasks is None else range(maxtasks):
        task, status = pypar.receive(source=0, tag=pypar.any_tag, return_status=True)
        if status.tag == DIE:
            break
        _, function, args, kwds = task
        try:
            result = _unpack(function)(*args, **kwds)
        except Exception as error:
            result = error
        pypar.send(result, destination=0, tag=RUN)
    pypar.finalize()
    sys.exit(0)


Pool: Any = DummyPool


def start(
    initializer: Callable[..., Any] | None = None, initargs: Iterable[Any] = (), maxtasks: int | None = None
) -> None:
    """Make `Pool` ready on the first rank; the others work from here on.

    Parameters
    ----------
    initializer, initargs
        Function (and its arguments) that each worker calls first.
    maxtasks
        Number of tasks after which a worker exits.
    """
    global Pool  # noqa: PLW0603 - scripts use pyparprocessing.Pool
    if pypar.size() == 1:
        Pool = multiprocessing.Pool
    else:
        Pool = PyparPool
        if pypar.rank() > 0:
            worker(initializer, initargs, maxtasks)
