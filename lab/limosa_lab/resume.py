"""Going on with a measurement that was interrupted: its options again, and which runs it has done already.

The options are those of the environment record. Libraries must still be the same files, since samples of different ones
must not be mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limosa_lab.errors import ENVIRONMENT, LabError
from limosa_lab.records import Recording, Run
from limosa_lab.schedule import Task

if TYPE_CHECKING:
    from limosa_lab.measure import Options

Key = tuple[str, str, int, tuple[str, ...], int]


def options(recording: Recording, folder: Path) -> Options:
    """Give the options of an interrupted measurement.

    Raises
    ------
    LabError
        If it is complete, or its options are not known.

    """
    from limosa_lab.measure import Options

    if recording.end is not None:
        raise LabError(f"the measurement in {folder} is complete", hint=f"look at it with --report {folder}")
    recorded = recording.environment.get("options", {})
    known = {field.name for field in fields(Options)}
    if set(recorded) != known:
        raise LabError(
            f"the measurement in {folder} is of another version or command, which has not recorded all its options",
            hint="begin anew with another --output",
        )
    paths = {name: Path(recorded[name]) if recorded[name] else None for name in ("prefix", "before")}
    return Options(**{**recorded, **paths})


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
