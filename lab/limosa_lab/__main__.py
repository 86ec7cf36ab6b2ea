"""``python -m limosa_lab``: says what is missing, or runs the command line. Help needs none of it."""

import importlib.abc
import importlib.machinery
import sys
from importlib.util import find_spec
from unittest.mock import MagicMock

# What comes with the package, and with its extra `lab`.
NEEDED = ("numpy", "matplotlib", "rich", "psutil")
# Commands that make their figures only where the extra is installed.
WITHOUT_FIGURES = ("profile",)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules that are missing, as modules that do nothing: enough to make the parsers that print the help."""

    def __init__(self, missing: list[str]) -> None:
        self.missing = missing

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Find a module that is missing, or one in it."""
        is_missing = name.partition(".")[0] in self.missing
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_missing else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> MagicMock:
        """Make it."""
        return MagicMock(name=spec.name)

    def exec_module(self, module: object) -> None:
        """Nothing is to be run."""


if __name__ == "__main__":
    command = sys.argv[1] if len(sys.argv) > 1 else "bench"
    missing = [name for name in NEEDED if find_spec(name) is None]
    if command in WITHOUT_FIGURES and missing == ["matplotlib"]:
        missing = []
    if missing and {"-h", "--help"} & set(sys.argv[1:]):
        sys.meta_path.append(StandIns(missing))
    elif missing:
        print(
            f"limosa {command}: needs the extra `lab`: {', '.join(missing)} not installed for {sys.executable}",
            file=sys.stderr,
        )
        print(f"hint: {sys.executable} -m pip install 'limosa[lab]' (or just: {' '.join(missing)})", file=sys.stderr)
        sys.exit(3)
    from limosa_lab.cli import main

    sys.exit(main(sys.argv[1:]))
