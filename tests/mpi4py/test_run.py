"""The runner of mpi4py's suite tells passed, failed, skipped, crashed and hung tests apart; tried on a made-up suite.

Stand-ins: an `mpi4py` that knows its rank, a launcher that starts processes and ends them when one fails, a suite of
one module with the options of the real one that the runner uses.
"""

import os
import re
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest
from jobs import PATIENCE

RUN = Path(__file__).resolve().parent / "run"

FAKE_MPI = """
import os
class COMM_WORLD:
    rank = int(os.environ["FAKE_RANK"])
"""

FAKE_LAUNCHER = """
import os, subprocess, sys
size, command = int(sys.argv[2]), sys.argv[3:]
ranks = [subprocess.Popen(command, env=os.environ | {"FAKE_RANK": str(rank)}) for rank in range(size)]
while ranks:
    pid, status = os.wait()
    ranks = [rank for rank in ranks if rank.pid != pid]
    if status:
        for rank in ranks:
            rank.kill()
        sys.exit(os.waitstatus_to_exitcode(status) & 255)
"""

FAKE_MAIN = """
import argparse, fnmatch, pathlib, re, sys, unittest
def main(module, argv, testRunner):
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-builddir", action="store_true")
    for option in ("-q", ):
        parser.add_argument(option, action="store_true")
    for option in ("-x", "-e", "-i"):
        parser.add_argument(option, action="append", default=[])
    options = parser.parse_args(argv[1:])
    loader = unittest.TestLoader()
    names = loader.getTestCaseNames
    loader.getTestCaseNames = lambda case: [name for name in names(case) if not any(
        fnmatch.fnmatchcase(f"{case.__module__}.{case.__qualname__}.{name}", pattern) for pattern in options.x)]
    suite = loader.discover(str(pathlib.Path(__file__).parent))
    sys.exit(not testRunner.run(suite).wasSuccessful())
"""


@pytest.fixture
def suite(tmp_path):
    """A function that runs the runner on a suite with the given test methods; gives exit code and output."""
    site = tmp_path / "site" / "mpi4py"
    site.mkdir(parents=True)
    (site / "__init__.py").touch()
    (site / "MPI.py").write_text(FAKE_MPI)
    launcher = tmp_path / "mpiexec"
    launcher.write_text(f"#!{sys.executable}\n{FAKE_LAUNCHER}")
    launcher.chmod(0o755)

    def run(methods, *options, np=2, limit=100):
        tests = tmp_path / "mpi4py-0" / "test"
        tests.mkdir(parents=True)
        (tests / "main.py").write_text(FAKE_MAIN)
        body = textwrap.indent(textwrap.dedent(methods), "    ")
        (tests / "test_made_up.py").write_text(
            f"import os, time, unittest\nfrom mpi4py import MPI\nclass TestIt(unittest.TestCase):\n{body}"
        )
        source = tmp_path / "source.tar.gz"
        with tarfile.open(source, "w:gz") as archive:
            archive.add(tests, "mpi4py-0/test")
        command = [
            RUN,
            "--all",
            "--mpiexec",
            launcher,
            "--python",
            sys.executable,
            "--source",
            source,
            "-n",
            str(np),
            "--limit",
            str(limit),
            *options,
        ]
        env = os.environ | {"PYTHONPATH": str(site.parent)}
        result = subprocess.run(command, env=env, text=True, capture_output=True, timeout=100 * PATIENCE, check=False)
        return result.returncode, result.stdout + result.stderr

    return run


def counts(output):
    """Passed, failed, skipped of the only run."""
    return tuple(map(int, re.search(r"default: (\d+) passed, (\d+) failed, (\d+) skipped", output).groups()))


FINE = "def testFine(self): pass\n"


def test_all_is_well(suite):
    code, output = suite(FINE + "@unittest.skip('no reason')\ndef testSkipped(self): pass\n")
    assert (code, counts(output)) == (0, (1, 0, 1)), output


def test_failure_on_one_rank_counts_and_is_shown(suite):
    code, output = suite(FINE + "def testOne(self): self.assertEqual(MPI.COMM_WORLD.rank, 0)\n")
    assert (code, counts(output)) == (1, (1, 1, 0)), output
    assert "FAILED test_made_up.TestIt.testOne" in output
    assert "1 != 0" in output


def test_failing_subtest_counts(suite):
    code, output = suite(FINE + "def testSub(self):\n  with self.subTest(): self.fail('inside')\n")
    assert (code, counts(output)) == (1, (1, 1, 0)), output


def test_crash_costs_one_test_and_the_rest_runs(suite):
    code, output = suite("def testA(self): pass\ndef testB(self): os._exit(3)\ndef testC(self): pass\n")
    assert (code, counts(output)) == (1, (2, 1, 0)), output
    assert "exit code 3" in output


def test_hang_costs_one_test_and_shows_where(suite):
    code, output = suite("def testA(self): pass\ndef testB(self): time.sleep(1000)\ndef testC(self): pass\n", limit=5)
    assert (code, counts(output)) == (1, (2, 1, 0)), output
    assert "in testB" in output


def test_hang_is_blamed_on_the_rank_that_the_others_wait_for(suite):
    code, output = suite(
        "def testA(self):\n  if MPI.COMM_WORLD.rank == 0: time.sleep(1000)\ndef testB(self):\n  time.sleep(1000 * "
        "MPI.COMM_WORLD.rank)\n",
        limit=5,
    )
    assert "FAILED test_made_up.TestIt.testA" in output
    assert code == 1


def test_pattern_selects(suite):
    code, output = suite("def testA(self): pass\ndef testB(self): self.fail()\n", "-k", "testA")
    assert (code, counts(output)) == (0, (1, 0, 0)), output


def test_ending_badly_after_the_last_test_is_a_failure(suite):
    code, output = suite(FINE + "@classmethod\ndef tearDownClass(cls): import atexit; atexit.register(os._exit, 7)\n")
    assert code == 1, output
    assert re.search(r"exit code (is )?7", output), output
