"""Programs and their headers, and the order of the runs."""

from pathlib import Path

import pytest
from limosa_lab import catalogue, schedule
from limosa_lab.errors import LabError


def program(header, name="p"):
    return catalogue.parse_header(name, Path(f"{name}.c"), header)


@pytest.mark.parametrize(
    "words, ranks",
    [
        ("ranks=2", (2,)),
        ("ranks=2,4,8", (2, 4, 8)),
        ("ranks=1..64", (1, 2, 4, 8, 16, 32, 64)),
        ("ranks=even", (2, 4, 8)),
        ("ranks=2,3,4 even", (2, 4)),
    ],
)
def test_headers_say_the_numbers_of_ranks(words, ranks):
    assert program(f"/* lab: {words} */").ranks == ranks


def test_a_header_may_set_a_time_limit():
    assert program("/* lab: ranks=2 limit=300 */").limit == 300
    assert program("/* lab: ranks=2 */").limit is None


@pytest.mark.parametrize("line", ["#include <mpi.h>", "/* lab: ranks=two */", "/* lab: rank=2 */", "/* lab: */"])
def test_a_header_that_is_not_understood_names_the_file(line):
    with pytest.raises(LabError, match=r"p\.c"):
        program(line)


def test_every_program_that_is_shipped_has_a_header_and_is_in_a_group():
    names = set(catalogue.programs())
    assert names == {name for group in catalogue.GROUPS.values() for name in group}


def test_groups_and_names_may_be_mixed():
    available = catalogue.programs()
    chosen = [program.name for program in catalogue.choose(["coll", "pingpong"], available)]
    assert chosen == ["collectives", "icollectives", "pingpong"]


def test_benchmarks_are_found_in_the_programs_that_have_them():
    available = list(catalogue.programs().values())
    assert [p.name for p in catalogue.for_benches(["independence_send"], available)] == ["independence"]
    assert [p.name for p in catalogue.for_benches(["pingpong"], available)] == ["pingpong"]
    assert [p.name for p in catalogue.for_benches(["start"], available)] == ["init_finalize"]
    for bench in ("ibcast", "bcast_init"):
        assert "icollectives" in [p.name for p in catalogue.for_benches([bench], available)]
    with pytest.raises(LabError, match="no_such_bench"):
        catalogue.for_benches(["pingpong", "no_such_bench"], available)


def test_only_the_wanted_parts_of_the_collectives_are_run():
    available = catalogue.programs()
    todo = schedule.tasks([available["collectives"]], [4], ["bcast", "barrier"])
    assert [(task.ranks, task.benches) for task in todo] == [(4, ("bcast",)), (4, ("barrier",))]
    every = schedule.tasks([available["collectives"]], [2], [])
    assert [task.benches for task in every] == [(name,) for name in catalogue.COLLECTIVES]


def test_libraries_take_turns_and_each_is_first_equally_often():
    todo = schedule.tasks([program("/* lab: ranks=2,4,8 */")], [], [])
    libraries = ["a", "b", "c"]
    order = list(schedule.turns(2, todo, libraries))
    groups = [order[at : at + 3] for at in range(0, len(order), 3)]
    for group in groups:
        assert len({(number, task) for number, task, _ in group}) == 1, (
            "the libraries run the same task right after each other"
        )
        assert sorted(name for _, _, name in group) == libraries
    assert sorted(group[0][2] for group in groups) == ["a", "a", "b", "b", "c", "c"]
