"""Jobs on a cluster, for the tests of this folder."""

from __future__ import annotations

import time
from collections.abc import Callable

from cluster import ROOT, Cluster, Host, environment
from jobs import PATIENCE, Job

BIN = ROOT / ".venv" / "bin"


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Fails, and says what is not so, if it does not become so."""
    end = time.monotonic() + 24 * PATIENCE
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


class Runner:
    """Starts jobs on a cluster whose messages are files."""

    def __init__(self, cluster: Cluster, device: str) -> None:
        self.cluster = cluster
        self.device = device
        self.jobs: list[Job] = []

    def __call__(
        self, *words: object, on: Host | None = None, variables: dict[str, str] | None = None, **options
    ) -> Job:
        """Starts `limosa run` with these words on a host, the first one if none is named."""
        env = {**environment(), "LIMOSA_DEVICE": self.device, **(variables or {})}
        # Each host is to use its own /tmp.
        env.pop("TMPDIR", None)
        host = on or self.cluster.hosts[0]
        command = host.command([BIN / "limosa", "run", *words], folder=self.cluster.shared)
        self.jobs.append(Job(command, env=env, **options))
        return self.jobs[-1]

    def messages(self) -> list[str]:
        """The folders of jobs with messages, on any host."""
        folder = self.device.removeprefix("file:")
        folder = "/tmp" if folder == "local" else folder
        names = [name for host in self.cluster.hosts for name in host.run("ls", folder).stdout.split()]
        return [name for name in names if name.startswith("limosa-")]

    def nothing_stays(self) -> None:
        """No process of a job is left on any host, and no message."""
        for host in self.cluster.hosts:
            wait_until(lambda host=host: host.processes() == [], f"processes are left on {host.name}")
        wait_until(lambda: self.messages() == [], "messages are left")

    def end(self) -> None:
        """Ends all jobs."""
        for job in self.jobs:
            job.kill()
