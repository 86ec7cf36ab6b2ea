"""What was measured and simulated, as numbers, tables and sentences. Pure functions."""

from __future__ import annotations

import functools
import json
import statistics
from pathlib import Path
from typing import Any

from limosa_lab.file_study import costs, measure, schemes
from limosa_lab.file_study import operations as counting
from limosa_lab.file_study.costs import Cost
from limosa_lab.file_study.schemes import Shape
from limosa_lab.tables import Table
from limosa_lab.wording import number, seconds, size

#: Ranks per host and numbers of ranks of the simulation: those of the paper.
PER_HOST = 32
SIMULATED = tuple(2**power for power in range(1, 14))
#: What the paper found: how many times longer a plain broadcast in the shared file system took.
PAPER = {1024: 14.3, 2048: 34.0}
#: Bytes of the arrays that are gathered.
ARRAYS = {"1 MB": 1 << 20, "1 GB": 1 << 30}


class Results:
    """What was measured."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.samples = [sample for sample in found["samples"] if "seconds" in sample]
        self.troubles = [sample for sample in found["samples"] if "trouble" in sample]
        self.costs = {name: Cost(**cost) for name, cost in found["costs"].items()}
        #: Costs of copies to another host as they are here; the simulation counts with those of `costs`.
        self.copies = {name: Cost(**cost) for name, cost in found.get("copies", {}).items()}
        self.operations: dict[str, counting.Counts] = found["operations"]
        self.environment: dict[str, Any] = found["environment"]
        self.others: list[float] = found.get("others", [])

    def times(self, bench: str, series: str, axis: str, length: int | None = None) -> dict[int, float]:
        """Give the medians over all rounds, by bytes or by ranks; `length`: of this number of bytes only."""
        chosen: dict[int, list[float]] = {}
        for sample in self.samples:
            wanted = length is None or sample["bytes"] == length
            if wanted and (sample["bench"], sample["series"]) == (bench, series):
                chosen.setdefault(sample[axis], []).extend(sample["seconds"])
        return {at: statistics.median(values) for at, values in sorted(chosen.items()) if values}

    def series(self, bench: str) -> list[str]:
        """Give the names of the series, in the order of their runs."""
        return list(dict.fromkeys(sample["series"] for sample in self.samples if sample["bench"] == bench))


def read(folder: Path) -> Results:
    """Read what a study has left in a folder."""
    return Results(json.loads((folder / measure.RESULTS).read_text()))


def answer(results: Results) -> str:
    """Say in a sentence what was found."""
    parts = []
    plain = results.times("pingpong", f"reference, {measure.MEMORY}", "bytes")
    own = results.times("pingpong", f"files, {measure.MEMORY}", "bytes")
    common = sorted(plain.keys() & own.keys())
    if common:
        small = common[0]
        parts.append(
            f"a message of {size(small)} by files takes {seconds(own[small])}, {plain[small] / own[small]:.1f} times "
            f"less than by plain message and lock files with polling ({seconds(plain[small])})"
        )
    ratio = advantage(results)[1024]
    parts.append(
        f"on 1024 processes of {1024 // PER_HOST} hosts, simulated, a broadcast that knows the hosts takes "
        f"{ratio:.1f} times less than a plain one in a shared file system (published: {PAPER[1024]})"
    )
    said = "; ".join(parts)
    return f"{said[0].upper()}{said[1:]}."


@functools.cache
def simulated(results: Results) -> dict[str, dict[int, schemes.Outcome]]:
    """Simulate all broadcasts of 32 bytes."""
    model = costs.costs(results.costs)
    return {
        name: {ranks: broadcast(Shape(ranks, PER_HOST), model, 32) for ranks in SIMULATED}
        for name, broadcast in schemes.BROADCASTS.items()
    }


def advantage(results: Results) -> dict[int, float]:
    """Give the time of a plain broadcast by shared files divided by that of a node-aware one by files of the hosts."""
    found = simulated(results)
    plain, aware = found["central files"], found["local files, node-aware"]
    return {ranks: plain[ranks].seconds / aware[ranks].seconds for ranks in SIMULATED}


def validation(results: Results) -> Table | None:
    """Compare broadcasts that were run with what the model says of them."""
    measured = {name: results.times("bcast", name, "ranks") for name in ("plain", "node-aware")}
    message = results.times("pingpong", f"files, {measure.MEMORY}", "bytes").get(32)
    inside = results.times("pingpong", "shared memory", "bytes").get(32)
    if message is None or inside is None or not measured["plain"]:
        return None
    processors = results.environment["processors"]
    table = Table(
        "Broadcasts of 32 bytes on imitated hosts of this machine: measured, and by the model",
        ["ranks", "per host", "plain", "model", "node-aware", "model"],
    )
    for ranks, plain in measured["plain"].items():
        shape = Shape(ranks, measure.per_host(ranks))
        said = [schemes.broadcast_here(shape, message, inside, processors, aware) for aware in (False, True)]
        aware = measured["node-aware"].get(ranks)
        cells = [seconds(plain), seconds(said[0]), seconds(aware) if aware else "-", seconds(said[1])]
        table.rows.append([str(ranks), str(shape.per_host), *cells])
    return table


def point_to_point(results: Results) -> Table:
    """Give the times of messages by length."""
    names = results.series("pingpong")
    found = {name: results.times("pingpong", name, "bytes") for name in names}
    table = Table("Half a round trip between two processes, measured", ["bytes", *names], words=0)
    for length in sorted({length for times in found.values() for length in times}):
        cells = [seconds(found[name][length]) if length in found[name] else "-" for name in names]
        table.rows.append([size(length), *cells])
    return table


def broadcasts(found: dict[str, dict[int, schemes.Outcome]]) -> Table:
    """Give the simulated broadcasts."""
    table = Table(f"Broadcast of 32 bytes, simulated, {PER_HOST} processes per host", ["processes", *found])
    for ranks in SIMULATED:
        table.rows.append([str(ranks), *(seconds(found[name][ranks].seconds) for name in found)])
    return table


def load(found: dict[str, dict[int, schemes.Outcome]]) -> Table:
    """Give what the broadcasts cost the shared file system."""
    names = [name for name in found if name.endswith(("files", "node-aware")) and "network" not in name]
    table = Table("Requests to the shared file system during that broadcast, simulated", ["processes", *names])
    for ranks in SIMULATED:
        table.rows.append([str(ranks), *(f"{found[name][ranks].central_requests:,}" for name in names)])
    return table


@functools.cache
def aggregated(results: Results) -> dict[str, dict[int, float]]:
    """Simulate the aggregations: seconds by number of processes."""
    model = costs.costs(results.costs)
    return {
        f"{name}, {kind} files": {
            ranks: schemes.aggregate(Shape(ranks, PER_HOST), model, total, kind == "central").seconds
            for ranks in SIMULATED
        }
        for name, total in ARRAYS.items()
        for kind in ("central", "local")
    }


def aggregation(results: Results) -> Table:
    """Give the simulated aggregations."""
    found = aggregated(results)
    columns = list(found)
    table = Table("Aggregation of a distributed array by a binary tree, simulated", ["processes", *columns])
    for ranks in SIMULATED:
        table.rows.append([str(ranks), *(seconds(times[ranks]) for times in found.values())])
    return table


def origins(results: Results) -> Table:
    """Give the costs of the simulation and where they come from."""
    table = Table("Costs of the simulation", ["cost", "seconds", "origin"], words=3)
    for name, cost in results.costs.items():
        table.rows.append([name, f"{cost.seconds:.3g}", cost.origin])
    for name, cost in results.copies.items():
        table.rows.append([f"{name}, here", f"{cost.seconds:.3g}", f"{cost.origin}; not counted with"])
    return table


def messages_of_hosts(results: Results) -> Table | None:
    """Compare broadcasts of 32 bytes on hosts that ssh reaches."""
    names = results.series("apart")
    if not names:
        return None
    found = {name: results.times("apart", name, "ranks") for name in names}
    hosts = len(results.environment["options"]["hosts"])
    table = Table(f"Broadcast of 32 bytes and a barrier on up to {hosts} hosts, measured", ["processes", *names])
    for ranks in sorted({ranks for times in found.values() for ranks in times}):
        cells = [seconds(times[ranks]) if ranks in times else "-" for times in found.values()]
        table.rows.append([str(ranks), *cells])
    return table


def gathered(results: Results) -> list[Table]:
    """Give the times in which arrays were gathered."""
    tables = []
    for length in sorted({sample["bytes"] for sample in results.samples if sample["bench"] == "agg"}):
        columns = {
            f"{series}, {way}": results.times(bench, series, "ranks", length)
            for series in results.series("agg")
            for bench, way in (("agg", "binary tree"), ("gather", "MPI_Gather"))
        }
        table = Table(f"A distributed array of {array(length)} gathered on rank 0, measured", ["processes", *columns])
        for ranks in sorted({ranks for times in columns.values() for ranks in times}):
            cells = [seconds(times[ranks]) if ranks in times else "-" for times in columns.values()]
            table.rows.append([str(ranks), *cells])
        tables.append(table)
    return tables


def array(length: int) -> str:
    """Write the length of an array: 1 MB, 1 GB."""
    return next((name for name, total in ARRAYS.items() if total == length), size(length))


def operations(results: Results) -> list[Table]:
    """Give what messages cost the file system."""
    titles = {
        "message": "Operations on the folder per message of 32 bytes (both processes), counted",
        "waiting": "Operations on the folder per second in which a process waits for a message, counted",
    }
    tables = []
    for kind, counts in results.operations.items():
        table = Table(titles[kind], ["operation", *counts], words=1)
        for call in sorted({call for calls in counts.values() for call in calls}):
            table.rows.append([call, *(number(round(calls.get(call, 0.0), 2)) for calls in counts.values())])
        table.rows.append(["all", *(number(round(sum(calls.values()), 2)) for calls in counts.values())])
        tables.append(table)
    return tables


@functools.cache
def tables(results: Results) -> list[Table]:
    """Give all tables."""
    found = simulated(results)
    made = [
        point_to_point(results),
        *operations(results),
        validation(results),
        messages_of_hosts(results),
        *gathered(results),
        broadcasts(found),
        load(found),
        aggregation(results),
        origins(results),
    ]
    return [table for table in made if table is not None]
