"""pytest plugin: a test marked with ``@pytest.mark.mpi(n=3)`` runs in a fresh job of three processes.

::

    @pytest.mark.mpi(n=3)
    def test_sum(world):
        assert world.allreduce(world.rank) == 3

Each rank runs this one test with pytest, fixtures and all, in a process of its own; the results become one. A test
fails if it fails on any rank; tracebacks are marked with their ranks, equal ones shown once. A rank that fails ends the
job if others go on waiting. A deadlock, a crash, or no end within the time limit fails the test with what the launcher
and the ranks have to say about it.

``@pytest.mark.mpi(n=3, timeout=10, library="mpich")``: the limit in seconds (default: ini option ``mpi_timeout``), and
the MPI library (default: command line option ``--mpi-library``). If pytest itself runs in a job of n processes, the
test runs right there.

Fixture `world` is the communicator of all processes. `tmp_path` is each rank's own; ``world.bcast(tmp_path)`` makes one
of them known. Fixtures of wider scope are set up in each job anew.
"""

import contextlib
import faulthandler
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback
from _pytest._io import TerminalWriter

import limosa
from limosa import _uncaught

__all__: list[str] = []

_FOLDER = "PYTEST_MPI_FOLDER"
"""The variable that tells a rank of a job of ours where to write its results."""

SETTLE = 0.5
"""How long a rank whose test did not pass waits for the others, in seconds, before it aborts the job."""

GRACE = 10.0
"""How long a job may take at most, beyond the limit, to say where it is, in seconds. A rank's limit begins later."""

LOOK = 0.1
"""How often to look whether it has, in seconds."""

_PHASES = ("setup", "call", "teardown")

_OFF = {
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "cacheclear": False,
    "collectonly": False,
    "setuponly": False,
    "setupplan": False,
    "keyword": "",
    "markexpr": "",
    "deselect": None,
    "maxfail": 0,
    "usepdb": False,
    "trace": False,
    "xmlpath": None,
    "durations": None,
    "pastebin": None,
    "numprocesses": None,
    "maxprocesses": None,
    "dist": "no",
    "tx": [],
    "report_log": None,
    "cov_source": [],  # several ranks would write one file; coverage's own `patch = subprocess` sees them
}
"""Options that are for the whole run, not for one test on one rank."""


@dataclass(frozen=True)
class Wish:
    """The options in the mark of a test."""

    n: int
    timeout: float
    library: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("mpi", "tests in several processes (limosa)")
    group.addoption(
        "--mpi-library",
        default="limosa",
        metavar="NAME",
        help="MPI library for tests marked mpi, as for `limosa run --mpi`",
    )
    parser.addini("mpi_timeout", "time limit of a test marked mpi, in seconds", default="60")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers", "mpi(n, timeout=None, library=None): run the test in a fresh job of n processes (limosa)"
    )


@pytest.fixture(scope="session")
def world() -> "limosa.Comm":
    """Give the communicator of all processes of the test; one process without the mark."""
    return limosa.world


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run a marked test in a job; all others as always."""
    mark = item.get_closest_marker("mpi")
    if mark is None or not (mark.args or "n" in mark.kwargs) or _FOLDER in os.environ:
        return None
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        wish = _wish(mark, item.config)
        size = _uncaught.place_in_job()[1]
        if size == wish.n and size > 1:
            return None
        if size > 1:
            reports = [
                _report(
                    item,
                    "setup",
                    "skipped",
                    (str(item.path), 0, f"Skipped: for {wish.n} processes, but this is a job of {size}"),
                )
            ]
        else:
            reports = _JobOfTest(item, wish).run()
    except ValueError as error:
        reports = [_report(item, "setup", "failed", str(error))]
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _wish(mark: pytest.Mark, config: pytest.Config) -> Wish:
    """Read a mark.

    Raises
    ------
    ValueError
        If an option is missing or wrong; the message names it.
    """
    given = dict(zip(("n", "timeout", "library"), mark.args, strict=False)) | dict(mark.kwargs)
    unknown = sorted(given.keys() - {"n", "timeout", "library"})
    n, timeout = given["n"], given.get("timeout") or config.getini("mpi_timeout")
    if len(mark.args) > 3 or unknown:
        raise ValueError(f"@pytest.mark.mpi takes n, timeout and library, not {', '.join(unknown) or 'more values'}")
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"@pytest.mark.mpi: n is {n!r} but must be a number of processes, 1 or more")
    try:
        limit = float(timeout)
    except (TypeError, ValueError):
        raise ValueError(f"@pytest.mark.mpi: the time limit {timeout!r} is not a number of seconds") from None
    return Wish(n, limit, str(given.get("library") or config.getoption("--mpi-library")))


class _JobOfTest:
    """The job of one test, seen from the pytest that the user started."""

    def __init__(self, item: pytest.Item, wish: Wish) -> None:
        self._item = item
        self._wish = wish
        self._folder = _new_folder(item)

    def run(self) -> list[pytest.TestReport]:
        """Run it; give one report for each phase."""
        started = time.time()
        self._write_options()
        code, said = self._run_job()
        results = [self._results(rank) for rank in range(self._wish.n)]
        reports = [report for phase in _PHASES if (report := self._combined(phase, results))]
        missing = [rank for rank, result in enumerate(results) if "teardown" not in result]
        settled = any(not report.passed for report in reports)
        if not settled and (missing or code != 0):
            reports = (
                [*reports[:1], self._failure(code, said, missing, results)]
                if reports
                else [self._failure(code, said, missing, results)]
            )
        # The call gets the whole time, from the start of the processes to their end.
        main = next((report for report in reports if report.when == "call"), reports[-1])
        main.start, main.stop = started, time.time()
        main.duration = main.stop - started
        return reports

    def _write_options(self) -> None:
        """Write what the ranks' pytest must know."""
        config = self._item.config
        options: dict[str, Any] = {}
        for name, given in vars(config.option).items():
            if name == "file_or_dir":
                continue  # what to test is said below
            value = _OFF.get(name, given)
            try:
                pickle.dumps(value)
            except Exception:  # noqa: S112 - some plugin's own object, which stays here
                continue
            options[name] = value
        options["plugins"] = [*options.get("plugins", []), "no:terminal"]
        options["rootdir"] = str(config.rootpath)
        options["inifilename"] = str(config.inipath) if config.inipath else None
        (self._folder / "options").write_bytes(pickle.dumps((options, self._item.nodeid, self._wish.timeout)))

    def _run_job(self) -> tuple[int, str]:
        """Run the job; give its exit code and what it wrote. An end by the time limit counts as code -1."""
        from limosa._group import GroupError, launcher

        hang = ["--on-hang=abort"] if self._wish.library == "limosa" else []
        try:
            command = [launcher(), "run", "-n", str(self._wish.n), "--mpi", self._wish.library, *hang]
        except GroupError as error:
            raise ValueError(str(error)) from None
        open_output = self._item.config.getoption("capture") == "no"
        job = subprocess.Popen(
            [*command, sys.executable, "-m", "limosa.pytest_plugin"],
            stdin=subprocess.DEVNULL,
            stdout=None if open_output else subprocess.PIPE,
            stderr=None if open_output else subprocess.STDOUT,
            env=os.environ | {_FOLDER: str(self._folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd=self._item.config.invocation_params.dir,
            start_new_session=True,
        )
        code = None
        end = time.monotonic() + self._wish.timeout
        try:
            while code is None and (
                (left := end - time.monotonic()) > 0 or (left > -GRACE and self._are_some_silent())
            ):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said, _ = job.communicate(timeout=max(left, LOOK))
                    code = job.returncode
        finally:
            if code is None:
                job.terminate()
                try:
                    said, _ = job.communicate(timeout=2.0)
                except subprocess.TimeoutExpired:
                    os.killpg(job.pid, signal.SIGKILL)
                    said, _ = job.communicate()
        return (-1 if code is None else code), (said or b"").decode(errors="replace")

    def _are_some_silent(self) -> bool:
        """Tell whether a rank has neither said where it was at the limit nor come to the end of its test."""
        stacks = [self._folder / f"stack-{rank}" for rank in range(self._wish.n)]
        return any(
            not (stack.exists() and stack.stat().st_size) and "teardown" not in self._results(rank)
            for rank, stack in enumerate(stacks)
        )

    def _results(self, rank: int) -> dict[str, pytest.TestReport]:
        """Give a rank's reports by phase, as far as it has come."""
        reports: dict[str, pytest.TestReport] = {}
        for line in _lines(self._folder / f"reports-{rank}"):
            report = self._item.config.hook.pytest_report_from_serializable(config=self._item.config, data=line)
            if isinstance(report, pytest.TestReport):
                if isinstance(report.longrepr, list):  # where and why a test was skipped; JSON has no tuples
                    report.longrepr = (report.longrepr[0], report.longrepr[1], report.longrepr[2])
                reports[report.when] = report
        return reports

    def _combined(self, phase: str, results: list[dict[str, pytest.TestReport]]) -> pytest.TestReport | None:
        """Make one report of those of all ranks."""
        ranks = {rank: result[phase] for rank, result in enumerate(results) if phase in result}
        if not ranks:
            return None
        failed = {rank: report for rank, report in ranks.items() if report.failed}
        # An expected failure is one wherever it happens; a test is skipped if it is on all ranks.
        expected = {rank: report for rank, report in ranks.items() if report.skipped and hasattr(report, "wasxfail")}
        passed = {rank: report for rank, report in ranks.items() if report.passed}
        chosen = next(iter((failed or expected or passed or ranks).values()))
        if self._wish.n > 1:
            chosen.sections = [
                (f"{title} (rank {rank})", text)
                for rank, report in (failed or ranks).items()
                for title, text in report.sections
            ]
            if failed:
                chosen.longrepr = _marked(
                    {rank: report for rank, report in failed.items() if report.longrepr is not None}
                )
        return chosen

    def _failure(
        self, code: int, said: str, missing: list[int], results: list[dict[str, pytest.TestReport]]
    ) -> pytest.TestReport:
        """Make the report of a job that gave no result."""
        if code == -1:
            what = f"no end within {self._wish.timeout:g} s"
        elif code == 86:  # the launcher's word for a hang
            what = "the job hung: every rank waited for another"
        elif missing:
            what = f"the job ended with exit code {code}, without a result of {_named(missing)}"
        else:
            what = f"the job ended with exit code {code} although the test had passed"
        text = [what, "", *_users_lines(said)] if said.strip() else [what]
        for rank in missing:
            stack = (self._folder / f"stack-{rank}").read_text() if (self._folder / f"stack-{rank}").exists() else ""
            if code == -1 and stack:
                after = f" (after {', '.join(results[rank])})" if results[rank] else ""
                text += ["", f"rank {rank} was here{after}:", *_users_lines(stack)]
        place = ReprFileLocation(str(self._item.path), (self._item.location[1] or 0) + 1, what)
        return _report(self._item, "call", "failed", _Words("\n".join(text), place))


def _users_lines(text: str) -> list[str]:
    """Give the lines of a text without those of stacks that show how pytest came to the test."""
    machinery = ("/_pytest/", "/pluggy/", __file__, "<frozen runpy>")
    return [
        line
        for line in text.strip().splitlines()
        if not (line.startswith('  File "') and any(part in line for part in machinery))
    ]


class _Words(ReprExceptionInfo):
    """A failure in words, with a place and a short form for the summary.

    To other plugins (xdist sends it) it looks like any exception.
    """

    def __init__(self, text: str, place: ReprFileLocation) -> None:
        super().__init__(ReprTraceback([ReprEntryNative(text.splitlines(keepends=True))], None, "native"), place)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def toterminal(self, tw: TerminalWriter) -> None:
        """Write it, line by line, to pytest's terminal; lines with the error in red."""
        for line in self._text.splitlines():
            tw.line(line, red=_is_error(line), bold=_is_error(line))


def _is_error(line: str) -> bool:
    return re.match(r"(\[ranks? [0-9,-]+] )?(E  |\w*Error\b)", line) is not None


def _marked(failed: dict[int, pytest.TestReport]) -> _Words:
    """Put the failures of several ranks together: each line marked, those that differ in addresses only once."""
    same: dict[str, list[int]] = {}
    for rank, report in failed.items():
        same.setdefault(re.sub("0x[0-9a-f]+", "", report.longreprtext), []).append(rank)
    blocks = []
    for ranks in same.values():
        lines = failed[ranks[0]].longreprtext.splitlines()
        blocks.append("\n".join(f"[{_named(ranks)}] {line}".rstrip() for line in lines))
    ranks = next(iter(same.values()), [])
    crash = getattr(failed[ranks[0]].longrepr, "reprcrash", None) if ranks else None
    message = (
        crash.message if crash else failed[ranks[0]].longreprtext.strip().rpartition("\n")[2] if ranks else "failed"
    )
    path, line = (crash.path, crash.lineno) if crash else ("", 0)
    return _Words("\n\n".join(blocks), ReprFileLocation(path, line, f"[{_named(ranks)}] {message}"))


def _named(ranks: list[int]) -> str:
    from limosa._group import label

    return f"rank{'s' if len(ranks) > 1 else ''} {label(ranks).strip('[]')}"


def _report(item: pytest.Item, when: Any, outcome: Any, longrepr: Any) -> pytest.TestReport:
    """Make a report of our own."""
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), outcome, longrepr, when)


def _new_folder(item: pytest.Item) -> Path:
    """Give a folder for results and temporary files, below the one that pytest keeps and clears."""
    factory = getattr(item.config, "_tmp_path_factory", None)
    if factory is None:
        return Path(tempfile.mkdtemp(prefix="pytest-mpi-"))
    folder: Path = factory.mktemp("mpi", numbered=True)
    return folder


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """Give the whole lines of a file of JSON that may have been cut off."""
    if file.exists():
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


class _Rank:
    """One rank's side, registered as a plugin in its pytest."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._rank, self._size = _uncaught.place_in_job()
        self._file = (folder / f"reports-{self._rank}").open("w")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a report to its file at once, and end the others' wait for a rank that did not pass."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._file.write(json.dumps(data) + "\n")
        self._file.flush()
        if not report.passed and self._size > 1 and not self._others_are_here(report.when):
            faulthandler.cancel_dump_traceback_later()
            from mpi4py import MPI

            MPI.COMM_WORLD.Abort(1)

    def _others_are_here(self, phase: str | None) -> bool:
        """Wait a moment until all ranks have come to the end of this phase; false if they have not."""
        deadline = time.monotonic() + SETTLE
        while True:
            files = [self._folder / f"reports-{rank}" for rank in range(self._size)]
            if all(any(line.get("when") == phase for line in _lines(file)) for file in files):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)


def _main() -> int:
    """Run the test of this job on this rank."""
    from _pytest.config import Config

    folder = Path(os.environ[_FOLDER])
    # Written by the pytest that started us.
    options, test, limit = pickle.loads((folder / "options").read_bytes())  # noqa: S301
    rank, _ = _uncaught.place_in_job()
    options["basetemp"] = str(folder / f"rank{rank}")
    with (folder / f"stack-{rank}").open("w") as stack:
        faulthandler.dump_traceback_later(limit, file=stack)
        # Before those of installed packages, as at the outer pytest.
        plugins = [part for name in options.pop("plugins") for part in ("-p", name)]
        config = Config.fromdictargs({**options, "plugins": []}, [*plugins, test])
        config.pluginmanager.register(_Rank(config, folder), "limosa-rank")
        code = config.hook.pytest_cmdline_main(config=config)
        faulthandler.cancel_dump_traceback_later()
    return int(code) if int(code) > pytest.ExitCode.TESTS_FAILED else 0


if __name__ == "__main__":
    sys.exit(import_module("limosa.pytest_plugin")._main())  # the plugin as pytest imports it, not a second copy
