"""limosa study thesis: its schedule, its fits and ratios on made data, its report from made records.

And a small study for real.
"""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import made_records as made
import pytest
from jobs import PATIENCE
from limosa_lab import records
from limosa_lab.study import page, plan, results, verdict
from limosa_lab.study.results import Contender, Point, Spread, corresponding_times, least_squares, ratio, speedup, times

LIMOSA = {"limosa": "Limosa"}


def study(*arguments, env=None):
    return subprocess.run(
        [sys.executable, "-m", "limosa_lab", "study", *map(str, arguments)],
        text=True,
        capture_output=True,
        timeout=600 * PATIENCE,
        check=False,
        env={**os.environ, **(env or {})},
    )


def measured(module, bench, seconds, *, library="limosa", size=0, ranks=2, **x):
    """A sample record of the study."""
    micro = bench in results.MICRO
    return made.sample(
        library,
        bench,
        [1e6 * seconds if micro else seconds],
        metric="time",
        unit="us" if micro else "s",
        bytes=size,
        ranks=ranks,
        x={"module": module, **x},
    )  # fmt: skip


def environment(*libraries, **changes):
    options = {"study": "thesis", "size_name": "quick", "rounds": 1}
    return made.environment(libraries or ("limosa",), options=options, **changes)


# --- the plan ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [plan.QUICK, plan.NORMAL, plan.FULL])
def test_every_size_runs_every_kernel(size):
    jobs = plan.jobs(size)
    assert {work.kernel for job in jobs for work in job.works} == set(plan.KERNELS)
    assert {job.ranks for job in jobs} == set(size.ranks) | {2} | set(size.collective_ranks)
    assert all("pingpong" not in job.works[0].options for job in jobs if job.ranks > 2)


def test_the_full_size_has_the_meshes_of_the_thesis():
    meshes = {(work.kernel, work.options) for job in plan.jobs(plan.FULL) for work in job.works}
    for kernel, n in [("wave3d", 129), ("wave3d", 257), ("cg", 1025), ("cg", 2049), ("mandelbrot", 4800)]:
        assert (kernel, ("--n", str(n))) in meshes


def test_jobs_can_be_left_out():
    jobs = plan.jobs(plan.NORMAL, ranks=[1, 2], kernels=["cg", "micro"])
    assert {(job.ranks, work.kernel) for job in jobs for work in job.works} == {(2, "micro"), (1, "cg"), (2, "cg")}


def test_contenders_take_turns_and_each_is_first_once():
    contenders = [("limosa", "c"), ("limosa", "mpi4py"), ("mpich", "c")]
    job = plan.Job("job", 2, (plan.Work("inner"),), 1.0)
    python = plan.Job("python", 2, (plan.Work("inner"),), 1.0, modules=("mpi4py",))
    order = list(plan.turns(3, [job, python], contenders))
    first = [
        next((library, module) for turn, at, library, module in order if (turn, at) == (number, job))
        for number in range(3)
    ]
    assert sorted(first) == sorted(contenders)
    assert [(library, module) for _, at, library, module in order if at is python] == [("limosa", "mpi4py")] * 3


# --- fits and ratios --------------------------------------------------------------------------------------------------


def test_least_squares_finds_latency_and_bandwidth():
    sizes = [1 << k for k in range(3, 24)]
    line = least_squares(sizes, [2e-6 + size / 1e9 for size in sizes])
    assert line.latency == pytest.approx(2e-6)
    assert line.bandwidth == pytest.approx(1e9)


def test_least_squares_hears_small_messages_too():
    """With a bandwidth that falls by a third at the largest sizes, the latency is still that of the small ones."""
    sizes = [1 << k for k in range(3, 24)]
    line = least_squares(sizes, [1e-6 + size / (1e10 if size < 1 << 21 else 6.7e9) for size in sizes])
    assert line.latency == pytest.approx(1e-6, rel=0.1)
    assert 6e9 < line.bandwidth < 1.1e10


def test_no_line_through_what_is_none():
    assert least_squares([8], [1e-6]) is None
    assert least_squares([8, 16, 1024], [3e-6, 2e-6, 1e-6]) is None


def test_speed_up_needs_the_time_of_one_process():
    assert speedup({1: 8.0, 2: 5.0, 4: 2.0}) == {1: 1, 2: 1.6, 4: 4}
    assert speedup({2: 5.0}) == {}


def test_ratios_are_geometric_means_and_name_the_worst_point():
    points = [Point("bcast", size, 2) for size in (8, 64, 512)]
    value = ratio({points[0]: 4.0, points[1]: 1.0}, dict.fromkeys(points, 1.0))
    assert (value.mean, value.worst, value.where.size) == (2.0, 4.0, 8)
    assert ratio({points[0]: 1.0}, {points[1]: 1.0}) is None


def test_where_there_is_no_allreduce_reduce_and_broadcast_are_compared():
    reference, pypar = Contender("limosa", "mpi4py"), Contender("limosa", "pypar")
    found = {
        Point(bench, 8, 2): {reference: seconds, pypar: 9.0}
        for bench, seconds in [("bcast", 1.0), ("reduce", 2.0), ("allreduce", 2.5)]
    }
    assert corresponding_times(found, "allreduce", pypar) == {Point("allreduce", 8, 2): 3.0}
    assert corresponding_times(found, "reduce", pypar) == {Point("reduce", 8, 2): 2.0}
    assert corresponding_times(found, "allreduce", Contender("limosa", "scientific")) == {Point("allreduce", 8, 2): 2.5}


def test_times_are_medians_of_verified_rounds(keep):
    folder = keep(
        environment(),
        measured("pypar", "bcast", 1e-6, size=8),
        measured("pypar", "bcast", 3e-6, size=8),
        measured("pypar", "bcast", 2e-6, size=8),
        {**measured("pypar", "bcast", 9e-6, size=8), "verified": False},
        measured("c", "wave3d", 0.5, n=33, kernel="c", mode="blocking"),
        measured("mpi4py", "wave3d", 4.0, n=33, kernel="slices", mode="blocking"),
        measured("mpi4py", "wave3d", 0.6, n=33, kernel="numba", mode="blocking"),
    )
    found = times(records.read(folder))
    assert found[Point("bcast", 8, 2)] == {Contender("limosa", "pypar"): pytest.approx(2e-6)}
    assert found[Point("wave3d", 33, 2, "blocking")] == {
        Contender("limosa", "c"): 0.5,
        Contender("limosa", "mpi4py"): 4.0,
    }
    assert found[Point("wave3d", 33, 2, "numba, blocking")] == {Contender("limosa", "mpi4py"): 0.6}


def test_the_verdict_takes_the_corresponding_calls_of_mpi4py():
    said = verdict.sentences(*broadcasts(mpi4py=1.0, mpi4py_objects=5.0, boostmpi=9.0, pypar=1.9, mympi=2.9), LIMOSA)
    assert "at most 2 times the time" in said[0] and "pypar, boostmpi" in said[0]
    assert "MYMPI (2.90 times in broadcast)" in said[1]
    assert verdict.sentences({}, Spread({}, {}), LIMOSA) == []


def broadcasts(**seconds):
    """Times of one broadcast by module, and their spread by the factor that is assumed for few samples."""
    found = {Point("bcast", 8, 2): {Contender("limosa", module): value for module, value in seconds.items()}}
    scale = results.ASSUMED**0.5
    low, high = (
        {point: {who: value * by for who, value in times.items()} for point, times in found.items()}
        for by in (1 / scale, scale)
    )
    return found, Spread(low, high)


def test_a_verdict_is_given_only_beyond_the_noise():
    """2.5 times may be 1.9 times in the next study, as the spread of one sample is assumed to be."""
    (said, _) = verdict.sentences(*broadcasts(mpi4py=1.0, mympi=2.5), LIMOSA)
    assert "at most 2 times the time" in said
    said = verdict.sentences(*broadcasts(mpi4py=1.0, mympi=2.7), LIMOSA)[0]
    assert "MYMPI (2.70 times in broadcast)" in said


def test_the_spread_is_that_of_the_samples_if_there_are_enough(keep):
    few = [measured("c", "bcast", 1e-6, size=8)]
    many = [measured("pypar", "bcast", value * 1e-6, size=8) for value in (1.0, 2.0, 3.0)]
    spread = results.spread(records.read(keep(environment(), *few, *many)))
    (low,), (high,) = spread.low.values(), spread.high.values()
    c, pypar = Contender("limosa", "c"), Contender("limosa", "pypar")
    assert high[c] / low[c] == pytest.approx(results.ASSUMED)
    assert (low[pypar], high[pypar]) == (pytest.approx(1.5e-6), pytest.approx(2.5e-6))


@pytest.mark.parametrize(
    ("pypar", "words"),
    [
        (1.2, "no module differs from mpi4py by more than the noise"),
        (2, "pypar (2 times) is slower than mpi4py"),
        (0.5, "pypar (0.5 times) is faster than mpi4py"),
    ],
)
def test_the_answer_is_one_sentence_about_messages_and_applications(keep, pypar, words):
    lines = [
        line
        for module, factor in (("c", 0.5), ("mpi4py", 1.0), ("pypar", pypar))
        for line in (
            measured(module, "cg", factor, ranks=2, n=129),
            measured(module, "pingpong", factor * 1e-6, size=8),
        )
    ]
    recording = records.read(keep(environment(), *lines))
    said = verdict.answer(times(recording), results.spread(recording), LIMOSA)
    assert said.startswith("A message of 8 B on Limosa takes 0.5 us in C, 1 us with mpi4py and ")
    assert said.endswith(f"in the applications {words}.")


# --- the report -------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects what a page refers to, and sees whether its elements are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.references = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in {"meta", "br", "link", "img"}:
            self.open.append(tag)
        self.references += [value for name, value in attrs if name in {"src", "href"} or name.endswith(":href")]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in {"meta", "br", "link", "img"}:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def kept(keep):
    """A study of two modules and C on two libraries, in which one job took too long."""
    lines = [environment("limosa", "mpich")]
    for library, slower in (("limosa", 1), ("mpich", 3)):
        for module, factor in (("c", 1), ("mpi4py", 2), ("pypar", 3)):
            lines += [
                measured(module, bench, slower * factor * (1e-6 + size / 1e10), library=library, size=size)
                for bench in results.MICRO
                for size in (8, 1024, 1 << 20)
            ]
            for ranks in (1, 2, 4):
                if (library, module, ranks) == ("mpich", "pypar", 4):
                    lines.append(made.run("mpich", "applications, pypar", "time limit", ranks=4))
                    continue
                for bench, n in (("inner", 1000), ("cg", 129), ("mandelbrot", 300)):
                    lines.append(measured(module, bench, factor / ranks, library=library, ranks=ranks, n=n))
                step = "c" if module == "c" else "slices"
                x = {"n": 33, "kernel": step, "mode": "blocking"}
                lines.append(measured(module, "wave3d", 9 * factor / ranks, library=library, ranks=ranks, **x))
            lines.append(
                measured("mpi4py", "wave3d", 1.2, library=library, ranks=2, n=33, kernel="numba", mode="blocking")
            )
    return keep(*lines, made.END)


def test_text_has_latencies_speed_ups_and_the_thesis_beside(kept):
    text = page.text(records.read(kept))
    row = next(
        line.split()
        for line in text.splitlines()
        if line.startswith("mpi4py  Limosa") and line.rstrip().endswith("944")
    )
    assert row[2:4] == ["2", "5000"]  # us, MB/s
    assert "(4 x)" in text
    assert "time limit" in next(
        line for line in text.splitlines() if line.startswith("pypar") and "MPICH" in line and "time limit" in line
    )
    assert "Numba" in text
    assert "took longer than the time limit" in text


def test_page_is_complete_and_needs_no_other_file(kept):
    text = page.page(records.read(kept))
    parsed = Page()
    parsed.feed(text)
    assert parsed.open == []
    assert all(reference.startswith("#") for reference in parsed.references)
    assert parsed.seen.count("figure") == parsed.seen.count("svg") >= 14
    first, _, _ = text.partition("</figure>")
    assert "A message of 8 B on Limosa takes 1 us in C, 2 us with mpi4py" in first
    assert first.count("<svg") == 1 and "<table" not in first and "<h2" not in first
    assert re.search(r">1 us<|>2 us<", first)
    assert "<script" not in text
    for title in page.SECTIONS.values():
        assert f"<h2>{title}</h2>" in text
    assert "C was 8 to 10 times faster" in text


def test_report_is_made_again_from_what_was_kept(kept):
    done = study("thesis", "--report", kept)
    assert done.returncode == 0, done.stderr
    assert (kept / "report.html").read_text().startswith("<!doctype html>")
    assert (kept / "report.txt").read_text() == done.stdout


# --- for real ---------------------------------------------------------------------------------------------------------


def test_a_small_study_from_beginning_to_end(tmp_path):
    options = [
        "--quick",
        "--mpi",
        "limosa",
        "--modules",
        "c,mpi4py,pypar",
        "--kernels",
        "micro,inner",
        "--ranks",
        "1,2",
    ]
    done = study("thesis", *options, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "times the time of the corresponding calls of mpi4py" in done.stdout
    assert "A message of 8 B on Limosa takes" in done.stdout
    found = times(records.read(tmp_path / "out"))
    assert {point.bench for point in found} == {*results.MICRO, "inner"}
    assert {who.module for by in found.values() for who in by} == {"c", "mpi4py", "pypar"}
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()


def test_a_job_that_takes_too_long_is_stopped_and_said(tmp_path):
    options = [
        "--mpi",
        "limosa",
        "--modules",
        "mpi4py",
        "--kernels",
        "cg",
        "--ranks",
        "1",
        "--rounds",
        "2",
        "--time-limit",
        "0.05",
    ]
    done = study("thesis", *options, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    kept = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").read_text().splitlines()]
    assert [run["outcome"] for run in kept if run["kind"] == "run"] == ["time limit"]
    assert "took longer than the time limit" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["thesis", "--modules", "c,pigeons"], "`pigeons` is not a module of the study"),
        (["thesis", "--kernels", "outer"], "there is no kernel `outer`"),
        (["thesis", "--mpi", "nosuch"], "nosuch"),
        (["thesis", "--mpi", "/nowhere/at/all"], "/nowhere/at/all"),
        (["thesis", "--rounds", "0"], "at least one round"),
        (["thesis", "--time-limit", "-1"], "a positive number of seconds"),
        (["thesis", "--ranks", "two"], "`two` is not a list of positive integers"),
        (["thesis", "--quick", "--full"], "not allowed with"),
        (["poem"], "invalid choice"),
        (["thesis", "--report", "/nowhere"], "there is no samples.jsonl in /nowhere"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, said, tmp_path):
    done = study(*arguments, *([] if "--report" in arguments else ["--output", tmp_path / "out"]))
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path(tmp_path / "out").exists()


def test_measurements_of_bench_are_not_taken_for_a_study(keep):
    done = study("thesis", "--report", keep(made.environment()))
    assert done.returncode == 2
    assert "does not hold a study" in done.stderr


def test_a_missing_package_is_named_with_the_cure(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\nu.find_spec = lambda name, *rest: None if name == 'scipy' "
        "else real(name, *rest)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = study("thesis", "--output", tmp_path / "out", env={"PYTHONPATH": path})
    assert done.returncode == 3, (done.stdout, done.stderr)
    assert "kernel cg needs scipy" in done.stderr
    assert "pip install 'limosa[kernels]'" in done.stderr
