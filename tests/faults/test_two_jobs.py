"""Two jobs of one user that meet by a port: what they do together, and what becomes of one when its partner dies."""

from __future__ import annotations

import re
import signal

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

PATIENCE = 120
HANG_CODE = 86
ABORT = ["--on-hang=abort"]
SILENT = ["--on-hang=off"]
VARIANTS = [
    {},
    {"LIMOSA_DEVICE": "messages"},
    {"LIMOSA_HOSTS": "2"},
    {"LIMOSA_CMA": "0"},
    {"LIMOSA_WAIT": "block"},
    {"LIMOSA_WAIT": "poll"},
]


@pytest.fixture
def service(tmp_path):
    """The name of a service that no other test has: all jobs of a user see it."""
    return f"limosa-test-{tmp_path}"


def meets(outcome) -> None:
    assert (outcome.code, outcome.out) == (0, "met\n"), outcome.text


@pytest.mark.parametrize("env", VARIANTS, ids=str)
def test_two_jobs_work_together(job, program, service, env):
    server = job([program("two_jobs"), "serve", service, "2"], n=2, env=env)
    client = job([program("two_jobs"), "call", service, "2"], n=3, env=env)
    meets(client.wait(PATIENCE))
    meets(server.wait(PATIENCE))


def test_two_jobs_meet_again_and_again(job, program, service):
    server = job([program("two_jobs"), "serve", service, "50"], n=2)
    client = job([program("two_jobs"), "call", service, "50"], n=3)
    meets(client.wait(PATIENCE))
    meets(server.wait(PATIENCE))


def test_a_server_accepts_several_clients(job, program, service):
    server = job([program("two_jobs"), "serve", service, "6"], n=2)
    clients = [job([program("two_jobs"), "call", service, "2"], n=n) for n in (1, 2, 1)]
    for each in [*clients, server]:
        meets(each.wait(PATIENCE))


def test_the_death_of_one_job_is_an_error_in_the_other(job, program, service):
    server = job([program("two_jobs"), "serve-one-that-dies", service], n=2)
    client = job([program("two_jobs"), "die", service], n=2)
    assert client.wait(PATIENCE).code == 128 + signal.SIGKILL
    # The server goes on, and serves the next one.
    meets(job([program("two_jobs"), "call", service], n=2).wait(PATIENCE))
    meets(server.wait(PATIENCE))


@pytest.mark.parametrize("env", VARIANTS, ids=str)
def test_a_freed_send_to_a_job_that_has_ended_keeps_nobody(job, program, service, env):
    server = job([program("two_jobs"), "serve-and-leave", service], n=2, env=env)
    client = job([program("two_jobs"), "send-in-vain", service], n=2, env=env)
    meets(server.wait(PATIENCE))
    meets(client.wait(PATIENCE))


# Of two jobs that wait for each other one is told to say nothing, so that it does not depend on the machine which of
# them is first to report and to end.


@pytest.mark.parametrize("which", ["serve-and-wait", "call-and-wait"])
def test_two_jobs_that_wait_for_each_other_are_a_circle(job, program, service, which):
    roles = ["serve-and-wait", "call-and-wait"]
    jobs = {
        role: job([program("two_jobs"), role, service], n=2, options=ABORT if role == which else SILENT)
        for role in roles
    }
    outcome = jobs[which].wait(PATIENCE)
    assert outcome.code == HANG_CODE, outcome.text
    tag = 3 if which == "serve-and-wait" else 4
    found = re.search(rf"  rank 0: MPI_Recv from rank 0 of job ([0-9a-f]{{8}}), tag {tag}, on ", outcome.err)
    assert found, outcome.err
    other = found[1]
    assert f"  rank 0 of job {other}: MPI_Recv from rank 0 of job " in outcome.err, outcome.err
    circle = f"ranks of this job and of job {other} wait for each other in a circle: 0 -> 0 of job {other} -> 0\n"
    assert f"limosa: {circle}" in outcome.err, outcome.err
    assert "hint: each of them receives before it sends" in outcome.err, outcome.err


def test_a_job_that_connects_to_one_that_waits_for_it_is_in_a_circle(job, program, service):
    job([program("two_jobs"), "serve-and-wait", service], n=2, options=SILENT)
    outcome = job([program("two_jobs"), "call-again", service], n=2, options=ABORT).wait(PATIENCE)
    assert outcome.code == HANG_CODE, outcome.text
    assert re.search(
        r"  rank 0: MPI_Comm_connect at port limosa-port-[\w-]+\.\.\., where no process accepts", outcome.err
    ), outcome.err
    assert re.search(r"in a circle: 0 -> 0 of job ([0-9a-f]{8}) -> 0\n", outcome.err), outcome.err


def test_a_job_is_not_said_to_hang_while_the_other_one_computes(job, program, service):
    server = job([program("two_jobs"), "serve-and-compute", service], n=2, options=ABORT)
    client = job([program("two_jobs"), "call-and-wait", service], n=2, options=ABORT)
    for each in (client, server):
        outcome = each.wait(PATIENCE)
        assert (outcome.code, outcome.out, outcome.err) == (0, "met\n", ""), outcome.text


SERVER = """
import sys
from mpi4py import MPI

world, service, rounds = MPI.COMM_WORLD, sys.argv[1], int(sys.argv[2])
port = MPI.Open_port() if world.rank == 0 else None
if world.rank == 0:
    MPI.Publish_name(service, port)
for _ in range(rounds):
    client = world.Accept(port)
    asked = client.recv(source=0)
    client.send({"answer": sum(asked), "from": world.rank}, dest=world.rank % client.remote_size)
    assert client.allgather("server") == ["client"] * client.remote_size
    merged = client.Merge()
    assert merged.allreduce(1) == world.size + client.remote_size
    merged.Disconnect()
    client.Disconnect()
if world.rank == 0:
    MPI.Unpublish_name(service, port)
    MPI.Close_port(port)
"""

CLIENT = """
import sys, time
from mpi4py import MPI

world, service = MPI.COMM_WORLD, sys.argv[1]
port = None
while world.rank == 0 and port is None:
    try:
        port = MPI.Lookup_name(service)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_NAME, error
        time.sleep(0.005)
server = world.Connect(port)
if world.rank == 0:
    for rank in range(server.remote_size):
        server.send([rank, 40], dest=rank)
for rank in range(server.remote_size):
    if rank % world.size == world.rank:
        assert server.recv(source=rank) == {"answer": rank + 40, "from": rank}
assert server.allgather("client") == ["server"] * server.remote_size
merged = server.Merge(high=True)
assert merged.allreduce(1) == world.size + server.remote_size
merged.Disconnect()
server.Disconnect()
"""

REFUSED = """
import sys
from mpi4py import MPI

try:
    MPI.COMM_WORLD.Connect(sys.argv[1])
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_PORT
    print(error)
"""

WAITS = """
import sys
from mpi4py import MPI

port = MPI.Open_port()
print(port, flush=True)
MPI.COMM_WORLD.Accept(port).Disconnect()
"""


def test_clients_of_mpi4py_are_served_in_turn(job, python, service):
    server = job([python, "-c", SERVER, service, "3"], n=2)
    clients = [job([python, "-c", CLIENT, service], n=n) for n in (1, 2, 1)]
    for each in [*clients, server]:
        outcome = each.wait(PATIENCE)
        # A server that waits for long is reported as a doubtful case.
        assert (outcome.code, outcome.out) == (0, ""), outcome.text


def test_what_is_no_port_of_a_running_job_is_an_error(job, python):
    server = job([python, "-c", WAITS], n=1)
    [port] = server.read_lines(1)
    differs = job([python, "-c", REFUSED, port], n=1, env={"LIMOSA_CHECK": "1"}).wait(PATIENCE)
    assert differs.code == 0 and "LIMOSA_CHECK is not the same for both jobs" in differs.out, differs.text
    wrong = job([python, "-c", REFUSED, port[:-1] + "x"], n=2).wait(PATIENCE)
    assert wrong.code == 0 and wrong.out.count("there is no open port") == 2, wrong.text
    # The launcher ends after its ranks, and the port with these.
    server.process.terminate()
    server.wait(PATIENCE)
    dead = job([python, "-c", REFUSED, port], n=1).wait(PATIENCE)
    assert dead.code == 0 and "there is no open port" in dead.out, dead.text
