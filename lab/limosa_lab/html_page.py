"""Pages of HTML that need no other file: style, tables and figures inside. Pure functions."""

import html
import re
from collections.abc import Iterable, Sequence

from limosa_lab.tables import Table

STYLE = """
:root { color-scheme: light dark; --ink: #222; --faint: #555; --paper: #fff; --shade: #f4f4f4; --line: #ccc;
  --doubt: #a33 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --faint: #aaa; --paper: #161616; --shade: #262626; --line: #444; --doubt: #f88 } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere }
h1 { margin-bottom: 0 } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) }
.answer { font-size: 1.15rem; margin: .3rem 0 .8rem } .small { color: var(--faint); font-size: .9rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .85rem; margin: .5rem 0 1.5rem }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap }
th { background: var(--shade) } .word { text-align: left }
caption { text-align: left; font-weight: 600; padding: .3rem 0; white-space: normal }
figure { margin: 1rem 0; max-width: 100% } figcaption { font-weight: 600; max-width: 32rem }
.figures { display: flex; flex-wrap: wrap; gap: 1rem }
figure > svg { max-width: 100%; height: auto; background: #fff }
.wide-figure figcaption { max-width: none } .chart { width: 100%; min-height: 12rem; margin-top: .5rem }
.vega-bind { margin: .4rem .8rem 0 0; display: inline-block }
.thesis { color: var(--faint); border-left: 3px solid var(--line); padding-left: .8rem } .doubt { color: var(--doubt) }
a { color: inherit }
summary { cursor: pointer } .wide td { white-space: normal; text-align: left }
"""


# Marks the page of `limosa report`, which is not put on such a page again.
COLLECTION = "<!-- limosa report -->"


def document(title: str, parts: Iterable[str], scripts: str = "") -> str:
    """Give a whole page with these elements in its body, and `scripts` at its end."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n{scripts}</body></html>\n'


def body(page: str, levels: int) -> str:
    """Give what is in the body of such a page, its headings so many levels lower, for another page."""
    inner = page.partition("<body>")[2].rpartition("</body>")[0]

    def lower(found: re.Match[str]) -> str:
        return f"<{found[1]}h{min(6, int(found[2]) + levels)}"

    return re.sub(r"<(/?)h([1-6])(?=[\s>])", lower, inner)


def paragraph(text: str, kind: str = "") -> str:
    """Write a paragraph; `kind` is a class of the style."""
    return f"<p{f' class={kind}' if kind else ''}>{html.escape(text)}</p>"


def figure(title: str, svg: str) -> str:
    """Put an SVG element on the page, its title above it if it has one."""
    caption = f"<figcaption>{html.escape(title)}</figcaption>" if title else ""
    return f"<figure>{caption}{svg}</figure>"


def folded(title: str, parts: Iterable[str], kind: str = "") -> str:
    """Hide elements behind a line that opens them."""
    body = "\n".join(parts)
    return f"<details{f' class={kind}' if kind else ''}><summary>{html.escape(title)}</summary>\n{body}\n</details>"


def table(made: Table) -> str:
    """Write a table as HTML."""

    def line(kind: str, cells: Sequence[str]) -> str:
        written = (
            f"<{kind}{' class=word' if index < made.words else ''}>{html.escape(cell)}</{kind}>"
            for index, cell in enumerate(cells)
        )
        return f"<tr>{''.join(written)}</tr>"

    rows = "\n".join(line("td", row) for row in made.rows)
    caption = f"<caption>{html.escape(made.title)}</caption>"
    head = line("th", made.columns)
    return f'<div class="scroll"><table>{caption}<thead>{head}</thead><tbody>\n{rows}\n</tbody></table></div>'
