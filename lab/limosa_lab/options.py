"""What a measurement is asked for, and how that is recorded, so that an interrupted one can go on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from limosa_lab.errors import LabError
from limosa_lab.records import Recording


@dataclass(frozen=True)
class Options:
    """What to measure.

    Attributes
    ----------
    against
        Names of the peers.
    programs, only, ranks
        Programs or groups, benchmarks, numbers of ranks; all if empty.
    limit
        Longest time of one run in seconds, for programs that do not state their own.
    program_options
        Passed on to the programs.
    prefix
        Where Limosa is installed; None for the environment of this Python.
    before
        Where an earlier Limosa is installed, to be measured beside this one.
    model
        Of `limosa model`: what it measures.

    """

    against: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    only: list[str] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    rounds: int = 3
    limit: float = 120.0
    program_options: list[str] = field(default_factory=list)
    prefix: Path | None = None
    before: Path | None = None
    model: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def recorded(cls, recording: Recording, folder: Path) -> Options:
        """Give the options of an interrupted measurement.

        Raises
        ------
        LabError
            If it is complete, or its options are not known.

        """
        if recording.end is not None:
            raise LabError(f"the measurement in {folder} is complete", hint=f"look at it with --report {folder}")
        data = recording.environment.get("options", {})
        known = {field.name for field in fields(cls)}
        if set(data) != known:
            raise LabError(
                f"the measurement in {folder} is of another version or command, which has not recorded all its options",
                hint="begin anew with another --output",
            )
        paths = {name: Path(data[name]) if data[name] else None for name in ("prefix", "before")}
        return cls(**{**data, **paths})

    def record(self) -> dict[str, Any]:
        """Give the options as data, from which `recorded` makes them again."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
