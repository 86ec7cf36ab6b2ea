"""What `make docs` does beside MkDocs: pages from outside docs/, generated pages, and links that fit the site.

MkDocs calls the functions `on_...`, as mkdocs.yml says. Pages keep the links that they have in the repository. A link
to a file that is no page of the site becomes plain text: the site is read without the repository, too.
"""

from __future__ import annotations

import functools
import posixpath
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

from tools.pages import reference_c, reference_java, reference_octave, reference_python  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

# Pages whose place in the site is not that in docs/.
MOVED = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "api/README.md": "internals/table.md",
    "lab/README.md": "internals/laboratory.md",
    "kernels/README.md": "internals/kernels.md",
}
GENERATED: dict[str, Callable[[], str]] = {
    "reference/c/README.md": reference_c.index,
    "reference/java.md": reference_java.page,
    "reference/octave.md": reference_octave.page,
    "reference/python.md": reference_python.page,
    "reference/arrays.md": reference_python.arrays,
}
for chapter in reference_c.chapters():
    GENERATED[f"reference/c/{reference_c.file_name(chapter)}"] = functools.partial(reference_c.page, chapter)
LINK = re.compile(r"(!?)\[((?:[^\[\]`]|`[^`]*`|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(^ *```.*?^ *```|``.*?``|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def pages_of(folder: str) -> list[str]:
    """The pages of a folder of the site, its beginning first."""
    names = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs" / folder).glob("*.md")}
    names |= {name for name in [*MOVED.values(), *GENERATED] if posixpath.dirname(name) == folder}
    return sorted(names, key=lambda name: (not name.endswith("/README.md"), name))


def expanded(nav: Any) -> Any:
    """The navigation with the pages of the folders in place of the folders."""
    if isinstance(nav, list):
        return [expanded(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: expanded(entry) for title, entry in nav.items()}
    return pages_of(nav.rstrip("/")) if nav.endswith("/") else nav


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation."""
    config.nav = expanded(config.nav)
    config.watch.append(str(ROOT / "python"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, and the classes of Java."""
    from mkdocs.structure.files import File

    for name in MOVED:
        if (file := files.get_file_from_path(name.removeprefix("docs/"))) and name.startswith("docs/"):
            files.remove(file)
    for name, place in MOVED.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text(encoding="utf-8")))
    for place, text in GENERATED.items():
        files.append(File.generated(config, place, content=text()))
    for path in reference_java.classes():
        place = f"reference/java/{path.relative_to(reference_java.CLASSES)}"
        place += ".txt" if path.suffix == ".md" else ""  # licences, which are no pages
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def title(name: str) -> str:
    """The title of a page of the repository."""
    return (ROOT / name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def for_python_markdown(text: str) -> str:
    """A page as Python-Markdown wants it: what belongs to a list is indented by four, and bars in code are bare."""

    def indented(part: str) -> str:
        return re.sub(r"^ {2,3}(?=\S)", "    ", part, flags=re.MULTILINE)

    def bare(row: re.Match[str]) -> str:
        return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0])

    parts = FENCE.split(text)
    for i, part in enumerate(parts):
        if i % 2 == 0 or re.match(r" {2,3}`", part):
            parts[i] = indented(part)
    return re.sub(r"^ *\|.*$", bare, "".join(parts), flags=re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of a page to where their targets are in the site."""
    here = page.file.src_uri
    if here in GENERATED:
        return markdown
    source = next((name for name, place in MOVED.items() if place == here), f"docs/{here}")

    def link(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        path, hash_sign, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return found[0]
        name = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        place = MOVED.get(name, name.removeprefix("docs/"))
        if name not in MOVED and (not name.startswith("docs/") or files.get_file_from_path(place) is None):
            assert (ROOT / name).exists(), f"{source} leads to {name}, which does not exist"
            return text
        # The name of a page, which the repository has as a file, is its title here.
        text = title(name) if text in {path, name} else text
        return f"{mark}[{text}]({posixpath.relpath(place, posixpath.dirname(here))}{hash_sign}{anchor})"

    parts = CODE.split(for_python_markdown(markdown))
    # Text of a link may hold code: a link is looked for in the text with marks in place of the code.
    marked = "".join(part if i % 2 == 0 else f"\0{i}\0" for i, part in enumerate(parts))
    return re.sub(r"\0(\d+)\0", lambda found: parts[int(found[1])], LINK.sub(link, marked))
