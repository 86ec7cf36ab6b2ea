"""The page of `limosa report`: one file, which needs no other and no network.

The figures are drawn by the reader's browser. What draws them (Vega, Vega-Lite and vega-embed) is in the page.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

from limosa_lab import html_page
from limosa_lab.collection.charts import Chart
from limosa_lab.collection.sections import Section

TITLE = "What was measured"
# Kept by the browser from the page's own text; everything else about colours is in the style of all pages.
_DRAW = """
const chosen = window.matchMedia("(prefers-color-scheme: dark)");
function look() {
  const ink = chosen.matches ? "#ddd" : "#222", lines = chosen.matches ? "#444" : "#ddd";
  const text = {labelColor: ink, titleColor: ink};
  return {background: "transparent", view: {stroke: lines}, title: {color: ink}, legend: text,
          axis: {...text, gridColor: lines, domainColor: lines, tickColor: lines}};
}
async function draw() {
  for (const place of document.querySelectorAll(".chart")) {
    const about = JSON.parse(place.parentElement.querySelector("script").textContent);
    try {
      const actions = {export: true, source: false, compiled: false, editor: false};
      await vegaEmbed(place, about, {config: look(), renderer: "svg", actions});
    } catch (error) {
      place.textContent = "This figure cannot be drawn: " + error;
      console.error(error);
    }
  }
  document.body.dataset.drawn = "yes";
}
chosen.addEventListener("change", draw);
draw();
"""


def page(sections: Sequence[Section], troubles: Sequence[str]) -> str:
    """Give the page."""
    parts = [f"<h1>{TITLE}</h1>"]
    parts += [html_page.paragraph(trouble, "doubt") for trouble in troubles]
    parts.append(_overview(sections) if len(sections) > 1 else "")
    for at, section in enumerate(sections):
        parts += _section(section, f"part-{at}")
    has_charts = any(section.charts for section in sections)
    return html_page.document(TITLE, [html_page.COLLECTION, *parts], _script() if has_charts else "")


def _overview(sections: Sequence[Section]) -> str:
    """Give what each section says in a sentence, with a link to it and to its groups of figures."""
    entries = []
    for at, section in enumerate(sections):
        title = html.escape(section.title)
        groups = dict.fromkeys(chart.group for chart in section.charts if chart.group)
        figures = ", ".join(groups) or f"{len(section.charts)} figures"
        has = f"{figures}; {len(section.tables)} tables" if section.charts or section.tables else "a report"
        said = html_page.paragraph(section.answer) if section.answer else ""
        doubts = html_page.paragraph(f"{len(section.doubts)} doubts", "doubt") if section.doubts else ""
        about = html_page.paragraph(has, "small")
        entries.append(f'<li><a href="#part-{at}"><strong>{title}</strong></a>{said}{doubts}{about}</li>')
    return f"<h2>Overview</h2>\n<nav><ul>{''.join(entries)}</ul></nav>"


def _section(section: Section, name: str) -> list[str]:
    parts = [f'<h2 id="{name}">{html.escape(section.title)}</h2>']
    if section.answer:
        parts.append(html_page.paragraph(section.answer, "answer"))
    parts.append(html_page.paragraph(str(section.folder.resolve()), "small"))
    parts += [html_page.paragraph(doubt, "doubt") for doubt in section.doubts]
    for group in dict.fromkeys(chart.group for chart in section.charts):
        parts += [f"<h3>{html.escape(group)}</h3>"] if group else []
        parts += [_figure(chart) for chart in section.charts if chart.group == group]
    if section.tables:
        tables = [html_page.folded(table.title, [html_page.table(table)]) for table in section.tables]
        parts += ["<h3>Tables</h3>", *tables]
    if section.report:
        parts.append(section.report)
    return parts


def _figure(chart: Chart) -> str:
    # The text of a script element ends at a `</script`.
    about = json.dumps(chart.specification()).replace("<", "\\u003c")
    caption = f"<figcaption>{html.escape(chart.title)}</figcaption>"
    script = f'<script type="application/json">{about}</script>'
    return f'<figure class="wide-figure">{caption}<div class="chart"></div>{script}</figure>'


def _script() -> str:
    import vl_convert

    bundle = vl_convert.javascript_bundle(_DRAW).replace("</script", "<\\/script")
    return f'<script type="module">{bundle}</script>'
