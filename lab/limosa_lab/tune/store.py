"""The tuning file: JSON, written by ``limosa tune``, read by the launcher and by ``limosa tune --verify``.

An object with ``format`` (1), ``time``, ``machine`` (``cpu`` and ``processors``, by which it is known again), the whole
``environment`` of the measurement, and ``libraries``: for each one its ``version``, ``rows`` (Limosa) or ``rules``
(others) as the launcher hands them to the ranks, the ``entries`` with their evidence, those that were ``dropped``, and
``answer``, what it brings in a sentence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from limosa_lab import machine, output
from limosa_lab.errors import LabError
from limosa_lab.tune.rules import LEVELS, Entry, Measured, rules_text
from limosa_lab.tune.verdict import Verdict

FORMAT = 1
NAME = "tuning.json"


def usual_place() -> Path:
    """Give where the launcher looks for the file."""
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    config = given if given.is_absolute() else Path.home() / ".config"
    return config / "limosa" / NAME


def fingerprint() -> dict[str, Any]:
    """Give what the launcher knows this machine by."""
    return {"cpu": machine.cpu_model(), "processors": machine.processors()}


@dataclass(frozen=True)
class Part:
    """What the file says of one library: what is done otherwise, what was dropped and why, and what it brings."""

    title: str
    version: str
    kept: Sequence[Entry] = ()
    dropped: Sequence[tuple[Entry, str]] = ()
    answer: str = ""

    def with_verdict(self, verdict: Verdict, answer: str = "") -> Part:
        """Give the part with what a check has found."""
        return replace(self, kept=verdict.kept, dropped=verdict.dropped, answer=answer)

    def plain(self) -> dict[str, Any]:
        """Give it as data."""
        substituted = [entry for entry in self.kept if not entry.rows]
        return {
            "title": self.title,
            "version": self.version,
            "rows": [row for entry in self.kept for row in entry.rows],
            "rules": [rule for rule in rules_text(substituted).split(";") if rule],
            "entries": [asdict(entry) for entry in self.kept],
            "dropped": [asdict(entry) | {"reason": reason} for entry, reason in self.dropped],
            "answer": self.answer,
        }


def write(file: Path, environment: Mapping[str, Any], parts: Mapping[str, Part]) -> None:
    """Write the file; parts of other libraries that an earlier one of this machine has are kept.

    Raises
    ------
    LabError
        If it cannot be written.

    """
    kept = _earlier(file)
    content = {
        "format": FORMAT,
        "time": machine.now(),
        "machine": fingerprint(),
        "libraries": kept | {name: part.plain() for name, part in parts.items()},
        "environment": dict(environment),
    }
    # A launcher that reads meanwhile sees the old file or the new one.
    output.write(file, json.dumps(content, indent=1) + "\n")


def read(file: Path, *, of_any_machine: bool = False) -> dict[str, Part]:
    """Give what the file says of each library.

    Raises
    ------
    LabError
        If the file cannot be read, is damaged, or is of another format or machine.

    """
    hint = "`limosa tune` makes a new one"
    try:
        content = json.loads(file.read_text())
        if content["format"] != FORMAT:
            raise LabError(f"{file} has format {content['format']}; this version reads format {FORMAT}", hint)
        if content["machine"] != fingerprint() and not of_any_machine:
            raise LabError(f"{file} was made on another machine: {content['machine']}", hint)
        return {name: _part(name, own) for name, own in content["libraries"].items()}
    except OSError as error:
        raise LabError(f"cannot read {file}: {error.strerror}", hint) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(f"{file} is damaged: {error!r}", hint) from None


def _earlier(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
        same = content["format"] == FORMAT and content["machine"] == fingerprint()
        return dict(content["libraries"]) if same else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _part(name: str, plain: Mapping[str, Any]) -> Part:
    return Part(
        str(plain.get("title", name)),
        str(plain["version"]),
        tuple(_entry(entry) for entry in plain["entries"]),
        tuple((_entry(entry), str(entry["reason"])) for entry in plain.get("dropped", ())),
        str(plain.get("answer", "")),
    )


def _entry(plain: Mapping[str, Any]) -> Entry:
    data = {name: value for name, value in plain.items() if name != "reason"}
    evidence: Sequence[Mapping[str, Any]] = data.pop("evidence")
    rows: Sequence[str] = data.pop("rows")
    if data.get("level", "") not in ("", *LEVELS):
        raise ValueError(f"`{data['level']}` is not one of the thread levels {', '.join(LEVELS)}")
    curve = tuple((int(n), float(gain)) for n, gain in data.pop("curve", ()))
    return Entry(**data, rows=tuple(rows), evidence=tuple(Measured(**case) for case in evidence), curve=curve)
