"""``python -m limosa_lab``: says what is missing, or runs the command line."""

import sys
from importlib.util import find_spec

# What the extra `lab` of the package brings.
NEEDED = ("numpy", "matplotlib", "rich", "psutil")

if __name__ == "__main__":
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(
            f"limosa {sys.argv[1] if len(sys.argv) > 1 else 'bench'}: needs {', '.join(missing)}, not installed for "
            f"{sys.executable}",
            file=sys.stderr,
        )
        print(f"hint: {sys.executable} -m pip install 'limosa[lab]' (or just: {' '.join(missing)})", file=sys.stderr)
        sys.exit(3)
    from limosa_lab.cli import main

    sys.exit(main(sys.argv[1:]))
