"""One rank of a `limosa._group.Group`: waits for pieces of code and runs them.

usage: ``python -m limosa._group_rank SOCKET``

The main thread runs code; a second thread reads the front's messages, so that an interrupt, and the front's end, are
noticed at any time. An interrupt becomes a signal to this process, which ends sleeps and reads, and on Limosa blocked
MPI calls. After that the ranks may be out of step with each other; therefore `limosa.world` gets new communicators.

Code runs in a module ``__main__`` of its own, so objects of classes that are defined there can be sent to other ranks.
"""

import ast
import asyncio
import ctypes
import inspect
import io
import linecache
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
import warnings
from multiprocessing.connection import Client, Connection
from types import CodeType, ModuleType
from typing import Any

from limosa import _uncaught

_OURS = {__file__, ast.__file__, asyncio.base_events.__file__}
"""Files whose frames are no part of the user's code."""


class Stream(io.TextIOBase):
    """Takes the place of a standard stream: sends whole lines to the front, and the rest when it is flushed."""

    def __init__(self, name: str, descriptor: int, send: "Sender") -> None:
        self._name = name
        self._descriptor = descriptor
        self._send = send
        self._line = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """What `bytes` would be made of the text."""
        return "utf-8"

    def writable(self) -> bool:
        """Tell that one can write."""
        return True

    def fileno(self) -> int:
        """Give the descriptor for child processes: the launcher reads their output and marks it."""
        return self._descriptor

    def write(self, text: str) -> int:
        """Take text."""
        self._line += text
        whole, newline, rest = self._line.rpartition("\n")
        if newline:
            self._line = rest
            self._send("text", self._name, whole + newline)
        return len(text)

    def flush(self) -> None:
        """Send an unfinished line."""
        rest, self._line = self._line, ""
        if rest:
            self._send("text", self._name, rest)


class Sender:
    """Sends messages of several threads to the front."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.RLock()

    def __call__(self, *message: object) -> None:
        """Send one; an interrupt meanwhile comes after it, because half a message would spoil all that follow."""
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            with self._lock:
                self._connection.send(message)
        except OSError:
            os._exit(1)  # the front has gone, and nothing can be reported
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class Rank:
    """The state of one rank."""

    def __init__(self, connection: Connection, *, figures: bool = False) -> None:
        self._connection = connection
        self._figures = figures
        self._tasks: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._busy = False
        self._send = Sender(connection)
        self._main = ModuleType("__main__")
        sys.modules["__main__"] = self._main
        self._names = vars(self._main)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flush_c = ctypes.CDLL(None).fflush
        self._epoch = 0
        self._base: Any = None  # what the communicators of each epoch are made from; unused otherwise

    def serve(self) -> None:
        """Say hello, then do what comes until the end."""
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        self._names.update(_predefined(MPI))
        if MPI.Get_library_version().startswith("Limosa"):
            self._base = world.Dup()
        sys.stdout, sys.stderr = Stream("out", 1, self._send), Stream("err", 2, self._send)
        signal.signal(signal.SIGINT, self._on_interrupt)
        self._send("hello", world.rank, world.size, MPI.Get_library_version().splitlines()[0].strip())
        threading.Thread(target=self._read, name="limosa-front", daemon=True).start()
        while (task := self._next())[0] != "end":
            answer = self._do(task)
            if self._figures:
                self._send_figures()
            sys.stdout.flush()
            sys.stderr.flush()
            self._flush_c(None)  # what C code has printed
            self._send("done", task[1], *answer)

    def _send_figures(self) -> None:
        """Send the figures that are open, and close them."""
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot is not None else ():
            image = io.BytesIO()
            try:
                pyplot.figure(number).savefig(image, format="png", bbox_inches="tight")
                self._send("figure", image.getvalue())
            except Exception as error:
                sys.stderr.write(f"figure {number} cannot be drawn: {error}\n")
            finally:
                pyplot.close(number)

    def _next(self) -> tuple[Any, ...]:
        while True:
            try:
                return self._tasks.get()
            except KeyboardInterrupt:  # one that came late
                continue

    def _read(self) -> None:
        """Take the front's messages; runs in a thread of its own."""
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                message = ("end",)
                if self._busy:
                    os._exit(1)  # the main thread may wait for ever
            if message[0] != "interrupt":
                self._busy = message[0] == "run"
                self._tasks.put(message)
            elif self._busy:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if message[0] == "end":
                return

    def _on_interrupt(self, *_: object) -> None:
        if self._busy:
            raise KeyboardInterrupt

    def _do(self, task: tuple[Any, ...]) -> tuple[str, str | bytes]:
        """Carry out one message; give kind and text of the answer."""
        try:
            if task[0] == "run":
                try:
                    self._renew_world(task[4])
                    return "value", self._run(*task[2:4])
                finally:
                    self._busy = False  # from here on interrupts are ignored
            if task[0] == "complete":
                return "value", "\n".join(self._complete(task[2]))
            if task[0] == "push":
                self._names[task[2]] = pickle.loads(task[3])  # noqa: S301 - the front is the user's own process
                return "value", ""
            if task[2] not in self._names:
                return "error", f"NameError: name '{task[2]}' is not defined"
            return "pulled", pickle.dumps(self._names[task[2]], protocol=5)
        except SystemExit as leaving:
            return "exit", str(leaving.code if leaving.code is not None else 0)
        except BaseException as error:
            return "error", _traceback(error)

    def _renew_world(self, epoch: int) -> None:
        """Give `limosa.world` the communicators of this epoch.

        Limosa makes a duplicate without a message, so that every rank can do this when it is asked to run something.
        All of them make the same number of duplicates.
        """
        if self._base is None or epoch == self._epoch:
            return
        import limosa

        while self._epoch < epoch:
            self._epoch += 1
            fresh = self._base.Dup()
        limosa.world.__init__(fresh)  # type: ignore[misc] # in its place, so that all references see it

    def _run(self, source: str, name: str) -> str:
        """Run a piece of code; give the last expression's value in words, if it has one."""
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self._evaluate(_compiled(tree, name, "exec"))
        if not isinstance(last, ast.Expr):
            return ""
        value = self._evaluate(_compiled(ast.Expression(last.value), name, "eval"))
        if value is None or source.rstrip().endswith(";"):
            return ""
        self._names["_"] = value
        return repr(value)

    def _evaluate(self, code: CodeType) -> object:
        value: object = eval(code, self._names)  # noqa: S307 - the user's code
        if code.co_flags & inspect.CO_COROUTINE:
            self._loop = self._loop or asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
            return self._loop.run_until_complete(value)  # type: ignore[arg-type]
        return value

    def _complete(self, text: str) -> list[str]:
        import rlcompleter

        completer = rlcompleter.Completer(self._names)
        matches: list[str] = []
        while len(matches) < 200 and (match := completer.complete(text, len(matches))) is not None:
            matches.append(match)
        return matches


def _compiled(tree: ast.Module | ast.Expression, name: str, mode: str) -> CodeType:
    """Compile a tree; ``await`` is allowed at its top level."""
    code: CodeType = compile(tree, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


def _traceback(error: BaseException) -> str:
    """Give the traceback with the frames of the user's code only."""
    told = traceback.TracebackException.from_exception(error)
    told.stack[:] = [frame for frame in told.stack if frame.filename not in _OURS]
    _uncaught.hide_library(told)
    return "".join(told.format())


def _predefined(mpi: Any) -> dict[str, object]:
    """Give the names that a session begins with."""
    import limosa
    from limosa import _channel

    _channel.compiled_methods = False
    names: dict[str, object] = {"limosa": limosa, "MPI": mpi, "rank": mpi.COMM_WORLD.rank, "size": mpi.COMM_WORLD.size}
    names["world"] = limosa.world
    try:
        import numpy as np

        names["np"] = np
    except ModuleNotFoundError:
        pass
    return names


def main() -> None:
    """Connect to the front and serve it."""
    _uncaught.install()
    figures = "figures" in sys.argv[2:]
    if figures:
        os.environ["MPLBACKEND"] = "agg"  # there is no screen; the front shows the images
        warnings.filterwarnings("ignore", message=".*is non-interactive")
    Rank(Client(sys.argv[1], "AF_UNIX"), figures=figures).serve()


if __name__ == "__main__":
    main()
