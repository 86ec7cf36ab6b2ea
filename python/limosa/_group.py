"""A group of processes that runs each piece of code on all of them: the base of the shell and of the notebook magic.

The user's process is the *front*; it needs no MPI. `Group` starts a job of ``limosa._group_rank`` with the launcher (so
on any library) and talks to each rank through a socket file in a folder that only the user may enter. Between pieces of
code every rank sleeps in a read from its socket, on any library.

============  ============================================  =====================================================
direction     message                                       meaning
============  ============================================  =====================================================
rank, first   ``("hello", rank, size, library)``            the rank is ready
front         ``("run", number, source, file name, epoch)`` run this piece of code; see `Group._epoch`
front         ``("interrupt",)``                            raise KeyboardInterrupt in it
front         ``("complete", number, text)``                names that begin like this
front         ``("pull", number, name)``                    the value of a variable
front         ``("push", number, name, pickled)``           give a variable this value
front         ``("line", text)`` or ``("no line",)``        answer to ``input``
front         ``("end",)``                                  leave (so does the end of the connection)
rank          ``("text", stream, text)``                    it has written this to ``out`` or ``err``
rank          ``("figure", image)``                         a figure that its code has drawn, as PNG
rank          ``("input", kind)``                           it wants a line of the user: ``input`` or ``debug``
rank          ``("done", number, kind, text)``              the answer to the question of this number; see `Answer`
============  ============================================  =====================================================

Questions are numbered, so that an answer that comes after the front has stopped waiting for it is not taken for the
next one's.

What ranks write is shown in pieces: when all have answered, or every `TICK` seconds. Ranks that have written the same
share one copy, marked with all their numbers.
"""

import json
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from limosa._files import installed_file

__all__ = ["Answer", "Group", "GroupError", "folded", "label", "parse_ranks"]

TICK = 0.2
"""How long output may wait for the same output of other ranks, in seconds."""

PATIENCE = 1.0
"""How long a rank may take to answer an interrupt, or the others after one has failed; then it is said where it is.

If all others wait in the library when one has failed, and still do at the next look, they are interrupted at once.
"""

LATE = 0.01
"""How long to wait, after the answers, for what C code and child processes have written.

That takes the way through the launcher.
"""

END = 5.0
"""How long the processes may take to end in order."""

Show = Callable[[str, str], None]
"""Takes a stream, ``out`` or ``err``, and lines of text for it."""


def _hint_of_unknown_name(why: str) -> str:
    """Say what to do if ranks cannot open a value because its class or function is defined in the notebook only."""
    unknown = re.search(r"Can't get attribute '(\w+)' on <module '__main__'", why)
    return f"; define {unknown[1]} on the ranks too, in a cell that begins with %%limosa" if unknown else ""


class GroupError(Exception):
    """The processes cannot be started, or have ended; the message says why."""


@dataclass(frozen=True)
class Answer:
    """How a piece of code ended on one rank.

    Attributes
    ----------
    kind
        ``value``, ``error`` (an exception), ``exit`` (``exit()`` was called) or ``pulled``.
    text
        The value of a last expression (empty if that is None), the traceback, the exit code; a pulled value is in
        pickled form.
    """

    kind: str
    text: str | bytes


def label(ranks: Iterable[int]) -> str:
    """Give a set of ranks as users write it.

    >>> label([0, 1, 2, 5, 7])
    '[0-2,5,7]'
    """
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and parts[-1][-1] == rank - 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return "[" + ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts) + "]"


def parse_ranks(text: str, size: int) -> list[int]:
    """Read a set of ranks.

    >>> parse_ranks("0,2-3", 4)
    [0, 2, 3]

    Raises
    ------
    ValueError
        If it is none, or names a rank that a group of this size does not have.
    """
    ranks: set[int] = set()
    for part in text.strip("[]").split(","):
        if not re.fullmatch("[0-9]+(-[0-9]+)?", part):
            raise ValueError(f"`{text}` names no ranks; write 2, or 0,2-3")
        first, _, last = part.partition("-")
        ranks.update(range(int(first), int(last or first) + 1))
    if not ranks or max(ranks) >= size:
        raise ValueError(f"`{text}` names a rank that does not exist; there are ranks 0 to {size - 1}")
    return sorted(ranks)


def folded(texts: Mapping[int, str]) -> str:
    """Give what ranks have to say, each line marked; ranks that say the same together, in the order of the lowest.

    >>> print(folded({0: "42", 1: "42", 2: "43"}), end="")
    [0-1] 42
    [2] 43
    """
    groups: dict[str, list[int]] = {}
    for rank in sorted(texts):
        if texts[rank]:
            groups.setdefault(texts[rank], []).append(rank)
    lines = (f"{label(ranks)} {line}\n" for text, ranks in groups.items() for line in text.splitlines())
    return "".join(line if line.strip() else "\n" for line in lines)


def overwritten(text: str) -> str:
    r"""Give what a terminal would show of lines that are written again and again, such as progress bars.

    >>> overwritten("10 %\r20 %\r30 %\n")
    '30 %\n'
    """
    if "\r" not in text:
        return text
    lines = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n")]
    return "\n".join(lines)


def launcher() -> str:
    """Give the launcher of this installation, or else the one in PATH."""
    try:
        return str(installed_file("bin/limosa"))
    except FileNotFoundError:
        found = shutil.which("limosa")
        if found is None:
            raise GroupError(
                "there is no launcher: the command limosa is neither installed with this package nor in PATH"
            ) from None
        return found


class Group:
    """Processes that run pieces of code.

    Parameters
    ----------
    size
        Number of processes.
    show
        Takes the text to be shown; by default it is written to standard output and standard error.
    library
        Name of the MPI library, as for ``limosa run --mpi``.
    key
        How the user raises KeyboardInterrupt, for messages.
    figures
        Is called with a rank and the image of a figure that its code has drawn with Matplotlib, when all have answered.
    progress
        Is called every `TICK` seconds while code runs, with the number of ranks that have answered and of all asked.
    program
        What the ranks run, before the address of the front.
    connect
        Makes a connection to a rank of a descriptor: what else speaks as ``limosa._group_rank`` does.

    Raises
    ------
    GroupError
        If the processes cannot be started; what the launcher said has been shown.
    """

    def __init__(
        self,
        size: int,
        show: Show | None = None,
        library: str = "limosa",
        key: str = "Ctrl-C",
        figures: Callable[[int, bytes], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
        program: Sequence[str] = (sys.executable, "-m", "limosa._group_rank"),
        connect: Callable[[int], Connection] = Connection,
    ) -> None:
        self.size = size
        self._connect = connect
        self._figures = figures
        self._progress = progress
        self._key = key
        self.library = library
        self.version = ""
        self._show = show or _show_plainly
        self._pending: dict[str, dict[int, list[str]]] = {"out": {}, "err": {}}
        self._drawn: list[tuple[int, bytes]] = []  # figures that are not yet shown
        self._wanting: dict[int, str] = {}  # ranks that wait for a line of the user, and for what
        #: Asks the user for a line; None at the end of input.
        self.read_line: Callable[[str], str | None] = lambda _: None
        self._number = 0  # of the latest question
        # How often the ranks have got out of step with each other. In each epoch `limosa.world` has communicators of
        # its own, so that what was left half done before does not mix with what comes.
        self._epoch = 0
        self._ranks: dict[int, Connection] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="limosa-")
        address = str(Path(self._folder.name) / "front")
        command = [launcher(), "run", "-l", "-n", str(size), "--mpi", library, *program, address]
        command += ["figures"] if figures is not None else []
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(address)
            door.listen(size)
            # A session of its own: Ctrl-C is for the front, which passes it on.
            self._job = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            assert self._job.stdout and self._job.stderr
            # What launcher, C code and child processes write: pipes that have not ended, with the stream that they
            # stand for.
            self._pipes = {self._job.stdout.fileno(): "out", self._job.stderr.fileno(): "err"}
            try:
                self._let_in(door)
            except BaseException:
                self.kill()
                raise
        self._folder.cleanup()  # all are here: from now on nothing can be left behind, however this process ends

    def _let_in(self, door: socket.socket) -> None:
        """Wait until all ranks have said hello."""
        while len(self._ranks) < self.size:
            for ready in wait([door, *self._pipes]):
                if isinstance(ready, int):
                    self._relay(ready)
                    continue
                connection = self._connect(door.accept()[0].detach())
                try:
                    _, rank, size, self.version = connection.recv()
                except (
                    EOFError,
                    OSError,
                ):  # it has failed: what it says comes by the pipes, and the launcher ends the others
                    continue
                if size != self.size:
                    raise GroupError(f"asked for {self.size} processes, but rank {rank} is in a job of {size}")
                self._ranks[rank] = connection
            if not self._pipes:
                raise GroupError(f"the processes could not be started (exit code {self._job.wait()})")

    @property
    def is_alive(self) -> bool:
        """True if the processes can take code."""
        return bool(self._ranks) and self._job.poll() is None

    def run(self, source: str, name: str = "<cell>", ranks: Sequence[int] | None = None) -> dict[int, Answer]:
        """Run a piece of code; show its output while it runs, then values and tracebacks.

        A KeyboardInterrupt while this waits is passed on to the ranks. If they do not all answer, it is said where they
        are, and a second one ends the processes.

        Parameters
        ----------
        source
            Statements; the value of a last expression is shown.
        name
            Name of the piece in tracebacks.
        ranks
            Which ranks run it; without it all.

        Returns
        -------
        dict
            How it ended, by rank.

        Raises
        ------
        GroupError
            If the processes have ended.
        """
        return self._ask(ranks, "run", source, name)

    def pull(self, name: str) -> list[object]:
        """Give the value of a variable on each rank.

        Raises
        ------
        GroupError
            If the processes have ended.
        LookupError
            If some rank has no such variable, or a value that cannot be sent; the message names the rank.
        """
        values = []
        for rank, answer in sorted(self._ask(None, "pull", name, show=False).items()):
            if answer.kind != "pulled":
                raise LookupError(f"rank {rank}: {str(answer.text).strip().splitlines()[-1]}")
            pickled = bytes(answer.text, "latin-1") if isinstance(answer.text, str) else answer.text
            try:
                values.append(pickle.loads(pickled))  # noqa: S301
            except Exception as error:
                raise LookupError(f"the value of {name} on rank {rank} cannot be received here: {error}") from error
        return values

    def push(self, name: str, value: object) -> None:
        """Give a variable this value on all ranks.

        Raises
        ------
        GroupError
            If the processes have ended.
        LookupError
            If the value cannot be sent; the message says why.
        """
        try:
            pickled = pickle.dumps(value, protocol=5)
        except Exception as error:
            raise LookupError(f"the value of {name} cannot be sent: {error}") from error
        for rank, answer in sorted(self._ask(None, "push", name, pickled, show=False).items()):
            if answer.kind != "value":
                why = str(answer.text).strip().splitlines()[-1]
                raise LookupError(f"rank {rank}: {why}{_hint_of_unknown_name(why)}")

    def complete(self, text: str) -> list[str]:
        """Give the names on rank 0 that begin like this; none if it does not answer at once."""
        connection = self._ranks.get(0)
        if connection is None:
            return []
        try:
            self._number += 1
            connection.send(("complete", self._number, text))
            while connection.poll(1.0):
                message = connection.recv()
                if message[:2] == ("done", self._number):
                    return str(message[3]).split("\n") if message[3] else []
                self._take(0, message)
        except (EOFError, OSError):
            pass
        return []

    def end(self) -> int:
        """Let the processes leave in order; those that do not are killed. Give the exit code of the job."""
        for connection in self._ranks.values():
            try:
                connection.send(("end",))
            except OSError:
                pass
        deadline = time.monotonic() + END
        try:
            while (left := deadline - time.monotonic()) > 0 and (self._pipes or self._ranks):
                self._take_what_comes(left)
            self._job.wait(max(0.1, deadline - time.monotonic()))
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            pass
        self._flush()
        return self.kill()

    def kill(self) -> int:
        """End the processes at once. Give the exit code of the job."""
        for connection in self._ranks.values():
            connection.close()
        self._ranks.clear()
        if self._job.poll() is None:
            self._job.terminate()
            try:
                self._job.wait(2.0)
            except subprocess.TimeoutExpired:
                self._job.kill()
        for pipe in (self._job.stdout, self._job.stderr):
            if pipe:
                pipe.close()
        self._pipes.clear()
        self._folder.cleanup()
        return self._job.wait()

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _ask(
        self, ranks: Sequence[int] | None, kind: str, *details: str | bytes, show: bool = True
    ) -> dict[int, Answer]:
        """Send a question and collect the answers."""
        asked = list(self._ranks) if ranks is None else list(ranks)
        if not self.is_alive:
            raise GroupError(self._farewell())
        self._number += 1
        for rank in asked:
            try:
                epoch = (self._epoch,) if kind == "run" else ()
                self._ranks[rank].send((kind, self._number, *details, *epoch))
            except (OSError, KeyError):
                raise GroupError(self._farewell()) from None
        answers: dict[int, Answer] = {}
        asking = _Asking(self, set(asked))
        while missing := set(asked) - answers.keys():
            try:
                self._collect(answers, len(asked))
                if self._wanting:
                    self._give_line()
                if self._progress is not None and show:
                    self._progress(len(answers), len(asked))
                asking.look(answers, missing)
            except KeyboardInterrupt:
                asking.interrupt(missing - answers.keys())
        self._take_what_comes(LATE)
        self._flush()
        self._show_figures()
        if asking.is_out_of_step(answers):
            self._epoch += 1
        if show:
            self._show(
                "out", folded({rank: str(answer.text) for rank, answer in answers.items() if answer.kind == "value"})
            )
            self._show(
                "err", folded({rank: str(answer.text) for rank, answer in answers.items() if answer.kind == "error"})
            )
        return answers

    def _collect(self, answers: dict[int, Answer], number: int) -> None:
        """Take the answers that come within a tick, at most so many; show the output that came before them."""
        deadline = time.monotonic() + TICK
        while (left := deadline - time.monotonic()) > 0 and len(answers) + len(self._wanting) < number:
            answers |= self._take_what_comes(left)
            if not self._ranks or not self._pipes:
                raise GroupError(self._farewell())
        self._flush()

    def _give_line(self) -> None:
        """Ask the user for a line for the ranks that want one, or for some of them: ``%rank 1 LINE``."""
        wanting = sorted(self._wanting)
        line: str | None = None
        try:
            line = self.read_line(f"{label(wanting)} {self._wanting[wanting[0]]}> ")
            if line is not None and (found := re.fullmatch(r"\s*%rank\s+(\S+)\s(.*)", line, re.DOTALL)):
                wanting = sorted(set(parse_ranks(found[1], self.size)) & set(wanting))
                line = found[2]
        except ValueError as error:
            self._show("err", f"limosa: {error}\n")
            return
        except KeyboardInterrupt:
            pass
        for rank in wanting:
            del self._wanting[rank]
            try:
                self._ranks[rank].send(("no line",) if line is None else ("line", line))
            except (OSError, KeyError):
                pass

    def _take_what_comes(self, limit: float) -> dict[int, Answer]:
        """Wait so long at most for something to read, and read it. Give the answers among it."""
        answers = {}
        for ready in wait([*self._pipes, *self._ranks.values()], limit):
            if isinstance(ready, int):
                self._relay(ready)
            elif isinstance(ready, Connection):
                rank, message = self._receive(ready)
                if message[:2] == ("done", self._number):
                    answers[rank] = Answer(*message[2:])
                    self._wanting.pop(rank, None)
        return answers

    def _receive(self, connection: Connection) -> tuple[int, tuple[Any, ...]]:
        """Take one message of a rank; the end of its connection counts as an empty one."""
        rank = next(rank for rank, known in self._ranks.items() if known is connection)
        try:
            message = connection.recv()
        except (EOFError, OSError):
            del self._ranks[rank]
            self._wanting.pop(rank, None)
            return rank, ("gone",)
        self._take(rank, message)
        return rank, message

    def _take(self, rank: int, message: tuple[Any, ...]) -> None:
        """Keep what a rank has written."""
        if message[0] == "text":
            self._pending[message[1]].setdefault(rank, []).append(message[2])
        elif message[0] == "figure":
            self._drawn.append((rank, message[1]))
        elif message[0] == "input":
            self._wanting[rank] = message[1]

    def _show_figures(self) -> None:
        """Show what ranks have drawn, in the order of the ranks."""
        drawn, self._drawn = sorted(self._drawn, key=lambda one: one[0]), []
        for rank, image in drawn:
            if self._figures is not None:
                self._figures(rank, image)

    def _flush(self) -> None:
        """Show what ranks have written."""
        for stream, pending in self._pending.items():
            if pending:
                self._show(stream, folded({rank: overwritten("".join(texts)) for rank, texts in pending.items()}))
                pending.clear()

    def _relay(self, pipe: int) -> None:
        """Show the output that the launcher has passed on and marked."""
        text = os.read(pipe, 1 << 16)
        if text:
            self._flush()
            self._show(self._pipes[pipe], text.decode(errors="replace"))
        else:
            del self._pipes[pipe]

    def _farewell(self) -> str:
        """Give the sentence about processes that have ended, after everything that they and the launcher have said."""
        deadline = time.monotonic() + END
        while (left := deadline - time.monotonic()) > 0 and (self._pipes or self._ranks):
            self._take_what_comes(left)
        self._flush()
        self._show_figures()
        return f"the processes have ended (exit code {self.kill()}); their variables are lost"

    @property
    def can_interrupt_waits(self) -> bool:
        """True if an interrupt ends calls that wait in the library; on other libraries than Limosa it does not."""
        return self.version.startswith("Limosa")

    def where(self, ranks: Iterable[int]) -> tuple[str, bool]:
        """Give a sentence about what these ranks are doing, as far as can be seen from outside.

        Give also whether all of them wait in the library.
        """
        places: dict[str, list[int]] = {}
        seen = self._seen_from_outside()
        for rank in ranks:
            places.setdefault(seen.get(rank, "runs"), []).append(rank)
        return "; ".join(f"{label(members)} {place}" for place, members in places.items()), "runs" not in places

    def _seen_from_outside(self) -> dict[int, str]:
        """Ask ``limosa ps`` what the ranks wait for."""
        try:
            done = subprocess.run([launcher(), "ps", "--format=json"], capture_output=True, timeout=5.0, check=True)
            jobs = [job for job in json.loads(done.stdout) if job["launcher"] == self._job.pid]
            threads = [(rank["rank"], thread) for job in jobs for rank in job["ranks"] for thread in rank["threads"]]
        except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
            return {}
        said = {}
        for rank, thread in threads:
            peers = " and ".join(wait["text"] for wait in thread["waits"])
            said[rank] = f"waits in {thread['call']}" + (f": {peers}" if peers else "")
        return said


class _Asking:
    """What is said and done while answers are missing."""

    def __init__(self, group: Group, asked: set[int]) -> None:
        self._group = group
        self._asked = asked
        self._since: float | None = None
        self._again = 0.0  # when to look again, once it was told where they are
        self._interrupted = False
        self._released = False  # an interrupt was sent
        self._told = False
        self._waits = ""  # where all that are missing waited at the last look, if they did

    def look(self, answers: Mapping[int, Answer], missing: set[int]) -> None:
        """Say where ranks are that stay behind after an interrupt, or after others have failed.

        Those that stay behind a rank that has failed are interrupted once all of them wait, however late that is.
        """
        missing = missing - answers.keys()
        failed = any(answer.kind == "error" for answer in answers.values())
        now = time.monotonic()
        if not missing or not (failed or self._interrupted) or (self._told and now < self._again):
            return
        self._since, self._again = self._since or now, now + PATIENCE
        where, all_wait = "", False
        if not self._released and self._group.can_interrupt_waits:
            where, all_wait = self._group.where(sorted(missing))
            before, self._waits = self._waits, where if all_wait else ""
            all_wait = all_wait and where == before
        if all_wait:
            self._tell_errors(answers)
            self._group._show("err", f"limosa: interrupting the others: {where}\n")
            self._pass_on(missing)
        elif not self._told and time.monotonic() - self._since >= PATIENCE:
            self._tell_errors(answers)
            where = where or self._group.where(sorted(missing))[0]
            remedy = "again ends all processes; variables are lost" if self._interrupted else "interrupts"
            self._group._show("err", f"limosa: still running: {where}\nhint: {self._group._key} {remedy}\n")

    def _tell_errors(self, answers: Mapping[int, Answer]) -> None:
        """Show the last lines of the errors that there are so far, once."""
        if self._told:
            return
        self._told = True
        errors = {
            rank: str(answer.text).strip().splitlines()[-1]
            for rank, answer in answers.items()
            if answer.kind == "error"
        }
        self._group._show("err", folded(errors))

    def is_out_of_step(self, answers: Mapping[int, Answer]) -> bool:
        """Tell whether some ranks may have taken part in a call that others have not."""
        kinds = {answer.kind == "error" for answer in answers.values()}
        return self._interrupted or self._released or len(kinds) > 1

    def interrupt(self, missing: set[int]) -> None:
        """Pass the first interrupt on; at the second end everything."""
        if self._interrupted:
            self._group.kill()
            raise GroupError("the processes were ended; their variables are lost")
        self._interrupted, self._told, self._since = True, False, None
        self._pass_on(missing)

    def _pass_on(self, missing: set[int]) -> None:
        self._released = True
        for rank in missing:
            try:
                self._group._ranks[rank].send(("interrupt",))
            except (OSError, KeyError):
                pass


def _show_plainly(stream: str, text: str) -> None:
    target = sys.stdout if stream == "out" else sys.stderr
    target.write(text)
    target.flush()
