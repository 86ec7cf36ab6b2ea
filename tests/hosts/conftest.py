"""Fixtures of the tests on several hosts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster as clusters
import pytest
from runner import Runner


@pytest.fixture(scope="session")
def needs_hosts() -> None:
    """Skips where no cluster can be made, and says what is missing."""
    reason = clusters.missing()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def hosts(needs_hosts: None) -> Iterator[clusters.Cluster]:
    """A cluster of two hosts for the tests of one file. A test that takes a host down makes a cluster of its own."""
    with clusters.Cluster(2) as made:
        yield made


@pytest.fixture
def run(hosts: clusters.Cluster, request: pytest.FixtureRequest) -> Iterator[Runner]:
    """Starts jobs, which end with the test; by files in a shared folder, unless the file of the test has a `DEVICE`."""
    runner = Runner(hosts, getattr(request.module, "DEVICE", f"file:{hosts.shared}/messages"))
    yield runner
    runner.end()


@pytest.fixture(scope="session")
def needs_fabric() -> None:
    """Skips where there is no libfabric."""
    reason = clusters.missing_fabric()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def device(request: pytest.FixtureRequest, choice: str) -> str:
    """What carries messages between hosts: each `choice` of the file of the test."""
    if choice == "fabric":
        request.getfixturevalue("needs_fabric")
    return choice


@pytest.fixture(params=["file", "fabric"])
def choice(request: pytest.FixtureRequest) -> str:
    """A device; a file of tests may have choices of its own."""
    return request.param


@pytest.fixture(scope="module")
def program(hosts: clusters.Cluster) -> Callable[[str], Path]:
    """Compiles a program of this folder where all hosts see it."""

    def build(name: str) -> Path:
        target = hosts.shared / name
        if not target.exists():
            source = Path(__file__).parent / f"{name}.c"
            include = f"-I{clusters.ROOT / 'tests' / 'conformance'}"
            command = [
                clusters.ROOT / ".venv/bin" / "mpicc",
                "-std=c11",
                "-O1",
                "-Wall",
                "-Wextra",
                include,
                source,
                "-o",
                target,
            ]
            built = subprocess.run(command, capture_output=True, text=True)
            assert built.returncode == 0, built.stderr
        return target

    return build
