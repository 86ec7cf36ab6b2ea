"""`limosa run --debug` with the debuggers themselves; `crates/limosa-cli/tests/run_terminal.rs` has the terminal."""

from __future__ import annotations

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

SCRIPT = """\
import sys
from mpi4py import MPI
x = MPI.COMM_WORLD.rank + 10
total = MPI.COMM_WORLD.allreduce(x)
sys.stdout.write(f"total {total}\\n")  # at once: both ranks write
assert len(sys.argv) == 1 or MPI.COMM_WORLD.rank == 0
"""


def debug(job, debugger: str, command: list, commands: str, options=(), n: int = 2):
    """The outcome of a job, one rank of which runs under the debugger, which gets these commands."""
    started = job(command, n=n, options=["--debug", debugger, *options], stdin=subprocess.PIPE)
    started.process.stdin.write(commands)
    started.process.stdin.close()
    started.process.stdin = None
    return started.wait(60)


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs Debian's gdb")
@pytest.mark.parametrize("rank", [0, 1])
def test_gdb_stops_one_rank_and_the_others_wait(job, program, rank):
    commands = "break MPI_Finalize\nrun\nbacktrace\ninfo threads\ncontinue\n"
    outcome = debug(job, "gdb", [program("scene"), "nothing"], commands, ["--rank", str(rank)], n=3)
    assert outcome.code == 0, outcome.text
    assert "Breakpoint 1, " in outcome.out and "exited normally" in outcome.out, outcome.text


def test_pdb_begins_with_the_first_line_of_a_script(job, python, script):
    for command in ([script], [python, script]):
        outcome = debug(job, "pdb", command, "break 4\nwhere\ncontinue\np x\ncontinue\n", ["--rank", "1"])
        assert outcome.code == 0, outcome.text
        assert "script.py(1)<module>()" in outcome.out and "script.py(4)<module>()" in outcome.out, outcome.text
        assert "(Pdb) 11\n" in outcome.out and outcome.out.count("total 21") == 2, outcome.text


def test_pdb_begins_with_the_first_line_of_a_module(job, script):
    outcome = debug(job, "pdb", ["-m", "script"], "next\nbreak 4\ncontinue\np x\ncontinue\n", ["-wdir", script.parent])
    assert outcome.code == 0, outcome.text
    assert "(Pdb) 10\n" in outcome.out and outcome.out.count("total 21") == 2, outcome.text


def test_pdb_stops_at_an_uncaught_exception(job, script):
    outcome = debug(job, "pdb", [script, "fail"], "continue\np x\nquit\n", ["--rank", "1"])
    assert outcome.code == 1, outcome.text
    assert "AssertionError" in outcome.err and "script.py(6)<module>()" in outcome.out, outcome.text
    assert "(Pdb) 11\n" in outcome.out, outcome.text


def test_leaving_pdb_ends_the_job(job, script):
    outcome = debug(job, "pdb", [script], "next\nnext\n")
    assert outcome.code == 1, outcome.text
    assert "limosa: the debugger of rank 0 has ended before MPI_Finalize; ending the other rank" in outcome.err


def test_languages_with_debuggers_of_their_own_are_told_so(job, tmp_path):
    (tmp_path / "x.java").write_text("")
    outcome = job([tmp_path / "x.java"], n=2, options=["--debug", "gdb"]).wait(20)
    assert outcome.code == 2 and "jdb -attach" in outcome.err, outcome.text
