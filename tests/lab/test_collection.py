"""`limosa report`: one page of all results, drawn by a real browser without a network."""

import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sysconfig
import xml.etree.ElementTree as ET
from pathlib import Path

import made_records as made
import pytest
from jobs import PATIENCE
from limosa_lab import html_page
from limosa_lab.cli import main
from limosa_lab.collection import charts, page, sections
from limosa_lab.model.samples import PROGRAM
from limosa_lab.tune import store
from limosa_lab.tune.rules import Entry, Measured

BIN = Path(sysconfig.get_path("scripts"))
BROWSER = shutil.which("chromium")
SIZES = [4**k for k in range(2, 10)]


def measurement():
    """Ping-pongs of two libraries, and something without sizes."""
    yield made.environment(("limosa", "mpich"))
    for ranks in (2, 4):
        for size in SIZES:
            for library, factor in (("limosa", 1), ("mpich", 2)):
                yield made.sample(
                    library, "pingpong", [factor * (1 + size / 1000)] * 3, bytes=size, ranks=ranks, program="pingpong"
                )
    yield made.sample("limosa", "init", [100.0] * 3, bytes=0)


def model():
    """Samples as `limosa model` takes them."""
    yield made.environment(("limosa",))
    for ranks in (2, 4):
        for size in [0, *SIZES, 100, 3000, 50_000]:
            took = 2.0 + 0.5 * ranks + size / 2000
            yield made.sample("limosa", "bcast", [took] * 3, bytes=size, ranks=ranks, program=PROGRAM)


def tuning(folder):
    """What `limosa tune` leaves: MPICH's scatter is replaced, and its gather is not."""
    evidence = tuple(Measured(n, 10.0 + n, 4.0 + n / 2, 0.01) for n in SIZES)
    kept = Entry(
        "scatter", "scatter = bcast", 4, 16, 1 << 20, 0.6, 0.1, evidence=evidence, curve=((16, 0.6), (64, 0.4))
    )
    dropped = Entry("gather", "gather = reduce", 2, 1, 64, 0.3, 0.1)
    part = store.Part("MPICH", "1.0", (kept,), ((dropped, "saved 2 % at best"),), "MPICH takes 0.5 of the time.")
    store.write(folder / store.NAME, {}, {"mpich": part})


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """A folder with a measurement, a model, a profile, a tuning and the report of something else."""
    folder = tmp_path_factory.mktemp("results")
    made.write(folder / "measured", measurement())
    made.write(folder / "modelled", model())
    made.write(folder / "tuned" / "measured", model())
    tuning(folder / "tuned")
    study = folder / "study"
    study.mkdir()
    (study / "report.html").write_text(html_page.document("Study", ["<h1>A study</h1>", "<p>Its sentence.</p>"]))
    script = folder / "exchange.py"
    script.write_text("from mpi4py import MPI\nw = MPI.COMM_WORLD\nw.sendrecv(b'x' * 999, 1 - w.rank)\nw.Barrier()\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    command = [BIN / "limosa", "run", "--profile=profiled", "-n", "2", script]
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, timeout=600 * PATIENCE)
    return folder


@pytest.fixture
def results(made_once, tmp_path):
    """The same folder for one test, which may write into it."""
    return shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)


def test_every_kind_of_result_has_its_section(results, capsys):
    assert main(["report", str(results), "--output", str(results / "shown")]) == 0
    text = (results / "shown" / "report.html").read_text()
    headings = re.findall(r'<h2 id="part-\d+">([^<]*)</h2>', text)
    # First, what each says in a sentence.
    overview = text[text.index("<h2>Overview</h2>") : text.index('<h2 id="part-0">')]
    assert overview.count("<li>") == 5
    assert "MPICH takes 0.5 of the time." in overview
    assert "2 ranks ran for" in overview
    for group in ("Messages between two ranks", "Where the time goes", "What is sent"):
        assert f"<h3>{group}</h3>" in text
    kinds = ["Measurement: measured", "Models: modelled", "Profile: profiled", "Report: study", "Tuning: tuned"]
    assert headings == kinds
    assert "MPICH takes 0.5 of the time." in text
    assert "saved 2 % at best" in text
    assert "Its sentence." in text
    assert "<h3>A study</h3>" in text
    assert "exchange.py:3 in &lt;module&gt;" in text
    # The page of all is not put on a later one.
    assert len(sections.find([results]).sections) == 5
    assert "wrote" in capsys.readouterr().err


def test_folders_of_the_same_name_are_told_apart(keep, tmp_path):
    for name in ("before/measured", "after/measured", "other"):
        keep(*measurement(), name=name)
    found = sections.find([tmp_path]).sections
    assert [section.title for section in found] == [
        "Measurement: after/measured",
        "Measurement: before/measured",
        "Measurement: other",
    ]
    made = [chart for section in found for chart in section.charts]
    assert len({chart.title for chart in made}) == len(made)
    charts.write(made, tmp_path / "shown")
    assert len(list((tmp_path / "shown" / "data").glob("*.csv"))) == len(made)


def test_figures_with_long_titles_have_files_of_their_own(tmp_path):
    made = [charts.Chart("x" * 100 + end, [{"a": end}], {"mark": "point"}) for end in ("one", "two")]
    charts.write(made, tmp_path)
    assert sorted(file.read_text() for file in (tmp_path / "data").iterdir()) == ["a\none\n", "a\ntwo\n"]


def test_figures_are_files_too_and_data_are_csv(results):
    assert main(["report", str(results), "--output", str(results / "shown")]) == 0
    shown = results / "shown"
    images = {file.stem for file in (shown / "figures").glob("*.svg")}
    assert images == {file.stem for file in (shown / "figures").glob("*.png")}
    assert images == {file.stem for file in (shown / "data").glob("*.csv")}
    for file in (shown / "figures").glob("*.svg"):
        drawn = ET.fromstring(file.read_text())
        assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) > 3, file
    for file in (shown / "figures").glob("*.png"):
        assert file.read_bytes().startswith(b"\x89PNG")
    (data,) = (shown / "data").glob("*latency-measured.csv")
    with data.open() as opened:
        rows = list(csv.DictReader(opened))
    assert len(rows) == 2 * 2 * len(SIZES)
    one = next(r for r in rows if r["library"] == "MPICH" and r["ranks"] == "2" and r["bytes"] == "1024")
    assert float(one["median"]) == pytest.approx(2 * 2.024e-6)


def test_the_page_needs_no_other_file(results):
    assert main(["report", str(results), "--output", str(results / "shown"), "--no-files"]) == 0
    text = (results / "shown" / "report.html").read_text()
    assert not (results / "shown" / "figures").exists()
    # What scripts hold is no element of the page.
    text = re.sub(r"(<script[^>]*>).*?</script>", r"\1</script>", text, flags=re.DOTALL)
    assert not re.search(r"<(script|img|link|iframe)[^>]*\b(src|href)=", text)
    assert not re.search(r"@import|url\(\s*['\"]?http", text)


def browse(file, *options):
    """Load a page as a browser without a network does; give what it is then, and what it has complained of."""
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={file.parent / 'browser'}",
        "--proxy-server=http://127.0.0.1:9",
        "--enable-logging=stderr",
        "--virtual-time-budget=60000",
        *options,
        "--dump-dom",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(not BROWSER, reason="a page is drawn by chromium (Debian: chromium), which is not installed")
@pytest.mark.parametrize("options", [[], ["--blink-settings=preferredColorScheme=0", "--window-size=400,800"]])
def test_a_browser_without_a_network_draws_all_figures(results, options):
    assert main(["report", str(results), "--output", str(results / "shown"), "--no-files"]) == 0
    file = results / "shown" / "report.html"
    wanted = file.read_text().count('<div class="chart">')
    assert wanted >= 6
    dom, complaints = browse(file, *options)
    assert complaints == []
    assert 'data-drawn="yes"' in dom
    figures = re.findall(r'<figure class="wide-figure">.*?</figure>', dom, re.DOTALL)
    assert len(figures) == wanted
    for drawn in figures:
        assert re.search(r"<svg.*<path", drawn, re.DOTALL)
        assert "NaN" not in re.sub(r"<script.*?</script>", "", drawn, flags=re.DOTALL)


@pytest.mark.skipif(not BROWSER, reason="a page is drawn by chromium (Debian: chromium), which is not installed")
def test_a_figure_that_cannot_be_drawn_says_so(tmp_path):
    broken = charts.Chart("Broken", [{"a": 1}], {"mark": "no such mark"})
    file = tmp_path / "report.html"
    file.write_text(page.page([sections.Section("Test", tmp_path, charts=[broken])], []))
    dom, complaints = browse(file)
    assert "This figure cannot be drawn" in dom
    assert complaints


def test_text_of_results_cannot_end_the_script(tmp_path):
    evil = charts.Chart("</script><b>", [{"a": "</script><b>"}], {"mark": "point"})
    text = page.page([sections.Section("<i>", tmp_path, charts=[evil])], ["<u>"])
    assert "<b>" not in text
    assert "<i>" not in text
    assert "<u>" not in text


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(keep, tmp_path, capsys):
    keep(*measurement(), name="whole")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "samples.jsonl").write_text("{not json\n")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "vm.1.profile").write_bytes(b"LIMO")
    assert main(["report", str(tmp_path), "--output", str(tmp_path / "shown"), "--no-files"]) == 0
    said = capsys.readouterr().err
    assert "not shown" in said
    assert "torn" in said
    assert "broken" in said
    assert "Measurement: whole" in (tmp_path / "shown" / "report.html").read_text()


def test_no_results_and_no_folder_are_errors(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "there are no results in" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_an_error(keep, capsys):
    folder = keep(*measurement())
    assert main(["report", str(folder), "--output", "/proc/none"]) == 3
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (measurement, lambda folder: ["bench", "--report", folder]),
        (model, lambda folder: ["model", "--report", folder]),
        (measurement, lambda folder: ["report", folder, "--output", folder]),
    ],
    ids=["bench", "model", "report"],
)
def test_pages_for_which_there_is_no_room_are_a_sentence(records, words, keep, capsys):
    folder = keep(*records())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        assert main(words(str(folder))) == 3
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = capsys.readouterr().err
    assert f"cannot write {folder}/" in said
    assert "File too large" in said
    assert not list(folder.rglob(".unfinished*"))


def test_data_of_a_figure_are_in_the_page_as_they_are():
    chart = charts.Chart("One", [{"a": 1, "b": "x"}, {"a": 2}], {"mark": "point"})
    assert chart.csv() == "a,b\n1,x\n2,\n"
    assert json.loads(json.dumps(chart.specification()))["data"]["values"] == [{"a": 1, "b": "x"}, {"a": 2}]
