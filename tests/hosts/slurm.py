"""Slurm on a cluster of hosts: its controller on the first one, its daemon on each, and munge, by which they know each
other. They belong to the hosts and end with them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from cluster import ROOT, Cluster, environment, find_tool

#: What is needed, and the Debian packages that have it.
TOOLS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "srun": "slurm-wlm", "munged": "munge"}

#: Ranks that a host takes: more than it has processors, so that a job with several on each fits everywhere.
PROCESSORS = 4

SETTINGS = """
ClusterName=limosa
SlurmctldHost=node1
AuthType=auth/munge
AuthInfo=socket=/run/munge.socket
SlurmUser=root
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """What Slurm needs and is not here, as a sentence; `None` if all is here."""
    absent = [name for name in TOOLS if find_tool(name) is None]
    if absent:
        packages = " ".join(sorted({TOOLS[name] for name in absent}))
        return f"Slurm needs {', '.join(absent)}: sudo apt-get install {packages}"
    return None


def variables(cluster: Cluster) -> dict[str, str]:
    """The variables of programs that use this Slurm."""
    return {**environment(), "SLURM_CONF": str(cluster.shared / "slurm" / "slurm.conf")}


def start(cluster: Cluster) -> None:
    """Starts Slurm and waits until all hosts are ready for jobs."""
    folder = cluster.shared / "slurm"
    folder.mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(1024))
    nodes = "".join(
        f"NodeName={host.name} NodeAddr={host.address} CPUs={PROCESSORS} State=UNKNOWN\n" for host in cluster.hosts
    )
    (folder / "slurm.conf").write_text(SETTINGS.format(folder=folder) + nodes)
    for host in cluster.hosts:
        quiet = f"--log-file={folder}/munged-{host.name}.log --pid-file=/run/munged.pid --seed-file=/run/munge.seed"
        commands = [
            "mkdir -p /run/slurmctld /run/slurmd",
            f"munged --force --key-file={key} --socket=/run/munge.socket {quiet}",
            "slurmctld -c -i" if host is cluster.hosts[0] else "true",
            f"slurmd -N {host.name}",
        ]
        # The daemons must not keep a pipe of the test's open.
        script = f"{{ {' && '.join(commands)}; }} </dev/null >{folder}/start-{host.name}.log 2>&1"
        done = host.run("sh", "-c", script, env=variables(cluster))
        if done.returncode != 0:
            raise RuntimeError(f"Slurm does not start on {host.name}: {read(folder / f'start-{host.name}.log')}")
    wait(cluster, folder)


def wait(cluster: Cluster, folder: Path) -> None:
    """Waits until all hosts are idle."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        listed = cluster.hosts[0].run("sinfo", "--noheader", "--Node", "--format=%T", env=variables(cluster)).stdout
        if listed.split() == ["idle"] * len(cluster.hosts):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the hosts do not become ready: {listed}\n{read(folder / 'slurmctld.log')}")


def read(file: Path) -> str:
    """A log, if there is one."""
    return file.read_text(errors="replace") if file.exists() else ""


def limosa() -> Path:
    """The command of the project's environment."""
    return ROOT / ".venv" / "bin" / "limosa"
