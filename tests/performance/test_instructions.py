"""No call takes more instructions than its ceiling: a guard against slow growth that no machine's mood disturbs."""

from __future__ import annotations

import platform
import sys

import pytest
from counting import HERE, Count, measure, missing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.quiet

CEILINGS: dict[str, dict] = tomllib.loads((HERE / "ceilings.toml").read_text()).get(platform.machine(), {})


@pytest.fixture(scope="module")
def counts(tmp_path_factory) -> dict[str, Count]:
    lack = missing()
    if lack:
        pytest.skip(f"not run: {lack}")
    return measure(tmp_path_factory.mktemp("callgrind"))


@pytest.mark.skipif(
    not CEILINGS,
    reason=f"ceilings.toml has no table for {platform.machine()}; print one with tests/performance/counting.py",
)
@pytest.mark.parametrize("case", CEILINGS)
def test_a_call_takes_no_more_instructions_than_its_ceiling(counts, case):
    known, now = CEILINGS[case], counts[case]
    growth = now.instructions / known["measured"] - 1
    assert now.instructions <= known["ceiling"], (
        f"{case} took {now.instructions} instructions, {growth:.0%} more than the {known['measured']} of "
        f"{known['date']}; the ceiling is "
        f"{known['ceiling']}. See where:\n  callgrind_annotate --inclusive=yes --auto=no --threshold=100 {now.dump}\n"
        "If it is worth it, print new ceilings with:  python tests/performance/counting.py"
    )


@pytest.mark.skipif(not CEILINGS, reason="no ceilings for this kind of processor")
def test_every_case_has_a_ceiling_that_leaves_little_room(counts):
    assert set(counts) == set(CEILINGS)
    for case, known in CEILINGS.items():
        assert known["measured"] < known["ceiling"] <= 1.2 * known["measured"], case
