"""The functions of Octave's package `mpi`, in which a message is a value that is returned."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT
from test_help import examples

PATHS = ["mpi"]

VALUES = """
    {123.4, single(123.4), true, "a message", magic(5), cat(3, magic (5), 2 * magic (5)), 1:5, 0.1:0.1:0.5, ...
     [1+2i, 3], single(2i), int8(-3), uint64(2)^60, [], "", {}, sparse([1 3], [2 4], [5 6], 4, 4), ...
     sparse([1 0; 0 1]) > 0, struct("f1", 1, "f2", 25), struct("f1", {1 3; 2 4}, "f2", 25), ...
     {"this", {1, "is"}; 2, []}, ...
     struct("f1", 123, "f2", struct ("g1", "text", "g2", magic (3)), "f3", {{"a", "b"}}), ["two"; "row"], @sin, ...
     rand(300)}
"""


def test_values_of_every_class_arrive_at_one_rank_and_at_a_vector_of_ranks(octave):
    octave.code(
        f"""
        pkg load mpi
        MPI_Init ();
        CW = MPI_Comm_Load ("NEWORLD");
        [my_rank, info] = MPI_Comm_rank (CW);
        assert (info, 0);
        [p, info] = MPI_Comm_size (CW);
        assert ([p, info], [3, 0]);
        rand ("twister", 1);
        values = {VALUES.strip()};
        for tag = 1:numel (values)
          if my_rank == 0
            assert (MPI_Send (values{{tag}}, 1, tag, CW), 0);
          elseif my_rank == 1
            [value, info] = MPI_Recv (0, tag, CW);
            assert (info, 0);
            assert (class (value), class (values{{tag}}));
            assert (isequal (value, values{{tag}}) && issparse (value) == issparse (values{{tag}}));
          end
          assert (MPI_Barrier (CW), 0);
        end
        for tag = 1:numel (values) - 1       # the last one is too long for a rank that sends it to itself
          if my_rank == 0
            MPI_Send (values{{tag}}, 0:p - 1, tag, CW);
          end
          assert (isequal (MPI_Recv (0, tag, CW), values{{tag}}));
        end
        if my_rank == 2
          MPI_Send (values{{end}}, [0 1], 99, CW);
        else
          assert (MPI_Recv (2, 99, CW), values{{end}});
        end
        assert (MPI_Finalize (), 0);
        """,
        n=3,
        paths=PATHS,
    )


def test_probing_tells_which_message_is_there(octave):
    octave.code(
        """
        [flag, info] = MPI_Initialized ();
        assert ([flag, info], [0 0]);
        MPI_Init;
        assert (MPI_Initialized () && ! MPI_Finalized ());
        CW = MPI_COMM_WORLD;
        rank = MPI_Comm_rank (CW);
        [flag, stat, info] = MPI_Iprobe (-1, -1, CW);
        assert ({flag, info, stat.MPI_SOURCE, stat.MPI_Get_count}, {0, 0, 0, 0});
        MPI_Barrier (CW);
        if rank == 1
          MPI_Send ("hello", 0, 12, CW);
        else
          [stat, info] = MPI_Probe (-1, -1, CW);
          assert ([stat.MPI_SOURCE, stat.MPI_TAG, stat.MPI_ERROR, stat.cancelled, info], [1 12 0 0 0]);
          assert (stat.MPI_Get_count > 5);
          [flag, stat] = MPI_Iprobe (1, 12, CW);
          assert ([flag, stat.MPI_SOURCE, stat.MPI_TAG], [1 1 12]);
          assert (MPI_Iprobe (1, 13, CW), 0);
          assert (MPI_Recv (-1, -1, CW), "hello");
          assert (MPI_Iprobe (-1, -1, CW), 0);
        end
        [name, n, info] = MPI_Get_processor_name ();
        assert ({name, n, info}, {gethostname(), numel(name), 0});
        MPI_Finalize;
        assert (MPI_Finalized ());
        disp ("goes on");
        assert (iscell (pkg ("list")));
        """,
        paths=PATHS,
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("MPI_Comm_rank (MPI_COMM_WORLD)", "MPI_Comm_rank: MPI is not initialized: call MPI_Init first"),
        ("MPI_Init; MPI_Init", "MPI has been initialized already"),
        ("MPI_Init; C = MPI_COMM_WORLD; MPI_Finalize; MPI_Barrier (C)", "MPI_Finalize has been called"),
        ("MPI_Init; MPI_Send (1, 0, 1)", "MPI_Send: there are 3 arguments, and 4 are needed"),
        ("MPI_Init; MPI_Recv (0, 1, 2, MPI_COMM_WORLD)", "MPI_Recv: there are 4 arguments, and 3 are needed"),
        ("MPI_Init; MPI_Send (1, 0, 1, 'world')", "class char and no communicator; take MPI_COMM_WORLD"),
        ("MPI_Init; MPI_Send (1, [], 1, MPI_COMM_WORLD)", "the second argument is the rank, or a vector of ranks"),
        ("MPI_Init; MPI_Send (1, 'a', 1, MPI_COMM_WORLD)", "the second argument is the rank, or a vector of ranks"),
        ("MPI_Init; MPI_Send (1, 7, 1, MPI_COMM_WORLD)", "rank is 7, but MPI_COMM_WORLD has rank 0 only"),
        ("MPI_Init; MPI_Send (1, 0, -5, MPI_COMM_WORLD)", "tag"),
        ("pkg load mpi not_there", "not_there"),
        ("MPI_Init; MPI_Recv (0, 'x', MPI_COMM_WORLD)", "tag"),
        ("MPI_Init; MPI_Send ({inputParser}, 0, 1, MPI_COMM_WORLD)", "class"),
    ],
)
def test_wrong_calls_are_clear_errors(octave, code, said):
    outcome = octave.code(code, n=1, paths=PATHS, succeeds=False)
    assert outcome.code == 1 and said in outcome.err, outcome.text
    assert outcome.err.count("error: ") <= 2 + outcome.err.count("called from"), outcome.err


def test_programs_end_well_and_examples_of_help_texts_run(octave):
    outcome = octave.run(ROOT / "octave" / "examples" / "mpi" / "Pi.m", n=3, paths=PATHS)
    assert outcome.out == "pi is 3.1415926536\n"
    source = (ROOT / "octave" / "src" / "mpi.cc").read_text()
    texts = dict(re.findall(r'DEFUN_DLD\((MPI_\w+),.*?R"\((.*?)\)"\)', source, re.DOTALL))
    assert len(texts) == 14 and all("@deftypefn" in text for text in texts.values())
    code = [one for text in texts.values() for one in examples(text)]
    assert len(code) >= 4
    octave.code("MPI_Init;\n" + "\nMPI_Barrier (MPI_COMM_WORLD);\n".join(code), paths=PATHS)
