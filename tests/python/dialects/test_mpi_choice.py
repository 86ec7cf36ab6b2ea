"""Which interface `import mpi` is: by variable, by what the script uses, and what is said when a name is not there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from limosa.dialects.mpi_choice import from_source

PYMPI = "import mpi\nprint(mpi.rank, mpi.size)\n"
MYMPI = "import mpi\nprint(mpi.mpi_comm_rank(mpi.MPI_COMM_WORLD))\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (PYMPI, ("pympi", "rank", 2)),
        (MYMPI, ("mympi", "mpi_comm_rank", 2)),
        ("import mpi as M\nM.mpi_init(0, [])", ("mympi", "mpi_init", 2)),
        ("import numpy, mpi\nmpi.bcast(1)", ("pympi", "bcast", 2)),
        ("from mpi import mpi_send as send", ("mympi", "mpi_send", 1)),
        ("from mpi import *\nx = 1\nmpi_send(x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD)", ("mympi", "mpi_send", 3)),
        ("from mpi import *\nprint(rank)", None),
        ("from mpi import MPIError, rank", ("pympi", "MPIError", 1)),
        ("import mpi\ndef f():\n    return mpi.pydusa_version()", ("mympi", "pydusa_version", 3)),
        ("import mpi\nprint(mpi.rank)\nmpi.mpi_init(0, [])", ("mympi", "mpi_init", 3)),
        ("import mpi\nprint(mpi.__file__)", None),
        ("import other\nother.mpi_send()", None),
        ("print 'Python 2'\nimport mpi\nmpi.rank", None),
        ("", None),
    ],
)
def test_names_tell_the_interface(source, expected):
    assert from_source(source) == expected


def run(tmp_path, source, *options, stdin=None, **variables):
    script = tmp_path / "script.py"
    script.write_text(source)
    environment = {name: value for name, value in os.environ.items() if name != "LIMOSA_DIALECT"} | variables
    command = [sys.executable, *(options or [str(script)])]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, input=stdin)


WHICH = "print(mpi.__name__)\n"


@pytest.mark.parametrize(
    ("source", "variable", "name"),
    [
        (PYMPI + WHICH, None, "pympi"),
        (MYMPI + WHICH, None, "mympi"),
        ("import mpi\n" + WHICH, None, "pympi"),
        ("import mpi\n" + WHICH, "mympi", "mympi"),
        ("import mpi\n" + WHICH, "", "pympi"),
        (MYMPI + WHICH, "auto", "mympi"),
        ("import mpi\n" + WHICH + "if 0: mpi.rank\n", "mympi", "mympi"),
    ],
)
def test_the_right_one_is_there(tmp_path, source, variable, name):
    done = run(tmp_path, source, **({} if variable is None else {"LIMOSA_DIALECT": variable}))
    assert done.stdout.splitlines()[-1:] == [f"limosa.dialects.{name}"], done.stderr


def test_programs_given_in_other_ways(tmp_path):
    assert "mympi" in run(tmp_path, "", "-c", MYMPI + WHICH).stdout
    assert "pympi" in run(tmp_path, "", "-", stdin=PYMPI + WHICH).stdout
    assert "mympi" in run(tmp_path, "", "-", stdin="import mpi\n" + WHICH, LIMOSA_DIALECT="mympi").stdout


def test_a_module_of_the_program_counts_too(tmp_path):
    (tmp_path / "helper.py").write_text(MYMPI + WHICH)
    assert "mympi" in run(tmp_path, "import helper\n").stdout


@pytest.mark.parametrize(
    ("source", "because"),
    [
        ("import mpi\nmpi.rank\nprint(getattr(mpi, 'mpi_' + 'init'))", "line 2 of script.py uses 'rank'"),
        (
            "import mpi\nprint(getattr(mpi, 'mpi_' + 'init'))",
            "the names that the script uses do not distinguish pyMPI from MYMPI, and LIMOSA_DIALECT is not set",
        ),
    ],
)
def test_a_missing_name_says_what_was_chosen_why_and_how_to_change_it(tmp_path, source, because):
    done = run(tmp_path, source)
    assert (
        f"AttributeError: 'mpi_init' is not a name of pyMPI's module mpi. pyMPI was chosen because {because}; "
        "for MYMPI run the script with: limosa run --dialect mympi ..., or set LIMOSA_DIALECT=mympi"
    ) in done.stderr
    assert done.returncode == 1


def test_so_does_an_import_of_it(tmp_path):
    done = run(tmp_path, "from mpi import send", LIMOSA_DIALECT="mympi")
    assert (
        "ImportError: 'send' is not a name of MYMPI's module mpi. MYMPI was chosen because LIMOSA_DIALECT=mympi is set"
        in done.stderr
    )
    assert "limosa run --dialect pympi" in done.stderr


def test_scripts_may_ask_whether_a_name_is_there(tmp_path):
    assert (
        run(tmp_path, "import mpi\nprint(hasattr(mpi, 'mpi_init'), getattr(mpi, 'rank', None))").stdout == "False 0\n"
    )


def test_an_unknown_interface_is_an_error(tmp_path):
    done = run(tmp_path, PYMPI, LIMOSA_DIALECT="pypar")
    assert "ImportError: LIMOSA_DIALECT=pypar: the module mpi is known in the dialects pympi and mympi" in done.stderr


def test_the_launcher_s_option_decides(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import mpi\n" + WHICH)
    done = subprocess.run(
        ["limosa", "run", "-n", "1", "--dialect", "mympi", sys.executable, script],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "limosa.dialects.mympi\n", done.stderr
