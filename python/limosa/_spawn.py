"""Processes that a program starts while it runs: `limosa.spawn`, and `limosa.parent` in those processes.

The two groups of processes reach each other by an intercommunicator. Its messages are single ones, the pickles of
values, so that programs which use mpi4py's methods for objects can be at the other end. `Intercomm.merge` gives a
`Comm`, with all that this has.

A function is called by processes that run this module (``python -m limosa._spawn``). They are told, in this order: how
to find the modules of the program that starts them, as `multiprocessing` tells its processes; then what to call, with
arguments. Each answers when it is about to do so, or why it cannot.
"""

from __future__ import annotations

import atexit
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Sequence
from multiprocessing import spawn as _preparation
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from mpi4py import MPI

from limosa import _uncaught, errors
from limosa._agreement import agree, described_error
from limosa._comm import Comm, _owned
from limosa._transfer import ANY, Any_

if TYPE_CHECKING:
    from types import TracebackType

    from limosa._messages import Status

_MODULE = "limosa._spawn"
_state = {"preparing": False}
"""Whether this process imports the program that has started it."""


def spawn(
    program: str | os.PathLike[str] | Callable[..., Any],
    args: Sequence[Any] = (),
    n: int = 1,
    *,
    host: str | None = None,
    wdir: str | os.PathLike[str] | None = None,
    comm: Comm | None = None,
) -> Intercomm:
    """Start processes that run a program or a function.

    Parameters
    ----------
    program
        A Python script (its name ends with ``.py``), a command, or a function that can be pickled, as functions of a
        module can. In these processes `limosa.world` are the processes started together, and `limosa.parent` leads
        back to those that started them.
    args
        The arguments: strings for a program, anything that can be pickled for a function.
    n
        How many processes.
    host
        The host on which to start them; with Limosa it must be one of the job's hosts.
    wdir
        Their working directory; by default that of this process.
    comm
        Communicator whose ranks start them together, all with the same arguments; its rank 0 does it. By default this
        rank alone.

    Returns
    -------
    Intercomm
        Leads to the processes, to be used in a ``with`` block, or to be disconnected.

    Raises
    ------
    limosa.errors.SpawnError
        If they cannot be started, such as for a program that does not exist or that ends before it uses MPI.
    limosa.errors.PeerError
        If a function cannot be called there, because its module cannot be imported.

    Examples
    --------
    >>> import limosa, math
    >>> with limosa.spawn(print, ["hello"], n=2) as workers:  # doctest: +SKIP
    ...     workers.remote_size
    2

    """
    _uncaught.install()
    function = program if callable(program) else None
    problem: errors.Error | None = None
    command, words = sys.executable, ["-m", _MODULE]
    task = b""
    try:
        if _state["preparing"]:
            raise errors.BY_CLASS["SPAWN"](
                "the program that is imported to find a function starts processes itself; hint: put what starts them "
                'under `if __name__ == "__main__":`'
            )
        if type(n) is not int or n < 1:
            raise errors.BY_CLASS["ARG"](f"n={n!r} is not a number from 1")
        if function is not None:
            task = pickle.dumps((function, tuple(args)), 5)
        else:
            command, words = _command_of(cast("str | os.PathLike[str]", program), args, wdir, host)
    except errors.Error as error:
        problem = error
    except Exception as error:
        problem = errors.BY_CLASS["ARG"](described_error(error))
    rank = 0 if comm is None else comm.rank
    if comm is not None:
        name = f"{function.__module__}.{function.__qualname__}" if function is not None else str(program)
        agree(comm, "spawn", {"program": name, "n": n}, problem)
    elif problem is not None:
        problem.call, problem.rank = "spawn", rank
        raise problem
    mpi = _started(MPI.COMM_SELF if comm is None else comm._envelopes, rank, command, words, n, host, wdir)
    made = Intercomm(mpi)
    if function is not None:
        made._hand_over(task, comm)
    return made


def _command_of(
    program: str | os.PathLike[str], args: Sequence[Any], wdir: str | os.PathLike[str] | None, host: str | None
) -> tuple[str, list[str]]:
    """Give the command and its words. What is not there is found here: some libraries would wait for it."""
    name = os.fspath(program)
    words = [os.fspath(word) for word in args]
    if not isinstance(name, str) or not all(isinstance(word, str) for word in words):
        raise errors.BY_CLASS["ARG"]("a program and its arguments are given as str or path")
    is_script = name.endswith(".py")
    if is_script:
        name = str(Path(name).absolute())
    path = str(Path(wdir or "") / name) if "/" in name else shutil.which(name)
    if host is None and (path is None or not Path(path).is_file()):
        raise errors.BY_CLASS["SPAWN"](f"there is no {'script' if is_script else 'program'} {name}")
    if host is None and not is_script and not os.access(path or "", os.X_OK):
        raise errors.BY_CLASS["SPAWN"](f"the program {name} is not executable")
    return (sys.executable, [name, *words]) if is_script else (name, words)


def _started(
    comm: MPI.Intracomm,
    rank: int,
    command: str,
    words: list[str],
    n: int,
    host: str | None,
    wdir: str | os.PathLike[str] | None,
) -> MPI.Intercomm:
    """Start processes; all ranks of the communicator call this."""
    info = MPI.Info.Create()
    try:
        for key, value in (("host", host), ("wdir", None if wdir is None else os.fspath(wdir))):
            if value is not None:
                info.Set(key, value)
        return comm.Spawn(command, words, n, info, 0)
    except MPI.Exception as error:
        raise errors.from_mpi(error, call="spawn", rank=rank) from None
    finally:
        info.Free()


class Intercomm:
    """Two groups of processes that send each other messages, as `limosa.spawn` and `limosa.parent` give it.

    Attributes
    ----------
    rank, size : int
        The rank of this process in its own group, and the number of its processes.
    remote_size : int
        The number of processes of the other group: its ranks are those that messages go to and come from.
    mpi : mpi4py.MPI.Intercomm
        The communicator of mpi4py.

    Examples
    --------
    >>> import limosa
    >>> limosa.parent is None  # this process was not spawned
    True

    """

    def __init__(self, mpi: MPI.Intercomm) -> None:
        self.mpi = mpi
        self.rank: int = mpi.rank
        self.size: int = mpi.size
        self.remote_size: int = mpi.remote_size
        mpi.Set_errhandler(MPI.ERRORS_RETURN)
        _uncaught.connections += 1

    def __repr__(self) -> str:
        if self.mpi == MPI.COMM_NULL:
            return "<limosa.Intercomm, disconnected>"
        return f"<limosa.Intercomm: rank {self.rank} of {self.size}, {self.remote_size} on the other side>"

    def __enter__(self) -> Intercomm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Processes that left the block by different ways could not disconnect together.
        if kind is None:
            self.disconnect()
        else:
            atexit.unregister(self._end)

    def send(self, x: Any, to: int = 0, tag: int = 0) -> None:
        """Send a value to a process of the other group.

        Parameters
        ----------
        x
            An object that can be pickled.
        to
            Its rank there.
        tag
            A non-negative integer by which the receiver can choose messages.

        Raises
        ------
        limosa.errors.RankError, limosa.errors.TagError
            If rank or tag are not valid.

        Examples
        --------
        >>> import limosa
        >>> def double():
        ...     limosa.parent.send(2 * limosa.parent.recv())
        >>> with limosa.spawn(double) as worker:  # doctest: +SKIP
        ...     worker.send(21, to=0)
        ...     worker.recv()
        42

        """
        try:
            self.mpi.send(x, to, tag)
        except MPI.Exception as error:
            self._explain(error, "send", to, tag)

    def recv(self, source: int | Any_ = ANY, tag: int | Any_ = ANY, *, status: Status | None = None) -> Any:
        """Receive a value from a process of the other group.

        Parameters
        ----------
        source
            Its rank there; by default any.
        tag
            Only a message with this tag; by default any.
        status
            Gets source and tag of the message.

        Raises
        ------
        limosa.errors.RankError, limosa.errors.TagError
            If rank or tag are not valid.

        Examples
        --------
        >>> import limosa
        >>> with limosa.spawn("worker.py", n=3) as workers:  # doctest: +SKIP
        ...     first = workers.recv()

        """
        found = MPI.Status()
        try:
            value = self.mpi.recv(
                None,
                source if isinstance(source, int) else MPI.ANY_SOURCE,
                tag if isinstance(tag, int) else MPI.ANY_TAG,
                found,
            )
        except MPI.Exception as error:
            self._explain(error, "recv", source, tag)
        if status is not None:
            status.source, status.tag = found.source, found.tag
        return value

    def merge(self) -> Comm:
        """Give the communicator of both groups: first the processes that have spawned, then the spawned ones.

        All processes of both groups must call it together.

        Examples
        --------
        >>> import limosa
        >>> with limosa.spawn("worker.py", n=3) as workers:  # doctest: +SKIP
        ...     with workers.merge() as both:  # worker.py: limosa.parent.merge()
        ...         both.bcast("hello")

        """
        try:
            return _owned(self.mpi.Merge(self is _family.get("parent")))
        except MPI.Exception as error:
            raise errors.from_mpi(error, call="merge", rank=self.rank) from None

    def disconnect(self) -> None:
        """End the connection; both groups must call it. Afterwards neither hears of the other one's errors.

        ``with limosa.spawn(...) as workers:`` does it at the end of the block, and processes that run a function do it
        at their end.

        Examples
        --------
        >>> import limosa
        >>> limosa.spawn("worker.py").disconnect()  # doctest: +SKIP

        """
        if self.mpi == MPI.COMM_NULL:
            return
        atexit.unregister(self._end)
        try:
            self.mpi.Disconnect()
            _uncaught.connections -= 1
        except MPI.Exception as error:
            raise errors.from_mpi(error, call="disconnect", rank=self.rank) from None

    # --- inside ------------------------------------------------------------------------------------------------------

    def _abandon(self) -> None:
        """End the connection without the other group, of which processes have died."""
        atexit.unregister(self._end)
        self.mpi = MPI.COMM_NULL  # type: ignore[assignment]

    def _end(self) -> None:
        """Disconnect at the end of the program, unless an exception ends it: then the other group ends, too."""
        if not _uncaught.has_failed:
            self.disconnect()

    def _explain(self, error: MPI.Exception, call: str, partner: Any, tag: Any) -> NoReturn:
        name = "to" if call == "send" else "source"
        if isinstance(partner, int) and not 0 <= partner < self.remote_size:
            ranks = f"0 to {self.remote_size - 1}" if self.remote_size > 1 else "only 0"
            raise errors.BY_CLASS["RANK"](
                f"{name}={partner} is not in the other group, whose ranks are {ranks}", call=call, rank=self.rank
            ) from None
        raise errors.from_mpi(error, call=call, rank=self.rank, tried=f"{name}={partner}, tag={tag}") from None

    def _hand_over(self, task: bytes, comm: Comm | None) -> None:
        """Tell the processes what to call, and hear whether they can; the first of the ranks that have spawned them."""
        atexit.register(self._end)  # as they do; a `with` block does it before
        failures: list[str] = []
        if self.rank == 0:
            data = _preparation.get_preparation_data("limosa")
            data.pop("authkey", None)
            for rank in range(self.remote_size):
                self.mpi.send((data, task), rank)
            answers = [self.mpi.recv(source=rank) for rank in range(self.remote_size)]
            failures = [f"process {rank}: {text}" for rank, text in enumerate(answers) if text]
        if comm is not None:
            failures = comm.bcast(failures)
        if failures:
            self.disconnect()
            raise errors.PeerError(f"the function cannot be called: {failures[0]}", call="spawn", rank=self.rank)


_family: dict[str, Intercomm | None] = {}


def parent() -> Intercomm | None:
    """Give what `limosa.parent` is: the way to the processes that have started this one; None if there are none."""
    if "parent" not in _family:
        mpi = MPI.Comm.Get_parent()
        _family["parent"] = None if mpi == MPI.COMM_NULL else Intercomm(mpi)
    return _family["parent"]


def main() -> None:
    """Be a process that calls a function."""
    import limosa

    back = limosa.parent
    if back is None:
        sys.exit(f"{_MODULE} is run by `limosa.spawn` only")
    failure, function, args = "", None, ()
    data, task = back.mpi.recv(source=0)
    try:
        _state["preparing"] = True
        _preparation.prepare(data)
        function, args = pickle.loads(task)  # noqa: S301 - from the process that has started this one
    except Exception as error:
        failure = described_error(error)
    finally:
        _state["preparing"] = False
    # All of them call it, or none.
    failures = limosa.world.allgather(failure)
    back.mpi.send(failure or next(filter(None, failures), ""), 0)
    if function is not None and not any(failures):
        function(*args)
    back.disconnect()


if __name__ == "__main__":
    from limosa._spawn import main as _main  # the module under its name, which others import

    _main()
