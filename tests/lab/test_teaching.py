"""The teaching notebook runs from its first cell to its last with what is installed."""

import os
import re
import sysconfig
from pathlib import Path

import nbformat
from jobs import PATIENCE
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "teaching.ipynb"
BIN = sysconfig.get_path("scripts")


def printed(cell):
    """Give what a cell has written."""
    return "".join(output.get("text", "") for output in cell.outputs)


def test_the_notebook_is_kept_without_what_it_has_printed():
    for cell in nbformat.read(NOTEBOOK, 4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_every_cell_runs_and_the_tuned_program_computes_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    monkeypatch.setenv("TEACHING_MINUTES", "0.3")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, 4)
    NotebookClient(notebook, timeout=240 * PATIENCE, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # The cell itself asserts that the sum is the same. On a busy machine the tuning may be wrong about times.
    times, gain = printed(code[-1]).splitlines()
    assert re.fullmatch(r"before: \d+ us for each step, after: \d+ us, noise \d+ %", times)
    assert re.search("less time for a step|nothing faster was found|there is no gain|has become slower", gain)
    said = [printed(cell) for cell in code]
    assert any("t0 = " in text for text in said)
    assert any("takes more than 1.1 times as long as a combination" in text for text in said)
    assert (tmp_path / "tuning.json").is_file()
    assert len([out for cell in code for out in cell.outputs if "image/png" in out.get("data", {})]) == 2
