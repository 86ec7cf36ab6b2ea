"""What a profile says: tables of one, and of two side by side. Pure functions, but for the look at source lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from limosa_lab.profile import names, waiting
from limosa_lab.profile.files import NONE, Called, Process, Profile
from limosa_lab.tables import Table
from limosa_lab.wording import listed, number, ranks, seconds, size

# Calls that set up or end something are not what a program spends its time with.
STARTS_AND_ENDS = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Session_init", "MPI_Session_finalize")
FUNCTIONS_SHOWN = 20
SITES_SHOWN = 15
# A rank whose time in MPI differs from the mean by more than this part of it is worth a sentence.
IMBALANCE = 0.2


Key = TypeVar("Key")
Words = TypeVar("Words", bound=tuple[str, ...])


@dataclass(frozen=True)
class Line:
    """A function or a place over all processes: its calls, and the time of each process."""

    called: Called
    of_processes: np.ndarray


def lines(processes: Sequence[Process]) -> dict[str, Line]:
    """Give the functions, the one that took most time first."""
    return _lines([process.functions for process in processes])


def _lines(found: Sequence[dict[Key, Called]]) -> dict[Key, Line]:
    """Add up what was found in each process, the largest time first."""
    made = {}
    for key in {key for of_process in found for key in of_process}:
        each = [of_process.get(key, NONE) for of_process in found]
        total = NONE
        for called in each:
            total = total.plus(called)
        made[key] = Line(total, np.array([called.seconds for called in each]))
    return dict(sorted(made.items(), key=lambda item: (-item[1].called.seconds, str(item[0]))))


def waits(processes: Sequence[Process]) -> dict[str, float]:
    """Give for each function the time beyond that of the fastest call of its size on any rank.

    That much of it is waiting for others, or for a processor or a network that others use; the rest is what a call
    takes at least.
    """
    least: dict[str, np.ndarray] = {}
    for process in processes:
        for name, shortest in process.least.items():
            least[name] = np.minimum(least.get(name, shortest), shortest)
    found: dict[str, float] = defaultdict(float)
    for process in processes:
        for name, took in process.seconds_by_size.items():
            at_least = np.where(process.sizes[name] > 0, process.sizes[name] * np.minimum(least[name], 1e9), 0.0)
            found[name] += float((took - at_least).sum())
    return dict(found)


def wall(processes: Sequence[Process]) -> float | None:
    """Give the longest time between initialisation and finalization; None if no process has finalized MPI."""
    return max((process.wall for process in processes if process.wall is not None), default=None)


def in_calls(process: Process) -> float:
    """Give the time of a process in MPI, without start and end."""
    return sum(called.seconds for name, called in process.functions.items() if name not in STARTS_AND_ENDS)


def functions(processes: Sequence[Process], shown: int | None = FUNCTIONS_SHOWN) -> Table:
    """Give the table of functions."""
    columns = [
        "function",
        "calls",
        "time",
        "of the run",
        "waiting",
        "mean",
        "longest",
        "bytes",
        "bytes a call",
        "least rank",
        "most",
    ]
    table = Table("Time in MPI functions, all ranks together", columns, words=1)
    whole = sum(process.run for process in processes if process.run is not None)
    waited = waits(processes)
    for name, line in list(lines(processes).items())[:shown]:
        called = line.called
        share = f"{100 * called.seconds / whole:.1f} %" if whole and name not in STARTS_AND_ENDS else "-"
        table.rows.append(
            [
                name,
                f"{called.calls:,}",
                seconds(called.seconds),
                share,
                f"{100 * waited.get(name, 0.0) / called.seconds:.0f} %" if called.seconds else "-",
                seconds(called.seconds / called.calls),
                seconds(called.longest),
                amount(called.bytes),
                amount(called.bytes / called.calls) if called.bytes else "-",
                seconds(float(line.of_processes.min())),
                seconds(float(line.of_processes.max())),
            ]
        )
    return table


def objects(processes: Sequence[Process], shown: int = 10) -> Table:
    """Give the table of functions by communicator, window or file, which are named by their handles."""
    table = Table("By communicator, window and file", ["function", "object", "calls", "time", "bytes"], words=2)
    sums: dict[tuple[str, str], Called] = {}
    for process in processes:
        for (name, kind, handle), called in process.objects.items():
            key = (name, named(kind, handle))
            sums[key] = sums.get(key, NONE).plus(called)
    for (name, said), called in sorted(sums.items(), key=lambda item: -item[1].seconds)[:shown]:
        table.rows.append([name, said, f"{called.calls:,}", seconds(called.seconds), amount(called.bytes)])
    return table


def sites(processes: Sequence[Process], shown: int | None = SITES_SHOWN, callers: int = 0) -> Table:
    """Give the table of functions by the place of the program that has called them."""
    columns = ["called at", "function", "calls", "time", "of MPI", "bytes", "least rank", "most"]
    table = Table("By place of the program, all ranks together", columns, words=2)
    whole = sum(in_calls(process) for process in processes)
    for (place, name), line in list(_by_place(processes, callers).items())[:shown]:
        called, each = line.called, line.of_processes
        share = f"{100 * called.seconds / whole:.1f} %" if whole else "-"
        cells = [place, name, f"{called.calls:,}", seconds(called.seconds), share, amount(called.bytes)]
        table.rows.append([*cells, seconds(float(each.min())), seconds(float(each.max()))])
    return table


def _by_place(processes: Sequence[Process], callers: int = 0) -> dict[tuple[str, str], Line]:
    """Give the functions by the place that has called them, the largest time first."""
    by_process = []
    for process, said in zip(processes, names.places((process.places for process in processes), callers)):
        sums: dict[tuple[str, str], Called] = {}
        for (name, site), called in process.sites.items():
            if name not in STARTS_AND_ENDS:
                key = (shortened(said.get(site, "?")), name)
                sums[key] = sums.get(key, NONE).plus(called)
        by_process.append(sums)
    return _lines(by_process)


def waiting_table(processes: Sequence[Process], shown: int = SITES_SHOWN) -> Table:
    """Give the table of waits for other ranks, if the calls were recorded one by one."""
    columns = ["waited for", "called at", "function", "times", "waited", "of", "mostly", "for"]
    table = Table("Waiting for other ranks, of the calls that were recorded one by one", columns, words=3)
    found = waiting.find(processes)
    if found is None:
        return table
    by_rank = {process.rank: index for index, process in enumerate(processes)}
    said = names.places(process.places for process in processes)
    groups: dict[tuple[str, str, str], list[waiting.Waited]] = defaultdict(list)
    for wait in found.waits:
        groups[wait.kind, said[by_rank[wait.rank]].get(wait.site, "?"), wait.function].append(wait)
    for (kind, place, function), together in sorted(groups.items(), key=lambda item: -_waited(item[1]))[:shown]:
        ranks_waiting: dict[int, float] = {}
        ranks_awaited: dict[int, float] = {}
        for wait in together:
            ranks_waiting[wait.rank] = ranks_waiting.get(wait.rank, 0.0) + wait.seconds
            ranks_awaited[wait.awaited] = ranks_awaited.get(wait.awaited, 0.0) + wait.seconds
        most = [f"rank {max(of, key=lambda rank: of[rank])}" for of in (ranks_waiting, ranks_awaited)]
        whole = seconds(sum(wait.of for wait in together))
        table.rows.append(
            [kind, shortened(place), function, f"{len(together):,}", seconds(_waited(together)), whole, *most]
        )
    return table


def _waited(together: Sequence[waiting.Waited]) -> float:
    return sum(wait.seconds for wait in together)


def shortened(place: str) -> str:
    """Give a place, and its callers, with the last two parts of their files' paths."""
    parts = (re.match(r"(.*?)(:\d+ in .*)?$", part) for part in place.split(names.CALLED_BY))
    return names.CALLED_BY.join("/".join(p[1].split("/")[-2:]) + (p[2] or "") for p in parts if p)


def named(kind: str, handle: int) -> str:
    """Name an object: the predefined communicators by name, others by the number of their handle."""
    predefined = {0x101: "MPI_COMM_WORLD", 0x102: "MPI_COMM_SELF"}
    return predefined[handle] if kind == "communicator" and handle in predefined else f"{kind} {handle:#x}"


def processes_table(processes: Sequence[Process]) -> Table:
    """Give the table of ranks."""
    columns = ["rank", "host", "threads", "run", "in MPI", "share", "calls", "messages sent", "bytes sent"]
    table = Table(
        "Ranks; the time in MPI is that of all threads that call MPI, and the share that of theirs", columns, words=2
    )
    for process in processes:
        time = in_calls(process)
        sent = list(process.peers.values())
        table.rows.append(
            [
                process.name,
                process.host,
                f"{process.threads}",
                "not finalized" if process.wall is None else seconds(process.wall),
                seconds(time),
                f"{100 * time / process.run:.1f} %" if process.run else "-",
                f"{sum(called.calls for called in process.functions.values()):,}",
                f"{sum(messages for messages, _ in sent):,}",
                amount(sum(carried for _, carried in sent)),
            ]
        )
    return table


def sizes(processes: Sequence[Process]) -> Table:
    """Give how many calls had how many bytes, for the functions with the most bytes."""
    table = Table("Calls by bytes", ["function", "bytes", "calls"], words=2)
    most = sorted(lines(processes).items(), key=lambda item: -item[1].called.bytes)[:5]
    for name, line in most:
        if not line.called.bytes:
            continue
        counts = np.sum([process.sizes[name] for process in processes if name in process.sizes], axis=0)
        for k in map(int, np.flatnonzero(counts)):
            low, high = (0, 0) if k == 0 else (1 << (k - 1), (1 << k) - 1)
            said = size(low) if low == high else f"{size(low)} to {size(high + 1)}"
            table.rows.append([name, said, f"{counts[k]:,}"])
    return table


def matrix(processes: Sequence[Process]) -> np.ndarray | None:
    """Give the bytes that each rank has sent to each; None if no ranks are known."""
    known = [process for process in processes if process.rank is not None]
    if not known:
        return None
    count = max(max(process.size or 0, (process.rank or 0) + 1) for process in known)
    found = np.zeros((count, count))
    for process in known:
        for to, (_, carried) in process.peers.items():
            if to < count:
                found[process.rank, to] += carried
    return found


def answer(processes: Sequence[Process]) -> str:
    """Say in a few sentences what the program spent its time with."""
    times = np.array([in_calls(process) for process in processes])
    whole = wall(processes)
    said = f"{ranks(len(processes))}"
    if whole:
        threads = [process.threads for process in processes]
        had = whole * float(np.mean(threads))
        said += f" ran for {seconds(whole)}, of which {100 * float(times.mean()) / had:.0f} % in MPI"
        if max(threads) > 1:
            most = f"{max(threads)}" if min(threads) == max(threads) else f"up to {max(threads)}"
            said += f", counted over {most} threads of a rank"
    said += "."
    first = [(name, line) for name, line in lines(processes).items() if name not in STARTS_AND_ENDS][:1]
    if first and times.sum() > 0:
        name, line = first[0]
        said += f" {name} took {100 * line.called.seconds / float(times.sum()):.0f} % of the time in MPI."
        waited = sum(took for name, took in waits(processes).items() if name not in STARTS_AND_ENDS)
        said += f" Of all time in MPI, {100 * waited / float(times.sum()):.0f} % was waiting."
    mean = float(times.mean())
    apart = [
        process.name for process, time in zip(processes, times, strict=True) if abs(time - mean) > IMBALANCE * mean
    ]
    if mean > 0 and whole and mean > 0.01 * whole and apart:
        said += f" The load is not balanced: {listed(apart[:4])} differ{'s' if len(apart) == 1 else ''} from the mean "
        said += f"({seconds(float(times.min()))} to {seconds(float(times.max()))} in MPI)."
    return said


def troubles(processes: Profile) -> list[str]:
    """Say what is missing."""
    said = [*processes.left_out]
    full = [process.name for process in processes if process.refused]
    if full:
        said.append(f"There was no room for all calls of {listed(full[:8])}: the disk is full, or files are limited.")
    ended = [process.name for process in processes if process.wall is None]
    if ended:
        said.append(f"{listed(ended[:8])} did not call MPI_Finalize: the profile ends with the last call.")
    lost = sum(process.lost for process in processes)
    if lost:
        said.append(f"{lost:,} calls are missing in the trace: there was no room (--profile-events).")
    sizes_known = {process.size for process in processes if process.size}
    for count in sizes_known:
        there = {process.rank for process in processes}
        gone = [f"rank {rank}" for rank in range(count) if rank not in there]
        if gone:
            said.append(f"There is no profile of {listed(gone[:8])}.")
    return said


def tables(processes: Sequence[Process], callers: int = 0) -> list[Table]:
    """Give all tables of a profile."""
    made = [
        functions(processes),
        sites(processes, callers=callers),
        waiting_table(processes),
        processes_table(processes),
        objects(processes),
        sizes(processes),
    ]
    return [table for table in made if table.rows]


def compare(first: Sequence[Process], second: Sequence[Process], titles: tuple[str, str]) -> list[Table]:
    """Give two profiles side by side: by function, and by place of the program.

    The ratio is the second's mean time of a call to the first's, so that it does not depend on how often a function was
    called, or in how many ranks.
    """
    one, other = ({(name,): line for name, line in lines(of).items()} for of in (first, second))
    places = _by_place(first), _by_place(second)
    both = f"{titles[0]} and {titles[1]}"
    return [
        _compared(f"Time in MPI functions: {both}", ["function"], (one, other), titles),
        _compared(f"By place of the program: {both}", ["called at", "function"], places, titles),
    ]


def _compared(
    title: str,
    words: list[str],
    sides: tuple[Mapping[Words, Line], Mapping[Words, Line]],
    titles: tuple[str, str],
) -> Table:
    columns = [f"{what}, {title}" for what in ("calls", "mean", "time") for title in titles]
    table = Table(title, [*words, *columns, "ratio of means"], words=len(words))

    def largest(key: Words) -> float:
        return max(found[key].called.seconds for found in sides if key in found)

    for key in sorted(sides[0].keys() | sides[1].keys(), key=lambda key: (-largest(key), key)):
        both = [found[key].called if key in found else NONE for found in sides]
        means = [called.seconds / called.calls if called.calls else None for called in both]
        ratio = number(means[1] / means[0]) if means[0] and means[1] else "-"
        cells = [f"{called.calls:,}" for called in both]
        cells += ["-" if mean is None else seconds(mean) for mean in means]
        table.rows.append([*key, *cells, *(seconds(called.seconds) for called in both), ratio])
    return table


def amount(count: float) -> str:
    """Write a number of bytes with three digits: 12.3 MB (powers of 1024)."""
    for step, unit in ((1 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= step:
            return f"{number(count / step)} {unit}"
    return f"{number(count)} B"
