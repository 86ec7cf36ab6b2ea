"""Writes the pages of the Python interface: what mkdocstrings fills with the docstrings of the public names."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python/limosa"


def public(package: Path) -> list[str]:
    """The public names of a package, without those of Python itself."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return [name for name in names if not name.startswith("__")]
    raise AssertionError(f"{package} has no __all__")


def page() -> str:
    """The page of `import limosa`."""
    names = public(PACKAGE)
    modules = {"arrays", "errors", "jobs"}
    classes = [name for name in names if name[0].isupper() and not name.isupper()]
    functions = [name for name in names if name[0].islower() and name not in modules | {"world", "parent"}]
    constants = [name for name in names if name.isupper()]
    out = [
        "# limosa\n\n"
        "The names of `import limosa`, with their docstrings. The [guide](../python.md) shows how they work together. "
        "The exceptions are in [Error classes](../errors.md), `limosa.arrays` has [a page of its own](arrays.md).\n\n"
        "`limosa.world` is the [`Comm`](#limosa.Comm) of all processes of the job, or of those that were spawned "
        "together. `limosa.parent` is the [`Intercomm`](#limosa.Intercomm) to the processes that have spawned this "
        "one, or None.\n\n"
        f"Constants: `limosa.ANY`, any rank or tag of a receive; operations of reductions: "
        f"{', '.join(f'`limosa.{name}`' for name in constants if name != 'ANY')}.\n"
    ]
    out += [f"::: limosa.{name}\n" for name in [*functions, *classes]]
    return "\n".join(out) + "\n::: limosa.jobs\n"


def arrays() -> str:
    """The page of `limosa.arrays`."""
    return (
        "# limosa.arrays\n\n"
        "Distributed arrays with the names of NumPy and of the array API standard. The [guide](../arrays.md) begins "
        "with an example.\n\n"
        "::: limosa.arrays\n"
    )
