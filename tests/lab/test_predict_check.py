"""Predictions beside measurements: right ones, wrong ones, and folders that cannot be compared."""

import pytest
from limosa_lab.cli import main
from limosa_lab.model.fitting import Point
from limosa_lab.model.growth import Growth
from limosa_lab.model.models import Line, Piecewise
from limosa_lab.predict import networks, validation
from limosa_lab.predict.networks import Costs
from limosa_lab.predict.schedules import binomial_bcast
from limosa_lab.predict.simulation import Cluster, simulate
from made_records import END, environment, sample

SEND = Piecewise((0, 4096), (Line(Growth(0.3), Growth(1e-4)), Line(Growth(5.0), Growth(5e-5))))
SIZES = [0, *(2**k for k in range(21))]


def test_messages_inside_a_host_cost_what_the_model_says():
    costs = networks.from_model(SEND)
    for n in (0, 64, 4096, 65536, 1 << 20):
        assert costs.time(n) == pytest.approx(SEND.time(n), rel=0.01)
    assert costs.time(1 << 22) == pytest.approx(4 * SEND.time(1 << 20), rel=0.05)


def test_a_measurement_as_predicted_has_the_factor_one():
    inside = Costs(1, 1, 1, 1e-3)
    points = [Point(n, p, simulate(binomial_bcast, n, Cluster(p, 1, inside, inside))) for n in (8, 64) for p in (2, 4)]
    found = validation.compare({"bcast": points, "unknown": points}, inside)
    assert len(found) == 4
    assert validation.factor(found) == pytest.approx(1.0, rel=0.1)
    slow = validation.compare({"bcast": [Point(8, 4, 100.0)]}, inside)
    assert validation.factor(slow) > 10
    assert "0 % of 1 are within a factor of 2" in validation.answer(slow, 4)


def measured(keep, operations):
    made = []
    for operation in operations:
        for n in SIZES:
            time = SEND.time(n) * (1 if operation == "send" else 2)
            made.append(sample("limosa", operation, [time], program="primitives", bytes=n, metric="time"))
    return keep(environment(), *made, END)


def test_a_folder_is_compared(keep, capsys):
    folder = str(measured(keep, ["send", "bcast"]))
    assert main(["model", "--report", folder]) == 0
    capsys.readouterr()
    assert main(["predict", "--check", folder]) == 0
    said = capsys.readouterr().out
    assert "0.50 of" in said
    assert "With up to 2 ranks, one for each processor, predictions are off by a factor of 2." in said


def test_a_prediction_says_which_calls_its_models_describe(keep, capsys):
    folder = str(measured(keep, ["send", "bcast"]))
    for statistic in ("median", "least"):
        assert main(["model", "--report", folder, "--statistic", statistic]) == 0
        capsys.readouterr()
        assert main(["predict", "--ranks", "2", "--models", folder, "bcast", "1KB"]) == 0
        said = capsys.readouterr().out
        assert f"the fitted model of MPI_Send ({statistic})" in said
        assert f"the fitted time of calls: {statistic}, root 0" in said


def test_folders_that_cannot_be_compared(keep, capsys):
    folder = str(measured(keep, ["bcast"]))
    assert main(["model", "--report", folder]) == 0
    assert main(["predict", "--check", folder]) == 2
    assert "has no model of MPI_Send" in capsys.readouterr().err
    assert main(["predict", "bcast", "32B"]) == 2
    assert "an operation and --ranks are missing" in capsys.readouterr().err
