"""How numbers, sizes and numbers of ranks are written, the same everywhere. Pure functions."""

from collections.abc import Sequence
from pathlib import Path

FORMS = {
    "hot": "same buffers each time",
    "cold": "buffers that are not in the caches",
    "fresh": "buffers that the sender has just written",
}
"""What the forms of a benchmark mean, for captions. Not every benchmark has all of them."""

BENCHES = {
    "flag": "Flag between two processors",
    "pingpong": "Ping-pong (a message there and back, half of the time)",
    "pingping": "Ping-ping (both ranks send at once)",
    "rate": "Message rate (64 messages in a row)",
    "bidirectional": "Both directions at once (16 messages each way)",
    "multipair_pingpong": "Ping-pong of several pairs at once",
    "multipair_rate": "Message rate of several pairs at once",
    "datatype_contiguous": "Ping-pong of contiguous bytes",
    "datatype_vector": "Ping-pong of a vector datatype",
    "datatype_indexed": "Ping-pong of an indexed datatype",
    "datatype_struct": "Ping-pong of a structure datatype",
    "matching_posted": "A message among many posted receives",
    "matching_posted_reverse": "A message among many posted receives, the last one fits",
    "matching_unexpected": "A message among many unexpected ones",
    "matching_unexpected_reverse": "A message among many unexpected ones, the last one fits",
    "threads_pingpong": "Ping-pong of threads",
    "threads_rate": "Message rate of threads",
    "threads_waiting": "Ping-pong beside a thread that waits",
    "rma_put": "MPI_Put and MPI_Win_flush",
    "rma_get": "MPI_Get and MPI_Win_flush",
    "rma_accumulate": "MPI_Accumulate and MPI_Win_flush",
    "rma_fetch_and_op": "MPI_Fetch_and_op and MPI_Win_flush",
    "rma_compare_and_swap": "MPI_Compare_and_swap and MPI_Win_flush",
    "rma_fence": "MPI_Put and MPI_Win_fence of both ranks",
    "rma_pscw": "MPI_Put between MPI_Win_start and MPI_Win_complete",
    "rma_lock": "MPI_Put between MPI_Win_lock and MPI_Win_unlock",
    "rma_lock_all": "MPI_Put between MPI_Win_lock_all and MPI_Win_unlock_all",
    "rma_computing_put": "MPI_Put to a rank that computes",
    "rma_computing_get": "MPI_Get from a rank that computes",
    "rma_computing_fetch_and_op": "MPI_Fetch_and_op at a rank that computes",
    "independence_send": "MPI_Send to a rank that computes",
    "independence_receive": "MPI_Recv from a rank that computes",
    "independence_iallreduce": "MPI_Iallreduce with a rank that computes",
    "independence_ibcast": "MPI_Ibcast whose root computes",
    "overlap_transfer": "Overlap of a message with computation",
    "overlap_iallreduce": "Overlap of MPI_Iallreduce with computation",
    "overlap_ibcast": "Overlap of MPI_Ibcast with computation",
    "quiet_recv": "Ranks that wait in MPI_Recv",
    "quiet_barrier": "Ranks that wait in MPI_Barrier",
    "quiet_wakeup": "Waking a rank that sleeps",
    "io_write_plain": "pwrite of a contiguous part by each rank, without MPI",
    "io_read_plain": "pread of a contiguous part by each rank, without MPI",
    "io_write_at": "MPI_File_write_at of a contiguous part by each rank",
    "io_write_all": "MPI_File_write_at_all of a three-dimensional array",
    "io_read_all": "MPI_File_read_at_all of a three-dimensional array",
    "io_write_strided": "MPI_File_write_at of pieces of 64 bytes between those of other ranks",
    "io_write_shared": "MPI_File_write_shared",
    "spawn": "MPI_Comm_spawn of four processes",
    "spawn_disconnect": "MPI_Comm_disconnect from four spawned processes",
    "connect": "MPI_Comm_accept and MPI_Comm_connect",
    "connect_disconnect": "MPI_Comm_disconnect of groups that had connected",
    "init_finalize": "MPI_Init and MPI_Finalize",
    "start": "Start and end of a job",
    "memory": "Memory inside the library",
}
"""Titles of the benchmarks; a collective is called as in MPI."""


def bench_title(name: str) -> str:
    """Give the title of a benchmark."""
    return BENCHES.get(name) or f"MPI_{name.capitalize()}"


def number(value: float) -> str:
    """Write a number with three digits, without exponents: 0.0123, 1.23, 123, 12300."""
    if value == 0:
        return "0"
    digits = f"{value:.3g}"
    if "e" not in digits:
        return digits
    return f"{float(digits):.0f}" if abs(value) >= 1 else f"{float(digits):.9f}".rstrip("0")


def ranks(count: int) -> str:
    """Write a number of ranks: 1 rank, 8 ranks."""
    return f"{count} rank{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Write a number of bytes: 8 B, 64 KB, 4 MB (powers of 1024)."""
    for step, unit in ((1 << 20, "MB"), (1 << 10, "KB")):
        if count >= step and count % step == 0:
            return f"{count // step} {unit}"
    return f"{count} B"


def seconds(value: float) -> str:
    """Write a time in the unit that fits it: 1.23 us, 45.6 ms, 7.89 s."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{number(value / scale)} {unit}"
    return f"{number(value / 1e-6)} us"


def listed(words: Sequence[str]) -> str:
    """Write a list as in a sentence: A; A and B; A, B and C."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def distinct(folders: Sequence[Path]) -> list[str]:
    """Name folders by as many of the last parts of their paths as tell them apart."""
    paths = [folder.resolve().parts for folder in folders]

    def last(path: tuple[str, ...], count: int) -> str:
        return "/".join(part.strip("/") for part in path[-count:])

    names = []
    for path in paths:
        others = {other for other in paths if other != path}
        counts = range(1, len(path) + 1)
        count = next((k for k in counts if all(other[-k:] != path[-k:] for other in others)), len(path))
        names.append(last(path, count) or "/")
    return names
