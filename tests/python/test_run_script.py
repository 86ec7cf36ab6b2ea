"""`limosa run script.py`: a script sees what plain Python shows it; an exception on one rank ends the job, marked."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from jobs import Job, kill_rank_unseen, until_ranks_wait

LIMOSA = str(Path(sys.executable).parent / "limosa")
LIBRARIES = ["limosa", "mpich"]

START = "from mpi4py import MPI\nworld = MPI.COMM_WORLD\n"


@pytest.fixture
def script(tmp_path: Path):
    """Write a program and give the words that run it on some library."""

    def words(text: str, library: str, n: int = 3) -> list[str]:
        file = tmp_path / "script.py"
        file.write_text(text)
        return [LIMOSA, "run", "--mpi", library, "-n", str(n), str(file)]

    return words


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_uncaught_exception_ends_the_job_and_is_marked(script, library):
    text = (
        START
        + "if world.rank == 1:\n    raise ValueError('something\\nis wrong')\n"
        + "world.recv(source=1)\nprint('not reached')"
    )
    outcome = Job(script(text, library)).wait(20)
    assert outcome.code == 1, outcome.text
    marked = [line for line in outcome.err.splitlines() if line.startswith("[rank 1] ")]
    assert marked[0] == "[rank 1] Traceback (most recent call last):"
    assert marked[1].endswith('script.py", line 4, in <module>'), (
        "the traceback begins with the script, not with what runs it"
    )
    assert marked[-2:] == ["[rank 1] ValueError: something", "[rank 1] is wrong"]
    assert "[rank 0]" not in outcome.err and "not reached" not in outcome.out
    assert outcome.err.count("ValueError: something") == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_exception_before_mpi_is_there_is_marked_too(script, library):
    outcome = Job(script("import no_such_module_at_all", library, n=2)).wait(20)
    assert outcome.code == 1, outcome.text
    assert "] ModuleNotFoundError: No module named 'no_such_module_at_all'" in outcome.err
    assert "[rank " in outcome.err


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "before", ["", START, START + "world.Barrier()\n"], ids=["without MPI", "with MPI", "at the same time"]
)
def test_of_several_ranks_that_fail_one_speaks(script, library, before):
    outcome = Job(script(before + "1 / 0", library)).wait(20)
    assert outcome.code == 1, outcome.text
    assert outcome.err.count("Traceback") == outcome.err.count("ZeroDivisionError: division by zero") == 1
    if library == "limosa":
        speaker = re.search(r"\[rank (\d)] ZeroDivisionError", outcome.err)[1]
        assert f"limosa: rank {speaker} " in outcome.err, "and it is the one that the launcher names"


@pytest.mark.parametrize(
    "call",
    [
        "world.recv(source=1)",
        "MPI.Request.Waitall([world.Irecv(bytearray(1), source=1)])",
        "import limosa; limosa.world.recv(source=1)",
        "try: world.recv(source=1)\n    except Exception: raise RuntimeError('no message')",
    ],
)
def test_the_death_of_another_rank_is_the_launchers_to_tell(script, call):
    text = START + f"if world.rank == 1:\n    import signal; signal.pause()\nelse:\n    {call}\n"
    job = Job(script(text, "limosa", n=2))
    kill_rank_unseen(job.process.pid, victim=1, witness=0)
    outcome = job.wait(20)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert "rank 1" in outcome.err and "SIGKILL" in outcome.err and "Traceback" not in outcome.err, outcome.text


def test_the_death_of_a_spawned_process_is_the_launchers_to_tell(script):
    child = "['-c', 'from mpi4py import MPI; import signal; signal.pause()']"
    text = START + f"import sys\nworld.Spawn(sys.executable, {child}).recv(source=0)\n"
    job = Job(script(text, "limosa", n=1))
    kill_rank_unseen(job.process.pid, victim=1, witness=0)
    outcome = job.wait(20)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert "SIGKILL" in outcome.err and "Traceback" not in outcome.err, outcome.text


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_exit_code_on_one_rank_ends_the_job_without_a_traceback(script, library):
    outcome = Job(script(START + "if world.rank == 1:\n    raise SystemExit(7)\nworld.Barrier()", library)).wait(20)
    assert outcome.code == 7, outcome.text
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_interrupt_ends_all_ranks_also_those_that_wait(script, library):
    text = (
        START
        + "import time\nprint(f'{world.rank}\\n', end='', flush=True)\n"
        + "world.recv(source=1) if world.rank == 0 else time.sleep(60)"
    )
    job = Job(script(text, library, n=2))
    assert sorted(job.read_lines(2)) == ["0", "1"]
    if library == "limosa":
        until_ranks_wait(job.process.pid, {0})
    job.process.send_signal(signal.SIGINT)
    outcome = job.wait(20)
    assert outcome.code != 0
    # The launcher does not wait long for a second rank after the first one has ended.
    assert re.search(r"\[rank [01]\] KeyboardInterrupt", outcome.err), outcome.text


HANDLERS = """
import atexit, logging, logging.handlers, pathlib, sys, tempfile, weakref
here = pathlib.Path(sys.argv[1])
folder = tempfile.TemporaryDirectory(dir=here)
log = logging.handlers.MemoryHandler(100, target=logging.FileHandler(here / "log"))
log.buffer.append(logging.makeLogRecord({"msg": "important"}))
class Resource: pass
resource = Resource()
weakref.finalize(resource, (here / "finalized").touch)
atexit.register((here / "left").touch)
data = open(here / "data", "w")
data.write("all")
"""


@pytest.mark.parametrize(
    ("library", "end", "code"),
    [
        ("limosa", "raise ValueError('a mistake')", 1),
        ("mpich", "raise ValueError('a mistake')", 1),
        ("limosa", "sys.exit(7)", 7),
        ("limosa, plain Python", "raise ValueError('a mistake')", 1),
        ("limosa", "import pypar; raise ValueError('a mistake')", 1),
    ],
)
def test_the_rank_that_fails_runs_its_exit_handlers(script, tmp_path, library, end, code):
    folder = tmp_path / "of rank 1"
    folder.mkdir()
    library, _, plain = library.partition(", ")
    text = START + f"if world.rank == 1:\n{textwrap.indent(HANDLERS + end, '    ')}\nworld.recv(source=1)"
    command = script(text, library)
    command[-1:] = [*([sys.executable] if plain else []), command[-1], str(folder)]
    outcome = Job(command).wait(30)
    assert outcome.code == code, outcome.text
    assert sorted(path.name for path in folder.iterdir()) == ["data", "finalized", "left", "log"], outcome.text
    assert ((folder / "log").read_text(), (folder / "data").read_text()) == ("important\n", "all")
    assert outcome.err.count("ValueError: a mistake") == (1 if "raise" in end else 0)


def test_an_exit_handler_that_waits_for_another_rank_is_cut_off_and_shown(script):
    handler = "import atexit\ndef last_words():\n    world.recv(source=0)\natexit.register(last_words)\n"
    text = START + handler + "if world.rank == 1:\n    raise ValueError('a mistake')\nworld.recv(source=1)"
    outcome = Job(script(text, "limosa", n=2)).wait(30)
    assert outcome.code == 1, outcome.text
    mistake, cut, where = (outcome.err.index(words) for words in ("a mistake", "Timeout (0:00:05)!", "in last_words"))
    assert mistake < cut < where, "the traceback is shown before the handlers run"


def test_alone_nothing_is_marked(script):
    outcome = Job(script("1 / 0", "limosa", n=1)).wait(20)
    assert outcome.code == 1
    assert outcome.err.splitlines()[0] == "Traceback (most recent call last):"
    assert outcome.err.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_a_script_with_an_error_of_syntax_is_shown_as_python_shows_it(script):
    command = script("def f(:\n    pass\n", "limosa", n=1)
    assert Job(command).wait(20).err == Job([sys.executable, command[-1]]).wait(20).err


def test_a_script_sees_what_plain_python_shows_it(script, tmp_path):
    (tmp_path / "beside.py").write_text("value = 42\n")
    text = """
import inspect, multiprocessing, pickle, sys
from beside import value

class Thing:
    pass

def double(x):
    return 2 * x

if __name__ == "__main__":
    print(value, sys.argv[1:], sys.path[0], __file__, __spec__, __package__, sorted(set(globals()) - {"__cached__"}))
    print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, inspect.getsource(double))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
    raise SystemExit(3)
"""
    command = [*script(text, "limosa", n=1), "-n", "two words"]
    ours, plain = Job(command).wait(30), Job([sys.executable, *command[-3:]]).wait(30)
    assert plain.code == 3, plain.text
    assert (ours.code, ours.out, ours.err) == (plain.code, plain.out, plain.err)


def test_a_python_without_limosa_runs_the_script_plainly(script, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    environment = {"VIRTUAL_ENV": str(tmp_path / "other"), "PATH": "/usr/bin:/bin"}
    outcome = Job(
        [*script("import sys; print(sys.prefix, *sys.argv[1:])", "limosa", n=1), "word"], env=environment
    ).wait(20)
    assert outcome.out == f"{tmp_path / 'other'} word\n", outcome.text


def test_under_other_launchers_the_word_of_a_job_cannot_be_guessed():
    code = "from limosa._uncaught import _job_of_parent as word; print(word())"
    here = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)]
    assert here[0] == here[1], "all ranks of a launcher agree"
    assert re.fullmatch(r"\d+-[0-9a-f]{32}\n", here[0])
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
    other = subprocess.run([sys.executable, "-c", inner], capture_output=True, text=True).stdout
    assert other.partition("-")[2] != here[0].partition("-")[2]
