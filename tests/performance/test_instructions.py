"""No call takes more instructions than its ceiling, nor does the profiler or a translation of another ABI add more to
one: a guard against slow growth that no machine's mood disturbs.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from counting import HERE, Count, measure, measure_profiler, measure_translation, missing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.quiet

TABLES: dict[str, dict] = tomllib.loads((HERE / "ceilings.toml").read_text())
CEILINGS: dict[str, dict] = TABLES.get(platform.machine(), {})
OF_PROFILER: dict[str, dict] = TABLES["profiler"].get(platform.machine(), {})
OF_MPICH: dict[str, dict] = TABLES["mpich"].get(platform.machine(), {})
OF_OPEN_MPI: dict[str, dict] = TABLES["openmpi"].get(platform.machine(), {})


def counted(how: Callable[[Path], dict[str, Count]], folders: pytest.TempPathFactory) -> dict[str, Count]:
    lack = missing()
    if lack:
        pytest.skip(f"not run: {lack}")
    return how(folders.mktemp("callgrind"))


@pytest.fixture(scope="module")
def counts(tmp_path_factory) -> dict[str, Count]:
    return counted(measure, tmp_path_factory)


@pytest.fixture(scope="module")
def added(tmp_path_factory) -> dict[str, Count]:
    return counted(measure_profiler, tmp_path_factory)


@pytest.fixture(scope="module")
def from_mpich(tmp_path_factory) -> dict[str, Count]:
    return counted(partial(measure_translation, "mpich"), tmp_path_factory)


@pytest.fixture(scope="module")
def from_open_mpi(tmp_path_factory) -> dict[str, Count]:
    return counted(partial(measure_translation, "openmpi"), tmp_path_factory)


has_no_table = pytest.mark.skipif(
    not CEILINGS,
    reason=f"ceilings.toml has no table for {platform.machine()}; print one with tests/performance/counting.py",
)


def check(case: str, known: dict, now: Count) -> None:
    growth = now.instructions / known["measured"] - 1
    assert now.instructions <= known["ceiling"], (
        f"{case} took {now.instructions} instructions, {growth:.0%} more than the {known['measured']} of "
        f"{known['date']}; the ceiling is "
        f"{known['ceiling']}. See where:\n  callgrind_annotate --inclusive=yes --auto=no --threshold=100 {now.dump}\n"
        "If it is worth it, print new ceilings with:  python tests/performance/counting.py"
    )


@has_no_table
@pytest.mark.parametrize("case", CEILINGS)
def test_a_call_takes_no_more_instructions_than_its_ceiling(counts, case):
    check(case, CEILINGS[case], counts[case])


@has_no_table
@pytest.mark.parametrize("case", OF_PROFILER)
def test_the_profiler_adds_no_more_instructions_than_its_ceiling(added, case):
    check(f"the profiler in {case}", OF_PROFILER[case], added[case])


@has_no_table
@pytest.mark.parametrize("case", OF_MPICH)
def test_the_translation_of_mpichs_abi_adds_no_more_instructions_than_its_ceiling(from_mpich, case):
    check(f"the translation in {case}", OF_MPICH[case], from_mpich[case])


@has_no_table
@pytest.mark.parametrize("case", OF_OPEN_MPI)
def test_the_translation_of_open_mpis_abi_adds_no_more_instructions_than_its_ceiling(from_open_mpi, case):
    check(f"the translation in {case}", OF_OPEN_MPI[case], from_open_mpi[case])


@has_no_table
def test_every_case_has_a_ceiling_that_leaves_little_room(counts, added, from_mpich, from_open_mpi):
    pairs = ((counts, CEILINGS), (added, OF_PROFILER), (from_mpich, OF_MPICH), (from_open_mpi, OF_OPEN_MPI))
    for measured, ceilings in pairs:
        assert set(measured) == set(ceilings)
        for case, known in ceilings.items():
            assert known["measured"] < known["ceiling"] <= 1.2 * known["measured"], case
