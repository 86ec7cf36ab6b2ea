"""The study of Octave: a job of each kind with real jobs, and the report of samples made by hand."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from limosa_lab.cli import main
from limosa_lab.libraries import Limosa
from limosa_lab.octave_study import measure, page
from limosa_lab.octave_study.results import Results, answer, tables
from limosa_lab.study_results import reason
from made_records import environment


def sample(bench, series, ranks, length, *seconds):
    return {"bench": bench, "series": series, "ranks": ranks, "bytes": length, "seconds": list(seconds)}


SAMPLES = [
    sample("pingpong", "C", 2, 8, 1e-6, 2e-6, 3e-6),
    sample("pingpong", "C", 2, 1 << 20, 1e-4),
    sample("pingpong", measure.MPITB, 2, 8, 4e-6),
    sample("pingpong", measure.MODERN, 2, 8, 6e-6),
    sample("pingpong", measure.MODERN, 2, 1 << 20, 2e-4),
    sample("pingpong", measure.MATLABMPI["memory"], 2, 8, 8e-6),
    sample("pingpong", measure.MATLABMPI["original"], 2, 8, 4e-4),
    sample("bcast", "C", 2, 1024, 1e-6),
    sample("bcast", "C", 4, 1024, 2e-6),
    sample("mandelbrot", measure.MODERN, 1, 600, 4.0),
    sample("mandelbrot", measure.MODERN, 4, 600, 2.0),
]


def results(*more):
    return Results({"environment": environment(("limosa",)), "samples": [*SAMPLES, *more]})


def test_tables_and_the_answer():
    found = {table.title.split(":")[0]: table.rows for table in tables(results())}
    assert found["Half a round trip between 2 ranks"][0][:2] == ["8 B", "2 us (1 us - 3 us)"]
    assert found["Bandwidth in GB/s (part of C's)"] == [["1 MB", "10.5", "-", "5.24 (50 %)", "-", "-"]]
    assert found["Mandelbrot set in Octave"] == [["1", "4 s", "1", "100 %"], ["4", "2 s", "2", "50 %"]]
    said = answer(results())
    assert "takes 6 us with Limosa's functions for Octave, 4 us with MPITB's, and 2 us in C" in said
    assert "50 times less" in said


def test_programs_with_arrays_are_compared():
    made = [
        sample("hpl", measure.ARRAYS[name], 4, 1000, 0.5) | {"check": value}
        for name, value in (("pmatlab", 2.5), ("python", 2.5 + 1e-12))
    ]
    found = {table.title.split(":")[0]: table.rows for table in tables(results(*made))}
    assert found["Programs with distributed arrays"] == [
        ["HPL (LU), 1000 x 1000", "4", "500 ms (1.33 GFLOP/s)", "500 ms (1.33 GFLOP/s)"]
    ]
    assert not results(*made).troubles
    wrong = sample("hpl", measure.ARRAYS["python"], 2, 1000, 0.5) | {"check": 2.6}
    assert [trouble["ranks"] for trouble in results(*made, wrong).troubles] == [2]


def test_a_report_says_what_failed(tmp_path, capsys):
    trouble = {"bench": "bcast", "series": "C", "ranks": 8, "trouble": "it took too long"}
    content = {"environment": environment(("limosa",)), "samples": [*SAMPLES, trouble]}
    (tmp_path / "results.json").write_text(json.dumps(content))
    side = 40
    np.arange(side * side, dtype=np.uint8).tofile(tmp_path / measure.PICTURE)
    assert main(["study", "octave", "--report", str(tmp_path)]) == 1
    assert "it took too long" in capsys.readouterr().out
    written = (tmp_path / "report.html").read_text()
    assert written.count("<svg") == 4
    assert "it took too long" in written


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (
            'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    import no_such_module\n'
            "ModuleNotFoundError: No module named 'no_such_module'\n"
            "limosa: rank 0 (process 7, x.py) exited with code 1; ending the other rank\nhint: see above\n",
            "ModuleNotFoundError: No module named 'no_such_module'",
        ),
        (
            "warning: old file\nerror: 'x' undefined\nlimosa: rank 0 (process 7) exited with code 1\n",
            "error: 'x' undefined",
        ),
        ("first\nout of memory\n", "out of memory"),
        ("limosa: rank 1 (process 8) was killed by signal 9\n", "limosa: rank 1 (process 8) was killed by signal 9"),
        ("", "no message"),
    ],
)
def test_the_reason_of_a_failure_is_a_line_of_the_program(errors, said):
    assert reason(errors) == said


def test_a_job_that_fails_says_why(tmp_path):
    (tmp_path / "fails.py").write_text("import no_such_module\n")
    (found,) = measure.run(Limosa(), measure.Job("stream", "Python", 1, (sys.executable, str(tmp_path / "fails.py"))))
    assert found["trouble"] == "ModuleNotFoundError: No module named 'no_such_module'"


def test_a_busy_machine_is_a_doubt():
    busy = {"environment": environment(("limosa",)) | {"busy_percent": 40.0}, "samples": SAMPLES, "others": [1.0, 60.0]}
    assert page.text(Results(busy)).count("warning: Other programs used") == 2
    assert "during 1 of 2 runs, up to 60 %" in page.text(Results(busy))
    assert not Results(busy).troubles
    assert "warning" not in page.text(results())


def test_a_damaged_picture_is_left_out(tmp_path):
    (tmp_path / measure.PICTURE).write_bytes(b"12345")
    assert page.page(results(), tmp_path).count("<svg") == 3


def test_no_study_is_an_error(tmp_path, capsys):
    assert main(["study", "octave", "--report", str(tmp_path)]) == 2
    assert "does not hold a study of Octave" in capsys.readouterr().err


@pytest.fixture(scope="module")
def octave():
    for program, package in {"octave-cli": "octave", "mkoctfile": "octave-dev"}.items():
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed; on Debian:  sudo apt-get install {package}")


def test_each_program_measures(octave, tmp_path, monkeypatch):
    """With real jobs, one sample each: all series are there, and the picture."""
    arrays = ((1000,), (100,), (1 << 10,), (1 << 13,))
    size = measure.Size(lengths=(8, 1 << 16), ranks=(2,), samples=1, rounds=1, points=60, arrays=arrays)
    monkeypatch.setitem(measure.SIZES, "quick", size)
    assert main(["study", "octave", "--quick", "--output", str(tmp_path / "out")]) == 0
    found = Results(json.loads((tmp_path / "out" / measure.RESULTS).read_text()))
    wanted = {"C", measure.MPITB, measure.MODERN, *measure.MATLABMPI.values()}
    assert set(found.series("pingpong")) == wanted
    assert all(set(found.medians("pingpong", name, "bytes")) == {8, 1 << 16} for name in wanted)
    assert set(found.series("bcast")) == {"C", measure.MPITB, measure.MODERN}
    assert set(found.medians("mandelbrot", measure.MODERN, "ranks")) == {1, 2}
    assert (tmp_path / "out" / measure.PICTURE).stat().st_size == 3600
    for program, sizes in zip(measure.PROGRAMS, arrays, strict=True):
        languages = {measure.ARRAYS["pmatlab"], measure.ARRAYS["python"]}
        assert languages <= set(found.series(program))
        assert found.places(program) == [(sizes[0], ranks) for ranks in (1, 2)]


def test_without_octave_the_study_says_how_to_get_it(tmp_path):
    command = [sys.executable, "-m", "limosa_lab", "study", "octave", "--quick", "--output", str(tmp_path / "out")]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3
    assert "octave-cli is not installed\nhint: on Debian:  sudo apt-get install octave\n" in done.stderr
