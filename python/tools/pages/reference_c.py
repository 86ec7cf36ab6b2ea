"""Writes the pages of the C functions: prototypes, arguments and their checks, from the table of MPI-5."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
LENGTHS = {
    "group_size": "one element for each process of the group",
    "local_group_size": "one element for each process of the local group",
    "indegree": "one element for each source of the process in the topology",
    "outdegree": "one element for each destination of the process in the topology",
    "ndims": "one element for each dimension",
    "terminated": "ended by a null pointer or null character",
}


def _print(what: str) -> str:
    """What the generators of the table print."""
    command = ["cargo", "run", "--quiet", "--package", "limosa-api", "--", what]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_print("table"))
    return table


@functools.cache
def _prototypes() -> dict[str, str]:
    """The prototype of each function as the header has it."""
    return {
        found[2]: f"{found[1]}{found[2]}({found[3]});"
        for found in re.finditer(r"^(\w[\w *]*[ *])(MPI_\w+)\((.*)\);$", _print("header"), re.MULTILINE)
    }


def chapters() -> list[str]:
    """The chapters of the standard that have functions."""
    listed: list[str] = json.loads((ROOT / "api/mpi5.json").read_text())["chapters"]
    return listed


def file_name(chapter: str) -> str:
    """The file of the page of a chapter."""
    return re.sub(r"\W+", "-", chapter.lower()).strip("-") + ".md"


def _wrapped(prototype: str) -> str:
    """A prototype on several lines, if it is long."""
    if len(prototype) <= 80:
        return prototype
    head, _, rest = prototype.partition("(")
    return f"{head}(\n    " + rest.removesuffix(");").replace(", ", ",\n    ") + ");"


def _direction(param: dict[str, Any]) -> str:
    return {"in": "in", "out": "out", "inout": "in, out"}[param["dir"]]


def _length(length: Any) -> str:
    if not isinstance(length, str):
        return ""
    return LENGTHS.get(length, f"`{length}` elements")


def _remarks(param: dict[str, Any]) -> str:
    """What the table says about an argument."""
    handle = next((handle for handle in _table()["handles"] if handle["kind"] == param["kind"]), None)
    remarks = []
    if handle is not None and not param.get("unchecked") and param["dir"] != "out":
        remarks.append(f"a valid `{handle['type']}`, otherwise {_error(handle['error'])}")
    if param.get("rank_of"):
        remarks.append(f"rank of the {param['rank_of']}")
    if param.get("count"):
        datatype = param.get("datatype")
        remarks.append(f"`{param['count']}` " + (f"elements of `{datatype}`" if datatype else "bytes"))
        if param.get("blocks"):
            remarks[-1] += f" in each block, {_length(param['blocks']).replace('element', 'block')}"
    elif param.get("length"):
        remarks.append(_length(param["length"]))
    if "least" in param:
        least = f"at least {param['least']}"
        error = param.get("error")
        remarks.append(f"{least}, otherwise {_error(error)}" if error else least)
    if param.get("allows"):
        remarks.append("may be " + ", ".join(f"`{name}`" for name in param["allows"]))
    if param.get("significant"):
        remarks.append(f"only at the process `{param['significant']}`")
    if param.get("null_pointer"):
        remarks.append("may be a null pointer")
    if param.get("frees"):
        remarks.append("becomes the null handle")
    return "; ".join(remarks)


def _anchor(name: str) -> str:
    return name.lower()


def _error(name: str) -> str:
    """A link to the section of an error class."""
    return f"[`{name}`](../../errors.md#{_anchor(name)})"


def _section(function: dict[str, Any], operations: dict[str, str]) -> str:
    name = function["name"]
    prototypes = [_prototypes()[form] for form in (name, f"{name}_c") if form in _prototypes()]
    if prototypes:
        code = "\n".join(_wrapped(prototype) for prototype in prototypes)
        out = [f"## {name}\n\n```c\n{code}\n```\n"]
    else:
        out = [f"## {name}\n\nA conversion for Fortran that `mpi.h` expresses through functions of the ABI.\n"]
    forms = {**function.get("forms", {})}
    if name in operations:
        forms["blocking"] = operations[name]
    if forms:
        of = {form: (form, file_name(_chapter_of(form))) for form in forms.values()}
        links = [f"{kind} [`{form}`]({of[form][1]}#{_anchor(form)})" for kind, form in sorted(forms.items())]
        out.append(f"Other forms: {', '.join(links)}.\n")
    if function.get("any_time"):
        out.append("May be called before initialisation and after finalisation.\n")
    if function["params"]:
        rows = "".join(f"| `{p['name']}` | {_direction(p)} | {_remarks(p)} |\n" for p in function["params"])
        out.append(f"| argument | | |\n|---|---|---|\n{rows}")
    return "\n".join(out)


@functools.cache
def _chapter_of(name: str) -> str:
    return next(str(function["chapter"]) for function in _table()["functions"] if function["name"] == name)


def _functions(chapter: str) -> list[dict[str, Any]]:
    functions = [function for function in _table()["functions"] if function["chapter"] == chapter]
    return sorted(functions, key=lambda function: str(function["name"]))


def page(chapter: str) -> str:
    """The page of the functions of a chapter."""
    operations = {
        form: str(function["name"]) for function in _table()["functions"] for form in function.get("forms", {}).values()
    }
    sections = [_section(function, operations) for function in _functions(chapter)]
    return f"# {chapter}\n\n" + "\n".join(sections)


def index() -> str:
    """The page that lists the chapters and all functions."""
    mpi = ".".join(map(str, _table()["mpi"]))
    out = [
        "# C functions\n\n"
        f"The functions of MPI {mpi} by the chapters of the standard, which says what each does. The pages have what "
        "Limosa's table of the standard says, from which the header, the argument checks and the other languages' "
        "bindings are generated: prototypes, directions of arguments, smallest values with the error classes of "
        "smaller ones, and what else may be passed. [Coverage](../../coverage.md) says which functions are "
        "implemented, [What is checked](../../checks.md) what is checked beside arguments.\n"
    ]
    for chapter in chapters():
        names = [str(function["name"]) for function in _functions(chapter)]
        links = ", ".join(f"[{name.removeprefix('MPI_')}]({file_name(chapter)}#{_anchor(name)})" for name in names)
        out.append(f"## {chapter}\n\n{links}\n")
    return "\n".join(out)
