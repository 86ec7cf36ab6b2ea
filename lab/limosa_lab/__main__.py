"""``python -m limosa_lab``: says what is missing, or runs the command line. Help needs none of it."""

import importlib.abc
import importlib.machinery
import sys
from importlib.util import find_spec
from unittest.mock import MagicMock

# What the extra `lab` of the package brings.
NEEDED = ("numpy", "matplotlib", "rich", "psutil")


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
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing and {"-h", "--help"} & set(sys.argv[1:]):
        sys.meta_path.append(StandIns(missing))
    elif missing:
        print(
            f"limosa {sys.argv[1] if len(sys.argv) > 1 else 'bench'}: needs {', '.join(missing)}, not installed for "
            f"{sys.executable}",
            file=sys.stderr,
        )
        print(f"hint: {sys.executable} -m pip install 'limosa[lab]' (or just: {' '.join(missing)})", file=sys.stderr)
        sys.exit(3)
    from limosa_lab.cli import main

    sys.exit(main(sys.argv[1:]))
