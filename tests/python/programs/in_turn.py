"""Programs that run in turn in one job: the start of Python and NumPy costs more than most of them.

The argument is a list in JSON, of each program its file and arguments. Before a program rank 0 prints its number. A
program that ends with an error ends the job.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import limosa

limit = sys.getrecursionlimit()
for number, (file, *arguments) in enumerate(json.loads(sys.argv[1])):
    limosa.world.barrier()
    if limosa.world.rank == 0:
        print(f"program {number}", flush=True)
    sys.argv = [file, *map(str, arguments)]
    sys.path[0] = str(Path(file).parent)
    sys.setrecursionlimit(limit)
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
