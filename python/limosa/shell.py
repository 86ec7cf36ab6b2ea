"""The interactive parallel session: ``limosa shell -n 4``. What is typed once runs on all ranks.

::

    $ limosa shell -n 4
    [4] >>> rank ** 2
    [0] 0
    [1] 1
    [2] 4
    [3] 9
    [4] >>> world.allreduce(rank)
    [0-3] 6

A line, or a block, is complete when Python says so; then it runs on every rank in one namespace that lasts as long as
the session. ``world``, ``rank``, ``size``, ``np``, ``MPI`` and ``limosa`` are there from the start. Output, values and
tracebacks are marked with the ranks they come from, and shown once where they are equal. After an exception the session
goes on.

==========================  ===================================================================
``%rank 2 CODE``            run the code on one rank (``%rank 0,2-3 CODE``: on some)
``%%rank 2``                run the lines that follow, up to an empty one, on one rank or some
``%restart``                end the processes and start new ones; variables are lost
``%ps``                     show what each rank is doing
``exit()`` or Ctrl-D        end the session
Ctrl-C                      interrupt all ranks; once more: end the processes and start new ones
==========================  ===================================================================

A Ctrl-C becomes KeyboardInterrupt in Python code, in sleeps, in reads, and in MPI calls that wait; variables are kept.
When a rank fails while the others wait for it, they are interrupted too. After that `world` can be used as before; a
communicator of your own, or `MPI.COMM_WORLD`, cannot be if a collective call on it was interrupted. On other libraries
(``--mpi``) a rank cannot be called back from an MPI call: then it is shown where it waits, and the second Ctrl-C helps.

``limosa shell --octave`` is the same for Octave. A piece is complete there when its blocks and brackets are closed;
other lines that begin with ``%`` are comments. When ranks stop in Octave's debugger, or ask for ``input``, the next
lines are for them, until they go on; ``%rank 1 LINE`` is for one of them.

With IPython installed, its editor, history and completion are used on a terminal; without it and for Octave, those of
Python. If standard input is no terminal, lines are taken from there, without a prompt; a block ends with an empty line
or where the next statement begins.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

from limosa._group import Answer, Group, GroupError, launcher, parse_ranks
from limosa._languages import Language, Octave, Python

__all__ = ["Session", "main"]


class Session:
    """A parallel session: processes, started again when they have ended.

    Parameters
    ----------
    size
        Number of processes.
    library
        Name of the MPI library.
    language
        What the processes run.
    """

    def __init__(self, size: int, library: str = "limosa", language: Language | None = None) -> None:
        self.size = size
        self.library = library
        self.language = language or Python()
        self.code = 0
        self._cells = 0
        self._group: Group | None = None

    def start(self) -> Group:
        """Give the processes, started now if there are none.

        Raises
        ------
        GroupError
            If they cannot be started.
        """
        if self._group is None:
            self._group = self.language.start(self.size, self.library)
            self._group.read_line = _read_line
        return self._group

    def restart(self) -> None:
        """End the processes and start new ones."""
        self.end()
        self.start()

    def end(self) -> None:
        """Let the processes leave."""
        if self._group is not None:
            self._group.end()
            self._group = None

    def execute(self, source: str) -> bool:
        """Run one complete piece of code, or one of the session's own commands.

        Returns
        -------
        bool
            False if the session is over because ``exit()`` was called on all ranks that ran the code; the exit code is
            then in `code`.
        """
        ranks = None
        if self.language.is_command(source):
            found = re.fullmatch(r"(%?%rank)(?:\s+(\S+)(?:\s(.*))?)?", source.strip(), re.DOTALL)
            if not found:
                self._command(source.strip())
                return True
            text, source = found[2] or "", found[3] or ""
            if not source.strip():
                _complain(
                    f"what should the ranks do? write {found[1]} 2 and "
                    f"{'code below it' if found[1] == '%%rank' else 'code'}"
                )
                return True
            try:
                ranks = parse_ranks(text, self.size)
            except ValueError as error:
                _complain(str(error))
                return True
        if not source.strip():
            return True
        if source.strip() in {"exit", "quit"}:
            source = f"{source.strip()}()"
        self._cells += 1
        try:
            return self._go_on(self.start().run(source, f"<cell {self._cells}>", ranks))
        except GroupError as error:
            self._group = None
            _complain(f"{error}; the next line starts new ones")
            return True

    def _go_on(self, answers: dict[int, Answer]) -> bool:
        """Look whether ranks have called ``exit``."""
        codes = {rank: answer.text for rank, answer in answers.items() if answer.kind == "exit"}
        if not codes:
            return True
        if len(codes) < self.size:
            _complain(f"exit was called on {len(codes)} of {self.size} ranks only; the session goes on")
            return True
        code = str(codes[min(codes)])
        self.code = int(code) if code.isdecimal() else 1
        if not code.isdecimal():
            _complain(code)
        return False

    def _command(self, line: str) -> None:
        """Carry out a command of the session itself."""
        if line == "%restart":
            self.restart()
        elif line == "%ps":
            subprocess.run([launcher(), "ps"])
        else:
            word = line.split(maxsplit=1)[0]
            _complain(
                f"`{word}` is not a command of this session; there are %rank RANKS CODE, %%rank RANKS, %restart and %ps"
            )

    def complete(self, text: str) -> list[str]:
        """Give the names on rank 0 that begin like this."""
        return self._group.complete(text) if self._group else []


def _read_line(prompt: str) -> str | None:
    """Give a line that a program asks for, without its end; None at the end of input."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    try:
        return input(prompt)
    except EOFError:
        print()
        return None


def _complain(text: str) -> None:
    print(f"limosa: {text}", file=sys.stderr, flush=True)


def _with_python(session: Session) -> None:
    """Read lines with what Python has."""
    if not sys.stdin.isatty():
        _run_lines(session, lambda: iter(sys.stdin.readline, ""))
        return
    _prepare_readline(session)
    with _no_interrupt_lost():
        _run_lines(session, lambda: _typed(session))


def _run_lines(session: Session, lines: Callable[[], Iterator[str]]) -> None:
    """Run lines as they come; after an interrupt begin with new ones."""
    while True:
        try:
            for piece in session.language.pieces(lines()):
                if not session.execute(piece):
                    return
            return
        except KeyboardInterrupt:  # while a line was being typed
            print("\nKeyboardInterrupt", file=sys.stderr)


@contextlib.contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """Have ``input`` on a terminal notice each Ctrl-C at once.

    ``input`` looks for interrupts only when a signal ends its wait for a key. Two of them would stay unnoticed until
    the next key:

    - One that comes while a key is handled. A thread sends another signal, which means nothing, a moment after each
      interrupt.
    - One for which the terminal discards a key that ``input`` is about to read. The terminal is told to discard
      nothing.
    """
    import termios

    terminal = sys.stdin.fileno()
    modes = termios.tcgetattr(terminal)
    termios.tcsetattr(terminal, termios.TCSADRAIN, [*modes[:3], modes[3] | termios.NOFLSH, *modes[4:]])
    main_thread = threading.get_ident()
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)

    def wake_after_interrupts() -> None:
        while received := os.read(receiver, 1):
            if received[0] == signal.SIGINT:
                for _ in range(3):
                    time.sleep(0.05)
                    signal.pthread_kill(main_thread, signal.SIGUSR1)
        os.close(receiver)

    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    threading.Thread(target=wake_after_interrupts, name="interrupts", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
        os.close(sender)
        termios.tcsetattr(terminal, termios.TCSADRAIN, modes)


def _typed(session: Session) -> Iterator[str]:
    """Give the lines that the user types; a prompt shows whether a block is open."""
    import termios

    language = session.language
    held = ""
    while True:
        try:
            line = input("... " if held else f"[{session.size}] {language.prompt} ")
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            # What was typed before the interrupt belongs to the line that is dropped.
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            raise
        held += line + "\n"
        if language.is_complete(held[:-1]):
            held = ""
        yield line


def _prepare_readline(session: Session) -> None:
    """Set up editing and completion, where Python was built with them."""
    try:
        import readline
    except ImportError:
        return
    matches: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            matches[:] = session.complete(text)
        return matches[state] if state < len(matches) else None

    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


def _with_ipython(session: Session) -> None:
    """Read pieces with IPython's editor; only the running of them is ours."""
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult
    from IPython.terminal.interactiveshell import TerminalInteractiveShell
    from IPython.terminal.prompts import Prompts, Token

    class Prompt(Prompts):  # type: ignore[misc]
        def in_prompt_tokens(self) -> list[tuple[object, str]]:
            return [
                (Token.Prompt, f"[{session.size}] In ["),
                (Token.PromptNum, str(self.shell.execution_count)),
                (Token.Prompt, "]: "),
            ]

    class Shell(TerminalInteractiveShell):  # type: ignore[misc]
        def run_cell(self, raw_cell: str, store_history: bool = False, *_: object, **__: object) -> ExecutionResult:
            result = ExecutionResult(ExecutionInfo(raw_cell, store_history, False, True, None))
            if store_history:
                self.history_manager.store_inputs(self.execution_count, raw_cell, raw_cell)
                self.execution_count += 1
            if not session.execute(raw_cell):
                self.keep_running = False
            return result

    shell = Shell.instance(
        confirm_exit=False, banner1="", prompts_class=Prompt, term_title=False, autosuggestions_provider=None
    )
    shell.Completer.use_jedi = False

    def complete(_: object, text: str) -> list[str]:
        return session.complete(text)

    shell.set_custom_completer(complete)
    shell.mainloop()


def _read(session: Session, plain: bool) -> None:
    """Read and run pieces until the end of the session."""
    if sys.stdin.isatty() and not plain and isinstance(session.language, Python):
        try:
            import IPython  # noqa: F401
        except ModuleNotFoundError:
            pass
        else:
            _with_ipython(session)
            return
    _with_python(session)


def main() -> int:
    """Read the command line and hold the session; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="limosa shell",
        description="An interactive parallel session: what is typed once runs on all ranks; output is marked with its "
        "ranks.",
        epilog="In the session: %rank 2 CODE runs code on one rank, %restart starts new processes, %ps shows what each "
        "rank is doing, "
        "Ctrl-C interrupts all ranks, exit() or Ctrl-D ends the session.",
    )
    parser.add_argument(
        "-n", "-np", "--np", type=_count, default=4, metavar="N", help="number of processes (default 4)"
    )
    parser.add_argument("--mpi", default="limosa", metavar="NAME", help="MPI library, as for `limosa run`")
    parser.add_argument("--octave", action="store_true", help="run Octave instead of Python")
    parser.add_argument("--plain", action="store_true", help="use Python's own prompt even if IPython is installed")
    options = parser.parse_args()
    session = Session(options.np, options.mpi, Octave() if options.octave else Python())
    try:
        group = session.start()
        if sys.stdin.isatty():
            print(
                f"{group.size} ranks on {session.language.version(group)}; %rank 2 CODE is for one rank, "
                f"{session.language.leave} ends"
            )
        _read(session, options.plain)
    except GroupError as error:
        _complain(str(error))
        return 3
    except KeyboardInterrupt:
        return 130
    finally:
        session.end()
    return session.code


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65536:
        raise argparse.ArgumentTypeError(f"{text}: a number of processes from 1 to 65536 is needed")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
