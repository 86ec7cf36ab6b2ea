"""The fixture `engine`: programs really run on the library named."""

from __future__ import annotations

PROGRAM = """
    import sys
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    names = world.gather(MPI.Get_library_version().split()[0])
    if world.rank == 0:
        print(world.size, set(names), *sys.argv[1:])
"""


def test_a_program_runs_on_the_library_of_the_engine(engine):
    outcome = engine.code(PROGRAM, "word", n=3)
    assert outcome.out.split() == ["3", f"{{'{engine.library.title}'}}", "word"]
