"""Install mpi4py for the standard ABI: ``python -m limosa.install_mpi4py``.

mpi4py works with Limosa unmodified, but the wheel on PyPI (checked: 4.1.2) holds modules for two older
ABIs only. Until it brings one for the MPI-5 standard ABI, this command builds mpi4py from its source
package once and keeps the wheel for all environments of this user, in
``${XDG_CACHE_HOME:-~/.cache}/limosa/mpi4py/<version>/<python>-<platform>-<header>/``.

The built module looks for ``libmpi_abi.so.1`` in ``LD_LIBRARY_PATH`` first and then in the ``lib`` folder
of the environment it is installed in, so it serves every environment and every MPI library with this ABI.

An environment without pip, as uv makes them, is served by the pip that Python brings along for new environments, else
by one that uv runs. A cache that cannot be written is replaced by a temporary folder. Without a connection to the
package index, a wheel or a source package in the cache is enough; if there is none, the error says what to copy.
"""

import argparse
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from limosa import _peers
from limosa._files import get_include, get_lib_path

MPI4PY_VERSION = "4.1.2"


@functools.cache
def cache_folder(version: str) -> Path:
    """Give the folder that keeps the source package and the wheels of one version of mpi4py."""
    folder = _peers.cache_folder() / "mpi4py" / version
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        if any(folder.glob("*/mpi4py-*.whl")):
            return folder
        temporary = Path(tempfile.mkdtemp(prefix="limosa-mpi4py-"))
        say(
            f"the cache {folder} cannot be written ({error.strerror}), so {temporary} is used once; "
            "hint: set XDG_CACHE_HOME to a folder that you may write to"
        )
        return temporary
    return folder


def say(text: str) -> None:
    """Tell the user something."""
    print(f"install_mpi4py: {text}", file=sys.stderr, flush=True)


@functools.cache
def pip_command() -> tuple[tuple[str, ...], dict[str, str]]:
    """Give the words that run pip for this Python, and variables for it."""
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip"), {}
    ensurepip = importlib.util.find_spec("ensurepip")
    for place in ensurepip.submodule_search_locations or () if ensurepip is not None else ():
        for bundled in Path(place).glob("_bundled/pip-*.whl"):
            return (sys.executable, "-m", "pip"), {"PYTHONPATH": str(bundled)}
    uv = shutil.which("uv")
    if uv is not None:
        return (uv, "tool", "run", "pip", "--python", sys.executable), {}
    raise SystemExit(
        f"install_mpi4py: {sys.executable} has no pip, and neither ensurepip nor uv is there to provide one; "
        "hint: `uv pip install pip`, or on Debian: apt-get install python3-pip"
    )


def pip(*arguments: str, env: dict[str, str] | None = None, hint: str = "") -> None:
    """Run pip for this Python; its output goes to standard error, its failure ends the program."""
    command, variables = pip_command()
    code = subprocess.run(
        [*command, "--disable-pip-version-check", "--quiet", *arguments],
        env=(os.environ if env is None else env) | variables,
        stdout=sys.stderr,
        check=False,
    ).returncode
    if code != 0:
        raise SystemExit(
            f"install_mpi4py: `pip {' '.join(arguments)}` failed with exit code {code}; its messages are above{hint}"
        )


def source_package(version: str) -> Path:
    """Give mpi4py's source package, from the cache or else from the package index."""
    folder = cache_folder(version)
    file = folder / f"mpi4py-{version}.tar.gz"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            pip(
                *("download", "--no-deps", "--no-binary=mpi4py", f"--dest={work}", f"mpi4py=={version}"),
                hint=f"; without a connection to the package index, copy {file.name} (from a machine that has one: "
                f"`pip download --no-deps --no-binary=mpi4py mpi4py=={version}`) to {folder}",
            )
            (Path(work) / file.name).replace(file)
    return file


def wheel(version: str) -> Path:
    """Give the wheel for this Python and the standard ABI, from the cache or else built now."""
    header = Path(get_include()) / "mpi.h"
    digest = hashlib.sha256(header.read_bytes()).hexdigest()[:12]
    python = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    folder = cache_folder(version) / f"{python}-{digest}"
    found = sorted(folder.glob("mpi4py-*.whl"))
    if found:
        return found[0]

    check_compiler()
    say(f"building mpi4py {version} for the standard ABI, once; this takes a few minutes")
    source = source_package(version)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        configuration = Path(work) / "mpi.cfg"
        configuration.write_text(
            f"[mpi]\ninclude_dirs = {header.parent}\nlibrary_dirs = {Path(get_lib_path()).parent}\nlibraries = "
            "mpi_abi\n"
            # site-packages/mpi4py is three folders below lib; the second path serves systems with lib64
            "extra_link_args = '-Wl,-rpath,$ORIGIN/../../..:$ORIGIN/../../../../lib'\n"
        )
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("MPI4PY_BUILD") and name not in {"MPICC", "MPICFG"}
        }
        env |= {
            "MPI4PY_BUILD_MPIABI": "1",
            "MPI4PY_BUILD_MPICFG": str(configuration),
            "CFLAGS": f"{env.get('CFLAGS', '')} -O2 -g0",
        }
        pip(
            *("wheel", "--no-deps", "--no-cache-dir", f"--wheel-dir={work}", str(source)),
            env=env,
            hint="; without a connection to the package index, build the wheel on a machine of the same kind that has "
            f"one (`python -m limosa.install_mpi4py --wheel` prints where it is) and copy it to {folder}",
        )
        (built,) = Path(work).glob("mpi4py-*.whl")
        return built.replace(folder / built.name)


def check_compiler() -> None:
    """End with advice if what building needs is not there."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if not (shutil.which(compiler) or shutil.which("cc")):
        raise SystemExit(
            f"install_mpi4py: the C compiler {compiler} is not installed; on Debian: apt-get install gcc libc6-dev"
        )
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        raise SystemExit(
            "install_mpi4py: Python's C header Python.h is not installed; on Debian: apt-get install python3-dev"
        )


def main() -> None:
    """Read the command line and install."""
    parser = argparse.ArgumentParser(
        prog="python -m limosa.install_mpi4py", description="Install mpi4py built for the MPI-5 standard ABI."
    )
    parser.add_argument("--version", default=MPI4PY_VERSION, help=f"version of mpi4py (default {MPI4PY_VERSION})")
    parser.add_argument("--wheel", action="store_true", help="only print the path of the wheel, built if need be")
    parser.add_argument("--source", action="store_true", help="only print the path of the source package")
    options = parser.parse_args()
    if options.source:
        print(source_package(options.version))
    elif options.wheel:
        print(wheel(options.version))
    else:
        pip("install", "--force-reinstall", "--no-deps", str(wheel(options.version)))
        question = (
            "import mpi4py; from mpi4py import MPI; "
            "print(mpi4py.__version__, 'uses', MPI.Get_library_version().splitlines()[0].strip())"
        )
        print("mpi4py ", end="", flush=True)
        if subprocess.run([sys.executable, "-c", question], check=False).returncode != 0:
            raise SystemExit(
                "install_mpi4py: mpi4py is installed but does not work with the library; its messages are above. Try: "
                "limosa doctor"
            )


if __name__ == "__main__":
    main()
