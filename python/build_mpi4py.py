"""Compiles the modules ``mpi4py.MPI`` that Limosa's wheel brings: mpi4py's source package for the MPI-5 standard ABI.

There are two: one for the Python that builds the wheel, and a slower one, in Python's stable ABI, for all others from
3.10 on. ``python/toplevel/_limosa_mpi4py.py`` chooses between them.

The source package and the modules are kept in ``${XDG_CACHE_HOME:-~/.cache}/limosa/mpi4py/VERSION``, the modules by all
that they depend on. ``python build_mpi4py.py`` prints the path of the source package.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

VERSION = "4.1.2"

# From site-packages/limosa, to the lib folder of an environment, of `uv pip install --target`, and beside lib64.
RUN_PATH = "$ORIGIN/../../..:$ORIGIN/../lib:$ORIGIN/../../../../lib"
FLAGS = "-O2 -g0 -fwrapv -DNDEBUG"
LINKER_FLAGS = f"-Wl,--no-as-needed,--unresolved-symbols=ignore-all,--enable-new-dtags,-rpath,{RUN_PATH}"


class BuildError(Exception):
    """pip could not download the source package or compile it; the message is pip's."""


def cache_folder() -> Path:
    """Give the folder that keeps the source package and the modules."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "limosa" / "mpi4py" / VERSION
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:  # it may not be written to
        return Path(tempfile.mkdtemp(prefix="limosa-mpi4py-"))


def source_package(cache: Path) -> Path:
    """Give mpi4py's source package, downloaded unless the cache has it."""
    file = cache / f"mpi4py-{VERSION}.tar.gz"
    if not file.exists():
        with tempfile.TemporaryDirectory(dir=cache) as work:
            pip("download", "--no-deps", "--no-binary=mpi4py", f"--dest={work}", f"mpi4py=={VERSION}")
            (Path(work) / file.name).replace(file)
    return file


def module(header: Path, *, stable: bool) -> Path:
    """Give the module for this Python, or that in Python's stable ABI, compiled unless the cache has it.

    Parameters
    ----------
    header
        The standard ABI's ``mpi.h``.
    stable
        Use Python's stable ABI.

    Returns
    -------
    Path
        ``MPI.SUFFIX.so``; beside it is mpi4py's ``LICENSE.rst``.

    Raises
    ------
    BuildError
        If the source package cannot be had or compiled.
    """
    suffix = ".abi3.so" if stable else sysconfig.get_config_var("EXT_SUFFIX")
    compiler = os.environ.get("CC") or "cc"
    settings = "\n".join([header.read_text(), compiler, FLAGS, LINKER_FLAGS, sysconfig.get_platform()])
    cache = cache_folder()
    folder = cache / hashlib.sha256(settings.encode()).hexdigest()[:12]
    made = folder / f"MPI{suffix}"
    if made.exists():
        return made
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as name:
        work = Path(name)
        # The linker needs no more of the library than its name.
        empty = ["-shared", "-x", "c", os.devnull, "-Wl,-soname,libmpi_abi.so.1", "-o", str(work / "libmpi_abi.so")]
        run([*compiler.split(), *empty], dict(os.environ))
        (work / "mpi.cfg").write_text(
            f"[mpi]\ninclude_dirs = {header.parent}\nlibrary_dirs = {work}\nlibraries = mpi_abi\n"
            f"extra_link_args = {LINKER_FLAGS}\n"
        )
        variables = {"MPI4PY_BUILD_MPIABI": "1", "MPI4PY_BUILD_MPICFG": str(work / "mpi.cfg"), "CFLAGS": FLAGS}
        # Python's own words for the linker have paths of this machine.
        variables |= {"CC": compiler, "LDSHARED": f"{compiler} -shared -s"}
        variables |= {"MPI4PY_BUILD_PYSABI": "3.10"} if stable else {}
        source = str(source_package(cache))
        pip("wheel", "--no-deps", "--no-cache-dir", f"--wheel-dir={work}", source, variables=variables)
        (wheel,) = work.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for member in (f"mpi4py/{made.name}", f"mpi4py-{VERSION}.dist-info/licenses/LICENSE.rst"):
                file = work / Path(member).name
                file.write_bytes(archive.read(member))
                file.replace(folder / file.name)
    return made


def pip(*arguments: str, variables: dict[str, str] | None = None) -> None:
    """Run the pip of this Python, or else the one that Python brings along for new environments."""
    # The pip that builds Limosa's wheel has all below it refuse to build a package twice at a time.
    unwanted = ("MPI4PY_BUILD", "MPICC", "MPICFG", "LDFLAGS", "PYTHONPATH", "PIP_BUILD_TRACKER")
    env = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)} | (variables or {})
    if importlib.util.find_spec("pip") is None and (ensurepip := importlib.util.find_spec("ensurepip")):
        bundled = Path(str(ensurepip.origin)).parent.glob("_bundled/pip-*.whl")
        env["PYTHONPATH"] = os.pathsep.join(map(str, bundled))
    run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments], env)


def run(command: list[str], env: dict[str, str]) -> None:
    """Run a command; its messages are shown only if it fails."""
    try:
        subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise BuildError(str(error)) from None
    except subprocess.CalledProcessError as error:
        raise BuildError(f"`{' '.join(command)}` failed: {error.stderr.strip()}") from None


if __name__ == "__main__":
    print(source_package(cache_folder()))
