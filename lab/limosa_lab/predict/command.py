"""The command line of ``limosa predict``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from limosa_lab import records, studies
from limosa_lab.errors import LabError
from limosa_lab.model import samples, store
from limosa_lab.model.store import Stored
from limosa_lab.predict import networks, schedules, validation
from limosa_lab.predict.schedules import ALGORITHMS, Schedule
from limosa_lab.predict.simulation import Cluster, node_aware, simulate
from limosa_lab.tables import Table
from limosa_lab.terminal import Terminal
from limosa_lab.wording import seconds, size

EPILOG = """examples:
  limosa predict --ranks 8192 --hosts 256 bcast 32B 1MB
  limosa predict --ranks 64 --hosts 4 --network ethernet-10g --models FOLDER allreduce 1KB
  limosa predict --networks mine.json --network mine --ranks 512 --hosts 16 alltoall 64KB
  limosa predict --check FOLDER        beside what `limosa model` has measured there

Everything that it prints without --check is predicted, not measured.
"""
# Operations that go in levels: inside the hosts before the leaders of hosts, and after them. Among the leaders the
# fastest algorithm is taken.
LEVELS: Mapping[str, tuple[Schedule | None, Schedule | None]] = {
    "bcast": (None, schedules.binomial_bcast),
    "reduce": (schedules.binomial_reduce, None),
    "allreduce": (schedules.binomial_reduce, schedules.binomial_bcast),
    "barrier": (schedules.linear_gather, schedules.linear_bcast),
}
# Algorithms of more rounds are left out: they would take minutes to simulate and days to run.
MOST_ROUNDS = 20_000
_SIZE = re.compile(r"(\d+)\s*(|B|KB|MB|GB)", re.IGNORECASE)


def bytes_of(text: str) -> int:
    """Read a number of bytes: 32, 32B, 4KB, 1MB (powers of 1024)."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` is not a size such as 32B, 4KB or 1MB")
    return int(found[1]) << {"": 0, "B": 0, "KB": 10, "MB": 20, "GB": 30}[found[2].upper()]


def positive(text: str) -> int:
    """Read a number of processes or hosts."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 1 << 20:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number between 1 and 1048576")
    return value


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="limosa predict",
        description="Predict what a collective operation costs on more processes and hosts than there are.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
    )
    made.add_argument(
        "operation", nargs="?", choices=sorted(ALGORITHMS), metavar="OPERATION", help=", ".join(sorted(ALGORITHMS))
    )
    made.add_argument("sizes", nargs="*", type=bytes_of, metavar="SIZE", help="32B, 4KB, 1MB ...; a barrier has none")
    made.add_argument("--ranks", type=positive, metavar="N", help="number of processes")
    made.add_argument("--hosts", type=positive, default=1, metavar="N", help="number of hosts (default: 1)")
    made.add_argument("--network", metavar="NAME", default="ethernet-10g", help="of: " + ", ".join(networks.known()))
    made.add_argument("--networks", type=Path, metavar="FILE", help="JSON file with further networks")
    made.add_argument(
        "--models", type=Path, metavar="DIR", help="what `limosa model` has measured: for messages inside a host"
    )
    made.add_argument(
        "--check", type=Path, metavar="DIR", help="compare predictions with what `limosa model` has measured in DIR"
    )
    made.add_argument("--library", metavar="NAME", default="limosa", help="of these models (default: limosa)")
    return made


def predict(arguments: Sequence[str]) -> int:
    """Do what the command line says; give the exit code."""
    given = parser().parse_args(arguments)
    if given.check:
        return _check(given.check, given.library)
    if given.operation is None or given.ranks is None:
        raise LabError(
            "an operation and --ranks are missing", hint="for example: limosa predict --ranks 1024 --hosts 32 bcast 32B"
        )
    if given.hosts > given.ranks:
        raise LabError(f"--hosts {given.hosts}: there are only {given.ranks} ranks")
    if not given.sizes and given.operation != "barrier":
        raise LabError(f"a size is missing: limosa predict --ranks {given.ranks} {given.operation} 32B")
    known = networks.known() | (networks.read(given.networks) if given.networks else {})
    if given.network not in known:
        raise LabError(f"there is no network `{given.network}`", hint=f"known: {', '.join(known)}")
    models = _models(given.models, given.library) if given.models else {}
    send = models.get("send")
    inside = networks.from_model(send.model, send.times) if send else known["memory"]
    cluster = Cluster(given.ranks, given.hosts, inside, known[given.network])
    table = _table(given.operation, given.sizes or [0], cluster, models)
    studies.show(table.text, Terminal("limosa predict"))
    print(f"\nPredicted, not measured. Inside a host: {inside.source}.", end=" ")
    print(f"Between hosts: {cluster.between.source or given.network}." if given.hosts > 1 else "One host.")
    if given.hosts == 1 and given.operation in models:
        print(f"The column `model` is the fitted time of calls: {models[given.operation].times}.")
    return 0


def _check(folder: Path, library: str) -> int:
    """Print predictions beside the measurements in a folder."""
    recording, models = records.read(folder), _models(folder, library)
    if "send" not in models:
        raise LabError(f"{folder} has no model of MPI_Send with `{library}`", hint="measure `send` with 2 ranks, too")
    found = validation.compare(samples.of_library(recording, library), networks.from_model(models["send"].model))
    if not found:
        raise LabError(f"{folder} has no operation that can be predicted", hint=f"known: {', '.join(ALGORITHMS)}")
    title = f"{recording.titles()[library]}, one host, {samples.MEDIAN} of calls"
    studies.show(validation.table(found, title).text, Terminal("limosa predict"))
    print(f"\n{validation.answer(found, int(recording.environment['processors']))}")
    return 0


def _models(folder: Path, library: str) -> Mapping[str, Stored]:
    _, found = store.read(folder)
    if library not in found:
        raise LabError(f"{folder} has no models of `{library}`", hint=f"there are those of {', '.join(found)}")
    return found[library]


def _table(operation: str, sizes: Sequence[int], cluster: Cluster, models: Mapping[str, Stored]) -> Table:
    algorithms = ALGORITHMS[operation]
    title = (
        f"{operation}, {cluster.processes} ranks on {cluster.hosts} host{'s' if cluster.hosts > 1 else ''}, predicted"
    )
    two_levels = operation in LEVELS and 1 < cluster.hosts < cluster.processes
    fitted = cluster.hosts == 1 and operation in models
    columns = ["size", *algorithms, *(["hosts and leaders"] if two_levels else []), *(["model"] if fitted else [])]
    table = Table(title, columns)
    for n in sizes:
        row = [size(n)]
        for schedule in algorithms.values():
            is_short = _is_short(schedule, cluster.processes)
            row.append(seconds(simulate(schedule, n, cluster) * 1e-6) if is_short else "-")
        if two_levels:
            before, after = LEVELS[operation]
            short = [schedule for schedule in algorithms.values() if _is_short(schedule, cluster.hosts)]
            times = [node_aware((before, among, after), n, cluster) for among in short]
            row.append(seconds(min(times) * 1e-6))
        if fitted:
            row.append(_by_model(models[operation], n, cluster.processes))
        table.rows.append(row)
    return table


def _is_short(schedule: Schedule, p: int) -> bool:
    rounds = schedules.ROUNDS_BY_RANKS.get(schedule)
    return rounds is None or rounds(p) <= MOST_ROUNDS


def _by_model(stored: Stored, n: int, p: int) -> str:
    """Give the time by the fitted model, marked if that was not fitted to such sizes or numbers of processes."""
    outside = n > stored.largest or not min(stored.processes) <= p <= max(stored.processes)
    return seconds(stored.model.time(n, p) * 1e-6) + (" (outside)" if outside else "")
