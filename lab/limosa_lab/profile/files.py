"""Reads what the profiler has written for each process: ``HOST.PID.profile``, ``.names`` and ``.events``.

The layout is that of ``crates/limosa-profile/src/record.rs``. A process may have been killed at any moment: then the
numbers are those of its last call. Where there was no room for a file, its end is missing. A file that is damaged, or
without any call, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limosa_lab.errors import LabError
from limosa_lab.profile import names
from limosa_lab.profile.names import Names

_HEADER = np.dtype(
    [
        ("magic", "S8"),
        *((name, "<u4") for name in ("version", "functions", "threads", "peers", "entries", "sizes")),
        *((name, "<u4") for name in ("taken", "pid", "rank", "size")),
        ("clocks", "<u8", (3, 2)),
        *((name, "<u8") for name in ("lost", "events", "chunks", "refused")),
    ]
)
_NAMED = re.compile(r"(?P<host>.+)\.(?P<pid>\d+)\.profile")
_PAGE = 4096
_NAME = 40
_CHUNK = 1024
_VERSION = 4
_KINDS = ("", "communicator", "window", "file")
_EVENT = np.dtype(
    [
        *((name, "<u8") for name in ("begin", "end")),
        ("function", "<u4"),
        *((name, "<i4") for name in ("peer", "source", "tag", "received_tag", "thread")),
        *((name, "<u8") for name in ("bytes", "object", "site", "request")),
    ]
)
# In the function of an event that is not a call, but one of the requests or messages that a call is about.
PART = 1 << 31
_WORLD = 0x101


@dataclass(frozen=True)
class Called:
    """What was recorded of a function, with one object or with all; times in seconds."""

    calls: int
    seconds: float
    bytes: int
    longest: float = 0.0

    def plus(self, other: Called) -> Called:
        """Give both together."""
        longest = max(self.longest, other.longest)
        return Called(self.calls + other.calls, self.seconds + other.seconds, self.bytes + other.bytes, longest)


NONE = Called(0, 0.0, 0)


@dataclass(frozen=True)
class Process:
    """One process.

    Attributes
    ----------
    rank, size
        In ``MPI_COMM_WORLD``; None if the process did not get so far, or uses sessions only.
    wall
        Seconds from the end of ``MPI_Init`` to the beginning of ``MPI_Finalize``; None without the latter.
    functions
        By name.
    sizes
        For each function how many calls had how many bytes: number k counts those with less than 2^k bytes and at least
        half of that.
    seconds_by_size, least
        For the same classes the time of the calls together, and of the shortest one.
    objects, sites
        By function, kind of object and handle; by function and place of the program.
    peers
        Messages and bytes sent to each rank of ``MPI_COMM_WORLD``.
    threads
        Number of threads that have called MPI.
    lost
        Calls that there was no room for among the events.
    refused
        Pieces of the file for which there was no room: the calls of a function in a thread, or all calls of a thread.
    events
        The calls one by one, in the order in which they began; `parts` are the requests and messages that they have
        started, completed or received, as events of their own.
    places
        What places of the program and communicators are.

    """

    host: str
    pid: int
    rank: int | None
    size: int | None
    wall: float | None
    functions: dict[str, Called]
    sizes: dict[str, np.ndarray]
    seconds_by_size: dict[str, np.ndarray]
    least: dict[str, np.ndarray]
    objects: dict[tuple[str, str, int], Called]
    sites: dict[tuple[str, int], Called]
    peers: dict[int, tuple[int, int]]
    threads: int
    lost: int
    refused: int
    events: np.ndarray
    parts: np.ndarray
    places: Names
    names: list[str]
    seconds_per_tick: float
    first_tick: int
    first_time: float

    def clock(self, ticks: np.ndarray) -> np.ndarray:
        """Give the seconds of the host's clock at values of the processor's counter."""
        # Differences of whole numbers first: the counter has more digits than a float.
        since = (ticks - np.uint64(self.first_tick)).astype(np.int64).astype(float)
        return self.first_time + since * self.seconds_per_tick

    def members(self, handle: int, tick: int) -> tuple[int, tuple[int, ...]]:
        """Give since when the handle has meant the communicator that it means at that time, and the members' ranks."""
        meanings = self.places.communicators.get(handle, ())
        if not meanings:
            return 0, tuple(range(self.size or 0)) if handle == _WORLD else ()
        return next((meaning for meaning in reversed(meanings) if meaning[0] <= tick), meanings[0])

    @property
    def seconds(self) -> float:
        """Time in MPI calls, of all threads together."""
        return sum(called.seconds for called in self.functions.values())

    @property
    def run(self) -> float | None:
        """Time that its threads had for MPI and everything else, together; None if it has not finalized MPI."""
        return None if self.wall is None else self.wall * max(1, self.threads)

    @property
    def name(self) -> str:
        """How the process is called in tables."""
        return _name(self.rank, self.pid, self.host)


def _name(rank: int | None, pid: int, host: str) -> str:
    return f"rank {rank}" if rank is not None else f"process {pid} on {host}"


class Profile(list[Process]):
    """The processes of a profile in the order of their ranks, and sentences about files that are left out."""

    def __init__(self, processes: Iterable[Process], left_out: Sequence[str]) -> None:
        super().__init__(processes)
        self.left_out = left_out


def read(folder: Path) -> Profile:
    """Read all processes of a profile.

    Raises
    ------
    LabError
        If there is none that can be read.

    """
    if not folder.is_dir():
        raise LabError(f"there is no folder {folder}", hint="`limosa run --profile` says where it puts its profile")
    found, errors = [], []
    for file in sorted(folder.glob("*.profile")):
        try:
            found.append(_Raw(file))
        except LabError as error:
            errors.append(error)
    if errors and not found:
        raise errors[0]
    if not found:
        raise LabError(
            f"there is no profile in {folder}",
            hint="no process of the job has called an MPI library behind the standard ABI (`limosa doctor` says more)",
        )
    known = [scale for scale in (raw.scale() for raw in found) if scale]
    # A process that was killed early has read the clocks only once; its processor's counter runs like the others'.
    usual = float(np.median(known)) if known else 1e-9
    processes = [raw.process(raw.scale() or usual) for raw in found]
    processes.sort(key=lambda process: (process.rank is None, process.rank or 0, process.pid))
    return Profile(processes, [f"{error}; it is left out" for error in errors])


class _Raw:
    """A file, as it lies there."""

    def __init__(self, file: Path) -> None:
        self.file = file
        damaged = LabError(f"{file} is damaged, incomplete or not a profile", hint="profile the job again")
        named = _NAMED.fullmatch(file.name)
        if not named:
            raise damaged
        self.host, self.pid = named["host"], int(named["pid"])
        try:
            with file.open("rb") as opened:
                start = opened.read(_HEADER.itemsize)
        except OSError as error:
            raise LabError(f"cannot read {file}: {error.strerror}") from None
        if len(start) < _HEADER.itemsize:
            raise damaged
        self.header = np.frombuffer(start, _HEADER)[0]
        if self.header["magic"] != b"LIMOPROF":
            raise damaged
        if self.header["version"] != _VERSION:
            raise LabError(
                f"{file} has version {self.header['version']}; this laboratory reads {_VERSION}",
                hint="use the laboratory of the Limosa that has recorded it",
            )
        functions, entries = int(self.header["functions"]), int(self.header["entries"])
        sizes, peers, threads = (int(self.header[name]) for name in ("sizes", "peers", "threads"))
        names_bytes = -(-functions * _NAME // _PAGE) * _PAGE
        called = [("calls", "<u8"), ("ticks", "<u8")]
        of_size = np.dtype([*called, ("shortest", "<u8")])
        object_ = [("function", "<u4"), ("kind", "<u4"), ("object", "<u8"), ("site", "<u8")]
        function = np.dtype([("sizes", of_size, (sizes,)), ("bytes", "<u8"), ("longest", "<u8")])
        block = np.dtype(
            [
                ("entries", np.dtype([*object_, *called, ("bytes", "<u8")]), (entries,)),
                ("id", "<u8"),
                ("has_more", "<u8"),
                ("has_room", "u1", (-(-functions // 8) * 8,)),
                ("peers", np.dtype([("messages", "<u8"), ("bytes", "<u8")]), (peers + 1,)),
                ("functions", function, (functions,)),
            ]
        )
        # Read, not mapped: to look at a part of a mapped file that has no room on a full disk would end this process.
        # Of a host with many threads, the file has holes of a size that is no burden.
        whole = file.read_bytes()
        if len(whole) < _PAGE + names_bytes:
            raise damaged
        text = np.frombuffer(whole, f"S{_NAME}", functions, offset=_PAGE)
        self.names = [name.decode(errors="replace") for name in text]
        self.threads = int(self.header["taken"])
        self.blocks = self._blocks(whole[_PAGE + names_bytes :], block, min(threads, self.threads), damaged)
        if not self.blocks["functions"]["sizes"]["calls"].any():
            known = int(self.header["rank"]) < 1 << 31
            who = _name(int(self.header["rank"]) if known else None, self.pid, self.host)
            raise LabError(
                f"{file} has no call of {who}", hint="there was no room for it, or the job was ended at its beginning"
            )

    def _blocks(self, content: bytes, block: np.dtype, most: int, damaged: LabError) -> np.ndarray:
        """Give the blocks of threads; the file ends behind the last piece that has got room."""
        first = block.itemsize - block["functions"].itemsize
        count = max(0, min(most, (len(content) - first) // block.itemsize + 1)) if len(content) >= first else 0
        if not count and most and len(content) and not self.header["refused"]:
            raise damaged
        blocks = np.frombuffer(content.ljust(count * block.itemsize, b"\0"), block, count)
        # What has room must be there.
        has_room = blocks["has_room"][:, : len(self.names)] != 0
        for at in range(count):
            last = np.flatnonzero(has_room[at]).max(initial=-1) + 1
            if at * block.itemsize + first + last * block["functions"].base.itemsize > len(content):
                raise damaged
        return blocks

    def scale(self) -> float | None:
        """Give the seconds of a tick, if the clocks were read twice, far enough from each other."""
        clocks = self.header["clocks"].astype(float)
        read = clocks[clocks[:, 1] > 0]
        if len(read) < 2 or read[-1, 1] - read[0, 1] < 1e5:
            return None
        return float((read[-1, 1] - read[0, 1]) * 1e-9 / (read[-1, 0] - read[0, 0]))

    def process(self, scale: float) -> Process:
        header, clocks = self.header, self.header["clocks"]
        sums = self.blocks["functions"]
        functions, sizes, of_size, least = {}, {}, {}, {}
        for number in map(int, np.flatnonzero(sums["sizes"]["calls"].sum(axis=(0, 2)))):
            of_one, name = sums[:, number], self.names[number]
            by_size = of_one["sizes"]
            sizes[name] = by_size["calls"].sum(axis=0).astype(np.int64)
            of_size[name] = by_size["ticks"].sum(axis=0) * scale
            # The file has the complement of the shortest call's ticks.
            shortest = ~by_size["shortest"] * scale
            least[name] = np.where(by_size["calls"] > 0, shortest, np.inf).min(axis=0)
            longest = float(of_one["longest"].max()) * scale
            functions[name] = Called(
                int(sizes[name].sum()), float(of_size[name].sum()), int(of_one["bytes"].sum()), longest
            )
        objects: dict[tuple[str, str, int], Called] = {}
        sites: dict[tuple[str, int], Called] = {}
        entries = self.blocks["entries"].ravel()
        for entry in entries[(entries["function"] > 0) & (entries["function"] <= len(self.names))]:
            name, kind = self.names[int(entry["function"]) - 1], int(entry["kind"])
            called = Called(int(entry["calls"]), float(entry["ticks"]) * scale, int(entry["bytes"]))
            site = (name, int(entry["site"]))
            sites[site] = sites.get(site, NONE).plus(called)
            if 0 < kind < len(_KINDS):
                key = (name, _KINDS[kind], int(entry["object"]))
                objects[key] = objects.get(key, NONE).plus(called)
        sent = self.blocks["peers"]
        messages, carried = sent["messages"].sum(axis=0), sent["bytes"].sum(axis=0)
        known = int(header["rank"]) < 1 << 31
        events = self.events()
        is_part = (events["function"] & PART) > 0
        wall = float(clocks[2, 1] - clocks[1, 1]) * 1e-9 if clocks[1, 1] and clocks[2, 1] else None
        return Process(
            host=self.host,
            pid=self.pid,
            rank=int(header["rank"]) if known else None,
            size=int(header["size"]) if known else None,
            wall=wall,
            functions=functions,
            sizes=sizes,
            seconds_by_size=of_size,
            least=least,
            objects=objects,
            sites=sites,
            peers={int(to): (int(messages[to]), int(carried[to])) for to in np.flatnonzero(messages)},
            threads=self.threads,
            lost=int(header["lost"]),
            refused=int(header["refused"]),
            events=events[~is_part],
            parts=events[is_part],
            places=names.read(self.file.with_suffix(".names")),
            names=self.names,
            seconds_per_tick=scale,
            first_tick=int(clocks[0, 0]),
            first_time=float(clocks[0, 1]) * 1e-9,
        )

    def events(self) -> np.ndarray:
        """Give all events, in the order in which they began; none if they were not recorded."""
        file = self.file.with_suffix(".events")
        count = int(self.header["chunks"]) * _CHUNK
        if not count or not file.is_file():
            return np.empty(0, _EVENT)
        count = min(count, file.stat().st_size // _EVENT.itemsize)
        events = np.fromfile(file, _EVENT, count)
        function = events["function"] & ~np.uint32(PART)
        events = events[(function > 0) & (function <= len(self.names))]
        return events[np.argsort(events["begin"], kind="stable")]
