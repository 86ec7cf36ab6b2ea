"""Statistics: samples of all rounds are pooled, the best peer is chosen by the direction of the metric."""

import pytest
from limosa_lab import records, stats
from made_records import environment, sample


@pytest.fixture
def results(keep):
    return lambda *lines: stats.results(records.read(keep(environment(), *lines)).samples)


def only(found):
    ((case, by_library),) = found.items()
    return case, by_library


def test_samples_of_all_rounds_are_pooled(results):
    _, by = only(
        results(sample("limosa", "pingpong", [1.0, 2.0]), sample("limosa", "pingpong", [3.0, 4.0, 5.0], round=1))
    )
    summary = by["limosa"]
    assert (summary.count, summary.low, summary.lower, summary.median, summary.upper, summary.high) == (
        5,
        1,
        2,
        3,
        4,
        5,
    )


def test_samples_that_failed_verification_are_left_out(results):
    _, by = only(results(sample("limosa", "pingpong", [1.0]), sample("limosa", "pingpong", [900.0], verified=False)))
    assert by["limosa"].median == 1.0


def test_sizes_parameters_ranks_and_forms_are_kept_apart(results):
    found = results(
        sample("limosa", "m", [1.0]),
        sample("limosa", "m", [2.0], bytes=16),
        sample("limosa", "m", [3.0], ranks=4),
        sample("limosa", "m", [4.0], form="cold"),
        sample("limosa", "m", [5.0], x={"posted": 10}),
        sample("limosa", "m", [6.0], x={"posted": 2}),
        sample("limosa", "m", [7.0], x={"kind": "a", "posted": 2}),
    )
    assert sorted(by["limosa"].median for by in found.values()) == [1, 2, 3, 4, 5, 6, 7]
    posted = [dict(case.x)["posted"] for case in found if [name for name, _ in case.x] == ["posted"]]
    assert posted == [2, 10], "rows are in the order of numbers, not of digits"


@pytest.mark.parametrize(
    "unit, limosa, peers, ratio, cost, best",
    [
        ("us", 2.0, {"mpich": 4.0, "intel": 5.0}, 0.5, 0.5, "mpich"),
        ("MB/s", 6000.0, {"mpich": 3000.0, "intel": 4000.0}, 1.5, 1 / 1.5, "intel"),
        ("%", 90.0, {"mpich": 10.0, "intel": 9.0}, 9.0, 1 / 9, "mpich"),
    ],
)
def test_ratio_is_to_the_best_peer(results, unit, limosa, peers, ratio, cost, best):
    lines = [sample(name, "b", [value], unit=unit) for name, value in {"limosa": limosa, **peers}.items()]
    case, by = only(results(*lines))
    assert stats.ratio(case, by) == pytest.approx(ratio)
    assert stats.cost(case, by) == pytest.approx(cost)
    assert stats.best_peer(case, by)[0] == best


def test_there_is_no_ratio_without_peers_or_with_a_peer_at_zero(results):
    case, by = only(results(sample("limosa", "b", [1.0])))
    assert stats.ratio(case, by) is None
    zero = {"limosa": by["limosa"], "mpich": stats.summarize([0.0])}
    assert stats.ratio(case, zero) is None


def test_geometric_mean_treats_double_and_half_alike():
    assert stats.geometric_mean([0.5, 2.0, 1.0]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("one", "other", "different"),
    [
        ([1.0, 1.1, 1.2], [2.0, 2.1, 2.2], True),
        ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], False),  # ranges from 1.5 to 2.5 and from 2.5 to 3.5 touch
        ([1.0, 9.0, 9.0], [2.0, 2.0, 9.0], False),  # medians far from each other, in ranges that overlap
        ([100.0] * 3, [110.0] * 3, False),  # 10 % and no more
        ([100.0] * 3, [111.0] * 3, True),
    ],
)
def test_samples_differ_if_ranges_do_not_overlap_and_medians_are_far_apart(one, other, different):
    summaries = stats.summarize(one), stats.summarize(other)
    assert stats.differ(*summaries) == different
    assert stats.differ(*reversed(summaries)) == different
