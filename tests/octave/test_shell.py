"""`limosa shell --octave`: what is typed once runs on all ranks, on a terminal and from a pipe."""

from __future__ import annotations

import re
import subprocess

import pytest
from jobs import Job
from limosa._group import parse_ranks
from limosa._languages import Octave
from terminals import LIMOSA

PROMPT = r"\[2\] >> $"


@pytest.fixture
def session(modules, tmp_path):
    """Runs a whole session from a pipe."""

    def run(text: str, n: int = 3):
        job = Job([LIMOSA, "shell", "--octave", "-n", str(n)], stdin=subprocess.PIPE, cwd=tmp_path)
        job.process.stdin.write(text)
        job.process.stdin.close()
        job.process.stdin = None
        return job.wait(60)

    return run


def test_a_line_runs_on_all_ranks_and_equal_answers_are_folded(session):
    lines = "r = limosa_rank ();\nfor i = 1:2\n  disp (i)\nend\nr\n%rank 1 disp (x)\n%rank 0,2 r + 1\nexit\nr\n"
    outcome = session(lines)
    assert outcome.code == 0, outcome.text
    shown = ["[0-2] 1", "[0-2] 2", "[0] r = 0", "[1] r = 1", "[2] r = 2", "[0] ans = 1", "[2] ans = 3"]
    assert outcome.out.splitlines() == shown
    assert outcome.err.splitlines() == ["[1] error: 'x' undefined near line 1, column 7"]


def test_errors_have_the_stack_of_the_typed_functions_and_the_session_goes_on(session):
    outcome = session("function f ()\n  error ('no %d', 7);\nend\nf ()\n1 +* 2\nx = 5;\nx\nexit (3)\n", n=2)
    assert outcome.code == 3 and outcome.out == "[0-1] x = 5\n", outcome.text
    lines = outcome.err.splitlines()
    assert lines[:3] == ["[0-1] error: no 7", "[0-1] error: called from", "[0-1]     f at line 2"]
    assert "[0-1] error: parse error:" in lines and "session.m" not in outcome.err


def test_ranks_that_wait_for_one_that_has_failed_are_interrupted_and_the_session_lives_on(session):
    text = (
        "x = 5;\n"
        "if limosa_rank () == 0, error ('no message'), else limosa_recv (0); end\n"
        "if limosa_rank () == 0, error ('no sum'), else limosa_allreduce (1); end\n"
        "limosa_allreduce (x)\n"
    )
    outcome = session(text, n=2)
    assert outcome.out == "[0-1] ans = 10\n", outcome.text
    assert "[0] error: no message" in outcome.err and "[0] error: no sum" in outcome.err
    assert outcome.err.count("[1] error: interrupted") == 2


def test_an_exit_on_some_ranks_is_told_and_killed_ranks_are_replaced(session):
    text = "x = 1;\n%rank 1 exit\nexist ('x')\n%rank 1 kill (getpid (), 9);\nexist ('x')\n"
    outcome = session(text, n=2)
    assert outcome.out == "[0-1] ans = 1\n[0-1] ans = 0\n", outcome.text
    assert "exit was called on 1 of 2 ranks only" in outcome.err
    assert "the processes have ended (exit code 137); their variables are lost" in outcome.err


def of_ranks(text: str) -> list[str]:
    """Each line of output once for each rank that has written it."""
    lines = [re.fullmatch(r"(\[\S+\]) (.*)", line) for line in text.splitlines()]
    return sorted(f"{rank} {line[2]}" for line in lines for rank in parse_ranks(line[1], 2))


def test_a_rank_is_debugged_while_the_others_wait(session):
    text = (
        "function f (x)\n  y = 10 * x;\n  if limosa_rank () == 1, keyboard, end\n  y += limosa_allreduce (x)\nend\n"
        "f (limosa_rank ())\n"
        "y\n"
        "x = 5;\n"
        "dbcont\n"
        "z = 3\n"
    )
    outcome = session(text, n=2)
    assert of_ranks(outcome.out) == ["0 y = 5", "0 z = 3", "1 y = 10", "1 y = 15", "1 z = 3"], outcome.text


def test_lines_for_ranks_in_the_debugger_go_to_all_of_them_or_to_some(session, tmp_path):
    (tmp_path / "g.m").write_text("function g ()\n  y = limosa_rank ();\n  y\nend\n")
    outcome = session("dbstop in g at 3;\ng ()\ny += 10;\n%rank 0 y += 100;\ndbcont\nw = 1\n", n=2)
    assert of_ranks(outcome.out) == ["0 w = 1", "0 y = 110", "1 w = 1", "1 y = 11"], outcome.text
    assert "stopped in g at line 3" in outcome.err


def test_the_end_of_input_leaves_the_debugger_and_input_gets_lines(session):
    outcome = session("x = input ('how many? ')\n7\nkeyboard\n", n=2)
    assert of_ranks(outcome.out) == ["0 x = 7", "1 x = 7"] and outcome.code == 0, outcome.text


def test_a_terminal_has_prompts_history_and_an_editor(modules, terminal):
    session = terminal("--octave")
    session.until(PROMPT, 200)
    session.type("limosa_rank () + 5\r")
    session.until(r"\[0\] ans = 5\n\[1\] ans = 6\n")
    session.until(PROMPT)
    session.type("\x1b[A\x7f7\r")  # the line before, with a 7 for its last character
    session.until(r"\[0\] ans = 7\n\[1\] ans = 8\n")
    session.until(PROMPT)
    session.type("limosa_allred\t")
    session.until("limosa_allreduce")
    session.type(" (2)\r")
    session.until(r"\[0-1\] ans = 4\n")
    session.until(PROMPT)
    session.type("for i = 1:2\r")
    session.until(r"\.\.\. $")
    session.type("i * 10\rend\r")
    session.until(r"\[0-1\] ans = 10\n\[0-1\] ans = 20\n")
    session.until(PROMPT)
    assert session.end("\x04") == 0


@pytest.mark.quiet
@pytest.mark.parametrize(
    "command",
    [
        "pause (60)",
        "while true, end",
        "limosa_recv (1 - limosa_rank ())",
        "if limosa_rank (), limosa_barrier (); end; while true, end",
        "disp ('x'); try, pause (60), catch, disp ('caught'), end",
    ],
)
def test_ctrl_c_ends_the_command_on_all_ranks_and_not_the_session(modules, terminal, command):
    session = terminal("--octave")
    session.until(PROMPT, 200)
    session.type("x = limosa_rank () + 5;\r")
    session.until(PROMPT)
    # All ranks are in the command, or about to enter it, when this is shown.
    session.type(f"limosa_barrier (); if limosa_rank (), disp ('up'); end; {command}\r")
    session.until(r"\[1\] up\n")
    session.type("\x03")
    session.until(r"\[0-1\] error: interrupted\n")
    session.until(PROMPT)
    session.type("limosa_allreduce (x)\r")
    session.until(r"\[0-1\] ans = 11\n")
    session.until(PROMPT)
    session.type("half a line\x03")
    session.until(PROMPT)
    session.type("exit (4)\r")
    assert session.end() == 4


def test_pieces_end_where_octave_says_so():
    whole = [
        "x = 1;",
        "if x, y = 2; end",
        "function f ()\n  x(end) = 'it''s if';\nend",
        "z = [1 2\n3 4]';",
        "do\n  x++;\nuntil x > 3",
        "s.end = 3; endpoint = s.end;",
        "% if\n",
        "x = {1, ...\n2};",
        "y = x + ...\n  2;",
        "%{\nif\n%}",
        "try\n  f\ncatch\n  g\nend_try_catch",
        "%rank 1 if x, end",
        'a = "while"; b = a\';',
    ]
    lines = "\n".join(text.rstrip("\n") for text in whole).split("\n")
    assert list(Octave().pieces(iter(lines))) == [text.rstrip("\n") for text in whole]
