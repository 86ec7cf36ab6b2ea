"""pMatlab's distributed arrays in Octave: the vectors that all languages share, operators, messages, and programs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from conftest import BUILT, LIMOSA, OPTIONS, ROOT
from jobs import run_job

PROGRAMS = Path(__file__).parent / "pmatlab"
PATHS = ("matlabmpi", "pmatlab")


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_maps_and_operations_give_what_the_shared_vectors_say(octave, n):
    before = f"setenv ('VECTORS', '{ROOT / 'tests' / 'arrays'}');"
    outcome = octave.run_in_turn(PROGRAMS / "vectors.m", n=n, paths=PATHS, limit=300, before=before)
    assert "vectors: all right" in outcome.out


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_arrays_do_what_ordinary_arrays_do(octave, n):
    outcome = octave.run_in_turn(PROGRAMS / "arrays.m", n=n, paths=PATHS, limit=300)
    assert "arrays: all right" in outcome.out
    assert outcome.out.count("Z =") == 1  # shown once


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_functions_and_statements_give_what_ordinary_arrays_give_or_an_error(octave, n):
    outcome = octave.run_in_turn(PROGRAMS / "oracle.m", n=n, paths=PATHS, limit=300)
    wrong = [line for line in outcome.out.splitlines() if line.startswith("WRONG")]
    assert not wrong, outcome.out
    assert "oracle: all compared" in outcome.out


@pytest.mark.parametrize("n", [1, 3])
def test_uniform_numbers_are_those_of_python(octave, n):
    outcome = octave.code_in_turn(
        """
        A = agg (uniform (3, 4, map ([Np 1], 'c', 0:Np-1), 7));
        if (Pid == 0)
          printf ("%.17g\\n", A');
        end
        """,
        n=n,
        paths=PATHS,
    )
    expected = (np.random.Philox(key=7).random_raw(12) >> np.uint64(11)) * 2.0**-53
    assert [float(word) for word in outcome.out.split()] == expected.tolist()


def test_arrays_are_gathered_host_by_host(octave):
    script = PROGRAMS / "arrays.m"
    outcome = octave.run(script, n=4, paths=PATHS, limit=300, env={"LIMOSA_HOSTS": "2"})
    assert "arrays: all right" in outcome.out


@pytest.mark.parametrize("n", [2, 3])
def test_messages_of_programs(octave, n):
    outcome = octave.run_in_turn(PROGRAMS / "messages.m", n=n, paths=PATHS)
    assert "messages: all right" in outcome.out


def test_prun_runs_a_script_twice_from_an_interpreter_and_leaves_nothing(octave):
    """Rank 0 runs in an Octave that no launcher has started."""
    (octave.folder / "prog.m").write_text(
        "X = ones (4, 3, map ([Np 1], {}, 0:Np-1));\nfound = sum (sum (X));\nranks = Np;\n"
    )
    folders = [BUILT / "limosa", *(folder / name for name in PATHS for folder in (BUILT, ROOT / "octave"))]
    text = """
        assert (Np, 1);
        for n = [3 2]
          eval (pRUN ("prog", n, {}));
          assert (found, 12);
          assert (ranks, n);
          assert (Np, 1);
        end
        MatMPI_Delete_all;
        assert (isempty (glob (".pRUN*")) && isempty (glob ("MatMPI")));
        disp ("ran twice");
    """
    script = octave.folder / "session.m"
    script.write_text("".join(f"addpath ('{folder}');\n" for folder in folders) + text)
    variables = os.environ | {"PATH": f"{LIMOSA.parent}:{os.environ['PATH']}"}
    outcome = run_job(["octave-cli", *OPTIONS, str(script)], 60, env=variables, cwd=octave.folder)
    assert "ran twice" in outcome.out, outcome.text


def test_an_error_on_one_rank_ends_the_job_with_its_text(octave):
    outcome = octave.code(
        """
        X = ones (4, 3, map ([Np 1], {}, 0:Np-1));
        if (Pid == 1)
          X + ones (3, 4);
        end
        agg (X);
        """,
        n=2,
        paths=PATHS,
        succeeds=False,
    )
    assert outcome.code != 0
    assert "the distributed operand is [4 3], the other one [3 4]" in outcome.text


EXAMPLES = sorted((ROOT / "octave" / "examples" / "pmatlab").glob("p*.m"))


@pytest.mark.parametrize("n", [1, 3, 4])
@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_example_checks_its_own_result(octave, program, n):
    before = f"addpath ('{program.parent}', '-end');"
    outcome = octave.run_in_turn(program, n=n, paths=PATHS, limit=300, before=before)
    assert f"{program.stem[1:]}: SUCCESS" in outcome.out
