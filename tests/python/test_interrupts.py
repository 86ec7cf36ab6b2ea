"""Signals while ranks wait in MPI: Python's handlers run, KeyboardInterrupt ends the call, and a job always ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from jobs import LIMOSA, Job, ranks_of, until, until_ranks_wait

START = """
import json, os, signal, subprocess, sys, threading, time
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
rank = world.rank
say = lambda text: os.write(1, f"{rank}: {text}\\n".encode())

def sleeps():
    command = [os.path.join(os.path.dirname(sys.executable), "limosa"), "ps", "--format", "json"]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    own = [each for job in listed for each in job["ranks"] if each["process"] == os.getpid()]
    return any(each["state"] == "blocked" and each["since_seconds"] >= 0.1 for each in own)

def interrupt_me(number=signal.SIGINT):
    # Once the rank has waited in the library for long enough to sleep.
    def interrupt():
        while not sleeps():
            time.sleep(0.02)
        os.kill(os.getpid(), number)
    threading.Thread(target=interrupt).start()
"""

# What rank 0 waits for while it is interrupted; rank 1 waits until it may go on. What stands before a `;` comes before
# the look-out for the wait begins.
WAITS = {
    "receive": "world.Recv(np.empty(4), 1, 7)",
    "receive of a large message": "world.Recv(np.empty(1 << 20), 1, 7)",
    "receive of an object": "world.recv(source=1, tag=7)",
    "send": "world.Ssend(np.zeros(4), 1, 7)",
    "send of a large message": "world.Send(np.zeros(1 << 20), 1, 7)",
    "send and receive": "world.Sendrecv(np.zeros(1 << 20), 1, 7, np.empty(1 << 20), 1, 7)",
    "probe": "world.Probe(1, 7)",
    "wait": "pending.append(world.Irecv(kept, 1, 8)); pending[0].Wait()",
    "waitall": "pending.append(world.Irecv(kept, 1, 8)); MPI.Request.Waitall(pending)",
    "waitany": "pending.append(world.Irecv(kept, 1, 8)); MPI.Request.Waitany(pending)",
    "wait for a collective": "requests = [other.Ibarrier()]; requests[0].Wait()",
    "barrier": "other.Barrier()",
    "broadcast": "other.Bcast(np.empty(1 << 18), root=1)",
    "allreduce": "other.allreduce(1)",
    "duplicate": "other.Split(0, rank)",
}


@pytest.fixture
def start(tmp_path: Path):
    """Start a job of a program; it is killed at the end of the test."""
    jobs = []

    def started(text: str, n: int = 2, options: tuple[str, ...] = (), **env: str) -> Job:
        file = tmp_path / "script.py"
        file.write_text(START + text)
        jobs.append(Job([LIMOSA, "run", *options, "-n", str(n), str(file)], env=os.environ | env))
        return jobs[-1]

    yield started
    for job in jobs:
        job.kill()


@pytest.mark.parametrize("mode", ["auto", "poll", "block", "messages"])
def test_keyboard_interrupt_ends_every_kind_of_wait(start, mode):
    text = f"""
waits = {WAITS!r}
for name, statement in waits.items():
    other = world.Dup()
    other.Barrier()
    pending, kept = [], np.zeros(4)
    if rank == 0:
        *before, wait = statement.split("; ")
        for each in before:
            exec(each)
        try:
            interrupt_me()
            exec(wait)
            say(f"{{name}}: not interrupted")
        except KeyboardInterrupt:
            say(name)
        world.send(name, 1, 1)
        if pending:
            pending[0].Wait()  # requests are still under way
            assert kept.tolist() == [1, 2, 3, 4], kept
    else:
        assert world.recv(source=0, tag=1) == name
        assert not world.Iprobe(0, 7), "a send that was withdrawn does not arrive"
        if "Irecv" in statement:
            world.Send(np.arange(1.0, 5.0), 0, 8)
        if name == "wait for a collective":
            other.Ibarrier()
say("done")
"""
    env = {"LIMOSA_DEVICE": "messages"} if mode == "messages" else {"LIMOSA_WAIT": mode}
    outcome = start(text, **env).wait(60)
    assert outcome.code == 0, outcome.text
    said = [line.partition(": ")[2] for line in outcome.out.splitlines() if line.startswith("0: ")]
    assert said == [*WAITS, "done"], outcome.text


# The same for `import limosa`, of which calls with arrays like before are compiled.
VERBS = """
import limosa
verbs = {
    "recv": lambda part, x: part.recv(source=1),
    "barrier": lambda part, x: part.barrier(),
    "bcast": lambda part, x: part.bcast(x if rank else None, 1),
    "allgather": lambda part, x: part.allgather(x),
    "allreduce": lambda part, x: part.allreduce(x),
    "alltoall": lambda part, x: part.alltoall(x),
}
"""


@pytest.mark.parametrize("compiled", ["1", "0"])
def test_keyboard_interrupt_ends_calls_of_the_interface(start, compiled):
    text = """
for name, verb in verbs.items():
    part, x = limosa.world.dup(), np.ones((2, 2))
    for _ in range(3):
        part.send(x, 0) if rank and name == "recv" else verb(part, x)
    if rank == 0:
        try:
            interrupt_me()
            verb(part, x)
            say(f"{name}: not interrupted")
        except KeyboardInterrupt:
            say(name)
        limosa.world.send(name, to=1)
    else:
        assert limosa.world.recv(source=0) == name
"""
    outcome = start(VERBS + text, LIMOSA_PYTHON_FAST_PATH=compiled).wait(60)
    assert outcome.code == 0, outcome.text
    names = ["recv", "barrier", "bcast", "allgather", "allreduce", "alltoall"]
    assert outcome.out.splitlines() == [f"0: {name}" for name in names], outcome.text


def test_a_receive_whose_wait_is_interrupted_is_withdrawn(start):
    text = """
import limosa
part = limosa.world.dup()
if rank == 0:
    # Tracebacks and names keep the requests.
    requests = [part.irecv(source=1, tag=3) for _ in range(3)]
    kept = []
    for wait in (requests[0].wait, lambda: limosa.wait_any(requests[1:]), lambda: limosa.wait_all(requests)):
        try:
            interrupt_me()
            wait()
        except KeyboardInterrupt as error:
            kept.append(error)
    part.barrier()
    say([part.recv(source=1, tag=3), requests[2].wait(), part.recv(source=1, tag=3)])
else:
    part.barrier()
    for text in ("first", "second", "third"):
        part.send(text, to=0, tag=3)
"""
    outcome = start(text).wait(60)
    assert (outcome.code, outcome.out) == (0, "0: ['first', 'second', 'third']\n"), outcome.text


def test_a_handler_that_raises_nothing_runs_and_the_wait_goes_on(start):
    text = """
signal.signal(signal.SIGUSR1, lambda *_: (say("handled"), world.send("go on", 1, 2)))
if rank == 0:
    interrupt_me(signal.SIGUSR1)
    say(world.recv(source=1))
else:
    world.recv(source=0, tag=2)
    world.send("received", 0)
"""
    outcome = start(text).wait(60)
    assert (outcome.code, outcome.out) == (0, "0: handled\n0: received\n"), outcome.text


@pytest.mark.parametrize("after", [0.05, 0.5, 3])
def test_a_signal_that_does_not_wake_the_waiting_thread_is_seen(start, after):
    """Another thread gets the signal: as if it had come just before the first one fell asleep."""
    text = f"""
signal.signal(signal.SIGUSR1, lambda *_: (say("handled"), world.send("go on", 1, 2)))
number = signal.SIGUSR1

def elsewhere():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number, signal.SIGINT])
    time.sleep({after})
    signal.pthread_kill(threading.get_ident(), number)

def blocked(wanted):
    global number
    number = wanted
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    threading.Thread(target=elsewhere).start()

if rank == 0:
    blocked(signal.SIGUSR1)
    say(world.recv(source=1))
    try:
        blocked(signal.SIGINT)
        world.recv(source=1)
    except KeyboardInterrupt:
        say("interrupted")
    world.send("go on", 1, 2)
else:
    world.recv(source=0, tag=2)
    world.send("received", 0)
    world.recv(source=0, tag=2)
"""
    outcome = start(text).wait(60)
    assert (outcome.code, outcome.out) == (0, "0: handled\n0: received\n0: interrupted\n"), outcome.text


def test_an_exception_of_the_handlers_own_reaches_the_program(start):
    text = """
class Late(Exception): pass
def late(*_): raise Late("too late")
signal.signal(signal.SIGALRM, late)
if rank == 0:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        world.recv(source=1)
    except Late as error:
        say(error)
    try:
        world.Recv(np.empty(1), source=1, tag=-5)
    except MPI.Exception as error:
        say(error.Get_error_class() == MPI.ERR_TAG)
world.Barrier()
"""
    outcome = start(text).wait(60)
    assert (outcome.code, outcome.out) == (0, "0: too late\n0: True\n"), outcome.text


def test_after_an_interrupt_a_communicator_that_is_out_of_step_says_so_and_others_work(start):
    text = """
fresh = world.Dup()
if rank == 0:
    try:
        interrupt_me()
        world.Barrier()
    except KeyboardInterrupt:
        pass
    add = lambda: world.Allreduce(np.zeros(9), np.zeros(9))
    for call in (world.Barrier, lambda: world.bcast(1, 0), add, world.Split):
        try:
            call()
        except MPI.Exception as error:
            say("out of step" in str(error))
    fresh.send(None, 1, 3)
else:
    fresh.recv(source=0, tag=3)
say(fresh.allreduce(1))
"""
    outcome = start(text).wait(60)
    assert outcome.code == 0, outcome.text
    assert sorted(outcome.out.splitlines()) == ["0: 2", "0: True", "0: True", "0: True", "0: True", "1: 2"]


#: A signal is followed by a report if all ranks have waited for half a second.
WAITS_FOR_LONG = 0.5

DEADLOCK = "say('up')\nworld.recv(source=1 - rank, tag=rank)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_deadlocked_job_with_a_report(start, number):
    job = start(DEADLOCK)
    until_ranks_wait(job.process.pid, {0, 1}, WAITS_FOR_LONG)
    job.process.send_signal(number)
    outcome = job.wait(60)
    assert outcome.code == 128 + number, outcome.text
    assert "limosa: this job hangs: ranks 0, 1 wait" in outcome.err, outcome.text
    assert "tag 0" in outcome.err and "tag 1" in outcome.err
    assert ("KeyboardInterrupt" in outcome.err) == (number == signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_waiting_ranks_ignore_ends_the_job(start, number):
    job = start(f"signal.signal({int(number)}, signal.SIG_IGN)\n" + DEADLOCK)
    until_ranks_wait(job.process.pid, {0, 1}, WAITS_FOR_LONG)
    job.process.send_signal(number)
    outcome = job.wait(60)
    assert outcome.code == 128 + number, outcome.text
    assert "ranks 0, 1 still wait in MPI: ending the job" in outcome.err, outcome.text


def test_timeout_ends_a_deadlocked_job(tmp_path: Path):
    file = tmp_path / "script.py"
    file.write_text(START + DEADLOCK)
    command = ["timeout", "-s", "INT", "1000", LIMOSA, "run", "-n", "2", str(file)]
    job = Job(command)
    children = Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children")
    until(lambda: children.read_text() != "", "timeout starts nothing")
    until_ranks_wait(int(children.read_text()), {0, 1}, WAITS_FOR_LONG)
    # Its time is over when its alarm comes, wherever it comes from.
    job.process.send_signal(signal.SIGALRM)
    done = job.wait(60)
    assert done.code == 124, done.text
    assert "this job hangs" in done.err


def test_the_report_at_a_signal_and_at_a_timeout_has_the_lines_of_the_program(start):
    line = f"script.py:{(START + DEADLOCK).splitlines().index(DEADLOCK.splitlines()[-1]) + 1} in <module>"
    # No other report comes before it.
    job = start(DEADLOCK, LIMOSA_HANG_AFTER="1000")
    until_ranks_wait(job.process.pid, {0, 1}, WAITS_FOR_LONG)
    job.process.send_signal(signal.SIGTERM)
    outcome = job.wait(60)
    assert outcome.code == 128 + signal.SIGTERM and line in outcome.err, outcome.text
    job = start(DEADLOCK, options=("--timeout", "5"), LIMOSA_HANG_AFTER="1000")
    until(lambda: len(ranks_of(job.process.pid)) == 2, "the ranks do not start")
    # However long they take to come to wait: the launcher sees only then that the time is over.
    job.process.send_signal(signal.SIGSTOP)
    try:
        until_ranks_wait(job.process.pid, {0, 1}, WAITS_FOR_LONG)
    finally:
        job.process.send_signal(signal.SIGCONT)
    outcome = job.wait(60)
    assert outcome.code == 124 and line in outcome.err, outcome.text
    assert outcome.err.index(line) < outcome.err.index("the job has taken longer than 5 s")
