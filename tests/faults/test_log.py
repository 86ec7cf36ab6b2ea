"""`LIMOSA_LOG`: the trace of what the library does."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

SCRIPT = """\
from mpi4py import MPI
world = MPI.COMM_WORLD
data = bytearray(1 << 20)
if world.rank == 0:
    world.Send(b"early", 1, 3)
    world.Send(data, 1, 4)
else:
    world.Probe(0, 4)  # the first message is in
    world.Recv(bytearray(5), 0, 3)
    world.Recv(data, 0, 4)
world.Barrier()
"""
LINE = re.compile(r"\[rank [01]\] \d+\.\d{6} +(?:ERROR|WARN|INFO|DEBUG|TRACE) limosa_(\w+)(?:::\w+)*: .+")


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    return file


def test_events_of_the_wanted_parts_are_lines_on_stderr(job, python, script):
    outcome = job([python, script], env={"LIMOSA_LOG": "p2p=debug,mpi=info"}).wait(30)
    assert outcome.code == 0, outcome.text
    lines = outcome.err.splitlines()
    assert all(LINE.fullmatch(line) for line in lines), outcome.err
    assert {LINE.fullmatch(line).group(1) for line in lines} == {"p2p", "mpi"}
    for rank in (0, 1):
        assert re.search(
            rf"^\[rank {rank}\] .* INFO limosa_mpi::world: rank {rank} of 2 is process \d+", outcome.err, re.MULTILINE
        )
    assert ": rendezvous: offers 1048576 bytes to 1" in outcome.err, outcome.err
    assert ": unexpected: " in outcome.err and ": matched an unexpected message" in outcome.err, outcome.err


def test_events_go_to_a_file_for_each_rank(job, python, script, tmp_path):
    outcome = job([python, script], env={"LIMOSA_LOG": "coll", "LIMOSA_LOG_FILE": str(tmp_path / "log")}).wait(30)
    assert (outcome.code, outcome.err) == (0, "")
    for rank in (0, 1):
        text = (tmp_path / f"log.{rank}").read_text()
        assert re.search(rf"^\[rank {rank}\] \S+ DEBUG limosa_coll\S+: barrier: \w+ \(\w+\)$", text, re.MULTILINE), text


def test_events_go_to_stderr_where_the_file_cannot_be_written_and_a_line_says_so(job, python, script, tmp_path):
    file = tmp_path / "missing" / "log"
    outcome = job([python, script], env={"LIMOSA_LOG": "coll", "LIMOSA_LOG_FILE": str(file)}).wait(30)
    assert outcome.code == 0, outcome.text
    for rank in (0, 1):
        told = f"limosa: LIMOSA_LOG_FILE: cannot write {file}.{rank}: No such file or directory"
        assert re.search(rf"^{re.escape(told)}.*: events go to stderr instead$", outcome.err, re.MULTILINE), outcome.err
        assert re.search(rf"^\[rank {rank}\] \S+ DEBUG limosa_coll", outcome.err, re.MULTILINE), outcome.err


def test_a_wrong_filter_is_told_once(job, python, script):
    outcome = job([python, script], env={"LIMOSA_LOG": "p2p=loud"}).wait(30)
    assert outcome.code == 0, outcome.text
    said = "`loud` in `p2p=loud` is no level: the levels are off, error, warn, info, debug, trace"
    assert outcome.err == f"limosa: warning: LIMOSA_LOG is `p2p=loud` and counts as not set: {said}\n"
