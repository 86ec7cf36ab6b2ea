"""Two jobs of one user that meet by a port: what they do together, and what becomes of one when the other dies."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

PATIENCE = 120
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
