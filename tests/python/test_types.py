"""Programs that use the interface pass mypy and Pyright in their strict modes; wrong ones do not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
TYPED = Path(__file__).parent / "programs" / "typed.py"

WRONG = {
    "an operation that is not there": 'limosa.world.allreduce(1, "average")',
    "a keyword of mpi4py": "limosa.world.send(1, dest=0)",
    "a method of mpi4py": "limosa.world.Allreduce(1)",
    "a value that may be None": "limosa.world.reduce(1) + 1",
    "a communicator that may be None": "with limosa.world.split(None):\n    pass",
    "another type": "text: str = limosa.world.allreduce(1)",
}


Found = dict[str, list[str]]


def mypy(folder: Path) -> Found:
    """What mypy finds in each file of a folder."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", "--cache-dir"]
    done = subprocess.run(
        [*command, folder / "cache", *sorted(folder.glob("*.py"))],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not done.stderr, done.stderr
    found: Found = {}
    for line in done.stdout.splitlines():
        found.setdefault(Path(line.split(":")[0]).name, []).append(line)
    return found


def pyright(folder: Path) -> Found:
    """What Pyright finds in each file of a folder."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "include": ["*.py"]}))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "--project"]
    done = subprocess.run([*command, folder], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py"))), report
    found: Found = {}
    for one in report["generalDiagnostics"]:
        line = f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}"
        found.setdefault(Path(one["file"]).name, []).append(line)
    return found


@pytest.fixture(scope="module", params=[mypy, pyright])
def found(request, tmp_path_factory) -> Found:
    """What a checker finds in the programs of all tests: one run reads the package and NumPy once."""
    folder = tmp_path_factory.mktemp("typed")
    for number, program in enumerate(PROGRAMS):
        (folder / f"program{number}.py").write_text(program)
    (folder / "typed.py").write_text(TYPED.read_text())
    for number, text in enumerate(WRONG.values()):
        (folder / f"wrong{number}.py").write_text(f"import limosa\n\n{text}\n")
    return request.param(folder)


def test_the_programs_of_the_guide_are_typed(found):
    assert PROGRAMS
    wrong = {name: lines for name, lines in found.items() if not name.startswith(("typed.py", "wrong"))}
    assert wrong == {}


def test_results_have_the_types_of_what_was_given(found):
    assert found.get("typed.py", []) == []


def test_wrong_programs_are_refused(found):
    accepted = [what for number, what in enumerate(WRONG) if f"wrong{number}.py" not in found]
    assert not accepted, found


def test_the_typed_program_runs(engine):
    engine.run(TYPED, n=3)
