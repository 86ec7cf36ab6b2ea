"""The site of the documentation has all pages, generated ones are what their sources say, and it needs no network."""

from __future__ import annotations

import functools
import html.parser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
from jobs import patient

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "python/tools/pages"
BROWSER = shutil.which("chromium")


def tool(name: str) -> ModuleType:
    """A script that generates a page."""
    spec = importlib.util.spec_from_file_location(f"pages_{name}", TOOLS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["variables", "errors"])
def test_a_generated_page_is_what_its_sources_say(name: str) -> None:
    writer = tool(name)
    assert writer.PAGE.read_text() == writer.page(), f"write it anew with:  python python/tools/pages/{name}.py"


def test_variables_have_a_section_each_and_say_when_to_set_them() -> None:
    writer = tool("variables")
    page = writer.page()
    declared = [variable["name"] for variable in writer.declared()]
    assert re.findall(r"^### (\w+)$", page, re.MULTILINE) == sorted(declared, key=page.index)
    assert "LIMOSA_WAIT" in declared and "Default: `auto`." in page


class Page(html.parser.HTMLParser):
    """What a page loads, its links and anchors, its text, and its lists and tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.text = ""
        self.shape: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        if tag == "a":
            self.links.append(values.get("href") or "")
        if tag in {"ul", "ol", "li", "tr", "pre"}:
            self.shape.append(tag)
        if tag in {"script", "img", "iframe"}:
            self.loaded.append(values.get("src") or "")
        if tag == "link" and values.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.append(values.get("href") or "")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a link that leads nowhere, or a page outside the navigation, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=patient(300), check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@functools.cache
def page(site: Path, name: str) -> Page:
    return Page((site / name).read_text(encoding="utf-8"))


def test_every_page_of_the_repository_is_a_page_of_the_site(site: Path) -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        place = source.relative_to(ROOT / "docs")
        name = {"README.md": "pages"}.get(str(place), str(place.with_suffix("")).replace("README", "index"))
        assert (site / f"{name}.html").exists(), source
    for name in ("index", "architecture", "contributing", "changes"):
        assert (site / f"{name}.html").exists(), name


def test_the_site_reads_pages_as_the_repository_shows_them() -> None:
    import markdown
    from markdown_it import MarkdownIt

    prepared = tool("hooks").for_python_markdown
    common = MarkdownIt("commonmark").enable("table")
    for source in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        text = source.read_text(encoding="utf-8")
        expected = Page(common.render(text))
        found = Page(markdown.markdown(prepared(text), extensions=["attr_list", "tables", "pymdownx.superfences"]))
        assert found.text.split() == expected.text.split(), source
        assert found.shape == expected.shape, source


def test_links_lead_to_pages_and_anchors(site: Path) -> None:
    pages = {file: page(site, str(file.relative_to(site))) for file in site.rglob("*.html")}
    for file, read in pages.items():
        # Javadoc checks its own links. The page for addresses that do not exist is for a server.
        if "java" in file.relative_to(site).parts or file.name == "404.html":
            continue
        for link in read.links:
            path, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", path):
                continue
            target = (file.parent / path).resolve() if path else file
            assert target.exists(), f"{file}: {link}"
            assert target not in pages or anchor in pages[target].anchors, f"{file}: {link}"


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 100
    foreign = {
        (str(file.relative_to(site)), target)
        for file in pages
        for target in page(site, str(file.relative_to(site))).loaded
        if re.match(r"(?:\w+:)?//", target)
    }
    assert foreign == set()


def test_the_references_come_from_their_sources(site: Path) -> None:
    python = page(site, "reference/python.html").text
    assert "A group of processes, the ranks, that send each other messages." in " ".join(python.split())
    assert all(name in page(site, "reference/arrays.html").text for name in ("cumulative_sum", "from_function"))
    octave = page(site, "reference/octave.html").text
    assert "Call the function f for each element" in octave and "@var" not in octave and "deftypefn" not in octave
    collectives = " ".join(page(site, "reference/c/collective-communication.html").text.split())
    assert "int MPI_Bcast( void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);" in collectives
    assert "at least 0, otherwise MPI_ERR_COUNT" in collectives and "int PMPI_" not in collectives
    table = json.loads((ROOT / "api/mpi5.json").read_text())
    pages = [page(site, f"reference/c/{file.name}").text for file in (site / "reference/c").iterdir()]
    words = set(re.findall(r"\w+", " ".join(pages)))
    assert {function["name"] for function in table["functions"]} - words == set()


def test_variables_and_error_classes_are_found_by_the_search(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text())
    found = {entry["location"]: entry["title"] for entry in index["docs"]}
    assert found["variables.html#limosa_on_hang"] == "LIMOSA_ON_HANG"
    assert found["errors.html#mpi_err_truncate"] == "MPI_ERR_TRUNCATE"
    # What a page that is opened from a file loads in place of the index.
    assert (site / "search/search_index.js").read_text().startswith("var __index = {")


@pytest.mark.skipif(not BROWSER, reason="a page is drawn by chromium (Debian: chromium), which is not installed")
def test_the_search_works_on_files_without_a_network(site: Path, tmp_path: Path) -> None:
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--proxy-server=http://127.0.0.1:9"]
    options += [f"--user-data-dir={tmp_path}", "--virtual-time-budget=60000", "--dump-dom"]
    address = f"{(site / 'index.html').as_uri()}?q=LIMOSA_ON_HANG"
    shown = subprocess.run([BROWSER, *options, address], capture_output=True, text=True, timeout=patient(180))
    assert re.search(r'href="file://[^"]*/variables\.html[^"]*#limosa_on_hang"', shown.stdout), shown.stderr


def test_without_a_jdk_the_page_of_java_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tool("reference_java")
    monkeypatch.setattr(java, "CLASSES", tmp_path)
    assert java.classes() == [] and "No JDK of version 22 or newer was found" in java.page()
    (tmp_path / "index.html").touch()
    assert "java/org/limosa/package-summary.html" in java.page()
