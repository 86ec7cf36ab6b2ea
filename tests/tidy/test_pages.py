"""The pages for readers: what they refer to exists, figures come before tables, and words are the usual ones."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *(ROOT / name / "README.md" for name in ("api", "lab", "kernels")),
]
# Those that describe the code: what they name is there.
INTERNAL = [
    ROOT / "ARCHITECTURE.md",
    *sorted(set(ROOT.glob("docs/internals/*.md")) - {ROOT / "docs/internals/where-to-look.md"}),
]
HELP = list((ROOT / "crates/limosa-cli/tests/snapshots").glob("*.txt"))

# What a reader knows instead.
USUAL = {"processor time": "CPU time", "whole number": "integer", "cannot be had": "is not supported"}


def without_code(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as they are made from the words."""
    headings = re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_figures_exist(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text()), link


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """The names of all files of the checkout, each with a slash in front."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [f"/{name}" for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("page", INTERNAL, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_tests_that_are_named_exist(page: Path, tracked: list[str]) -> None:
    suffixes = "rs|py|c|cc|h|m|java|table|json|toml"
    for name, _, test in re.findall(rf"`([\w/.-]+\.({suffixes}))(?:::(\w+))?`", page.read_text()):
        found = [file for file in tracked if file.endswith(f"/{name}")]
        assert found, f"there is no {name}"
        if test:
            declared = re.compile(rf"\b(?:fn|def) {test}\b")
            assert any(declared.search((ROOT / file[1:]).read_text()) for file in found), f"{name} has no {test}"


@pytest.mark.parametrize("page", INTERNAL, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_the_crates_that_are_named_exist(page: Path, tracked: list[str]) -> None:
    code = "\n".join((ROOT / file[1:]).read_text() for file in tracked if re.match(r"/crates/.*\.rs", file))
    for path in re.findall(r"`((?:\w+::)+\w+)`", page.read_text()):
        name = path.rsplit("::", 1)[1]
        assert re.search(rf"\b(?:fn|struct|enum|trait|type|const) {name}\b|^    {name}\b[ ({{,]", code, re.MULTILINE), (
            path
        )


def test_the_architecture_page_is_a_map() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 1500, "details belong into docs/internals"


def test_the_pages_on_internals_and_decisions_are_listed() -> None:
    for folder in ("internals", "decisions"):
        index = (ROOT / "docs" / folder / "README.md").read_text()
        pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"README.md"}
        assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index)), folder


def test_the_page_on_performance_begins_with_a_figure_and_an_answer_and_ends_with_the_budgets() -> None:
    parts = (ROOT / "docs/performance.md").read_text().split("\n\n")
    assert parts[1].startswith("![") and parts[2].startswith("**Where Limosa is ahead:**")
    assert "**Where it is not:**" in " ".join(parts[2].split())
    sections = [part for part in parts if part.startswith("## ")]
    assert sections[-1] == "## Budgets"
    assert "NOT MET" not in "\n".join(parts[: parts.index("## Budgets")])


def test_the_readme_shows_a_figure_and_a_hang_report_before_anything_else() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.index("![") < text.index("limosa: this job hangs") < text.index("## Install")


@pytest.mark.parametrize("file", [*PAGES, *HELP], ids=lambda file: str(file.relative_to(ROOT)))
def test_words_are_the_usual_ones(file: Path) -> None:
    text = " ".join(file.read_text().split())
    assert {word: usual for word, usual in USUAL.items() if word in text} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_end_at_column_120(page: Path) -> None:
    for number, line in enumerate(without_code(page.read_text()).splitlines(), 1):
        assert len(line) <= 120 or line.startswith(("|", "![")), f"line {number} without code: {line}"


def test_comments_end_at_column_120(tracked: list[str]) -> None:
    """Formatters wrap code; rows of tables stay whole."""
    comment = re.compile(r"\s*(//[/!]?|/?\*+|#+|%+) (?!\|)")
    sources = [file for file in tracked if file.endswith((".rs", ".py", ".java", ".c", ".h", ".cc", ".m"))]
    lines = ((file, line) for file in sources for line in (ROOT / file[1:]).read_text().splitlines())
    assert [(file, line) for file, line in lines if len(line) > 120 and comment.match(line)] == []


def test_no_file_has_marks_of_a_merge(tracked: list[str]) -> None:
    for file in tracked:
        lines = (ROOT / file[1:]).read_bytes().splitlines()
        assert not [line for line in lines if line.startswith((b"<<<<<<< ", b">>>>>>> "))], file
