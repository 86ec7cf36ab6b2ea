"""`%%limosa`: cells of a notebook on several processes. The notebook is an IPython shell without a front end."""

from __future__ import annotations

import re
import sys

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from limosa import _group, magic
from limosa.magic import CellError


@pytest.fixture(scope="module")
def shell():
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "limosa")
    with pytest.MonkeyPatch.context() as patch:
        # On a busy machine ranks may answer late; then nothing is said of those that are still running.
        patch.setattr(_group, "PATIENCE", 1000.0)
        yield made
        made.run_line_magic("limosa", "--end")


@pytest.fixture
def patient(monkeypatch):
    """Output waits for the same output of other ranks, however late that is."""
    monkeypatch.setattr(_group, "TICK", 100.0)


@pytest.fixture
def cell(shell, capsys):
    """Run a cell; give what is shown below it."""

    def run(line: str, text: str) -> list[str]:
        capsys.readouterr()
        shell.run_cell_magic("limosa", line, text)
        return capsys.readouterr().out.splitlines()

    return run


def test_a_cell_runs_on_all_ranks_and_variables_stay(shell, cell, patient):
    assert cell("-n 3 --new", "x = rank + 1\nworld.allreduce(x)") == ["[0-2] 6"]
    assert cell("", "print('line'); x") == ["[0-2] line", "[0] 1", "[1] 2", "[2] 3"]
    assert shell.run_line_magic("limosa", "--pull x") == [1, 2, 3]


def test_a_cell_may_be_for_some_ranks(cell):
    cell("-n 3 --new", "x = 0")
    cell("--rank 1-2", "x = rank")
    assert cell("", "x") == ["[0] 0", "[1] 1", "[2] 2"]


def test_tracebacks_are_marked_and_the_processes_live_on(shell, cell, capsys):
    cell("-n 2 --new", "y = 5")
    with pytest.raises(CellError, match="the cell failed on rank 1"):
        shell.run_cell_magic("limosa", "", "if rank:\n    raise ValueError('bad')")
    said = capsys.readouterr().err
    assert "[1] ValueError: bad" in said and "[0]" not in said
    assert cell("", "y") == ["[0-1] 5"]


def test_new_processes_know_nothing_and_may_be_of_another_library(shell, cell):
    cell("-n 2 --new", "z = 1")
    assert cell("--new --mpi mpich", "'z' in globals(), MPI.Get_library_version()[:5]") == ["[0-1] (False, 'MPICH')"]
    assert cell("--new --mpi limosa", "MPI.Get_library_version()[:6]") == ["[0-1] 'Limosa'"]


def test_another_number_of_processes_starts_others_and_says_so(shell, cell):
    cell("-n 4 --new", "x = 1")
    shown = cell("-n 2", "size, 'x' in globals()")
    assert shown[0] == "limosa: 2 new processes on limosa; the 4 processes on limosa and their variables are gone"
    assert shown[1:] == ["[0-1] (2, False)"]
    assert cell("-n 2", "y = 1; size") == ["[0-1] 2"]
    assert cell("", "y") == ["[0-1] 1"]


def test_variables_of_the_notebook_are_pushed(shell, cell):
    shell.push({"mesh": [1, 2, 3], "steps": 5})
    assert cell("-n 3 --new --push mesh,steps", "sum(mesh) + steps + rank") == ["[0] 11", "[1] 12", "[2] 13"]
    shell.push({"steps": 6})
    shell.run_line_magic("limosa", "--push steps")
    assert cell("", "steps") == ["[0-2] 6"]


def test_a_class_of_the_notebook_must_be_defined_on_the_ranks_too(shell, cell, monkeypatch):
    kind = type("Point", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Point", kind, raising=False)
    shell.push({"point": kind()})
    with pytest.raises(UsageError, match="define Point on the ranks too, in a cell that begins with %%limosa"):
        cell("-n 2 --new --push point", "1")
    cell("", "class Point: pass")
    assert cell("--push point", "isinstance(point, Point)") == ["[0-1] True"]


def test_figures_are_shown_below_the_cell(shell, cell, monkeypatch):
    shown = []
    monkeypatch.setattr("limosa.magic.display", shown.append)
    text = "import matplotlib.pyplot as plt\nif rank != 1:\n    plt.plot([1, rank])\n    plt.show()"
    said = cell("-n 3 --new", text)
    assert sorted(line for line in said if line.startswith("[")) == ["[0]", "[2]"], said
    assert [image.format for image in shown] == ["png", "png"]
    assert all(image.data.startswith(b"\x89PNG") for image in shown)
    cell("", "rank")
    assert len(shown) == 2, "a figure is shown once"


def test_a_progress_bar_is_one_line(cell, patient):
    text = "import sys\nfor i in range(100):\n    sys.stdout.write(f'\\r{i} %')\nprint()"
    shown = cell("-n 2 --new", text)
    assert shown == ["[0-1] 99 %"]


def test_a_line_says_how_many_ranks_are_done_while_a_cell_runs_for_long():
    class Handle:
        def __init__(self):
            self.texts = []

        def update(self, data, raw):
            self.texts.append(data["text/plain"])

    handle = Handle()
    status = magic._Status(visible=True)
    status._handle = handle
    status.begin()
    status.update(1, 4)
    assert not handle.texts, "not at once"
    status._started -= 12
    status.update(1, 4)
    status.end()
    assert re.fullmatch(r"limosa: 1 of 4 ranks are done after 1\d s", handle.texts[0])
    assert handle.texts[1:] == [""]


def test_figures_come_in_the_order_of_the_ranks(shell, cell, monkeypatch):
    monkeypatch.setattr("limosa.magic.display", lambda image: print("a figure"))
    text = "import matplotlib.pyplot as plt\nworld.recv(source=rank + 1) if rank < 2 else None\nplt.plot([1, rank])\n"
    text += "plt.close('all') if rank == 1 else None\nworld.send(0, to=rank - 1) if rank else None"
    assert cell("-n 3 --new", text) == ["[0]", "a figure", "[2]", "a figure"]


def test_the_extension_may_be_loaded_again(shell, cell):
    cell("-n 2 --new", "x = 5")
    shell.run_line_magic("reload_ext", "limosa")
    assert cell("", "x") == ["[0-1] 5"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "if rank == 2:\n    raise ValueError('bad')\nworld.barrier()",
            "failed on rank 2, was interrupted on ranks 0-1",
        ),
        ("raise KeyboardInterrupt", "the cell was interrupted on ranks 0-2"),
        (
            "exit(3) if rank else None",
            r"called exit\(\) on ranks 1-2; the processes and their variables are still there",
        ),
    ],
)
def test_it_is_said_what_became_of_the_cell_on_each_rank(shell, cell, text, says):
    cell("-n 3", "x = 1")
    with pytest.raises(CellError, match=says):
        shell.run_cell_magic("limosa", "", text)
    assert cell("", "x") == ["[0-2] 1"]


def test_processes_that_died_are_replaced(shell, cell):
    cell("-n 2 --new", "x = 1")
    with pytest.raises(UsageError, match="the processes have ended"):
        cell("--rank 0", "import os; os.abort()")
    assert cell("", "'x' in globals()") == ["[0-1] False"]


@pytest.mark.parametrize(
    ("line", "text", "says"),
    [
        ("-n 0 --new", "1", "-n is 0 but must be 1 or more"),
        ("--push nothing", "1", "the notebook has no variable 'nothing' to push"),
        ("--push unsendable", "1", "the value of unsendable cannot be sent: .*pickle"),
        ("--rank 9", "1", "`9` names a rank that does not exist"),
        ("--what", "1", "unrecognized arguments: --what"),
        ("'", "1", "No closing quotation"),
        ("--pull nothing", None, "rank 0: NameError: name 'nothing' is not defined"),
        ("--pull unsendable", None, "rank 0: .*pickle"),
        ("", None, "%limosa takes --pull NAME"),
    ],
)
def test_wrong_use_is_said(shell, cell, line, text, says):
    shell.push({"unsendable": lambda: 0})
    if text is None:
        cell("-n 2 --new", "unsendable = lambda: 0")
        with pytest.raises(UsageError, match=says):
            shell.run_line_magic("limosa", line)
    else:
        cell("-n 2 --new", "1")
        with pytest.raises(UsageError, match=says):
            cell(line, text)
