"""Runs a script as if it were a job of some library, once, and prints the records: ``run_once.py SCRIPT LIMIT``.

A process of its own, because a run ends everything that descends from the process that started it.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from limosa_lab import catalogue, runner, schedule
from limosa_lab.libraries import Library


class Plain(Library):
    """No library: programs are started as they are."""

    name = "plain"
    title = "Plain"
    version = "1"
    compiler = ["cc"]
    binary = Path("/bin/sh")

    def launcher(self, ranks, processors):
        return ["sh"]


script = Path(sys.argv[1])
task = schedule.Task(catalogue.Program("script", script, (2,)), 2, ("some", "more"))
runner.adopt_orphans()
record, samples = runner.run(
    runner.Prepared(Plain(Path("/")), "1", 2), script, task, ["--quick"], 0, float(sys.argv[2])
)
print(json.dumps({"run": asdict(record), "samples": [asdict(sample) for sample in samples]}))
