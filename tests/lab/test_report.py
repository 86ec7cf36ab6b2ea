"""Reports from recordings made by hand: tables, verdicts on the budgets, doubts, files."""

import json

import pytest
from limosa_lab import before, budget, records, report, stats, tables
from limosa_lab.errors import LabError
from limosa_lab.wording import number, size
from made_records import END, LIBRARIES, environment, run, sample


def every_library(bench, values, **changes):
    """A sample for each library, with these medians in the order Limosa, MPICH, Open MPI, Intel."""
    return [sample(name, bench, [value], **changes) for name, value in zip(LIBRARIES, values)]


def promises(folder):
    recording = records.read(folder)
    return {row.what: row for row in budget.rows(recording, stats.results(recording.samples))}


def promise(folder, words):
    (row,) = (row for what, row in promises(folder).items() if words in what)
    return row


def test_a_table_shows_median_quartiles_and_the_ratio_to_the_best_peer(keep):
    folder = keep(
        environment(libraries=["limosa", "mpich", "openmpi"]),
        sample("limosa", "pingpong", [1.0, 2.0, 3.0]),
        sample("mpich", "pingpong", [4.0, 4.0, 4.0]),
        sample("openmpi", "pingpong", [5.0, 5.0, 5.0]),
        sample("limosa", "pingpong", [7.0], bytes=65536),
        END,
    )
    recording = records.read(folder)
    (table,) = tables.benchmarks(recording, stats.results(recording.samples))
    assert table.title == "pingpong, hot: latency in us, smaller is better; 2 ranks"
    assert table.columns == ["size", "Limosa", "MPICH", "Open MPI", "Limosa / best other library"]
    assert table.rows == [
        ["8 B", "2 (1.5-2.5)", "4 (4-4)", "5 (5-5)", "0.5 x MPICH"],
        ["64 KB", "7 (7-7)", "-", "-", "-"],
    ]
    assert "| 8 B | 2 (1.5-2.5) | 4 (4-4) | 5 (5-5) | 0.5 x MPICH |" in table.markdown()
    assert "2 (1.5-2.5)" in table.text()


def limit(way, values, **changes):
    """A record of the limit: one way, one direction, 8 bytes sent again and again, unless said otherwise."""
    x = {"way": way, "directions": changes.pop("directions", 1), "piece": changes.pop("piece", 0)}
    return sample("limit", "limit", values, x=x, **changes) | {"kind": "limit"}


def test_times_are_multiples_of_the_limit_by_the_best_way(keep):
    folder = keep(
        environment(libraries=["limosa"]),
        limit("attach", [2.0, 2.0, 9.0]),
        limit("two copies", [0.5, 0.5, 9.0], piece=2048, bytes=65536),
        limit("two copies", [0.25, 0.25, 9.0], piece=8192, bytes=65536),
        limit("one copy", [0.1], directions=2),
        limit("one copy", [0.1], form="fresh"),
        limit("one copy", [0.1], verified=False),
        sample("limosa", "pingpong", [3.0]),
        sample("limosa", "pingpong", [3.0], bytes=65536),
        sample("limosa", "pingpong", [3.0], bytes=1024),
        sample("limosa", "pingpong", [3.0], metric="bandwidth", unit="MB/s"),
        sample("limosa", "rate", [3.0]),
        END,
    )
    recording = records.read(folder)
    bandwidth, latency, rate = tables.benchmarks(recording, stats.results(recording.samples))
    assert latency.columns == ["size", "Limosa", "Limosa / limit"]
    assert [row[-1] for row in latency.rows] == ["1.5", "-", "12"]
    assert "Limosa / limit" not in bandwidth.columns + rate.columns
    text = report.text(recording)
    assert "Limit of this machine, one way, same buffers each time: time in us, median" in text
    assert "0.25 (pieces of 8 KB)" in text
    assert "## Limit of this machine" in report.markdown(recording, {})


def test_changes_since_an_earlier_limosa_are_told_apart_from_noise(keep):
    folder = keep(
        environment(libraries=["limosa", "before", "mpich"]),
        sample("limosa", "pingpong", [2.0, 2.0, 2.1]),
        sample("before", "pingpong", [1.0, 1.0, 1.1]),
        sample("mpich", "pingpong", [4.0]),
        sample("limosa", "pingpong", [1.0, 2.0, 3.0], bytes=64),
        sample("before", "pingpong", [1.0, 1.6, 3.0], bytes=64),
        sample("limosa", "rate", [300.0, 310.0, 320.0], metric="rate", unit="MB/s"),
        sample("before", "rate", [100.0, 110.0, 120.0], metric="rate", unit="MB/s"),
        sample("limosa", "pingpong", [1.0], bytes=128),
        END,
    )
    found = stats.results(records.read(folder).samples)
    made = before.table(found)
    assert [(row[0], row[3]) for row in made.rows] == [
        ("pingpong hot, 2 ranks, 8 B (us)", "2 x"),
        ("rate hot, 2 ranks, 8 B (MB/s)", "0.355 x"),
    ]
    assert "over 3 cases; slower in 1, faster in 1" in made.title
    assert "0.5 x MPICH" in report.text(records.read(folder)), "an earlier Limosa is no peer"
    assert before.table({}) is None


def test_a_missing_number_is_explained(keep):
    folder = keep(
        environment(libraries=["limosa", "mpich", "openmpi", "intel"]),
        run("mpich", "pingpong", "time limit"),
        run("openmpi", "pingpong", "wrong data"),
        run("limosa", "pingpong"),
        sample("limosa", "pingpong", [1.0]),
        sample("openmpi", "pingpong", [1.0], verified=False),
        END,
    )
    recording = records.read(folder)
    (table,) = tables.benchmarks(recording, stats.results(recording.samples))
    assert table.rows == [["1 (1-1)", "time limit", "wrong data", "-", "-"]]
    doubts = " ".join(tables.troubles(recording))
    assert "MPICH: 1 run of pingpong on 2 ranks took longer than the time limit" in doubts
    assert "Wrong data: pingpong with Open MPI" in doubts


def test_only_parameters_that_differ_get_a_column(keep):
    lines = [sample("limosa", "m", [1.0], x={"posted": posted, "window": 64}) for posted in (1, 1000)]
    recording = records.read(keep(environment(libraries=["limosa"]), *lines, END))
    (table,) = tables.benchmarks(recording, stats.results(recording.samples))
    assert table.columns == ["posted", "Limosa"]
    assert [row[0] for row in table.rows] == ["1", "1000"]
    assert "window 64" in table.title


def test_nothing_is_met_that_was_not_measured(keep):
    found = promises(keep(environment(), END))
    assert found
    assert {row.verdict for row in found.values()} == {"not measured"}


def test_comparisons_without_peers_are_not_measured(keep):
    folder = keep(environment(libraries=["limosa"]), sample("limosa", "pingpong", [0.1]), END)
    assert promise(folder, "pingpong, hot").verdict == "not measured"


@pytest.mark.parametrize("latency, verdict", [(0.27, "met"), (0.29, "NOT MET")])
def test_pingpong_is_held_against_the_flag(keep, latency, verdict):
    folder = keep(
        environment(),
        sample("limosa", "flag", [0.2], ranks=1),
        *every_library("pingpong", [latency, 0.9, 0.4, 0.3]),
        END,
    )
    row = promise(folder, "flag")
    assert row.verdict == verdict
    assert row.peers["mpich"] == "4.5 x"


def test_one_slower_size_breaks_the_promise_and_is_named(keep):
    lines = every_library("pingpong", [1.0, 2.0, 2.0, 2.0]) + every_library(
        "pingpong", [5.0, 9.0, 4.0, 9.0], bytes=65536
    )
    row = promise(keep(environment(), *lines, END), "pingpong, hot")
    assert row.verdict == "NOT MET"
    assert row.measured == "worst 1.25 x; 1 of 2 met"
    assert row.note == "64 KB (1.25 x)"


def test_bandwidth_must_be_larger_than_that_of_the_best_peer(keep):
    changes = {"program": "pingpong", "metric": "bandwidth", "unit": "MB/s", "bytes": 65536}
    fast = keep(environment(), *every_library("pingpong", [13000, 9000, 10000, 8000], **changes), END, name="fast")
    slow = keep(environment(), *every_library("pingpong", [12000, 9000, 10000, 8000], **changes), END, name="slow")
    assert promise(fast, "bandwidth at 64 KB").verdict == "met"
    assert promise(slow, "bandwidth at 64 KB").verdict == "NOT MET"
    assert promise(fast, "bandwidth at 4 MB").verdict == "not measured"


def test_collectives_are_judged_one_by_one_and_in_the_mean(keep):
    lines = every_library("allreduce", [3.0, 30, 10, 20], ranks=8, program="collectives")
    lines += every_library("bcast", [11.0, 30, 10, 20], ranks=2, program="collectives")
    folder = keep(environment(), *lines, END)
    assert promise(folder, "blocking collectives on 2, 4, 8 ranks, each").note == "bcast 2 ranks 8 B hot (1.1 x)"
    mean = promise(folder, "geometric mean")
    assert (mean.verdict, mean.measured) == ("met", "0.574 x (2 cases)")
    assert promise(folder, "small collectives").verdict == "met", "only those of 8 ranks count here"


def test_waiting_independence_memory_and_start_are_judged(keep):
    lines = every_library("quiet_recv", [0.004, 7.0, 7.0, 7.0], ranks=8, metric="cpu", unit="processors", bytes=0)
    lines += every_library("quiet_wakeup", [70.0, 1.0, 1.0, 1.0], metric="wakeup")
    lines += every_library("independence_send", [1.5, 50, 50, 50], metric="ratio", unit="x", bytes=4 << 20)
    lines += every_library("overlap_transfer", [95, 0, 0, 9], metric="overlap", unit="%", x={"computing": "sender"})
    lines += every_library("overlap_transfer", [10, 0, 0, 9], metric="overlap", unit="%", x={"computing": "both"})
    lines += every_library(
        "memory", [2.5, 30, 30, 70], metric="growth", unit="MB", ranks=8, x={"kind": "pss", "partners": 7}
    )
    lines += every_library("start", [0.06, 0.2, 1.2, 0.5], metric="time", unit="s", ranks=8)
    folder = keep(environment(), *lines, END)
    verdicts = {
        "CPU time": "met",
        "woken": "NOT MET",
        "MPI_Send to a partner": "met",
        "MPI_Recv from a partner": "not measured",
        "overlap": "met",
        "memory inside": "met",
        "start and end": "NOT MET",
    }
    assert {words: promise(folder, words).verdict for words in verdicts} == verdicts
    assert promise(folder, "overlap").peers["intel"] == "9 %"


def test_the_report_is_written_with_all_its_plots(keep):
    lines = []
    for length in (8, 1024, 65536):
        lines += every_library("pingpong", [1.0 + length, 2.0 + length, 3.0 + length, 4.0 + length], bytes=length)
        lines += every_library("bcast", [2.0, 4.0, 3.0, 5.0], bytes=length, ranks=4, program="collectives")
    for ranks in (1, 2, 4, 8):
        lines += every_library(
            "start",
            [0.01 * ranks, 0.2, 1.2, 0.5],
            metric="time",
            unit="s",
            ranks=ranks,
            program="init_finalize",
            bytes=0,
        )
    for posted in (1, 10, 1000):
        lines += every_library("matching_posted", [1.0, posted, posted, 2.0], x={"posted": posted}, program="matching")
    folder = keep(environment(), *lines, END)
    report.write(records.read(folder), folder)
    page = (folder / "report.md").read_text()
    for words in ["Test Processor 9000", "## Plots", "bcast, hot: latency in us", "LIMOSA_WAIT=auto"]:
        assert words in page, words
    assert "## Doubts" not in page
    drawn = [
        "overview",
        "pingpong-hot-latency",
        "collectives-hot-ratio",
        "start-hot-time-ranks",
        "matching_posted-hot-latency-posted",
    ]
    for name in drawn:
        assert f"](plots/{name}.png)" in page
        for kind in ("png", "svg"):
            assert (folder / "plots" / f"{name}.{kind}").stat().st_size > 1000, name


def messages(limosa, mpich, spread=0.0):
    """Ping-pongs of three sizes: times of Limosa and MPICH for each, and how far samples lie from the median."""
    return [
        sample(name, "pingpong", [value - spread, value, value + spread], bytes=length)
        for name, values in (("limosa", limosa), ("mpich", mpich))
        for length, value in zip((8, 1024, 1 << 20), values)
    ]


def test_the_page_shows_the_answer_and_the_picture_before_anything_else(keep):
    lines = messages([0.5, 1.0, 50.0], [1.0, 2.0, 40.0])
    lines += [sample(name, "bcast", [2.0], bytes=1024, ranks=4, program="collectives") for name in ("limosa", "mpich")]
    folder = keep(environment(libraries=["limosa", "mpich"]), *lines, END)
    files = report.write(records.read(folder), folder)
    assert files[0] == folder / "report.html"
    page = files[0].read_text()
    first, _, rest = page.partition("</figure>")
    assert "a message of 8 B takes 0.5 us, one of 1 MB 50 us (21 GB/s)" in first
    assert "Beside MPICH, Limosa is faster in 2 of 4 measurements and slower in 1; in 1 the difference is" in first
    assert first.count("<svg") == 1 and "<table" not in first
    for words in ["MPI_Bcast", "Time of a message", "64 KB" if "64 KB" in first else "1 KB", "10 us"]:
        assert words in first, words
    assert rest.count("<svg") == 2 and rest.index("<svg") < rest.index("<table")
    assert "<img" not in page and "<script" not in page


def test_budgets_are_judged_only_when_asked_for(keep):
    folder = keep(environment(), *every_library("pingpong", [1.0, 2.0, 3.0, 4.0]), END)
    recording = records.read(folder)

    def told(**options):
        report.write(recording, folder, **options)
        return [
            report.text(recording, **options),
            *((folder / name).read_text() for name in ("report.html", "report.md")),
        ]

    assert not any("Budgets" in text or "NOT MET" in text or "not measured" in text for text in told())
    assert all("Budgets" in text and "not measured" in text for text in told(with_budgets=True))


def test_what_lies_within_the_noise_is_no_finding(keep):
    noisy = keep(
        environment(libraries=["limosa", "mpich"]), *messages([1, 2, 3], [2, 3, 4], spread=2), END, name="noisy"
    )
    clear = keep(environment(libraries=["limosa", "mpich"]), *messages([1, 2, 3], [2, 3, 4]), END, name="clear")
    assert "faster in 0 of 3 measurements and slower in 0; in 3 the" in report.text(records.read(noisy))
    assert "faster in 3 of 3 measurements and slower in 0; in 0 the" in report.text(records.read(clear))


def test_a_page_without_messages_and_collectives_has_no_picture_but_its_tables(keep):
    folder = keep(environment(libraries=["limosa"]), sample("limosa", "start", [0.1], program="init_finalize"), END)
    report.write(records.read(folder), folder)
    page = (folder / "report.html").read_text()
    assert "<svg" not in page and "<table" in page
    assert "limosa bench --against" in page


def test_a_measurement_that_was_cut_short_can_be_reported(keep):
    folder = keep(environment(busy_percent=48.0), sample("limosa", "pingpong", [1.0]))
    text = report.text(records.read(folder))
    assert "cut short" in text
    assert "Other programs used 48 % of the processors at the start" in text


@pytest.mark.parametrize(
    "lines, words", [("", "no environment record"), ('{"kind": "run"}\n', "line 1"), ("not JSON\n", "line 1")]
)
def test_a_broken_file_is_named_with_the_line(tmp_path, lines, words):
    (tmp_path / "samples.jsonl").write_text(lines)
    with pytest.raises(LabError, match=words):
        records.read(tmp_path)


def test_lines_of_unknown_kind_are_passed_over(keep):
    assert records.read(keep(environment(), {"kind": "from the future", "a": 1}, END)).end is not None


def test_earlier_measurements_are_not_overwritten(keep):
    folder = keep(environment(), END)
    with pytest.raises(LabError, match="holds measurements already"):
        records.Writer(folder)


def test_lines_of_programs_are_read_or_refused():
    line = {
        "bench": "b",
        "form": "cold",
        "bytes": 4,
        "ranks": 2,
        "metric": "m",
        "unit": "us",
        "samples": [1, 2],
        "verified": True,
    }
    sample_read = records.parse_line(json.dumps(line), library="mpich", program="p", ranks=2, round_number=1)
    assert (sample_read.form, sample_read.samples, sample_read.x) == ("cold", [1.0, 2.0], {})
    del line["unit"]
    with pytest.raises(LabError, match=r"p printed a line that is not a measurement .*unit"):
        records.parse_line(json.dumps(line), library="mpich", program="p", ranks=2, round_number=1)


def test_numbers_and_sizes_read_well():
    assert [number(value) for value in (0, 0.000098, 0.2604, 1.5, 123.4, 12345, 1.2e7)] == [
        "0",
        "0.000098",
        "0.26",
        "1.5",
        "123",
        "12300",
        "12000000",
    ]
    assert [size(count) for count in (0, 8, 1000, 1024, 65536, 1 << 20, 3 << 20)] == [
        "0 B",
        "8 B",
        "1000 B",
        "1 KB",
        "64 KB",
        "1 MB",
        "3 MB",
    ]
