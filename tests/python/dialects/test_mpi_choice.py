"""Which interface `import mpi` is: by variable, by what the script uses, and what is said when a name is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
        ("import mpi\nmpi.rank\nmpi.all_reduce(mpi.world, 1, max)", ("boost", "all_reduce", 3)),
        ("import mpi\nprint(mpi.world.rank)", ("boost", "world", 2)),
        ("from mpi import Communicator", ("boost", "Communicator", 1)),
        ("from mpi import *\nx = all_gather(world, 1)", ("boost", "all_gather", 2)),
        ("from mpi import *\nworld = 1\nprint(world)", None),
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
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, input=stdin)


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
        ("import mpi\nmpi.world\n" + WHICH, None, "boost_mpi"),
        ("import mpi\n" + WHICH, "boost", "boost_mpi"),
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
            "the names that the script uses do not distinguish pyMPI from the others, and LIMOSA_DIALECT is not set",
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


def test_a_name_of_boost_leads_to_boost(tmp_path):
    done = run(tmp_path, "import mpi\nmpi.rank\nprint(getattr(mpi, 'all_' + 'reduce'))")
    assert "for Boost.MPI run the script with: limosa run --dialect boost ..." in done.stderr
    done = run(tmp_path, "import mpi\nmpi.world\nmpi.allreduce(1, mpi.SUM)")
    assert "'allreduce' is not a name of Boost.MPI's module mpi" in done.stderr
    assert "limosa run --dialect pympi" in done.stderr


BOOST = """
# in the way of the tests of Boost.MPI's bindings
from __future__ import print_function
import mpi
import operator
from generators import *

def all_reduce_test(comm, generator, kind, op, op_kind):
    my_value = generator(comm.rank)
    result = mpi.all_reduce(comm, my_value, op)
    expected = generator(0)
    for p in range(1, comm.size):
        expected = op(expected, generator(p))
    assert result == expected
    if comm.rank == 0:
        print("reduced", kind, op_kind)
    (comm or mpi.world).barrier()

def ring_test(comm):
    request = comm.isend((comm.rank + 1) % comm.size, 0, comm.rank)
    assert comm.recv((comm.rank + comm.size - 1) % comm.size, 0) == (comm.rank + comm.size - 1) % comm.size
    request.wait()
    data, status = comm.recv(mpi.any_source, 1, return_status=True) if comm.rank == 0 and comm.size > 1 else (0, None)
    if comm.rank == comm.size - 1 and comm.size > 1:
        comm.send(0, 1, "last")

all_reduce_test(mpi.world, int_generator, "integers", lambda x, y: x + y, "sum")
all_reduce_test(mpi.world, string_generator, "strings", lambda x, y: x + y, "concatenation")
all_reduce_test(mpi.world, string_list_generator, "list of strings", lambda x, y: x + y, "concatenation")
ring_test(mpi.world)
local = mpi.world.split(mpi.world.rank % 2)
assert list(mpi.all_gather(local, mpi.world.rank)) == [r for r in range(mpi.world.size) if r % 2 == mpi.world.rank % 2]
"""


def test_a_program_like_the_tests_of_boost_runs(engine, tmp_path):
    (tmp_path / "generators.py").write_text(
        "def int_generator(p):\n    return 17 + p\n"
        "def string_generator(p):\n    return 'X' * p\n"
        "def string_list_generator(p):\n    return [str(i) for i in range(p)]\n"
    )
    outcome = engine.code(BOOST, n=3)
    assert outcome.out.count("reduced") == 3, outcome.text


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
    assert (
        "ImportError: LIMOSA_DIALECT=pypar: the module mpi is known in the dialects pympi, mympi, boost" in done.stderr
    )


def test_the_launcher_s_option_decides(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import mpi\n" + WHICH)
    done = subprocess.run(
        [Path(sys.executable).parent / "limosa", "run", "-n", "1", "--dialect", "mympi", sys.executable, script],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "limosa.dialects.mympi\n", done.stderr
