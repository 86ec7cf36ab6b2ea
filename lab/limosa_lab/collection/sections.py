"""Finds results in folders, and makes a section of a page of each. Pure functions but for reading.

Of measurements, models, tunings and profiles there are interactive figures; of other results (studies) the report that
lies beside them is taken as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from limosa_lab import catalogue, html_page, overview, records, stats, tables
from limosa_lab.collection import charts
from limosa_lab.collection.charts import Chart
from limosa_lab.errors import LabError
from limosa_lab.model import library, samples
from limosa_lab.model import report as model_report
from limosa_lab.profile import files, names, summary
from limosa_lab.records import Recording
from limosa_lab.tables import Table
from limosa_lab.tune import report as tune_report
from limosa_lab.tune import store
from limosa_lab.wording import bench_title, distinct

MICROSECOND = 1e-6
REPORT = "report.html"
# More functions, places and sizes than these make a figure unreadable; tables have more.
MOST_BARS = 12
MOST_RANKS = 128
# Headings of figures, by the group of the programs that measure what they show (`catalogue.GROUPS`).
GROUP_TITLES = {
    "p2p": "Messages between two ranks",
    "coll": "Collective operations",
    "neighbour": "Collective operations among neighbours",
    "rma": "One-sided communication",
    "io": "Files",
    "dynamic": "Processes that come and go",
    "independence": "Communication beside computation",
}
OTHERS = "Other benchmarks"
WITHOUT_SIZES = "Benchmarks without sizes"
WHERE_TIME_GOES = "Where the time goes"
WHAT_IS_SENT = "What is sent"


@dataclass(frozen=True)
class Section:
    """A part of the page.

    It has what it says in a sentence, doubts, figures, tables, and a report that was there before. `label` tells its
    folder from those of other sections.
    """

    kind: str
    folder: Path
    answer: str = ""
    doubts: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    report: str = ""
    label: str = ""

    @property
    def title(self) -> str:
        """The heading."""
        return f"{self.kind}: {self.label or self.folder.name}"


@dataclass
class Found:
    """The sections, and what could not be read."""

    sections: list[Section] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def find(folders: Sequence[Path]) -> Found:
    """Look for results in these folders and in all below them."""
    found = Found()
    for folder in _with_results(folders):
        try:
            section = _section(folder)
        except (LabError, ValueError, KeyError, OSError, UnicodeError) as error:
            found.troubles.append(f"{folder}: {error}")
            continue
        if section:
            found.sections.append(section)
    labels = distinct([section.folder for section in found.sections])
    found.sections = [_with_label(section, label) for section, label in zip(found.sections, labels)]
    return found


def _with_label(section: Section, label: str) -> Section:
    """Name the folder in the titles of figures, so that those of different sections can be told apart."""
    made = [replace(chart, title=f"{chart.title} ({label})") for chart in section.charts]
    return replace(section, charts=made, label=label)


def _with_results(folders: Sequence[Path]) -> Iterator[Path]:
    seen = set()
    for folder in folders:
        if not folder.is_dir():
            raise LabError(f"there is no folder {folder}", hint="name folders that limosa bench and its like have made")
        for place in sorted({folder, *(path for path in folder.rglob("*") if path.is_dir())}):
            # What a tuning was found by is part of its section.
            is_part = (place.parent / store.NAME).is_file()
            if place.resolve() not in seen and not is_part and _has_results(place):
                seen.add(place.resolve())
                yield place


def _has_results(folder: Path) -> bool:
    has = any((folder / name).is_file() for name in (records.FILE_NAME, REPORT, store.NAME))
    return has or any(folder.glob("*.profile"))


def _section(folder: Path) -> Section | None:
    if any(folder.glob("*.profile")):
        return profile(folder)
    if (folder / store.NAME).is_file():
        return tuning(folder)
    if (folder / records.FILE_NAME).is_file():
        recording = records.read(folder)
        programs = {sample.program for sample in recording.samples}
        if "size_name" not in recording.environment["options"]:
            return model(recording, folder) if programs == {samples.PROGRAM} else measurement(recording, folder)
    file = folder / REPORT
    text = file.read_text() if file.is_file() else ""
    if html_page.COLLECTION in text:
        return None
    return Section("Report", folder, report=html_page.body(text, 2)) if text else None


def measurement(recording: Recording, folder: Path) -> Section:
    """Give the section of a measurement by ``limosa bench``."""
    found = stats.results(recording.samples)
    made = [*_curves(recording, found), *_bars(recording, found)]
    answer = " ".join(overview.sentences(recording, found))
    shown = [*tables.benchmarks(recording, found), tables.environment(recording)]
    return Section("Measurement", folder, answer, tables.troubles(recording), made, shown)


def _curves(recording: Recording, found: stats.Results) -> Iterator[Chart]:
    """Give a figure for each benchmark that was measured with several sizes."""
    titles = recording.titles()
    by_series: dict[stats.Series, list[dict[str, object]]] = defaultdict(list)
    for case, by_library in found.items():
        for name, times in by_library.items():
            unit = MICROSECOND if case.series.unit == "us" else 1.0
            row = {"library": titles[name], "bytes": case.bytes, "ranks": case.ranks, **dict(case.x)}
            values = {"median": times.median, "lower": times.lower, "upper": times.upper}
            by_series[case.series].append(row | {key: value * unit for key, value in values.items()})
    for series, rows in by_series.items():
        with_bytes = [row for row in rows if row["bytes"]]
        if len({row["bytes"] for row in with_bytes}) < 2:
            continue
        parameter, chosen = charts.chooser("ranks", (row["ranks"] for row in with_bytes), "ranks")
        is_time = series.unit == "us"
        what = series.metric if is_time else f"{series.metric} in {series.unit}"
        y = charts.seconds("median", what, "log")
        if not is_time:
            y = {**y, "axis": {}, "scale": {"type": "linear"}}
        yield Chart(
            f"{bench_title(series.bench)}, {series.form}: {series.metric}",
            with_bytes,
            {
                "params": [parameter],
                "transform": [chosen],
                "encoding": {
                    "x": charts.size("bytes"),
                    "color": charts.library(titles),
                    "opacity": charts.FADED,
                    "tooltip": [{"field": name} for name in ("library", "ranks", "bytes", "median", "lower", "upper")],
                },
                "layer": [
                    {
                        "mark": {"type": "area", "opacity": 0.2},
                        "encoding": {"y": {**y, "field": "lower"}, "y2": {"field": "upper"}, "opacity": {"value": 0.2}},
                    },
                    {"params": [charts.by_legend()], "mark": {"type": "line", "point": True}, "encoding": {"y": y}},
                ],
            },
            _group(series.program),
        )


def _group(program: str) -> str:
    """Give the heading for figures of a program."""
    of = next((group for group, members in catalogue.GROUPS.items() if program in members), "")
    return GROUP_TITLES.get(of, OTHERS)


def _bars(recording: Recording, found: stats.Results) -> Iterator[Chart]:
    """Give a figure for each unit of the benchmarks that have no sizes."""
    titles = recording.titles()
    sizes: dict[stats.Series, set[int]] = defaultdict(set)
    for case in found:
        sizes[case.series].add(case.bytes)
    by_unit: dict[str, list[dict[str, object]]] = defaultdict(list)
    for case, by_library in found.items():
        if len(sizes[case.series] - {0}) > 1:
            continue
        what = [case.series.bench, case.series.form, case.series.metric, *(f"{n} {v}" for n, v in case.x)]
        for name, times in by_library.items():
            row = {"library": titles[name], "what": ", ".join(what), "ranks": case.ranks, "median": times.median}
            by_unit[case.series.unit].append(row)
    for unit, rows in by_unit.items():
        parameter, chosen = charts.chooser("ranks", (row["ranks"] for row in rows), "ranks")
        yield Chart(
            f"Benchmarks without sizes, in {unit}",
            rows,
            {
                "height": 40 + 16 * len({row["what"] for row in rows}),
                "params": [parameter],
                "transform": [chosen],
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {
                    "y": {"field": "what", "type": "nominal", "title": None, "axis": {"labelLimit": 300}},
                    "x": {"field": "median", "type": "quantitative", "title": unit, "scale": {"type": "symlog"}},
                    "color": charts.library(titles),
                    "tooltip": [{"field": name} for name in ("what", "library", "ranks", "median")],
                },
            },
            WITHOUT_SIZES,
        )


def model(recording: Recording, folder: Path) -> Section:
    """Give the section of fitted models: what was measured beside what the models say, and slow operations."""
    fitted = {
        name: library.fit(samples.of_library(recording, name), samples.apart(recording))
        for name in recording.libraries()
    }
    operations = sorted({name for of_library in fitted.values() for name in of_library} - {"barrier"})
    made = [_estimated(recording, fitted, name) for name in operations]
    shown = model_report.tables(recording, fitted)
    answer = model_report.answer(recording, fitted)
    return Section("Models", folder, answer, tables.troubles(recording), made, shown)


def _estimated(recording: Recording, fitted: model_report.Libraries, name: str) -> Chart:
    titles = recording.titles()
    rows: list[dict[str, object]] = []
    for key, operations in fitted.items():
        if name not in operations:
            continue
        operation = operations[name]
        for kind, points in (("measured", operation.measured), ("measured, not fitted", operation.validation)):
            rows += [
                {"library": titles[key], "what": kind, "ranks": p.p, "bytes": p.n, "seconds": p.time * MICROSECOND}
                for p in points
                if p.n
            ]
        for p in sorted({point.p for point in operation.measured}):
            known = [point.n for point in operation.measured if point.p == p and point.n]
            for n in np.geomspace(min(known), max(known), 60) if known else ():
                took = operation.best.time(float(n), p) * MICROSECOND
                rows.append(
                    {"library": titles[key], "what": "model", "ranks": p, "bytes": round(float(n)), "seconds": took}
                )
    parameter, chosen = charts.chooser("ranks", (row["ranks"] for row in rows), "ranks")
    return Chart(
        f"{samples.title(name)}: measured and estimated",
        rows,
        {
            "params": [parameter],
            "transform": [chosen],
            "encoding": {
                "x": charts.size("bytes"),
                "y": charts.seconds("seconds", "time", "log"),
                "color": charts.library(titles),
                "opacity": charts.FADED,
                "tooltip": [{"field": field} for field in ("library", "what", "ranks", "bytes", "seconds")],
            },
            "layer": [
                {"params": [charts.by_legend()], "transform": [{"filter": "datum.what == 'model'"}], "mark": "line"},
                {
                    "transform": [{"filter": "datum.what != 'model'"}],
                    "mark": {"type": "point", "size": 30},
                    "encoding": {"shape": {"field": "what", "type": "nominal", "title": None}},
                },
            ],
        },
    )


def tuning(folder: Path) -> Section:
    """Give the section of a tuning: the guidelines that are violated, what is done otherwise, and what that brings."""
    parts = store.read(folder / store.NAME, of_any_machine=True)
    shown: list[Table] = []
    doubts: Sequence[str] = ()
    if (folder / "measured" / records.FILE_NAME).is_file():
        recording = records.read(folder / "measured")
        titles = {name: title for name, title in recording.titles().items() if ":" not in name}
        shown += [tune_report.consistency(title, samples.of_library(recording, n)) for n, title in titles.items()]
        doubts = tables.troubles(recording)
    for part in parts.values():
        shown += [tune_report.entries(part.title, part.kept), tune_report.dropped(part.title, part.dropped)]
    answer = " ".join(part.answer or f"{part.title}: nothing is done otherwise." for part in parts.values())
    made = [_gains(parts), _with_and_without(parts)]
    return Section("Tuning", folder, answer, doubts, [c for c in made if c.rows], [t for t in shown if t.rows])


def _gains(parts: Mapping[str, store.Part]) -> Chart:
    rows = [
        {
            "library": part.title,
            "what": f"{entry.way}, {entry.ranks} ranks",
            "bytes": case.bytes,
            "predicted": entry.predicted_at(case.bytes),
            "measured": case.gain,
            "noise": case.noise,
        }
        for part in parts.values()
        for entry in part.kept
        for case in entry.evidence
    ]
    share = {"axis": {"format": "%"}, "type": "quantitative"}
    points = {
        "params": [charts.by_legend()],
        "mark": {"type": "point", "filled": True, "size": 50},
        "encoding": {
            "x": {**share, "field": "predicted", "title": "predicted: part of the time that is saved"},
            "y": {**share, "field": "measured", "title": "measured"},
            "color": charts.library({name: part.title for name, part in parts.items()}),
            "opacity": charts.FADED,
            "tooltip": [{"field": name} for name in ("library", "what", "bytes", "predicted", "measured", "noise")],
        },
    }
    ends = [{"gain": 0}, {"gain": 1}]
    as_predicted = {
        "data": {"values": ends},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": "gray"},
        "encoding": {axis: {**share, "field": "gain"} for axis in ("x", "y")},
    }
    return Chart("Gains, predicted and measured", rows, {"layer": [as_predicted, points]})


def _with_and_without(parts: Mapping[str, store.Part]) -> Chart:
    rows = [
        {"case": f"{part.title}: {entry.way}, {entry.ranks} ranks", "bytes": case.bytes, "way": way, "seconds": took}
        for part in parts.values()
        for entry in part.kept
        for case in entry.evidence
        if case.bytes
        for way, took in (("as it is", case.before * MICROSECOND), ("tuned", case.after * MICROSECOND))
    ]
    if not rows:
        return Chart("", [], {})
    parameter, chosen = charts.chooser("case", (row["case"] for row in rows), "collective")
    return Chart(
        "Time of collectives as they are and tuned",
        rows,
        {
            "params": [parameter],
            "transform": [chosen],
            "mark": {"type": "line", "point": True},
            "encoding": {
                "x": charts.size("bytes"),
                "y": charts.seconds("seconds", "time", "log"),
                "color": {"field": "way", "type": "nominal", "title": None, "legend": {"orient": "bottom"}},
                "tooltip": [{"field": name} for name in ("case", "way", "bytes", "seconds")],
            },
        },
    )


def profile(folder: Path) -> Section:
    """Give the section of a profile."""
    processes = files.read(folder)
    made = [_by_rank(processes), _by_place(processes), *_messages(processes), *_sizes(processes)]
    doubts = summary.troubles(processes)
    shown = summary.tables(processes)
    return Section("Profile", folder, summary.answer(processes), doubts, [c for c in made if c.rows], shown)


def _function(processes: Sequence[files.Process]) -> charts.Encoding:
    """Encode a function by its colour, the same in all figures of a profile."""
    largest = [name for name in summary.lines(processes) if name not in summary.STARTS_AND_ENDS][:MOST_BARS]
    return {"field": "function", "type": "nominal", "title": None, "scale": {"domain": largest, "scheme": "tableau20"}}


def _by_rank(processes: Sequence[files.Process]) -> Chart:
    largest = [name for name in summary.lines(processes) if name not in summary.STARTS_AND_ENDS][:MOST_BARS]
    rows = [
        {"rank": process.name.removeprefix("rank "), "function": name, "seconds": process.functions[name].seconds}
        for process in processes[:MOST_RANKS]
        for name in largest
        if name in process.functions
    ]
    encoding = {
        "x": {"field": "rank", "type": "nominal", "sort": None, "axis": {"labelAngle": 0}},
        "y": charts.seconds("seconds", "time in MPI"),
        "color": {**_function(processes), "sort": largest},
        "tooltip": [{"field": "function"}, {"field": "rank"}, {"field": "seconds"}],
    }
    return Chart("Time in MPI by rank", rows, {"mark": "bar", "encoding": encoding}, WHERE_TIME_GOES)


def _by_place(processes: Sequence[files.Process]) -> Chart:
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for process, said in zip(processes, names.places(process.places for process in processes)):
        for (function, site), called in process.sites.items():
            if function not in summary.STARTS_AND_ENDS:
                sums[summary.shortened(said.get(site, "?")), function] += called.seconds
    largest = sorted(sums.items(), key=lambda item: -item[1])[:MOST_BARS]
    rows = [{"place": place, "function": function, "seconds": took} for (place, function), took in largest]
    encoding = {
        "y": {"field": "place", "type": "nominal", "sort": "-x", "title": None, "axis": {"labelLimit": 260}},
        "x": charts.seconds("seconds", "time in MPI, all ranks"),
        "color": {**_function(processes), "legend": {"orient": "bottom", "columns": 3, "labelLimit": 220}},
        "tooltip": [{"field": "place"}, {"field": "function"}, {"field": "seconds"}],
    }
    return Chart("Time in MPI by place of the program", rows, {"mark": "bar", "encoding": encoding}, WHERE_TIME_GOES)


def _messages(processes: Sequence[files.Process]) -> Iterator[Chart]:
    sent = summary.matrix(processes)
    if sent is None or not sent.any() or len(sent) > MOST_RANKS:
        return
    rows = [{"from": int(a), "to": int(b), "bytes": float(sent[a, b])} for a, b in zip(*np.nonzero(sent))]
    ranks = list(range(len(sent)))
    encoding = {
        "x": {"field": "to", "type": "ordinal", "title": "to rank", "scale": {"domain": ranks}},
        "y": {"field": "from", "type": "ordinal", "title": "from rank", "scale": {"domain": ranks}},
        "color": {"field": "bytes", "type": "quantitative", "scale": {"scheme": "viridis"}},
        "tooltip": [{"field": name} for name in ("from", "to", "bytes")],
    }
    yield Chart("Bytes sent from rank to rank", rows, {"mark": "rect", "encoding": encoding}, WHAT_IS_SENT)


def _sizes(processes: Sequence[files.Process]) -> Iterator[Chart]:
    largest = sorted(summary.lines(processes).items(), key=lambda item: -item[1].called.bytes)
    functions = [name for name, line in largest if line.called.bytes][:MOST_BARS]
    rows = []
    for name in functions:
        counts = np.sum([process.sizes[name] for process in processes if name in process.sizes], axis=0)
        for k in map(int, np.flatnonzero(counts)):
            rows.append({"function": name, "bytes": 1 << max(k - 1, 0) if k else 0, "calls": int(counts[k])})
    if not rows:
        return
    parameter, chosen = charts.chooser("function", functions, "function")
    parameter["value"] = functions[0]
    encoding = {
        "x": {"field": "bytes", "type": "ordinal", "title": "bytes, at least"},
        "y": {"field": "calls", "type": "quantitative"},
        "tooltip": [{"field": name} for name in ("function", "bytes", "calls")],
    }
    description = {"params": [parameter], "transform": [chosen], "mark": "bar", "encoding": encoding}
    yield Chart("Calls by bytes", rows, description, WHAT_IS_SENT)
