"""``reference.toml``: every member that programs of mpiJava and MPJ Express use exists, and has a test that exists."""

import ast
import re
import sys
from pathlib import Path

import pytest
from conftest import Java

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
TABLE = tomllib.loads((HERE / "reference.toml").read_text())
MEMBERS = [(each["name"], *member) for each in TABLE["class"] for member in each["members"]]
TESTS = [(f"{name}: {declaration}", test) for name, declaration, test, _ in MEMBERS]
TESTS += [(rule["holds"], rule["test"]) for rule in TABLE["rule"]]


MISSING = [
    ("Comm", "void Sent(int)"),
    ("Comm", "String Size()"),
    ("Comm", "static int Size()"),
    ("Comm", "void Free(int)"),
    ("MPI", "static String ANY_TAG"),
    ("MPI", "int ANY_TAG"),
    ("MPI", "static final Intracomm COMM_WORLD"),
    ("Op", "Op(boolean, boolean)"),
    ("Op", "abstract void Free()"),
    ("Group", "extends Comm"),
    ("Layout", "extends Object"),
]


@pytest.fixture(scope="module")
def said(programs, short_lived, tmp_path_factory) -> list[str]:
    """What the classes say of all members and of some that do not exist: those that are missing, and how many exist."""
    java = Java(tmp_path_factory.mktemp("members"), short_lived)
    file = java.folder / "members"
    members = [(name, declaration) for name, declaration, *_ in MEMBERS] + MISSING
    file.write_text("".join(f"{name}\t{declaration}\n" for name, declaration in members))
    return java.run("-cp", programs, "Signatures", file, n=1).out.splitlines()


def of_missing(name: str, declaration: str) -> str:
    return f"class mpi.{name} has no public member {declaration}"


def test_every_member_exists(said):
    *missing, found = said
    assert missing == [of_missing(*member) for member in MISSING]
    assert int(found) == len(MEMBERS)


@pytest.mark.parametrize(("name", "declaration"), MISSING)
def test_a_member_that_is_missing_is_found(said, name, declaration):
    assert of_missing(name, declaration) in said


@pytest.mark.parametrize("test", sorted({test for _, test in TESTS}))
def test_the_test_of_a_row_exists(test):
    where, name = test.split(".")
    if where.startswith("test_"):
        tree = ast.parse((HERE / f"{where}.py").read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        return
    text = (HERE / "programs" / f"{where}.java").read_text()
    assert re.search(rf"^    (public )?static [\w.<>\[\] ]+ {name}\(", text, re.MULTILINE)
    # It is called, or is the program.
    assert name == "main" or len(re.findall(rf"\b{name}\(", text)) > 1
    assert f'"{where}"' in (HERE / "test_programs.py").read_text()


def test_no_row_is_there_twice():
    rows = [what for what, _ in TESTS]
    assert sorted(rows) == sorted(set(rows))
