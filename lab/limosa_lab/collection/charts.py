"""Interactive figures: descriptions in the language of Vega-Lite, with their data. Pure functions.

A page draws them in the browser; `write` makes the same figures as PNG and SVG, and the data as CSV. Colours that
follow the reader's light or dark setting are added by the page, not here.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limosa_lab import output, styles

Row = Mapping[str, Any]
Encoding = dict[str, Any]

# How an axis or a tooltip writes seconds and bytes, in Vega's language of expressions.
_SECONDS = (
    "{v} >= 1 ? format({v}, '.3~r') + ' s' : {v} >= 1e-3 ? format({v} * 1e3, '.3~r') + ' ms' : "
    "{v} == 0 ? '0' : format({v} * 1e6, '.3~r') + ' us'"
)
_BYTES = (
    "{v} >= 1073741824 ? format({v} / 1073741824, '.3~r') + ' GB' : {v} >= 1048576 ? format({v} / 1048576, '.3~r') + "
    "' MB' : {v} >= 1024 ? format({v} / 1024, '.3~r') + ' KB' : format({v}, '.3~r') + ' B'"
)
WIDTH, HEIGHT = 640, 320


@dataclass(frozen=True)
class Chart:
    """A figure: its title, its rows of data, its description without them, and the heading under which it stands."""

    title: str
    rows: Sequence[Row]
    description: Mapping[str, Any]
    group: str = ""

    def specification(self) -> dict[str, Any]:
        """Give the whole description, as Vega-Lite takes it."""
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "description": self.title,
            "width": "container",
            "height": HEIGHT,
            "data": {"values": list(self.rows)},
            **self.description,
        }

    @property
    def name(self) -> str:
        """A name for files."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")[:80]

    def csv(self) -> str:
        """Give the data as CSV, with a line of names."""
        out = io.StringIO()
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return out.getvalue()


def seconds(field: str, title: str, scale: str = "linear") -> Encoding:
    """Encode a time in seconds."""
    shown = _SECONDS.format(v="datum.value")
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": scale, **({"nice": False} if scale == "log" else {})},
        "axis": {"labelExpr": shown, "tickCount": 6},
    }


def size(field: str, title: str = "bytes") -> Encoding:
    """Encode a message size, on a logarithmic scale."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "base": 2, "nice": False},
        "axis": {"labelExpr": _BYTES.format(v="datum.value"), "tickCount": 8},
    }


def library(titles: Mapping[str, str]) -> Encoding:
    """Encode a library by its colour."""
    colours = [styles.style(name)["color"] for name in titles]
    return {
        "field": "library",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(titles.values()), "range": colours},
        "legend": {"orient": "bottom", "symbolOpacity": 1, "symbolType": "circle"},
    }


def chooser(field: str, values: Iterable[Any], label: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give a parameter that the reader chooses from a list, the last value at first, and the filter for it."""
    offered = sorted(set(values))
    name = f"chosen_{field}"
    bound = {"input": "select", "options": offered, "name": f"{label} "}
    return {"name": name, "value": offered[-1], "bind": bound}, {"filter": f"datum.{field} == {name}"}


def by_legend() -> dict[str, Any]:
    """Give a parameter by which a click on the legend shows one line alone."""
    return {"name": "picked", "select": {"type": "point", "fields": ["library"]}, "bind": "legend"}


FADED = {"condition": {"param": "picked", "value": 1}, "value": 0.12}


def write(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write each figure as PNG and SVG into ``figures`` and its data into ``data``; give the two folders."""
    import vl_convert

    figures, data = folder / "figures", folder / "data"
    taken: set[str] = set()
    for chart in charts:
        name = _free_name(chart.name, taken)
        drawn = json.dumps({**chart.specification(), "width": WIDTH, "background": "white"})
        output.write(figures / f"{name}.svg", vl_convert.vegalite_to_svg(drawn))
        output.write(figures / f"{name}.png", vl_convert.vegalite_to_png(drawn, scale=2))
        output.write(data / f"{name}.csv", chart.csv())
    return [figures, data]


def _free_name(name: str, taken: set[str]) -> str:
    """Give a name that no other figure has, and take it."""
    free = next(each for each in (name, *(f"{name}-{k}" for k in range(2, 1 << 20))) if each not in taken)
    taken.add(free)
    return free
