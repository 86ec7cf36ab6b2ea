"""`@pytest.mark.mpi(n=3)`: one test in a job of its own, one result, marked with ranks.

Each test here looks at a run of pytest.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jobs import PATIENCE, Job, Outcome

# The plugin by its module, also where the installed wheel has none yet.
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:limosa", "-p", "limosa.pytest_plugin", "-p", "no:cacheprovider"]
# Without other plugins, each of which takes time to import in every run and rank.
ENVIRONMENT = os.environ | {"COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

PROGRAM = """
import os, time
import pytest

ran_in = os.getpid()

@pytest.fixture
def three(tmp_path):
    (tmp_path / "file").write_text("x")
    yield 3

@pytest.mark.mpi(n=3)
@pytest.mark.parametrize("factor", [1, 2])
def test_passes(factor, three, world, tmp_path):
    assert world.size == three and world.allreduce(world.rank * factor) == 3 * factor
    assert len(set(world.allgather(str(tmp_path)))) == 3 and (tmp_path / "file").read_text() == "x"

def test_without_a_mark(world):
    assert world.size == 1

@pytest.mark.mpi(n=3)
def test_fails_on_one(world):
    print("printed by", world.rank)
    assert world.rank != 1, "not one"
    world.bcast(None, root=1)

@pytest.mark.mpi(2)
def test_fails_on_all():
    raise KeyError("nowhere")

@pytest.mark.mpi(n=2)
def test_raises_while_others_wait_for_ever(world):
    if world.rank == 0:
        raise RuntimeError("no message comes")
    while True:
        time.sleep(1)

@pytest.mark.mpi(n=2)
def test_is_skipped(world):
    pytest.skip("not today")

@pytest.mark.mpi(n=2)
@pytest.mark.xfail(reason="known")
def test_fails_as_expected(world):
    assert world.rank == 0
    world.recv(source=1)

@pytest.mark.mpi(n=2)
def test_has_an_unknown_fixture(world, no_such_fixture):
    pass
"""

ENDS = """
import os, time
import pytest

@pytest.mark.mpi(n=2)
def test_hangs(world):
    world.recv(source=1 - world.rank)

@pytest.mark.mpi(n=2, timeout=10)
def test_is_slow(world):
    time.sleep(60)

@pytest.mark.mpi(n=2)
def test_crashes(world):
    if world.rank == 1:
        os.abort()
    world.recv(source=1)
"""


# Of tests that end alike on all ranks: they wait for each other, however late one of them is.
PATIENT = """
import limosa.pytest_plugin

def pytest_runtest_setup(item):
    if item.name in ("test_fails_on_all", "test_is_skipped", "test_has_an_unknown_fixture"):
        limosa.pytest_plugin.SETTLE = 100.0
"""


def start(folder: Path, text: str, *options: str) -> Job:
    file = folder / "test_program.py"
    file.write_text(text)
    if not (folder / "pytest.ini").exists():
        (folder / "pytest.ini").write_text(f"[pytest]\nmpi_timeout = {60 * PATIENCE}\n")
    return Job([*PYTEST, *options, str(file)], cwd=folder, env=ENVIRONMENT)


def run(folder: Path, text: str, *options: str) -> Outcome:
    return start(folder, text, *options).wait(200)


@pytest.fixture(scope="module", autouse=True)
def ends(tmp_path_factory):
    """A run of ENDS, which takes as long as the limit of its test, beside the other tests; and its folder."""
    folder = tmp_path_factory.mktemp("ends")
    job = start(folder, ENDS)
    yield job, folder
    job.kill()


@pytest.fixture(scope="module", params=["limosa", "mpich"])
def outcome(request, tmp_path_factory):
    """One run of all of PROGRAM; results by test are in its XML."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "conftest.py").write_text(PATIENT)
    made = run(folder, PROGRAM, "--mpi-library", request.param, "--junitxml=results.xml", "-rfsE")
    cases = {case.get("name"): case for case in ElementTree.parse(folder / "results.xml").iter("testcase")}
    return made, cases


def failure(case: ElementTree.Element) -> str:
    return (case.find("failure").text or "") if case.find("failure") is not None else ""


def test_each_test_is_one_result(outcome):
    made, cases = outcome
    assert made.code == 1
    assert "3 failed, 3 passed, 1 skipped, 1 xfailed, 1 error" in made.out.splitlines()[-1], made.text
    assert {"test_passes[1]", "test_passes[2]", "test_without_a_mark"} == {
        name for name, case in cases.items() if len(case) == 0
    }


def test_a_failure_shows_the_traceback_of_its_rank_only(outcome):
    made, cases = outcome
    text = failure(cases["test_fails_on_one"])
    assert "[rank 1] E       AssertionError: not one" in text
    assert all(line.startswith("[rank 1]") for line in text.splitlines() if line), "and nothing of others"
    assert "Captured stdout call (rank 1)" in made.out and "printed by 1" in made.out and "printed by 0" not in made.out
    assert "FAILED test_program.py::test_fails_on_one - [rank 1] AssertionError: not one" in made.out
    assert "aborted the job" not in made.text


def test_equal_failures_are_shown_once(outcome):
    made, cases = outcome
    assert "[ranks 0-1] E       KeyError: 'nowhere'" in failure(cases["test_fails_on_all"])
    assert made.out.count("E       KeyError: 'nowhere'") == 1


def test_a_rank_that_fails_does_not_wait_for_others(outcome):
    _, cases = outcome
    assert "[rank 0] E           RuntimeError: no message comes" in failure(
        cases["test_raises_while_others_wait_for_ever"]
    )


def test_skips_and_errors_are_what_they_are(outcome):
    made, cases = outcome
    assert "not today" in cases["test_is_skipped"].find("skipped").get("message")
    assert "[ranks 0-1] E       fixture 'no_such_fixture' not found" in made.out


def test_a_job_without_a_result_says_why(ends):
    job, folder = ends
    made = job.wait(200)
    assert "3 failed" in made.out.splitlines()[-1], made.text
    assert "FAILED test_program.py::test_hangs - the job hung: every rank waited for another" in made.out
    assert f"at {folder}/test_program.py:7 in test_hangs" in made.out
    assert "wait for each other in a circle" in made.out
    assert "FAILED test_program.py::test_is_slow - no end within 10 s" in made.out
    assert "rank 1 was here (after setup):\nTimeout (0:00:10)!\n" in made.out
    assert f'File "{folder}/test_program.py", line 11 in test_is_slow' in made.out
    assert "without a result of rank" in made.out and "killed by signal 6 (SIGABRT" in made.out
    assert "/pluggy/" not in made.out, "how pytest came to the test is left out"
    assert "Namespace(" not in made.out and "Warning" not in made.out


def test_selections_reach_the_outer_pytest_only(tmp_path):
    made = run(tmp_path, PROGRAM, "-k", "passes and 2", "-x", "-q")
    assert made.code == 0 and "1 passed, " in made.out, made.text
    made = Job([*PYTEST, "-q", "test_program.py::test_passes[1]"], cwd=tmp_path, env=ENVIRONMENT).wait(60)
    assert made.code == 0 and "1 passed" in made.out, made.text


def test_output_is_open_on_request(tmp_path):
    text = "import pytest\n@pytest.mark.mpi(n=2)\ndef test_it(world):\n    print('open', world.rank)\n"
    made = run(tmp_path, text, "-s")
    assert made.code == 0 and "open 0\n" in made.out and "open 1\n" in made.out, made.text


@pytest.mark.parametrize(
    ("mark", "says"),
    [
        ("n=0", "n is 0 but must be a number of processes, 1 or more"),
        ("n='3'", "n is '3' but must be"),
        ("n=2, time=3", "takes n, timeout and library, not time"),
        ("n=2, timeout='soon'", "the time limit 'soon' is not a number of seconds"),
        ("n=2, library='nothing'", "there is no MPI library called `nothing`"),
    ],
)
def test_a_wrong_mark_is_an_error_with_a_reason(tmp_path, mark, says):
    made = run(tmp_path, f"import pytest\n@pytest.mark.mpi({mark})\ndef test_it():\n    pass\n")
    assert made.code == 1 and says in made.out, made.text


def test_inside_a_job_of_as_many_processes_the_test_runs_in_place(tmp_path):
    text = (
        "import pytest\n@pytest.mark.mpi(n=2)\ndef test_two(world):\n    assert world.allreduce(1) == 2\n"
        "@pytest.mark.mpi(n=3)\ndef test_three(world):\n    pass\n"
    )
    (tmp_path / "test_program.py").write_text(text)
    limosa = str(Path(sys.executable).parent / "limosa")
    made = Job([limosa, "run", "-n", "2", *PYTEST, "-rs", "test_program.py"], cwd=tmp_path, env=ENVIRONMENT).wait(60)
    assert made.code == 0 and made.out.count("1 passed, 1 skipped") == 2, made.text
    assert "for 3 processes, but this is a job of 2" in made.out


def test_other_plugins_marks_of_the_same_name_are_left_alone(tmp_path):
    text = "import os, pytest\n@pytest.mark.mpi(min_size=2)\ndef test_it():\n    assert os.getppid() != 0\n"
    assert run(tmp_path, text).code == 0


def test_the_default_limit_is_an_ini_option(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmpi_timeout = 1.5\n")
    text = "import pytest, time\n@pytest.mark.mpi(n=1)\ndef test_it():\n    time.sleep(60)\n"
    assert "no end within 1.5 s" in run(tmp_path, text).out
