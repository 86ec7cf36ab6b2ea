"""One process of a run of mpi4py's test suite: `python one_rank.py TESTDIR WORKDIR LIMIT [options of main.py]`.

Runs the suite's own main program with a result object that writes what happens, line by line, to
`WORKDIR/rank-<n>.jsonl`: `{"start": id}` before a test and `{"id", "outcome", "seconds", "text"}` after it, so
that the parent knows where each process was when a run crashed or hung. Tests named in `WORKDIR/done.txt` are left
out (an earlier attempt of the same run did them). A test that takes longer than LIMIT seconds ends the process, after
the stacks of its threads went to `WORKDIR/rank-<n>.stacks`: a file for each rank, because a stack is written word by
word, and those of several ranks at once would be a jumble.
"""

import faulthandler
import json
import sys
import time
import unittest
from pathlib import Path


class Recorder(unittest.TestResult):
    """Writes outcomes to the file; of several reports about one test the worst counts."""

    ORDER = ("passed", "skipped", "failed")

    def __init__(self, file, stacks, limit):
        super().__init__()
        self.file = file
        self.stacks = stacks
        self.limit = limit
        self.outcome, self.text = "passed", ""
        self.begin = 0.0
        self.running = False

    def write(self, **fields):
        """Append one line."""
        self.file.write(json.dumps(fields) + "\n")
        self.file.flush()

    def report(self, test, outcome, text):
        """Note what became of a test; outside a test (set-up of a class) it is written at once."""
        if not self.running:
            self.write(id=test.id(), outcome=outcome, seconds=0.0, text=text)
        elif self.ORDER.index(outcome) > self.ORDER.index(self.outcome):
            self.outcome, self.text = outcome, text

    def startTest(self, test):  # noqa: N802
        super().startTest(test)
        self.outcome, self.text, self.running = "passed", "", True
        self.write(start=test.id())
        self.begin = time.monotonic()
        faulthandler.dump_traceback_later(self.limit, exit=True, file=self.stacks)

    def stopTest(self, test):  # noqa: N802
        faulthandler.cancel_dump_traceback_later()
        self.write(id=test.id(), outcome=self.outcome, seconds=round(time.monotonic() - self.begin, 4), text=self.text)
        self.running = False
        super().stopTest(test)

    def addError(self, test, err):  # noqa: N802
        super().addError(test, err)
        self.report(test, "failed", self.errors[-1][1])

    def addFailure(self, test, err):  # noqa: N802
        super().addFailure(test, err)
        self.report(test, "failed", self.failures[-1][1])

    def addSubTest(self, test, subtest, err):  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.report(test, "failed", (self.errors + self.failures)[-1][1])

    def addSkip(self, test, reason):  # noqa: N802
        super().addSkip(test, reason)
        self.report(test, "skipped", reason)

    def addUnexpectedSuccess(self, test):  # noqa: N802
        super().addUnexpectedSuccess(test)
        self.report(test, "failed", "unexpected success")


class Runner:
    """What the suite's main program takes for a text runner."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.done = False

    def run(self, suite):
        """Run everything; the result says whether it went well."""
        suite(self.recorder)
        self.recorder.write(done=True)
        self.done = True
        return self.recorder


def without(names):
    """A loader's filter that leaves out tests already done."""

    def filter_names(loader, case, super_get=unittest.TestLoader.getTestCaseNames):
        found = super_get(loader, case)
        return [name for name in found if f"{case.__module__}.{case.__qualname__}.{name}" not in names]

    return filter_names


def main():
    """Run the suite on this rank."""
    testdir, workdir, limit = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    sys.path.insert(0, str(testdir))
    import mpi4py.MPI as MPI  # noqa: PLR0402

    done = workdir / "done.txt"
    if done.exists():
        unittest.TestLoader.getTestCaseNames = without(set(done.read_text().splitlines()))
    rank = MPI.COMM_WORLD.rank
    with (workdir / f"rank-{rank}.jsonl").open("w") as file, (workdir / f"rank-{rank}.stacks").open("w") as stacks:
        import main as suite

        sys.dont_write_bytecode = True
        runner = Runner(Recorder(file, stacks, limit))
        argv = [str(testdir / "main.py"), "--no-builddir", "-q", *sys.argv[4:]]
        try:
            suite.main(module=None, argv=argv, testRunner=runner)
        except SystemExit:
            # What failed is in the file. An exit code would only make the launcher end the other ranks before they are
            # done.
            if not runner.done:
                raise


if __name__ == "__main__":
    main()
