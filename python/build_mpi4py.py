"""Compiles the modules ``mpi4py.MPI`` that Limosa's wheel brings: mpi4py's source package for the MPI-5 standard ABI.

There are two, from the same C source: one for the Python that builds the wheel, and a slower one, in Python's stable
ABI, for all others from 3.10 on. ``python/toplevel/_limosa_mpi4py.py`` chooses between them.

The source package and the modules are kept in ``${XDG_CACHE_HOME:-~/.cache}/limosa/mpi4py/VERSION``, the modules by all
that they depend on. ``python build_mpi4py.py`` prints the path of the source package.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

VERSION = "4.1.2"

# From site-packages/limosa, to the lib folder of an environment, of `uv pip install --target`, and beside lib64.
RUN_PATH = "$ORIGIN/../../..:$ORIGIN/../lib:$ORIGIN/../../../../lib"
# GCC's points-to analysis would take three fifths of the time, for code that gains nothing by it.
FLAGS = "-O2 -fno-tree-pta -g0 -fwrapv -DNDEBUG -fPIC -DPYMPIABI=1"
STABLE_FLAGS = "-DPy_LIMITED_API=0x030A0000"
LINKER_FLAGS = f"-Wl,--no-as-needed,--unresolved-symbols=ignore-all,--enable-new-dtags,-rpath,{RUN_PATH}"


class BuildError(Exception):
    """The source package could not be downloaded or compiled; the message is that of the command that failed."""


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


def modules(header: Path) -> list[Path | BuildError]:
    """Give the module for this Python and that in Python's stable ABI, compiled unless the cache has them.

    Parameters
    ----------
    header
        The standard ABI's ``mpi.h``.

    Returns
    -------
    list
        ``MPI.SUFFIX.so`` of each, with mpi4py's ``LICENSE.rst`` beside it, or why it could not be compiled.

    Raises
    ------
    BuildError
        If the source package cannot be had.
    """
    compiler = os.environ.get("CC") or "cc"
    settings = "\n".join([header.read_text(), compiler, FLAGS, STABLE_FLAGS, LINKER_FLAGS, sysconfig.get_platform()])
    cache = cache_folder()
    folder = cache / hashlib.sha256(settings.encode()).hexdigest()[:12]
    folder.mkdir(exist_ok=True)
    flags = {folder / f"MPI{sysconfig.get_config_var('EXT_SUFFIX')}": "", folder / "MPI.abi3.so": STABLE_FLAGS}
    made: list[Path | BuildError] = [file for file in flags if file.exists()]
    missing = [file for file in flags if file not in made]
    if not missing:
        return made
    with tempfile.TemporaryDirectory(dir=cache) as name, ThreadPoolExecutor() as pool:
        work = Path(name)
        source = generated(source_package(cache), work)
        # The linker needs no more of the library than its name.
        empty = ["-shared", "-x", "c", os.devnull, "-Wl,-soname,libmpi_abi.so.1", "-o", str(work / "libmpi_abi.so")]
        run([*compiler.split(), *empty], dict(os.environ))
        folders = [header.parent, source / "src", sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
        command = [*compiler.split(), *FLAGS.split(), *(f"-I{each}" for each in folders)]
        command += ["-shared", "-s", str(source / "src" / "mpi4py" / "MPI.c"), LINKER_FLAGS, f"-L{work}", "-lmpi_abi"]
        compiled = [
            pool.submit(run, [*command, *flags[file].split(), "-o", str(work / file.name)], dict(os.environ))
            for file in missing
        ]
        (source / "LICENSE.rst").replace(folder / "LICENSE.rst")
        for file, done in zip(missing, compiled, strict=True):
            try:
                done.result()
                made.append((work / file.name).replace(file))
            except BuildError as error:
                made.append(error)
    return made


def generated(package: Path, work: Path) -> Path:
    """Unpack mpi4py's source package and have Cython generate ``src/mpi4py/MPI.c``; give the folder of the sources."""
    with tarfile.open(package) as archive:
        archive.extractall(work)  # noqa: S202 - pip would run code of it
    source, cython = work / f"mpi4py-{VERSION}", work / "cython"
    requirement = source / "conf" / "requirements-build-cython.txt"
    pip("install", "--no-compile", f"--target={cython}", f"--requirement={requirement}")
    run([sys.executable, str(source / "conf" / "cythonize.py")], os.environ | {"PYTHONPATH": str(cython)})
    return source


def pip(*arguments: str) -> None:
    """Run the pip of this Python, or else the one that Python brings along for new environments."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
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
