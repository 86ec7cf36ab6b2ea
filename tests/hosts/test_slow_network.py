"""Jobs over a network that is slow, loses packets or carries nothing for a while: they go on, and end right."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from cluster import Cluster, Relay, environment
from jobs import Job
from test_faults_between import Talk, build
from test_launch import BIN


@pytest.fixture(params=["file:local", "fabric"])
def choice(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def relay(hosts: Cluster) -> Iterator[Relay]:
    """A relay on the cable of the second host."""
    with hosts.relay(hosts.hosts[1]) as made:
        yield made


@pytest.fixture
def talk(hosts: Cluster, relay: Relay, device: str) -> Iterator[Talk]:
    """A job whose ranks exchange messages all the time, over a network that does no harm so far."""
    job = Talk(hosts, device)
    yield job
    relay.set()
    job.job.kill()


def test_messages_come_that_take_100_ms(talk: Talk, relay: Relay) -> None:
    relay.set(delay=0.1)
    time.sleep(3)
    talk.goes_on()


def test_messages_come_although_1_percent_of_the_packets_is_lost(talk: Talk, relay: Relay) -> None:
    relay.set(drop=0.01)
    time.sleep(3)
    talk.goes_on()


def test_messages_come_after_5_seconds_without_a_network(talk: Talk, relay: Relay) -> None:
    relay.set(cut=True)
    time.sleep(5)
    relay.set()
    talk.goes_on()


def test_a_stalled_host_does_not_stop_messages_inside_another_one(hosts: Cluster, relay: Relay, device: str) -> None:
    sign = hosts.shared.parent / "cut"
    sign.unlink(missing_ok=True)
    words = [BIN / "limosa", "run", "-host", "node1:2,node2:1", build(hosts, "stalled"), sign]
    job = Job(hosts.hosts[0].command(words, folder=hosts.shared), env={**environment(), "LIMOSA_DEVICE": device})
    try:
        assert job.read_lines(1)[0].startswith("free ")
        relay.set(cut=True)
        sign.touch()
        # It comes while nothing goes to the other host.
        assert job.read_lines(1)[0].startswith("stalled ")
        relay.set()
        done = job.wait(30)
        assert (done.code, done.out, done.err) == (0, "all came\n", "")
    finally:
        job.kill()
