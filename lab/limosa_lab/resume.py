"""Going on with a measurement that was interrupted: which runs it has done already.

Libraries must still be the same files, since samples of different ones must not be mixed. The options are those that
the measurement has recorded (`options`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.records import Recording, Run
from limosa_lab.schedule import Task

Key = tuple[str, str, int, tuple[str, ...], int]


def check(recording: Recording, environment: dict[str, Any], folder: Path) -> None:
    """Refuse to mix samples of different libraries."""
    for before, now in zip(recording.environment["libraries"], environment["libraries"], strict=True):
        if before.get("sha256") != now["sha256"]:
            raise LabError(
                f"{now['title']} is another library than at the beginning of the measurement in {folder}",
                hint="install that version again, or begin anew with another --output",
                code=ENVIRONMENT,
            )


def key(task: Task, library: str, round_number: int) -> Key:
    """Name a turn."""
    return library, task.program.name, task.ranks, task.benches, round_number


def done(runs: Sequence[Run]) -> dict[Key, str]:
    """Give the outcomes of the turns that were run."""
    return {(run.library, run.program, run.ranks, _benches(run.command), run.round): run.outcome for run in runs}


def _benches(command: Sequence[str]) -> tuple[str, ...]:
    """Give the benchmarks that a run was asked for."""
    return tuple(command[command.index("--only") + 1].split(",")) if "--only" in command else ()
