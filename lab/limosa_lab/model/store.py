"""Models in a file: ``models.json``, written by ``limosa model`` and read by ``limosa predict``.

An object with ``format`` (1), the ``environment`` of the measurement, and ``libraries``: for each one its operations,
each with the ``model`` (its kind and its parameters), the calls that it describes (``times``, such as ``median, root
0``), the ``error`` for random messages, the ``processes`` and the ``largest`` message of the measurements, and
``confidence``, the intervals of 95 % of the model's parameters. Operations with roots by turns end in ``@turns``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from limosa_lab import output
from limosa_lab.errors import LabError
from limosa_lab.model.growth import FUNCTIONS, Growth
from limosa_lab.model.library import Operation
from limosa_lab.model.models import Hockney, Line, LinearProtocol, LogGP, Model, PerProcesses, Piecewise
from limosa_lab.model.samples import LEAST, calls_of
from limosa_lab.records import Recording

FILE_NAME = "models.json"
FORMAT = 1
_KINDS = {kind.__name__: kind for kind in (Hockney, LinearProtocol, LogGP, Piecewise, PerProcesses, Line, Growth)}


@dataclass(frozen=True)
class Stored:
    """One model of a file, with the calls that it describes and the range in which it was fitted."""

    model: Model
    error: float | None
    processes: tuple[int, ...]
    largest: int
    times: str


def write(recording: Recording, fitted: Mapping[str, Mapping[str, Operation]], folder: Path) -> Path:
    """Write the best models."""
    libraries = {
        library: {name: _stored(operation) for name, operation in operations.items()}
        for library, operations in fitted.items()
    }
    file = folder / FILE_NAME
    content = {"format": FORMAT, "environment": recording.environment, "libraries": libraries}
    return output.write(file, json.dumps(content, indent=1) + "\n")


def read(file: Path) -> tuple[dict[str, Any], dict[str, dict[str, Stored]]]:
    """Give the environment, and the models by library and operation; `file` may be the folder that holds it.

    Raises
    ------
    LabError
        If the file cannot be read, is damaged or of another format.

    """
    if file.is_dir():
        file /= FILE_NAME
    try:
        content = json.loads(file.read_text())
        if content["format"] != FORMAT:
            raise LabError(f"{file} has format {content['format']}; this version reads format {FORMAT}")
        return content["environment"], {
            library: {name: _read(name, kept) for name, kept in operations.items()}
            for library, operations in content["libraries"].items()
        }
    except OSError as error:
        raise LabError(f"cannot read {file}: {error.strerror}", hint="`limosa model` writes it") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(f"{file} is damaged: {error!r}", hint="`limosa model --report FOLDER` writes it anew") from None


def _read(name: str, kept: Mapping[str, Any]) -> Stored:
    # Files of earlier versions do not say which calls; their times are the least.
    times = kept.get("times", calls_of(name, LEAST))
    return Stored(_model(kept["model"]), kept["error"], tuple(kept["processes"]), int(kept["largest"]), times)


def _stored(operation: Operation) -> dict[str, Any]:
    return {
        "model": _plain(operation.best),
        "times": calls_of(operation.name, operation.statistic),
        "error": operation.error,
        "processes": sorted({point.p for point in operation.measured}),
        "largest": max(point.n for point in operation.measured),
        "confidence": {name: list(interval) for name, interval in operation.best_intervals.items()},
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        parameters = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__} | parameters
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _model(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_model(item) for item in value)
    if not isinstance(value, dict):
        return value
    data = dict(value)
    kind = _KINDS[data.pop("type")]
    made = kind(**{name: _model(item) for name, item in data.items()})
    if isinstance(made, Growth) and made.kind not in FUNCTIONS:
        raise ValueError(f"there is no function of p called {made.kind}")
    return made
