"""The calls of a profile one by one, in the format of Chrome's trace viewer, which Perfetto opens too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from limosa_lab import output
from limosa_lab.profile import names, waiting
from limosa_lab.profile.files import Process


def write(processes: Sequence[Process], file: Path) -> bool:
    """Write the calls as a JSON file; False if none were recorded.

    A process of the trace is a rank, its threads are the rank's. Times are those of the system's monotonic clock, in
    microseconds since the first call; the clocks of other hosts are brought to that of the first one.
    """
    recorded = [process for process in processes if len(process.events)]
    if not recorded:
        return False
    offsets = waiting.clock_offsets(recorded)
    begin = min(process.first_time + offsets.get(process.host, 0.0) for process in recorded)
    places = names.places(process.places for process in recorded)
    with output.writing(file) as unfinished, unfinished.open("w") as out:
        out.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        separator = ""
        for process, said in zip(recorded, places):
            pid = process.rank if process.rank is not None else process.pid
            name = {
                "name": "process_name",
                "ph": "M",
                "pid": pid,
                "args": {"name": f"{process.name} on {process.host}"},
            }
            out.write(separator + json.dumps(name))
            separator = ",\n"
            scale = process.seconds_per_tick
            offset = offsets.get(process.host, 0.0) - begin
            starts = 1e6 * (process.clock(process.events["begin"]) + offset)
            for event, start in zip(process.events, starts.tolist()):
                call = {
                    "name": process.names[int(event["function"]) - 1],
                    "ph": "X",
                    "pid": pid,
                    "tid": int(event["thread"]),
                    "ts": round(start, 3),
                    "dur": round(1e6 * (int(event["end"]) - int(event["begin"])) * scale, 3),
                }
                call["args"] = {"called at": said.get(int(event["site"]), "?")}
                if event["bytes"]:
                    call["args"]["bytes"] = int(event["bytes"])
                if event["peer"] >= 0:
                    call["args"]["to rank"] = int(event["peer"])
                if event["source"] >= 0:
                    call["args"]["from rank"] = int(event["source"])
                out.write(separator + json.dumps(call))
        out.write("\n]}\n")
    return True
