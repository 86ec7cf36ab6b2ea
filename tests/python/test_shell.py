"""`limosa shell`: what is typed once runs on all ranks, on a terminal and from a pipe."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jobs import Job, until, until_ranks_wait
from limosa import _group
from limosa._group import folded, label, parse_ranks
from limosa._languages import Python
from terminals import LIMOSA

# An interrupt that is typed while the machine is busy may come before the line editor is ready for it.
types_interrupts = pytest.mark.quiet


# `limosa shell` for a machine on which ranks may answer late: output waits for the same output of other ranks, nothing
# is said of ranks that are still running, and none is killed at the end.
PATIENT = """
import sys
from limosa import _group, shell
_group.TICK, _group.PATIENCE, _group.END = {tick}, 1000.0, 100.0
sys.exit(shell.main())
"""


def session(text: str, *options: str, n: int = 3, tick: float = 100.0):
    """A whole session from a pipe."""
    command = [sys.executable, "-c", PATIENT.format(tick=tick), "-n", str(n), *options]
    job = Job(command, stdin=subprocess.PIPE)
    job.process.stdin.write(text)
    job.process.stdin.close()
    job.process.stdin = None
    return job.wait(30)


@pytest.mark.parametrize("library", ["limosa", "mpich"])
def test_a_line_runs_on_all_ranks_and_equal_answers_are_folded(library):
    outcome = session(
        "rank * 10\nworld.allreduce(rank)\nx = rank\nx > 0\nnp.arange(2)\nprint('a\\nb')\nNone\n", "--mpi", library
    )
    assert outcome.code == 0, outcome.text
    assert outcome.out.splitlines() == [
        *["[0] 0", "[1] 10", "[2] 20"],
        "[0-2] 3",
        *["[0] False", "[1-2] True"],
        "[0-2] array([0, 1])",
        *["[0-2] a", "[0-2] b"],
    ]


def test_blocks_need_no_empty_line_before_the_next_statement():
    text = (
        "def f(x):\n    return x + 1\nf(rank)\nif rank == 0:\n    'no'\nelse:\n    print('others')\n"
        "values = [1,\n  2]\nvalues\n"
    )
    outcome = session(text, n=2)
    assert outcome.out.splitlines() == ["[0] 1", "[1] 2", "[1] others", "[0-1] [1, 2]"], outcome.text


def test_exceptions_are_shown_by_rank_and_the_session_goes_on():
    outcome = session("def f():\n    1 / (rank - 1)\nf()\ndef g(:\nundefined\nsize\n")
    assert outcome.code == 0
    assert outcome.out == "[0-2] 3\n"
    lines = outcome.err.splitlines()
    assert lines[0] == "[1] Traceback (most recent call last):"
    assert '[1]   File "<cell 2>", line 1, in <module>' in lines and "[1]     1 / (rank - 1)" in lines
    assert "[1] ZeroDivisionError: division by zero" in lines
    assert "[0-2] SyntaxError: invalid syntax" in lines
    assert "[0-2] NameError: name 'undefined' is not defined" in lines
    assert "limosa" not in outcome.err, "our own frames are not shown"


def test_ranks_that_wait_for_one_that_has_failed_are_interrupted_and_the_session_lives_on():
    text = (
        "x = 5\n"
        "if rank == 0:\n    raise ValueError('no message')\n"
        "else:\n    MPI.COMM_WORLD.Recv(bytearray(1), source=0, tag=7)\n\n"
        "if rank == 0:\n    raise ValueError('no sum')\nelse:\n    world.allreduce(1)\n\n"
        "world.allreduce(x)\n"
    )
    outcome = session(text, n=2, tick=_group.TICK)
    assert "[0] ValueError: no message" in outcome.err, outcome.text
    assert "limosa: interrupting the others: [1] waits in MPI_Recv" in outcome.err
    assert "[0] ValueError: no sum" in outcome.err
    assert outcome.err.count("[1] KeyboardInterrupt") == 2
    assert outcome.out == "[0-1] 10\n"


def test_no_time_is_lost_before_ranks_are_interrupted_that_wait_for_one_that_has_failed(monkeypatch):
    monkeypatch.setattr(_group, "PATIENCE", 1000.0)
    with _group.Group(3) as group:
        group.run("if rank == 0:\n    raise ValueError('no sum')\nelse:\n    world.allreduce(1)\n")
        answers = group.run("world.allreduce(rank)")
    assert [answers[rank].text for rank in range(3)] == ["3", "3", "3"]


def test_ranks_that_come_late_to_wait_for_one_that_has_failed_are_interrupted_too(monkeypatch, tmp_path):
    monkeypatch.setattr(_group, "PATIENCE", 0.0)
    shown, told = [], tmp_path / "told"

    def show(_: str, text: str) -> None:
        shown.append(text)
        if "still running" in text:
            told.touch()

    code = (
        "if rank == 0:\n    raise ValueError('no sum')\n"
        f"import os, time\nwhile not os.path.exists({str(told)!r}): time.sleep(0.01)\n"
        "world.allreduce(1)\n"
    )
    with _group.Group(2, show=show) as group:
        assert group.run(code)[1].text.endswith("KeyboardInterrupt\n")
        assert group.run("world.allreduce(rank)")[0].text == "1"
    said = "".join(shown)
    assert "limosa: still running: [1] runs" in said and "limosa: interrupting the others: [1] waits in" in said
    assert said.count("ValueError: no sum") == 2, "shortly when it was told, and in full at the end"


def test_an_interrupt_ends_calls_that_wait_and_keeps_variables_and_world():
    job = Job([LIMOSA, "shell", "-n", "2"], stdin=subprocess.PIPE)
    calls = {
        "world.recv(source=1 - rank)": {0, 1},
        "world.barrier() if rank else None": {1},
        "world.bcast(x, 1) if not rank else None": {0},
    }
    job.process.stdin.write("import os; os.getppid()\n")
    for i, (call, waiting) in enumerate(calls.items()):
        job.process.stdin.write(f"x = {i}\n{call}\n")
        job.process.stdin.flush()
        if i == 0:
            launcher = int(job.read_lines(1)[0].removeprefix("[0-1] "))
        until_ranks_wait(launcher, waiting)
        job.process.send_signal(signal.SIGINT)
        job.process.stdin.write("world.allreduce(x + rank)\n")
        job.process.stdin.flush()
        assert job.read_lines(1) == [f"[0-1] {2 * i + 1}"], call
    outcome = job.wait(30)
    assert outcome.code == 0 and "KeyboardInterrupt" in outcome.err, outcome.text


def test_one_rank_can_be_spoken_to():
    outcome = session("x = 0\n%rank 1 x = 5\nx\n%rank 0,2 x + 1\n%rank 5 x\n%rank one x\n%magic\n")
    assert outcome.out.splitlines() == ["[0,2] 0", "[1] 5", "[0,2] 1"], outcome.text
    assert "`5` names a rank that does not exist; there are ranks 0 to 2" in outcome.err
    assert "`one` names no ranks" in outcome.err
    assert "`%magic` is not a command of this session" in outcome.err


def test_some_lines_can_be_for_one_rank():
    outcome = session(
        "%%rank 1\nfor i in range(2):\n    print(i)\nx = 5\n\n'x' in globals()\n%rank 1\n%%rank 0\n\n", n=2
    )
    assert outcome.out.splitlines() == ["[1] 0", "[1] 1", "[0] False", "[1] True"], outcome.text
    assert outcome.err.count("what should the ranks do?") == 2


def test_interrupts_in_the_middle_of_output_spoil_nothing():
    job = Job([LIMOSA, "shell", "-n", "2"], stdin=subprocess.PIPE)
    for i in range(5):
        job.process.stdin.write("while True: print('x' * 100000)\n\n")
        job.process.stdin.flush()
        job.read_lines(3)
        job.process.send_signal(signal.SIGINT)
        job.process.stdin.write(f"'on {i}'\n")
        job.process.stdin.flush()
        while "x" in (line := job.read_lines(1)[0]):
            pass
        assert line == f"[0-1] 'on {i}'"
    assert job.wait(30).code == 0


def test_processes_that_died_are_replaced():
    outcome = session("x = 1\n%rank 1 import os; os.abort()\n'x' in globals()\n")
    assert "rank 1 " in outcome.err and "SIGABRT" in outcome.err
    assert "the processes have ended (exit code 134); their variables are lost" in outcome.err
    assert outcome.out == "[0-2] False\n"


def test_restart_forgets_variables():
    assert session("x = 1\n%restart\n'x' in globals()\n").out == "[0-2] False\n"


def test_exit_ends_the_session_with_its_code():
    assert session("exit(3)\nprint('not reached')\n").code == 3
    for text in ("exit\nprint('no')\n", "quit()\n"):
        outcome = session(text)
        assert (outcome.code, outcome.out) == (0, "")
    outcome = session("%rank 1 exit()\nrank\n", n=2)
    assert outcome.out == "[0] 0\n[1] 1\n" and "exit was called on 1 of 2 ranks only" in outcome.err


def test_output_of_c_code_and_of_children_is_shown_before_the_next_line(monkeypatch):
    shown: list[str] = []
    with _group.Group(1, show=lambda _, text: shown.append(text)) as group:
        group.run("import ctypes, subprocess\n")
        # On a busy machine the launcher takes its time to pass output on.
        monkeypatch.setattr(_group, "LATE", 100.0)
        for code, expected in [
            ("ctypes.CDLL(None).printf(b'from C\\n') and None\n", "[0] from C\n"),
            ("subprocess.call(['echo', 'child'])\n", "[0] child\n[0] 0\n"),
        ]:
            shown.clear()
            group.run(code)
            assert "".join(shown) == expected


def test_objects_of_classes_typed_in_travel_and_await_works():
    text = (
        "class A:\n    x = 7\nworld.bcast(A() if rank == 0 else None).x\n"
        "import asyncio\nawait asyncio.sleep(0, 'slept')\n"
    )
    assert session(text).out.splitlines() == ["[0-2] 7", "[0-2] 'slept'"]


def test_what_cannot_start_is_said():
    outcome = session("", "--mpi", "nothing")
    assert outcome.code == 3 and "there is no MPI library called `nothing`" in outcome.err
    outcome = Job([LIMOSA, "shell", "-n", "0"]).wait(30)
    assert outcome.code == 2 and "a number of processes from 1" in outcome.err


@pytest.mark.quiet
def test_waiting_ranks_take_no_processor_time_and_end_with_the_session(tmp_path):
    job = Job([LIMOSA, "shell", "-n", "2"], stdin=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)})
    job.process.stdin.write("import os\nos.getpid()\n")
    job.process.stdin.flush()
    pids = [int(line.split()[1]) for line in job.read_lines(2)]

    def rest() -> bool:
        """Whether none of them takes more than a hundredth of a second in a second: a rank that polls never does."""
        before = [processor_time(pid) for pid in pids]
        time.sleep(1.0)
        return all(processor_time(pid) - earlier <= 1 for pid, earlier in zip(pids, before))

    # They may still have had work to do after they had answered.
    until(rest, "ranks that wait take processor time")
    job.process.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the ranks outlive the session")
    assert list(tmp_path.iterdir()) == [], "the session leaves something behind"


def processor_time(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


PROMPTS = [pytest.param(["--plain"], r"\[2\] >>> $", id="plain"), pytest.param([], r"\[2\] In \[\d+\]: ", id="ipython")]


@types_interrupts
@pytest.mark.parametrize(("options", "prompt"), PROMPTS)
def test_a_terminal_has_prompts_interrupts_and_an_end(terminal, options, prompt):
    session = terminal(*options)
    session.until(prompt)
    session.type("rank\r")
    session.until(r"\[0\] 0\n\[1\] 1\n")
    session.until(prompt)
    session.type("import time; world.barrier(); print('up') if rank else None; time.sleep(60)\r")
    session.until(r"\[1\] up\n")
    session.type("\x03")
    session.until(r"\[0-1\] KeyboardInterrupt\n")
    session.until(prompt)
    session.type("world.size\r")
    session.until(r"\[0-1\] 2\n")
    session.until(prompt)
    assert session.end("\x04") == 0


@types_interrupts
def test_a_block_and_a_half_typed_line_on_a_terminal(terminal):
    session = terminal("--plain")
    session.until(r"\[2\] >>> $")
    session.type("for i in range(2):\r")
    session.until(r"\.\.\. $")
    session.type("    print(rank + i)\r\r")
    session.until(r"\[0\] 0\n\[0\] 1\n\[1\] 1\n\[1\] 2\n\[2\] >>> $")
    session.type("half a line")
    session.type("\x03")
    session.until(r"KeyboardInterrupt\n")
    session.until(r"\[2\] >>> .*$")
    session.type("exit(4)\r")
    assert session.end() == 4


@types_interrupts
def test_no_interrupt_is_lost_while_keys_arrive(terminal):
    session = terminal("--plain")
    session.until(r"\[2\] >>> $")
    for turn in range(40):
        session.type("half a line" * (turn % 20))
        session.type("\x03")
        session.until(r"KeyboardInterrupt\n")
        session.until(r"\[2\] >>> .*$")
        session.type(f"{turn} + 1000\r")
        session.until(rf"\[0-1\] {turn + 1000}\n")
        session.until(r"\[2\] >>> $")


def test_sets_of_ranks_are_written_and_read():
    for ranks, text in [([0], "[0]"), ([1, 2], "[1-2]"), ([0, 2, 3, 4, 9], "[0,2-4,9]")]:
        assert label(ranks) == text
        assert parse_ranks(text, 10) == ranks
    for text in ("", "a", "1-", "-1", "10", "0,,1"):
        with pytest.raises(ValueError, match=re.escape(f"`{text}`")):
            parse_ranks(text, 10)


def test_folding_keeps_the_order_of_the_lowest_ranks():
    assert folded({2: "b", 0: "a\nc", 1: "b", 3: ""}) == "[0] a\n[0] c\n[1-2] b\n"


def test_pieces_end_where_python_says_so():
    text = (
        'x = """\na\n"""\n@decorator\ndef f():\n    pass\n# comment\n'
        "try:\n    f()\nexcept E:\n    pass\nfinally:\n    g()\ny\n"
    )
    assert [piece.splitlines()[0] for piece in Python().pieces(iter(text.splitlines()))] == [
        'x = """',
        "@decorator",
        "try:",
        "y",
    ]
