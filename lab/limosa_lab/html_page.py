"""Pages of HTML that need no other file: style, tables and figures inside. Pure functions."""

import html
from collections.abc import Iterable, Sequence

from limosa_lab.tables import Table

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
h1 { margin-bottom: 0 } h2 { margin-top: 3rem; border-bottom: 1px solid #ccc }
.answer { font-size: 1.15rem; margin: .3rem 0 .8rem } .small { color: #555; font-size: .9rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .85rem; margin: .5rem 0 1.5rem }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #e4e4e4; white-space: nowrap }
th { background: #f4f4f4 } .word { text-align: left }
caption { text-align: left; font-weight: 600; padding: .3rem 0; white-space: normal }
figure { margin: 1rem 0; max-width: 100% } figcaption { font-weight: 600; max-width: 32rem }
.figures { display: flex; flex-wrap: wrap; gap: 1rem } svg { max-width: 100%; height: auto }
.thesis { color: #555; border-left: 3px solid #ccc; padding-left: .8rem } .doubt { color: #a33 }
summary { cursor: pointer } .wide td { white-space: normal; text-align: left }
"""


def document(title: str, parts: Iterable[str]) -> str:
    """Give a whole page with these elements in its body."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


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
