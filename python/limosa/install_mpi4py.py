"""Install a release of mpi4py that works with Limosa: ``python -m limosa.install_mpi4py``.

That is ``pip install`` for this Python, also where mpi4py was compiled for another MPI library. Nothing is compiled:
Limosa brings the module for the MPI-5 standard ABI that mpi4py's wheels lack.
"""

import subprocess
import sys

REQUIREMENT = "mpi4py>=4.1,<4.2"


def main() -> None:
    """Run pip and exit with its code."""
    command = [sys.executable, "-m", "pip", "install", "--force-reinstall", "--no-deps", REQUIREMENT]
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        print(f"hint: in an environment without pip: uv pip install '{REQUIREMENT}'", file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
