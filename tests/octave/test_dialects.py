"""A script of a toolbox of the past that is started without its ``--dialect``, or with another's, is told which."""

from __future__ import annotations

import subprocess

import pytest
from conftest import LIMOSA
from jobs import Job

MATLABMPI = "MPI_Init; comm = MPI_COMM_WORLD; disp (MPI_Comm_rank (comm)); MatMPI_Host_rank (comm); MPI_Finalize;"
EITHER = "MPI_Init; comm = MPI_COMM_WORLD; n = MPI_Comm_size (comm); printf ('%d of %d\\n', MPI_Comm_rank (comm), n);"
MPITB = "[info] = MPI_Init; [info, rank] = MPI_Comm_rank (MPI_COMM_WORLD); disp (rank);"
MPITB_UNNAMED = "MPI_Init; [~, rank] = MPI_Comm_rank (MPI_COMM_WORLD); disp (rank);"
MPI = "pkg load mpi; MPI_Init (); disp (MPI_Comm_rank (MPI_COMM_WORLD));"
MPI_SENDS = "MPI_Init; MPI_Send (1:3, 0, 1, MPI_COMM_WORLD);"


@pytest.mark.parametrize(
    ("text", "dialect", "right"),
    [
        (MATLABMPI, None, "matlabmpi"),
        (EITHER, None, "matlabmpi (MatlabMPI) or --dialect mpi"),
        (MPITB, None, "mpitb"),
        (MPI, None, "mpi"),
        ("disp (Np)", None, "pmatlab"),
        (EITHER, "mpitb", "matlabmpi or --dialect mpi"),
        (MPITB, "matlabmpi", "mpitb"),
        (MPITB_UNNAMED, "mpi", "mpitb"),
        (MATLABMPI.replace("MatMPI_Host_rank (comm)", "MPI_Send (0, 1, comm, 5)"), "mpi", "matlabmpi"),
        (MPI_SENDS, "matlabmpi", "mpi"),
        ("disp (Np)", "mpitb", "pmatlab"),
        (EITHER, "pympi", "pympi is not for Octave; for Octave there are matlabmpi, mpi, mpitb, pmatlab"),
    ],
)
def test_the_right_dialect_is_named(octave, text, dialect, right):
    paths = (dialect,) if dialect else ()
    outcome = octave.code(text, n=2, paths=paths, succeeds=False)
    assert outcome.code != 0 and f"--dialect {right}" in outcome.err, outcome.text
    assert "0 of 0" not in outcome.out


def test_a_misspelt_name_gets_no_hint(octave):
    outcome = octave.code("limosa_snd (1, 0)", n=1, succeeds=False)
    assert "'limosa_snd' undefined" in outcome.err and "dialect" not in outcome.err


@pytest.mark.parametrize("dialect", [None, "mpitb"])
def test_octave_itself_finds_the_functions(octave, dialect):
    (octave.folder / "Hello.m").write_text(
        "function Hello\n  MPI_Init; [~, r] = MPI_Comm_rank (MPI_COMM_WORLD);\n"
        "  printf ('rank %d\\n', r); MPI_Finalize;\nend\n"
    )
    options = ["--dialect", dialect] if dialect else []
    code = "Hello" if dialect else "printf ('rank %d\\n', limosa_rank ());"
    line = [str(LIMOSA), "run", "-n", "2", *options, "octave-cli", "-q", "--eval", code]
    outcome = Job(line, cwd=octave.folder).wait(60)
    assert outcome.code == 0 and sorted(outcome.out.split("\n")) == ["", "rank 0", "rank 1"], outcome.text


def test_a_rank_of_octave_itself_that_is_ended_leaves_nothing(octave):
    code = "x = 1; limosa_rank (); disp (getenv ('LD_PRELOAD')); fflush (stdout); limosa_recv ();"
    line = [str(LIMOSA), "run", "-n", "2", "octave-cli", "-q", "--eval", code]
    job = Job(line, cwd=octave.folder, stdin=subprocess.DEVNULL)
    assert job.read_lines(2) == ["", ""]
    job.process.terminate()
    assert "octave-workspace" not in job.wait(30).text
    assert not list(octave.folder.iterdir())
