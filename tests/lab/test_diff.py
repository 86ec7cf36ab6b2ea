"""Two measurements side by side: what is beyond noise, exit codes, and inputs that cannot be compared."""

import json

import pytest
from limosa_lab import diff
from limosa_lab.cli import main
from limosa_lab.errors import LabError
from made_records import END, environment, sample

STEADY = [10.0, 10.1, 10.2, 9.9, 9.8] * 4


def times(factor, noise=0.0):
    return [value * factor * (1 + noise * (index % 3 - 1)) for index, value in enumerate(STEADY)]


@pytest.fixture
def two(keep):
    def write(earlier, later, **changes):
        made = []
        for name, values in (("earlier", earlier), ("later", later)):
            samples = [sample("limosa", bench, of_it, **changes) for bench, of_it in values.items()]
            made.append(str(keep(environment(), *samples, END, name=name)))
        return made

    return write


def test_what_is_slower_is_named_and_fails(two, capsys):
    folders = two({"pingpong": times(1), "rate": times(1)}, {"pingpong": times(1.5), "rate": times(1.02)})
    assert main(["bench", "diff", *folders]) == 1
    said = capsys.readouterr().out
    assert "1.5 x" in said and "slower" in said
    assert "rate hot" not in said
    assert "Of 2 cases 1 are slower, 0 faster, and 1 alike" in said


def test_what_is_faster_or_alike_passes(two, capsys):
    folders = two({"pingpong": times(1), "rate": times(1)}, {"pingpong": times(0.5), "rate": times(1)})
    assert main(["bench", "diff", "--all", *folders]) == 0
    said = capsys.readouterr().out
    assert "faster" in said and "alike" in said


def test_rates_that_fall_are_slower(two):
    folders = two({"rate": times(2)}, {"rate": times(1)}, unit="MB/s", metric="rate")
    assert main(["bench", "diff", *folders]) == 1


def test_noise_is_no_difference(two):
    assert main(["bench", "diff", *two({"rate": times(1, 0.5)}, {"rate": times(1.2, 0.5)})]) == 0


def test_the_interval_holds_the_ratio_and_json_has_it(two, capsys):
    main(["bench", "diff", "--json", *two({"rate": times(1)}, {"rate": times(1.5)})])
    (change,) = json.loads(capsys.readouterr().out)
    low, high = change["interval"]
    assert 1.4 < low <= change["cost"] <= high < 1.6


def test_another_machine_is_named(keep, capsys):
    values = sample("limosa", "rate", times(1))
    folders = [keep(environment(cpu=name), values, END, name=name) for name in ("one", "other")]
    assert main(["bench", "diff", *map(str, folders)]) == 0
    assert "the machines differ: cpu was 'one' and is 'other'" in capsys.readouterr().err


def test_a_date_finds_the_latest_measurement(tmp_path):
    for name in ("limosa-bench-20300101-080000", "limosa-bench-20300101-120000", "limosa-bench-20300102-080000"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "samples.jsonl").write_text("")
    assert diff.find("2030-01-01", tmp_path).name == "limosa-bench-20300101-120000"
    assert diff.find("2030-01-01 08:00", tmp_path).name == "limosa-bench-20300101-080000"
    with pytest.raises(LabError, match="there is no measurement of 2031-01-01"):
        diff.find("2031-01-01", tmp_path)


def test_measurements_with_nothing_in_common(keep, capsys):
    one = keep(environment(), sample("limosa", "rate", [1.0]), END, name="one")
    other = keep(environment(), sample("limosa", "pingpong", [1.0]), END, name="other")
    assert main(["bench", "diff", str(one), str(other)]) == 2
    assert "have no case in common" in capsys.readouterr().err
    assert main(["bench", "diff", str(one), "no-such-folder"]) == 2
