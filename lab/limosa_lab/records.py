"""What is kept of a measurement: one file of JSON lines, ``samples.jsonl``.

Each line is an object with a ``kind``:

* ``environment`` (first line): the machine, the libraries, the options; see `machine`.
* ``run``: one start of a program: library, program, ranks, round, command, seconds, how it ended.
* ``sample``: one line that a program printed, with library, program and round added; ``samples`` are its raw values.
* ``limit``: a sample of what the machine allows for a message, in each round with messages; see `limit`.
* ``resumed``: when an interrupted measurement went on, and what other programs used of the processors then.
* ``end`` (last line): time, load and what others used of the processors when everything was over. It is missing if the
  measurement was cut short.

The file is appended to after each run, so what was measured before an interruption is kept, and `resume` goes on. Lines
of unknown kind are passed over, which lets older versions read newer files.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from limosa_lab.errors import ENVIRONMENT, LabError

FILE_NAME = "samples.jsonl"


@dataclass(frozen=True)
class Run:
    """One start of a program under one library.

    Attributes
    ----------
    outcome
        ``ok``, ``time limit``, ``failed`` (a non-zero exit code) or ``wrong data`` (its own verification failed).
    seconds
        Wall time from starting the launcher to its end.
    stolen
        Seconds of processor time that the hypervisor gave to others meanwhile, all processors together.
    left_behind
        Processes that were still there after the launcher had ended, and were killed.
    errors
        The last lines of the standard error, if the run was not ``ok``.
    flag
        The flag's time before and after the run in microseconds (see `placement`), if it could be measured.
    others
        What other programs used of the processors during the run, in percent of all of them.

    """

    library: str
    program: str
    ranks: int
    round: int
    command: list[str]
    outcome: str
    exit_code: int | None
    seconds: float
    load: float
    stolen: float = 0.0
    left_behind: int = 0
    errors: str = ""
    flag: list[float] | None = None
    others: float = 0.0


@dataclass(frozen=True)
class Sample:
    """One line of a program: the samples of one benchmark at one size.

    Attributes
    ----------
    bench, form, bytes, ranks, metric, unit
        What was measured; ``form`` is one of `wording.FORMS`, ``bytes`` the message size.
    samples
        Raw values in ``unit``, one per batch of operations.
    verified
        False if the program found a wrong byte; such samples are in no statistics.
    x
        Further parameters, for example ``{"posted": 1000}``.
    flag
        As in the record of the run.

    """

    library: str
    program: str
    round: int
    bench: str
    form: str
    bytes: int
    ranks: int
    metric: str
    unit: str
    samples: list[float]
    verified: bool
    x: dict[str, Any] = field(default_factory=dict)
    flag: list[float] | None = None


@dataclass
class Recording:
    """Everything that a file of samples holds."""

    environment: dict[str, Any]
    runs: list[Run]
    samples: list[Sample]
    end: dict[str, Any] | None
    limits: list[Sample] = field(default_factory=list)

    def libraries(self) -> list[str]:
        """Names of the libraries in the order of the environment record; Limosa is the first."""
        return [str(library["name"]) for library in self.environment["libraries"]]

    def titles(self) -> dict[str, str]:
        """The written names of the libraries, by name."""
        return {str(library["name"]): str(library["title"]) for library in self.environment["libraries"]}


def parse_line(line: str, *, library: str, program: str, ranks: int, round_number: int) -> Sample:
    """Read one line that a program printed.

    Raises
    ------
    LabError
        If the line lacks something or a value has the wrong type.

    """
    try:
        data = json.loads(line)
        return Sample(
            library=library,
            program=program,
            round=round_number,
            bench=str(data["bench"]),
            form=str(data.get("form", "hot")),
            bytes=int(data.get("bytes", 0)),
            ranks=int(data.get("ranks", ranks)),
            metric=str(data["metric"]),
            unit=str(data["unit"]),
            samples=[float(value) for value in data["samples"]],
            verified=bool(data["verified"]),
            x=dict(data.get("x", {})),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"{program} printed a line that is not a measurement ({error!r}): {line[:200]}") from None


class Writer:
    """Appends records to a new file, or with `resume` to an old one, each on the disk before the next run starts.

    What cannot be written whole, because a disk is full, is not written at all: the file remains readable.
    """

    def __init__(self, folder: Path, *, resume: bool = False) -> None:
        self.path = folder / FILE_NAME
        if resume:
            _drop_unfinished_line(self.path)
        elif self.path.exists():
            raise LabError(
                f"{self.path} holds measurements already",
                hint=f"choose another folder with --output, look at the old ones with --report {folder}, or go on with "
                f"an interrupted measurement with --resume {folder}",
            )

    def record(self, kind: str, data: Run | Sample | dict[str, Any]) -> None:
        """Append one record."""
        self.record_all([(kind, data)])

    def record_all(self, records: Sequence[tuple[str, Run | Sample | dict[str, Any]]]) -> None:
        """Append records that belong together: all or none of them.

        Raises
        ------
        LabError
            If the disk is full or the folder cannot be written to.

        """
        lines = "".join(
            json.dumps({"kind": kind, **(data if isinstance(data, dict) else asdict(data))}) + "\n"
            for kind, data in records
        )
        before = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                before = file.tell()
                rest = memoryview(lines.encode())
                while rest:
                    rest = rest[file.write(rest) :]
        except OSError as error:
            if before is not None:
                with contextlib.suppress(OSError):
                    os.truncate(self.path, before)
            raise LabError(
                f"cannot write {self.path}: {error.strerror}",
                hint="what was measured before is kept; make room and go on with --resume " + str(self.path.parent),
                code=ENVIRONMENT,
            ) from None


def _drop_unfinished_line(path: Path) -> None:
    """Remove what was written of a last line when a measurement was stopped."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def read(folder: Path) -> Recording:
    """Read what a measurement left in its folder.

    Raises
    ------
    LabError
        If there is no such file, or a line of it cannot be read.

    """
    path = folder / FILE_NAME
    if not path.is_file():
        raise LabError(
            f"there is no {FILE_NAME} in {folder}", hint="give the folder that `limosa bench --output` has written"
        )
    environment: dict[str, Any] | None = None
    runs: list[Run] = []
    samples: list[Sample] = []
    limits: list[Sample] = []
    end: dict[str, Any] | None = None
    for number, (kind, data) in enumerate(_lines(path), start=1):
        try:
            if kind == "environment":
                environment = data
            elif kind == "run":
                runs.append(Run(**data))
            elif kind == "sample":
                samples.append(Sample(**data))
            elif kind == "limit":
                limits.append(Sample(**data))
            elif kind == "end":
                end = data
        except TypeError as error:
            raise LabError(f"{path}, line {number}: this is not a record of kind {kind}: {error}") from None
    if environment is None:
        raise LabError(
            f"{path} has no environment record",
            hint="the file was not written by `limosa bench`, or its beginning is lost",
        )
    return Recording(environment, runs, samples, end, limits)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open(errors="replace") as file:
        for number, line in enumerate(file, start=1):
            try:
                data = json.loads(line)
                kind = data.pop("kind")
            except (ValueError, KeyError, AttributeError):
                if not line.endswith("\n"):
                    return  # a measurement that was stopped while it wrote its last line
                raise LabError(
                    f"{path}, line {number}: this is not a record: {line[:80].rstrip()}",
                    hint="the file is damaged; without that line the others can be read",
                ) from None
            yield kind, data
