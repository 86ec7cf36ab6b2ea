"""Models of communication: what is fitted from samples of known parameters, and what follows from them.

The known parameters and metrics are those that the source of the model has printed for four clusters.
"""

import csv
import json
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from types import SimpleNamespace

import made_records
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jobs import PATIENCE, run_job
from limosa_lab import catalogue, records
from limosa_lab.cli import main
from limosa_lab.errors import LabError
from limosa_lab.model import equivalents, fitting, measuring, metrics, plan, samples, store
from limosa_lab.model.equivalents import GUIDELINES, Guideline, Part
from limosa_lab.model.fitting import Point, TooFewError
from limosa_lab.model.growth import Growth, fit_growth, parse_growth
from limosa_lab.model.library import fit_operation
from limosa_lab.model.models import Hockney, Line, LinearProtocol, LogGP, PerProcesses, Piecewise

# Numbers of processes for which each table's models hold.
PROCESSES = {1: (2, 4, 8, 16), 2: (2, 4, 8), 3: (4, 8, 16), 4: (8, 16, 32)}
# Metrics that are not what their own model gives: misprints of the source.
MISPRINTS = {
    (1, "gather", "mpiJava", "asymptotic_bandwidth"),
    (2, "scatter", "MPJ/Ibis", "specific_performance"),
    (3, "allgather", "MPJ/Ibis", "specific_performance"),
    (4, "allreduce", "MPJ/Ibis", "asymptotic_bandwidth"),
    # These two follow from the parameters of table 3, with 32 processes.
    (4, "barrier", "ScaMPI", "specific_performance"),
    (4, "barrier", "mpiJava", "specific_performance"),
}
SIZES = (0, *(4**k for k in range(11)))


def rows():
    file = Path(__file__).parent / "data" / "message_passing_libraries.csv"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    return [row | {"table": int(row["table"])} for row in csv.DictReader(lines)]


def named(row):
    return f"table{row['table']}-{row['operation']}-{row['library']}"


TABLES = rows()
TIMED = [row for row in TABLES if row["operation"] != "barrier"]


def model_of(row):
    t0, intercept, tb = (parse_growth(row[name]) for name in ("t0", "i", "tb"))
    return LinearProtocol(t0, intercept, tb.scaled(1e-3))


def models_of(table, library):
    return {row["operation"]: model_of(row) for row in TIMED if (row["table"], row["library"]) == (table, library)}


def test_all_rows_of_the_tables_are_there():
    assert len(TABLES) == 147
    assert len(TIMED) == 133


@pytest.mark.parametrize("row", TABLES, ids=named)
def test_metrics_follow_from_the_parameters(row):
    operation, processes = row["operation"], PROCESSES[row["table"]]
    computed = {
        "specific_performance": metrics.peak(
            metrics.specific_performance(operation, parse_growth(row["t0"]), p) for p in processes
        )
    }
    if row["tb"]:
        tb = parse_growth(row["tb"]).scaled(1e-3)
        computed["asymptotic_bandwidth"] = metrics.peak(
            metrics.asymptotic_bandwidth(operation, tb, p) for p in processes
        )
    for metric, value in computed.items():
        if (row["table"], operation, row["library"], metric) in MISPRINTS:
            assert value != pytest.approx(float(row[metric]), rel=0.02)
        else:
            assert value == pytest.approx(float(row[metric]), rel=0.02)


@pytest.mark.parametrize("row", TIMED, ids=named)
def test_parameters_are_found_again(row):
    """From what each parameter is for each p, the function of p; from these samples, each parameter."""
    most = {"send": 2}.get(row["operation"], 8 if row["table"] == 2 else 16)
    processes = range(2, most + 1)
    for name in ("t0", "i", "tb"):
        true = parse_growth(row[name])
        kinds = ("log", "linear", "log of 2p") if true.kind == "log of 2p" else ("log", "linear")
        found = fit_growth(processes, [true(p) for p in processes], kinds)
        assert [found(p) for p in processes] == pytest.approx([true(p) for p in processes], rel=1e-6, abs=1e-6)
        if true.b and len(processes) > 2 and true.kind != "log of 2p":
            assert found.kind == true.kind


@pytest.mark.parametrize("row", [row for row in TIMED if row["operation"] == "send"], ids=named)
def test_samples_of_a_regression_line_give_its_parameters(row):
    """The samples lie on the line of which i and tb are the parameters, except the empty message."""
    true = model_of(row)
    points = [Point(n, 2, true.t0(2) if n == 0 else true.intercept(2) + true.tb(2) * n) for n in SIZES]
    found = fitting.fit_protocol(points)
    assert found.t0(2) == pytest.approx(true.t0(2))
    assert found.tb(2) == pytest.approx(true.tb(2), rel=1e-3)
    assert found.intercept(2) == pytest.approx(true.intercept(2), rel=0.1)


# Library, table, p and the size in KB from which on the combination is faster, as the source states.
BCAST = [("MPJ/Ibis", 1, 8, 273), ("MPJ/Ibis", 2, 8, 202), ("MPJ/Ibis", 3, 16, 1173)]
# ... and up to which it is faster.
ALLGATHER = [("MPJ/Ibis", 2, 8, 7), ("MPJ/Ibis", 2, 4, 2), ("MPJ/Ibis", 3, 8, 17), ("MPJ/Ibis", 3, 16, 45)]
ALLGATHER += [("MPJ/Ibis", 4, 8, 66), ("MPJ/Ibis", 4, 16, 109), ("ScaMPI", 2, 4, 0.125), ("ScaMPI", 2, 8, 0.25)]


def guideline(text):
    return next(one for one in GUIDELINES if str(one) == text)


@pytest.mark.parametrize(("library", "table", "p", "limit"), BCAST)
def test_broadcast_loses_to_scatter_and_allgather_from_the_stated_size_on(library, table, p, limit):
    (found,) = equivalents.crossings(guideline("bcast = scatter + allgather"), models_of(table, library), p)
    assert found.high is None
    assert found.low / 1024 == pytest.approx(limit, rel=0.02)


@pytest.mark.parametrize(("library", "table", "p", "limit"), ALLGATHER)
def test_allgather_loses_to_gather_and_broadcast_up_to_the_stated_size(library, table, p, limit):
    (found,) = equivalents.crossings(guideline("allgather = gather + bcast"), models_of(table, library), p)
    assert found.low == 1
    assert found.high / 1024 == pytest.approx(limit, rel=0.2)


@pytest.mark.parametrize("table", [2, 3])
def test_allreduce_always_loses_to_reduce_and_broadcast(table):
    models = models_of(table, "MPJ/Ibis")
    for p in (8, 16)[: 1 if table == 2 else 2]:
        (found,) = equivalents.crossings(guideline("allreduce = reduce + bcast"), models, p)
        assert (found.low, found.high) == (1, None)
    gain = equivalents.gain(guideline("allreduce = reduce + bcast"), models_of(3, "MPJ/Ibis"), 1024, 16)
    assert gain == pytest.approx(0.44, abs=0.1)


def test_protocol_term_is_largest_at_the_ratio_of_startup_and_transfer_time():
    model = LinearProtocol(Growth(4), Growth(13), Growth(3.89e-3))
    hockney = Hockney(Growth(4), Growth(3.89e-3))
    sizes = np.arange(1, 20000)
    difference = [model.time(n) / hockney.time(n) - 1 for n in sizes]
    assert sizes[int(np.argmax(difference))] == pytest.approx(4 / 3.89e-3, rel=0.01)
    assert model.time(0) == 4


def test_term_to_the_line_tends_to_the_line():
    model = LinearProtocol(Growth(4), Growth(13), Growth(3.89e-3), to_line=True)
    assert model.time(1e9) == pytest.approx(13 + 3.89e-3 * 1e9, abs=0.01)


def test_loggp_of_one_and_many_messages():
    model = LogGP(10, 0.01, gap=2)
    assert model.time(0) == model.time(1) == 10
    assert model.time(101) == pytest.approx(11)
    assert model.time_of_many(5, 1) == pytest.approx(10 + 4 * 2)
    assert model.time_of_many(5, 1001) == pytest.approx(20 + 4 * 10)


# --- Growth ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["12+8⌈lp⌉", "-5+6p", "-4.487+9.284⌈2lp⌉", "0.612-1.222⌈lp⌉", "42", "-3.5"])
def test_what_is_written_is_read(text):
    assert str(parse_growth(text)) == text


@pytest.mark.parametrize(("text", "at_8"), [("6⌈lp⌉", 18), ("11p", 88), ("54+p", 62), ("-p", -8), ("11+⌈lp⌉", 14)])
def test_missing_numbers_of_a_sum(text, at_8):
    assert parse_growth(text)(8) == at_8


@pytest.mark.parametrize("text", ["", "abc", "3+", "3q", "⌈lp⌉⌈lp⌉", "1+2+3"])
def test_no_sum_is_an_error(text):
    with pytest.raises(ValueError, match="is not a number, or a sum"):
        parse_growth(text)


def test_growth_with_noise_is_recognised():
    random = np.random.default_rng(3)
    processes = np.repeat(np.arange(2, 33), 3)
    for kind in ("log", "linear"):
        true = Growth(20, 5, kind)
        values = [true(p) * random.normal(1, 0.02) for p in processes]
        assert fit_growth(processes, values).kind == kind


def test_too_few_values_of_a_growth():
    assert fit_growth([4, 4], [3.0, 5.0]) == Growth(4.0)
    with pytest.raises(ValueError, match="at least one"):
        fit_growth([], [])
    with pytest.raises(ValueError, match="2 numbers of processes and 1 values"):
        fit_growth([2, 3], [1.0])


# --- Choosing ----------------------------------------------------------------------------------------------------


def synthetic(model, sizes, processes=(2,), noise=0.0, seed=0):
    random = np.random.default_rng(seed)
    return [Point(n, p, model.time(n, p) * (1 + noise * random.standard_normal())) for n in sizes for p in processes]


POWERS = (0, *(2**k for k in range(23)))


def test_limits_between_protocols_are_found():
    true = Piecewise(
        (0, 4096, 65536),
        (Line(Growth(0.3), Growth(1e-4)), Line(Growth(2.0), Growth(2e-4)), Line(Growth(30.0), Growth(5e-5))),
    )
    found = fitting.fit_piecewise(synthetic(true, POWERS), 3)
    assert found.starts == true.starts
    for line, expected in zip(found.lines, true.lines, strict=True):
        assert line.a(2) == pytest.approx(expected.a(2))
        assert line.b(2) == pytest.approx(expected.b(2))


@pytest.mark.parametrize(("limit", "found"), [(8193, 8193), (16384, 16384), (12289, 12634)])
def test_limits_between_sizes_are_powers_of_two_where_there_are_any(limit, found):
    """From, or beyond, a power of two; otherwise in the middle between two sizes."""
    true = Piecewise((0, limit), (Line(Growth(1.0), Growth(1e-4)), Line(Growth(9.0), Growth(2e-4))))
    sizes = samples.fitted_sizes(1 << 20, quick=False)
    assert fitting.fit_piecewise(synthetic(true, sizes), 2).starts == (0, found)


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 3), st.integers(0, 10**6))
def test_dynamic_programming_finds_the_best_limits(lines, seed):
    """Compared with trying all limits."""
    random = np.random.default_rng(seed)
    sizes = POWERS[:12]
    points = [Point(n, 2, float(random.uniform(1, 3) + n * 1e-3)) for n in sizes]
    found = fitting.fit_piecewise(points, lines)
    least = float("inf")
    for first in range(3, len(sizes) - 2):
        for second in range(first + 3, len(sizes) - 2) if lines == 3 else (len(sizes),):
            cuts = [0, first, second, len(sizes)] if lines == 3 else [0, first, len(sizes)]
            cost = sum(
                fitting._segment([point for point in points if point.n in sizes[begin:end]])[0]
                for begin, end in pairwise(cuts)
            )
            least = min(least, cost)
    assert float(np.sum(fitting.relative_errors(found, points) ** 2)) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("lines", [1, 2])
def test_no_more_lines_than_pay(lines):
    true = Piecewise(
        (0, 8192)[:lines], (Line(Growth(1.0, 0.5, "log"), Growth(1e-4)), Line(Growth(20.0), Growth(1e-4)))[:lines]
    )
    chosen = fitting.best(synthetic(true, POWERS, (2, 3, 4, 5, 6, 7, 8), noise=0.01))
    assert chosen.error < 0.06
    if lines == 2:
        assert isinstance(chosen.model, Piecewise)
        assert 8192 in chosen.model.starts
    fresh = synthetic(true, [3, 100, 5000, 12345, 700_000], (2, 5, 8))
    assert fitting.mean_error(chosen.model, fresh) < 0.03


@settings(max_examples=25, deadline=None)
@given(st.floats(0.1, 100), st.floats(0.0, 200), st.floats(1e-5, 1e-1))
def test_confidence_intervals_hold_the_parameters(t0, intercept, tb):
    assume(intercept > t0)
    true = Hockney(Growth(t0), Growth(tb))
    points = synthetic(true, SIZES, noise=0.02, seed=7)
    intervals = fitting.confidence(fitting.fit_hockney, points)
    low, high = intervals["tb.a"]
    assert low < high
    assert low * 0.97 <= tb <= high * 1.03


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.1, 1000), min_size=24, max_size=24),
    st.sampled_from([fitting.fit_hockney, fitting.fit_protocol, lambda points: fitting.fit_piecewise(points, 2)]),
)
def test_an_interval_is_of_the_estimate_beside_it(times, fit):
    """Whatever was measured, and however badly the model describes it."""
    points = [Point(n, p, time) for (p, n), time in zip([(p, n) for p in (2, 4) for n in SIZES[:12]], times)]
    estimates = fitting._named(fit(points))
    for name, (low, high) in fitting.confidence(fit, points, repeats=20).items():
        assert low <= estimates[name] <= high, name


def test_intervals_hold_the_parameters_as_often_as_they_say():
    held = 0
    for seed in range(60):
        points = synthetic(Hockney(Growth(5.0), Growth(1e-3)), SIZES, noise=0.05, seed=seed)
        low, high = fitting.confidence(fitting.with_limits_of(line(5, 1e-3), fit_of_line), points)["lines[0].b.a"]
        held += low <= 1e-3 <= high
    assert 48 <= held <= 60


def fit_of_line(points):
    return fitting.fit_piecewise(points, 1)


def test_a_call_that_returns_at_once_is_no_message():
    """A collective call without bytes sends nothing here: its time is in no model."""
    true = Hockney(Growth(4.0), Growth(1e-3))
    points = [Point(point.n, point.p, point.time if point.n else 0.1) for point in synthetic(true, POWERS, (2, 4))]
    operation = fit_operation("bcast", points)
    assert operation.hockney.t0(2) == pytest.approx(4.0, rel=0.01)
    assert operation.best.time(0, 2) == pytest.approx(4.0, rel=0.01)
    # A message without bytes is a message.
    assert fit_operation("send", points).hockney.t0(2) == pytest.approx(0.1)
    # So is a call that takes not much less than the shortest other one.
    slower = [Point(point.n, point.p, point.time if point.n else 3.5) for point in points]
    assert fit_operation("bcast", slower).hockney.t0(2) == pytest.approx(3.5)


def test_too_few_measurements_are_an_error():
    with pytest.raises(TooFewError, match="at most 64 bytes"):
        fitting.fit_hockney([Point(100, 2, 1.0), Point(800, 2, 1.0)])
    with pytest.raises(TooFewError, match="regression line"):
        fitting.fit_hockney([Point(0, 2, 1.0)])
    with pytest.raises(TooFewError, match="3 sizes each"):
        fitting.fit_piecewise([Point(n, 2, 1.0) for n in (0, 1, 2, 4)], 2)
    with pytest.raises(TooFewError, match="no model"):
        fitting.best([Point(0, 2, 1.0)])


def test_numbers_of_processes_of_which_each_has_its_own_way():
    """No function of p gives these times; a model for each p does."""
    limits = {2: 1024, 3: 65536, 4: 512, 5: 16384}
    points = []
    for p, limit in limits.items():
        lines = (Line(Growth(1.0 + p % 2), Growth(1e-3)), Line(Growth(70.0), Growth(2e-4 * p)))
        points += synthetic(Piecewise((0, limit), lines), POWERS, (p,), noise=0.01, seed=p)
    chosen = fitting.best(points)
    assert isinstance(chosen.model, PerProcesses)
    assert [model.starts[1] for model in chosen.model.models] == list(limits.values())
    assert chosen.error < 0.05


def test_a_model_for_each_p_between_and_beyond_them():
    made = PerProcesses((2, 4), (line(1, 0), line(3, 0)))
    assert [made.time(8, p) for p in (1, 2, 3, 4, 9)] == [1, 1, 2, 3, 3]


@pytest.mark.parametrize("times", [(1.0, 2.0, 3.0), (1.0, 1.5, 40.0)])
def test_an_operation_without_bytes(times):
    """A function of p where there is one, each number of processes by itself where there is none."""
    operation = fit_operation("barrier", [Point(0, p, time) for p, time in zip((2, 4, 8), times, strict=True)])
    assert [operation.best.time(0, p) for p in (2, 4, 8)] == pytest.approx(times)
    assert operation.error is None


def test_intervals_of_lines_hold_their_parameters():
    true = Piecewise((0, 4096), (Line(Growth(1.0), Growth(1e-3)), Line(Growth(20.0), Growth(5e-4))))
    operation = fit_operation("send", synthetic(true, POWERS, noise=0.02, seed=5))
    low, high = operation.best_intervals["lines[0].a.a"]
    assert low < 1.0 < high < 1.1
    low, high = operation.best_intervals["lines[1].b.a"]
    assert low < 5e-4 < high < 6e-4


# Counts broadcasts by root, those of the verification and those that are timed.
ROOTS = """
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
static bool is_verifying, is_right;
static long roots[2][2];
#define MPI_Bcast(buffer, count, type, root, comm) \
    (roots[is_verifying][(root) != 0]++, (MPI_Bcast)(buffer, count, type, root, comm))
#define MPI_Finalize() \
    (fprintf(stderr, "timed: %ld %ld, verified: %ld %ld\\n", roots[0][0], roots[0][1], roots[1][0], roots[1][1]), \
     (MPI_Finalize)())
#include "lab.h"
#define lab_verify(c) (is_verifying = true, is_right = (lab_verify)(c), is_verifying = false, is_right)
"""


@pytest.mark.parametrize("operation", ["bcast", "bcast@turns", "bcast@loop", "bcast@turns@loop"])
def test_times_are_those_of_calls_with_root_0_or_with_roots_by_turns(operation, tmp_path):
    """What is verified has each root."""
    (tmp_path / "roots.h").write_text(ROOTS)
    source = catalogue.programs()["primitives"].source
    compiler = Path(sysconfig.get_path("scripts"), "mpicc")
    words = ["-O1", "-I", source.parent, "-include", tmp_path / "roots.h", source, "-o", tmp_path / "primitives", "-lm"]
    subprocess.run([compiler, *words], check=True)
    command = [compiler.with_name("limosa"), "run", "-n", "2", tmp_path / "primitives", "--forms", "hot"]
    done = run_job([*command, "--plan", f"{operation}=64"], 60)
    assert done.code == 0, done.err
    line = records.parse_line(done.out, library="limosa", program="primitives", ranks=2, round_number=0)
    assert samples.case_name(line) == operation
    found = re.findall(r"timed: (\d+) (\d+), verified: (\d+) (\d+)", done.err)
    assert len(found) == 2, done.err
    for rank in found:
        first, other, *verified = map(int, rank)
        assert min(verified) > 0
        # How many calls fit into the time of a case depends on the machine.
        assert first > 0
        assert (0 <= first - other <= 1) if "turns" in operation else (other == 0), rank


def test_random_messages_are_none_that_models_are_fitted_to():
    for largest in (64, 4096, 1 << 20):
        fitted = samples.fitted_sizes(largest, quick=False)
        assert len(set(fitted)) == len(fitted) and max(fitted) <= largest
        if largest > 64:
            found = samples.validation_sizes(largest, 1)
            assert len(found) == samples.VALIDATION
            assert not set(found) & set(fitted)
    assert all(n % 2 for n in samples.odd_sizes(1 << 20))


def test_the_first_sizes_cover_the_whole_range():
    assert samples.spread([1, 2, 3, 4, 5]) == [1, 5, 3, 2, 4]
    assert samples.spread([]) == []
    assert samples.fitted_sizes(1 << 20, quick=True)[:4] == [0, 1, 1 << 20, 1 << 10]


# --- What to measure next ----------------------------------------------------------------------------------------


def test_a_case_is_repeated_until_its_two_best_rounds_agree():
    assert not plan.certain([1.0])
    assert not plan.certain([1.0, 1.2])
    assert not plan.certain([1.0, 1.2, 1.1])
    assert plan.certain([1.0, 1.2, 1.01])


def test_sizes_are_added_where_the_protocol_changes():
    times = {n: 1 + n * 1e-3 + (50 if n > 4096 else 0) for n in POWERS}
    found = plan.added(times, [])
    assert 4168 in found
    assert all(1024 < n < 32768 for n in found)
    assert plan.added({n: 1 + n * 1e-3 for n in POWERS}, []) == []


def test_random_messages_do_not_tell_where_sizes_are_added():
    times = {n: 1 + n * 1e-3 for n in POWERS} | {5000: 100.0}
    assert plan.added(times, [5000]) == []
    assert plan.added(times, []) != []


def test_the_least_known_cases_come_first_and_lost_ones_never():
    times = {("bcast", 0): [1.0], ("bcast", 64): [2.0, 2.0], ("scan", 0): []}
    cases = plan.next_cases(times, ["bcast", "scan", "barrier"], [0, 64, 4096], [], {("scan", 64)})
    assert ("bcast", 64) not in cases
    assert ("scan", 64) not in cases
    assert [case for case in cases if case[0] == "barrier"] == [("barrier", 0)]
    assert cases[-1] == ("bcast", 0)
    assert plan.text([("bcast", 0), ("bcast", 8), ("scan", 0), ("bcast", 1)]) == "bcast=0,8;scan=0;bcast=1"


def primitives(values, **changes):
    made = made_records.sample("limosa", "bcast", values, program="primitives", **changes)
    return records.Sample(**{name: value for name, value in made.items() if name != "kind"})


def test_a_time_is_the_median_of_calls_in_the_two_quietest_rounds():
    """With more ranks than processors it is that of all rounds."""
    rounds = [[9.0, 1.0, 3.0], [5.0, 5.0, 2.0], [50.0, 40.0, 20.0]]
    measured = [primitives(values, ranks=p, round=at) for p in (2, 4) for at, values in enumerate(rounds)]
    assert [point.time for point in samples.points(measured, 2)["bcast"]] == [4.0, 5.0]
    assert [point.time for point in samples.points(measured, 4, samples.LEAST)["bcast"]] == [1.5, 1.5]


def test_roots_by_turns_are_an_operation_of_their_own():
    """Each root counts as much as the others, however different their calls are."""
    times = [1.0, 5.0, 1.0, 7.0, 2.0, 5.0]
    found = samples.points([primitives(times), primitives(times, x={"roots": "turns"})])
    assert {name: [point.time for point in of_it] for name, of_it in found.items()} == {
        "bcast": [3.5],
        "bcast@turns": [3.0],
    }
    assert samples.with_turns(["send", "bcast"]) == ["send", "bcast", "bcast@turns"]
    assert [samples.calls_of(name) for name in ("bcast", "bcast@turns", "scan")] == [
        "median, root 0",
        "median, roots by turns",
        "median",
    ]


# --- Equivalents -------------------------------------------------------------------------------------------------


def line(a, b):
    return Piecewise((0,), (Line(Growth(a), Growth(b)),))


def test_a_crossing_is_where_the_times_are_equal():
    models = {"bcast": line(1, 2e-3), "scatter": line(5, 5e-4), "allgather": line(6, 5e-4)}
    (found,) = equivalents.crossings(guideline("bcast = scatter + allgather"), models, 4)
    assert found.low == pytest.approx(10_000, rel=1e-3)
    assert found.high is None
    assert 0.4 < found.gain < 0.5


def test_a_gain_below_the_error_of_the_models_is_none():
    models = {"allreduce": line(10, 1e-3), "reduce": line(5, 5e-4), "bcast": line(4.5, 4.5e-4)}
    assert equivalents.crossings(guideline("allreduce = reduce + bcast"), models, 4, least=0.07) == []
    assert len(equivalents.crossings(guideline("allreduce = reduce + bcast"), models, 4)) == 1


def test_a_range_with_two_ends():
    models = {
        "gather": Piecewise((0, 1000, 100_000), (line(1, 0).lines[0], line(50, 0).lines[0], line(1, 0).lines[0])),
        "allgather": line(10, 0),
    }
    (found,) = equivalents.crossings(guideline("gather = allgather"), models, 4)
    assert found.low == pytest.approx(1000, rel=1e-3)
    assert found.high == pytest.approx(100_000, rel=1e-3)
    assert found.gain == pytest.approx(0.8)


def test_bytes_of_the_parts():
    models = {"scan": line(0, 1), "allgather": line(0, 1)}
    scan = Guideline("scan", (Part("allgather", lambda n, p: n * p),))
    assert equivalents.time_of(scan, models, 10, 4) == 40


NEAR, FAR = [0.04, 0.041], [0.16, 0.17]


def test_models_compare_times_of_one_placement_and_cases_without_it_keep_what_they_have():
    rounds = [primitives([9.0], flag=NEAR), primitives([5.0], flag=FAR), primitives([1.0], bytes=64, flag=FAR)]
    rounds += [replace(sample, library="mpich") for sample in rounds[:1]]
    assert [sample.samples for sample in samples.of_one_placement(rounds)] == [[9.0], [1.0], [9.0]]


def test_what_was_never_measured_comes_before_what_was_measured_in_another_placement():
    entry, choose = measuring.Known(), measuring.unknown(["bcast"], [8, 64, 1], ())
    entry.take([primitives([5.0], flag=NEAR), primitives([5.0], bytes=1, flag=FAR), primitives([5.0], flag=NEAR)])
    assert choose("limosa", 2, {("limosa", 2): entry}) == [("bcast", 64), ("bcast", 1)]


def test_a_case_is_repeated_until_rounds_of_one_placement_agree():
    entry, choose = measuring.Known(), measuring.unknown(["bcast"], [8], ())
    for flag in (NEAR, NEAR, FAR, FAR):
        assert choose("limosa", 2, {("limosa", 2): entry}) == ([("bcast", 8)] if flag is NEAR else []), flag
        entry.take([primitives([5.0], flag=flag)])
    entry.take([primitives([5.0], flag=FAR), primitives([7.0], flag=FAR)])
    assert choose("limosa", 2, {("limosa", 2): entry}) == []


class Measuring:
    """A session whose runs take no time, and what they were asked for."""

    def __init__(self):
        self.prepared = {"limosa": SimpleNamespace(library=SimpleNamespace(title="Limosa"))}
        self.observer = SimpleNamespace(progress=lambda _: nullcontext(), running=lambda *_: None)
        self.runs = []

    def run(self, task, name, number, words, limit):
        sizes = [int(n) for n in words[words.index("--plan") + 1].partition("=")[2].split(",")]
        self.runs.append(sizes)
        times = [primitives([float(number)], bytes=n, flag=NEAR) for n in sizes]
        return [(records.Run(name, "primitives", 2, number, [], "ok", 0, 0.01, 0.0), times)]


def test_cases_are_measured_in_short_runs_and_each_as_often_as_wanted():
    session, sizes = Measuring(), list(range(1, 2 * measuring.CASES_OF_A_RUN))
    wanted = measuring.Wanted(measuring.unknown(["bcast"], sizes, sizes), [2], 60.0, rounds=2)
    measuring.run(session, catalogue.Program("primitives", Path(), (2,)), wanted)
    assert max(map(len, session.runs)) == measuring.CASES_OF_A_RUN
    assert Counter(chain(*session.runs)) == dict.fromkeys(sizes, 2)


def test_there_are_at_least_twenty_guidelines():
    assert len({str(one) for one in GUIDELINES}) == len(GUIDELINES) >= 20


# --- The command -------------------------------------------------------------------------------------------------


def recorded(operations, sizes=POWERS, processes=(2, 3, 4), libraries=("limosa",), noise=0.01):
    """Records of a measurement whose times follow these models."""
    records = [made_records.environment(libraries, processors=8)]
    for library in libraries:
        for seed, (name, model) in enumerate(operations.items()):
            for point in synthetic(model, sizes, processes, noise, seed):
                made = made_records.sample(library, name, [3 * point.time, point.time, point.time / 2])
                made |= {"program": "primitives", "metric": "time", "ranks": point.p, "bytes": point.n}
                records.append(made)
    return records


OPERATIONS = {
    "bcast": Piecewise((0,), (Line(Growth(1, 1, "log"), Growth(2e-3)),)),
    "scatter": Piecewise((0,), (Line(Growth(5), Growth(5e-4)),)),
    "allgather": Piecewise((0,), (Line(Growth(6), Growth(5e-4)),)),
}
ALL_SIZES = sorted({*POWERS, *samples.validation_sizes(1 << 20, 1)})


def test_report_of_a_measurement(keep, capsys):
    folder = keep(*recorded(OPERATIONS, ALL_SIZES))
    assert main(["model", "--report", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "bcast = scatter + allgather" in said
    assert "3 of 3 are within 7 %" in said
    page = (folder / "report.html").read_text()
    assert "<svg" in page
    assert "MPI_Bcast, 4 processes" in page
    _, stored = store.read(folder)
    kept = stored["limosa"]["bcast"]
    assert kept.processes == (2, 3, 4)
    assert kept.error < 0.07
    assert kept.times == "median, root 0"
    for n in (0, 100, 10_000):
        assert kept.model.time(n, 4) == pytest.approx(OPERATIONS["bcast"].time(n, 4), rel=0.05)


def test_roots_by_turns_have_rows_of_their_own(keep, capsys):
    turns = [
        one | {"x": {"roots": "turns"}, "samples": 4 * [min(one["samples"])]}
        for one in recorded({"bcast": line(20, 1e-3)}, ALL_SIZES)[1:]
    ]
    folder = keep(*recorded(OPERATIONS, ALL_SIZES), *turns)
    assert main(["model", "--report", str(folder), "--statistic", "least"]) == 0
    rows = [re.split(r"  +", row) for row in capsys.readouterr().out.splitlines() if row.startswith("Limosa")]
    assert ["Limosa", "MPI_Bcast", "least, root 0"] in [row[:3] for row in rows]
    assert ["Limosa", "MPI_Bcast", "least, roots by turns"] in [row[:3] for row in rows]
    _, stored = store.read(folder)
    assert stored["limosa"]["bcast@turns"].times == "least, roots by turns"
    assert stored["limosa"]["bcast@turns"].model.time(1000, 4) == pytest.approx(21 / 2, rel=0.05)
    assert stored["limosa"]["bcast"].model.time(1000, 4) == pytest.approx(5 / 2, rel=0.05)


def test_models_are_those_of_each_library(keep, capsys):
    slow = {name: Piecewise((0,), (Line(Growth(100), Growth(1e-2)),)) for name in OPERATIONS}
    records = recorded(OPERATIONS, libraries=("limosa", "mpich"))
    records += [one | {"library": "intel"} for one in recorded(slow)[1:]]
    assert main(["model", "--report", str(keep(*records))]) == 0
    said = capsys.readouterr().out
    assert "MPICH: the linear model" in said
    assert "No random messages were measured" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 7}', "has format 7"),
        ('{"format": 1, "environment": {}, "libraries": {"x": {"bcast": {"model": {"type": "Odd"}}}}}', "is damaged"),
    ],
)
def test_damaged_models_are_an_error(tmp_path, content, message):
    (tmp_path / "models.json").write_text(content)
    with pytest.raises(LabError, match=message):
        store.read(tmp_path)


def test_models_with_an_unknown_function_of_p_are_an_error(tmp_path):
    growth = {"type": "Growth", "a": 1.0, "b": 1.0, "kind": "cubic"}
    model = {"type": "Hockney", "t0": growth, "tb": growth}
    kept = {"model": model, "error": None, "processes": [2], "largest": 8}
    content = {"format": 1, "environment": {}, "libraries": {"limosa": {"bcast": kept}}}
    (tmp_path / "models.json").write_text(json.dumps(content))
    with pytest.raises(LabError, match="cubic"):
        store.read(tmp_path)


def test_no_models_are_an_error(tmp_path, capsys):
    assert main(["model", "--report", str(tmp_path / "none")]) == 2
    assert "there is no samples.jsonl" in capsys.readouterr().err
    with pytest.raises(LabError, match="cannot read"):
        store.read(tmp_path)


def test_a_measurement_of_something_else_is_an_error(keep, capsys):
    folder = keep(made_records.environment(("limosa",)), made_records.sample("limosa", "pingpong", [1.0]))
    assert main(["model", "--report", str(folder)]) == 2
    assert "there are no measurements of primitives" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-bytes", "8"], "64 bytes and more"),
        (["--rounds", "0"], "at least one round"),
        (["--operations", "shuffle"], "no benchmark `shuffle`|has a benchmark `shuffle`"),
        (["--against", "mpi2"], "mpi2"),
        (["--ranks", "3000"], "3000"),
    ],
)
def test_wrong_options(words, message, tmp_path, capsys):
    assert main(["model", "--output", str(tmp_path / "out"), *words]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_random_messages_are_no_powers_of_two_and_repeat_by_seed():
    sizes = samples.validation_sizes(1 << 20, 5)
    assert len(sizes) == 20
    assert all(n & (n - 1) for n in sizes)
    assert sizes == samples.validation_sizes(1 << 20, 5) != samples.validation_sizes(1 << 20, 6)


@pytest.mark.parametrize("start", ["barrier", "window"])
def test_a_measurement_and_its_models(tmp_path, start):
    """With real jobs: what is measured is right, and gives models."""
    command = [sys.executable, "-m", "limosa_lab", "model", "--quick", "--operations", "send,bcast", "--ranks", "2"]
    command += ["--minutes", "20", "--max-bytes", "4096", "--start", start, "--output", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100 * PATIENCE)
    assert done.returncode == 0, done.stderr
    recording = records.read(tmp_path / "out")
    assert {samples.case_name(sample) for sample in recording.samples} == {"send", "bcast", "bcast@turns"}
    assert {sample.x["start"] for sample in recording.samples} == {start}
    assert all(sample.verified for sample in recording.samples)
    _, stored = store.read(tmp_path / "out")
    assert stored["limosa"].keys() == {"send", "bcast", "bcast@turns"}
    assert stored["limosa"]["send"].model.time(0) > 0
