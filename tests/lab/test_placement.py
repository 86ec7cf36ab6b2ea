"""Which runs are compared: those between which a cache line took about the same time before and after."""

import json
import subprocess

import pytest
from jobs import PATIENCE
from limosa_lab import build, flag_time, placement, records, report, stats, tables
from made_records import END, environment, run, sample

NEAR, FAR = [0.04, 0.041], [0.16, 0.17]


def made(*samples):
    """Samples as a recording has them."""
    return [records.Sample(**{key: value for key, value in each.items() if key != "kind"}) for each in samples]


def kept(*samples):
    """The value of each sample that may be compared."""
    return [each.samples[0] for each in placement.alike(made(*samples))]


def test_the_placement_that_most_libraries_have_seen_is_compared():
    assert kept(
        sample("limosa", "pingpong", [1.0], flag=NEAR),
        sample("limosa", "pingpong", [2.0], flag=NEAR),
        sample("limosa", "pingpong", [3.0], flag=FAR),
        sample("mpich", "pingpong", [4.0], flag=FAR),
    ) == [3.0, 4.0]


def test_of_equals_the_placement_with_more_samples_and_then_the_nearer_one_is_taken():
    one_near = sample("limosa", "pingpong", [1.0], flag=NEAR)
    far = [sample("limosa", "pingpong", [value], flag=FAR) for value in (2.0, 3.0)]
    assert kept(one_near, *far) == [2.0, 3.0]
    assert kept(far[0], one_near) == [1.0]


def test_a_run_during_which_the_placement_changed_is_compared_with_none():
    changed = sample("limosa", "pingpong", [1.0], flag=[0.04, 0.16])
    assert kept(changed, sample("mpich", "pingpong", [2.0], flag=[0.16, 0.04])) == []
    assert kept(changed, sample("limosa", "pingpong", [2.0], flag=FAR)) == [2.0]


def test_a_library_that_is_alone_is_shown_even_if_the_placement_changed_during_every_run():
    assert kept(sample("limosa", "pingpong", [1.0], flag=[0.04, 0.16])) == [1.0]


@pytest.mark.parametrize("ratio, count", [(placement.LIKE * 0.99, 2), (placement.LIKE * 1.01, 1)])
def test_times_are_alike_within_a_factor(ratio, count):
    first, second = ([0.1, 0.1], [0.1 * ratio, 0.1 * ratio])
    assert len(kept(sample("limosa", "b", [1.0], flag=first), sample("limosa", "b", [2.0], flag=second))) == count


def test_times_that_drift_do_not_chain():
    """Each is like its neighbour, but the first is not like the last."""
    flags = [[0.1, 0.1], [0.14, 0.14], [0.196, 0.196]]
    assert kept(*(sample("limosa", "b", [float(i)], flag=flag) for i, flag in enumerate(flags))) == [0.0, 1.0]


def test_without_flag_times_everything_is_compared_and_beside_known_ones_nothing_unknown():
    unknown = sample("limosa", "pingpong", [1.0])
    assert kept(unknown, unknown) == [1.0, 1.0]
    assert kept(unknown, sample("limosa", "pingpong", [2.0], flag=NEAR)) == [2.0]


def test_of_many_cases_the_placement_of_most_samples_prevails():
    flags = [NEAR, FAR, [0.04, 0.16], FAR, None]
    many = made(*(sample("limosa", f"b{at}", [float(at)], flag=flag) for at, flag in enumerate(flags)))
    assert [each.samples[0] for each in placement.prevailing(many)] == [1.0, 3.0]
    assert [each.samples[0] for each in placement.prevailing(many[:3])] == [0.0]
    assert placement.prevailing(many[4:]) == many[4:]


def test_each_case_has_a_placement_of_its_own():
    found = stats.results(
        made(
            sample("limosa", "pingpong", [1.0], flag=NEAR),
            sample("mpich", "pingpong", [2.0], flag=NEAR),
            sample("limosa", "pingpong", [3.0], flag=FAR, bytes=64),
            sample("mpich", "pingpong", [4.0], flag=FAR, bytes=64),
        )
    )
    assert [sorted(by_library) for by_library in found.values()] == [["limosa", "mpich"], ["limosa", "mpich"]]


def test_a_report_says_what_was_left_out(keep):
    folder = keep(
        environment(libraries=["limosa", "mpich", "openmpi"]),
        run("limosa", "pingpong", flag=NEAR),
        sample("limosa", "pingpong", [1.0], flag=NEAR),
        sample("mpich", "pingpong", [2.0], flag=NEAR),
        sample("openmpi", "pingpong", [9.0], flag=FAR),
        sample("limosa", "rate", [1.0], flag=[0.04, 0.16]),
        sample("mpich", "rate", [1.0], flag=[0.16, 0.04]),
        END,
    )
    recording = records.read(folder)
    assert recording.runs[0].flag == NEAR
    (table,) = tables.benchmarks(recording, stats.results(recording.samples))
    assert table.rows == [["1 (1-1)", "2 (2-2)", "other placement", "0.5 x MPICH"]]
    text = report.text(recording)
    assert "3 of 5 series of samples are left out" in text
    assert "0.04 to 0.17 us" in text
    assert "In 1 of 2 cases the distance between the processors changed during every run" in text


def test_a_recording_of_like_placement_raises_no_doubt(keep):
    lines = [sample(library, "pingpong", [1.0], flag=NEAR) for library in ("limosa", "mpich")]
    assert tables.troubles(records.read(keep(environment(libraries=["limosa", "mpich"]), *lines, END))) == []


def test_only_a_pair_of_times_is_recorded():
    assert flag_time.pair(0.1, 0.2) == [0.1, 0.2]
    assert flag_time.pair(None, 0.2) is None
    assert flag_time.pair(0.1, None) is None


@pytest.fixture
def printing(monkeypatch, tmp_path):
    """A measurement whose program is a script."""

    def make(script):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(build, "compiled_without_mpi", lambda source: program)
        return flag_time.FlagTime()

    return make


def test_a_time_that_cannot_be_measured_is_none(printing, monkeypatch):
    assert printing("echo 0.1234").measure() == 0.1234
    assert printing("exit 2").measure() is None
    monkeypatch.setattr(flag_time, "_LIMIT", 0.1)
    assert printing("exec sleep 100").measure() is None


def test_the_program_measures_or_says_that_it_cannot():
    program = build.compiled_without_mpi(flag_time.SOURCE)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=300 * PATIENCE)
    assert done.returncode in (0, 2)
    if done.returncode == 0:
        assert json.loads(done.stdout) > 0
    alone = subprocess.run(["taskset", "-c", "0", str(program)], capture_output=True, text=True, timeout=300 * PATIENCE)
    assert (alone.returncode, alone.stdout) == (2, "")
