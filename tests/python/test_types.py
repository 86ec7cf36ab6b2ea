"""Programs that use the interface pass mypy and Pyright in their strict modes; wrong ones do not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
TYPED = Path(__file__).parent / "programs" / "typed.py"

WRONG = {
    "an operation that is not there": 'limosa.world.allreduce(1, "average")',
    "a keyword of mpi4py": "limosa.world.send(1, dest=0)",
    "a method of mpi4py": "limosa.world.Allreduce(1)",
    "a value that may be None": "limosa.world.reduce(1) + 1",
    "a communicator that may be None": "with limosa.world.split(None):\n    pass",
    "another type": "text: str = limosa.world.allreduce(1)",
}


def mypy(files: list[Path], folder: Path) -> str:
    """What mypy finds, line by line; empty if all is well."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", "--cache-dir"]
    done = subprocess.run(
        [*command, folder / "cache", *files], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert not done.stderr, done.stderr
    return done.stdout


def pyright(files: list[Path], folder: Path) -> str:
    """What Pyright finds."""
    settings = {"typeCheckingMode": "strict", "include": [str(file) for file in files]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        "--project",
        folder,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return "\n".join(f"{one['file']}:{one['range']['start']['line'] + 1}: {one['message']}" for one in found)


@pytest.fixture(params=[mypy, pyright])
def check(request):
    return request.param


def test_the_programs_of_the_guide_are_typed(check, tmp_path):
    programs = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    files = [tmp_path / f"program{number}.py" for number in range(len(programs))]
    for file, program in zip(files, programs, strict=True):
        file.write_text(program)
    assert check(files, tmp_path) == ""


def test_results_have_the_types_of_what_was_given(check, tmp_path):
    file = tmp_path / "typed.py"
    file.write_text(TYPED.read_text())
    assert check([file], tmp_path) == ""


def test_wrong_programs_are_refused(check, tmp_path):
    files = []
    for number, text in enumerate(WRONG.values()):
        files.append(tmp_path / f"wrong{number}.py")
        files[-1].write_text(f"import limosa\n\n{text}\n")
    found = check(files, tmp_path)
    accepted = [what for number, what in enumerate(WRONG) if f"wrong{number}.py:" not in found]
    assert not accepted, found


def test_the_typed_program_runs(engine):
    engine.run(TYPED, n=3)
