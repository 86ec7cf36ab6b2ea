"""The study of Java: every job of it once, and the report of samples made by hand."""

import json
from pathlib import Path

import pytest
from limosa_lab.cli import main
from limosa_lab.errors import LabError
from limosa_lab.java_library import has_java
from limosa_lab.java_study import measure, page
from limosa_lab.java_study.measure import ARRAYS, JAVA, JAVA_NODES, JAVA_THREADS, C
from limosa_lab.java_study.results import answer, tables
from limosa_lab.study_results import Results
from made_records import environment


def sample(bench, series, ranks, length, *seconds):
    return {"bench": bench, "series": series, "ranks": ranks, "bytes": length, "seconds": list(seconds)}


SAMPLES = [
    *(sample("send", C, 2, 8, 1e-6), sample("send", ARRAYS, 2, 8, 1.5e-6)),
    *(sample("bcast", C, 2, 1024, 2e-6), sample("bcast", ARRAYS, 2, 1024, 5e-6)),
    *(sample("SOR A", C, 1, 0, 4.0), sample("SOR A", C, 2, 0, 2.0), sample("SOR A", C, 4, 0, 1.0)),
    *(sample("SOR A", JAVA, 1, 0, 6.0), sample("SOR A", JAVA, 2, 0, 4.0), sample("SOR A", JAVA, 4, 0, 2.0)),
    *(sample("SOR A", JAVA_THREADS, 4, 0, 1.0), sample("SOR A", JAVA_NODES, 4, 0, 3.0)),
]


def results(*more):
    return Results({"environment": environment(("limosa",)), "samples": [*SAMPLES, *more]})


def test_tables_and_the_answer():
    found = {table.title.split(":")[0]: table.rows for table in tables(results())}
    assert found["Half a round trip"] == [["8 B", "1 us", "1.5 us (1.5)"]]
    assert found["bcast, 2 ranks"] == [["1 KB", "2 us", "5 us (2.5)"]]
    assert found["Kernels"][1] == ["SOR A", "2", "2 s, 2, 100 %", "4 s, 1.5, 75 %", "-"]
    # Measured in C, the source's ScaMPI, measured in Java, the source's MPJ/Ibis.
    assert found["Table 6"] == [["SOR A", "-", "0.70", "1.50", "0.90"]]
    assert found["Table 7"] == [["SOR A", "2.00", "1.02", "1.50", "1.01"]]
    assert found["Table 8"] == [["SOR A", "2.00", "0.80", "2.00", "0.70"]]
    assert found["Java"] == [["SOR A", "-", "-", "2.00"]]
    assert answer(results()) == (
        "A message of 8 B takes 1.5 us in Java and 1 us in C; kernels on 4 ranks take 2 times as long in Java as in C; "
        "as processes they take 2 times as long as with threads as ranks."
    )


def test_a_page_needs_no_other_file():
    written = page.page(results())
    assert written.count("<svg") == 3
    assert "<img" not in written
    assert written.index("A message of 8 B") < written.index("<svg") < written.index("<table")


def test_other_programs_are_a_reason_to_doubt():
    busy = Results({"environment": environment(("limosa",)) | {"busy_percent": 40.0}, "samples": SAMPLES})
    said = "Other programs used 40 % of the processors at the start."
    assert said in page.page(busy)
    assert said in page.text(busy)


def test_a_report_says_what_failed(tmp_path, capsys):
    trouble = {"bench": "Crypt A", "series": JAVA, "ranks": 3, "trouble": "Validation failed: byte 5 differs"}
    content = {"environment": environment(("limosa",)), "samples": [*SAMPLES, trouble]}
    (tmp_path / measure.RESULTS).write_text(json.dumps(content))
    assert main(["study", "java", "--report", str(tmp_path)]) == 1
    assert "Crypt A, Java, 3 ranks: Validation failed: byte 5 differs" in capsys.readouterr().out
    assert "Validation failed: byte 5 differs" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sizes", "AD"], "--sizes AD: the kernels have the sizes A, B and C"),
        (["--report", "."], "does not hold a study of Java"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "java", *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_job_that_fails_says_why():
    said = "echo Section2:SOR:Kernel:SizeA; echo 'limosa: rank 0' >&2; echo 'x: Validation failed: the sum' >&2; exit 1"
    found = measure.run(measure.Job(C, 2, ("sh", "-c", said), "SOR A"))
    assert [entry["trouble"] for entry in found] == ["x: Validation failed: the sum"]


@pytest.fixture
def jdk():
    if not has_java():
        pytest.skip("there is no JDK 22 or newer: https://adoptium.net")


def test_a_folder_without_mpj_express_is_named(jdk, tmp_path):
    with pytest.raises(LabError, match=r"does not hold MPJ Express: there is no lib/mpj\.jar"):
        measure.check_mpj(tmp_path)


def test_each_job_measures(jdk, tmp_path, monkeypatch):
    """With real jobs: all series of the operations are there, and one kernel in all its ways."""
    monkeypatch.setattr(measure, "KERNELS", {"Series": "Series"})
    monkeypatch.setitem(measure.SIZES, "quick", measure.Size((8, 1 << 10), (2,), 4, 1, "A", (1, 2)))
    assert main(["study", "java", "--quick", "--output", str(tmp_path / "out")]) == 0
    found = Results(json.loads((tmp_path / "out" / measure.RESULTS).read_text()))
    ways = {C, ARRAYS, measure.DIRECT, measure.THREADS}
    assert set(found.series("bcast")) == ways
    assert set(found.series("send")) == ways | {measure.OBJECTS, measure.THREAD_OBJECTS}
    assert set(found.medians("send", ARRAYS, "bytes")) == {8, 1 << 10}
    assert set(found.series("Series A")) == {C, JAVA, JAVA_THREADS, measure.C_NODES, JAVA_NODES}
    assert set(found.medians("Series A", JAVA, "ranks")) == {1, 2}
    assert Path(tmp_path / "out" / "report.html").read_text().count("<svg") > 3
