"""Build hook of the wheel: runs Cargo and puts what it makes where an environment keeps such files.

=================================  ==========================================================
in the environment                 from
=================================  ==========================================================
``lib/libmpi_abi.so.1``            crate ``limosa-abi``
``lib/libmpi_abi.so``              one line for the linker that names the file above
``include/limosa/mpi.h``           build script of ``limosa-abi``, from the table of MPI in ``api/``
``include/limosa/limosa.h``        ``crates/limosa-abi/include/``
``include/mpi.h``, ``limosa.h``    one line that includes the file above
``lib/limosa/``                    the same two libraries, in a folder that no other package has; the profiler, from the
                                   crate ``limosa-profile``, the checks from ``limosa-check``; ``liblimosa_tuned.so``,
                                   which replaces collectives, from ``lab/limosa_lab/tune/``, where there is a compiler
``lib/limosa/mpich/``              crate ``limosa-mpich``, and its second name: for programs compiled for MPICH
``lib/limosa/openmpi/``            crate ``limosa-openmpi``: for programs compiled for Open MPI
``bin/limosa``                     crate ``limosa-cli``
``bin/mpiexec``, ``bin/mpirun``    ``python/scripts/mpiexec``
``share/``                         completion for shells, and man pages: printed by ``limosa completion``
``bin/mpicc``, ``mpifort`` ...     ``python/scripts/mpicc``
``lib/limosa/fortran/``,           build script of ``limosa-abi``: the sources of Fortran's modules, which ``mpifort``
``include/limosa/mpif.h``          compiles, and ``mpif.h``
``lib/limosa/libmpi_abi_fortran``  ``fortran/`` and what the same script generates, where there is a C compiler
``limosa/octave/src/mpitb_*.cc``   build script of ``limosa-abi``, likewise
``limosa/java/limosa.jar``         ``java/`` and what the same script generates, where a JDK is there
``limosa/_fast_path*.so``          ``python/compiled/``, where a C compiler and Python's header are there
``limosa/_mpi4py*.so``             mpi4py's source package, likewise: see ``python/build_mpi4py.py``
``sboms/limosa.cdx.json``          Cargo's metadata, in the folder of the package's own: ``python/tools/notices.py``
=================================  ==========================================================

Wheels hold no symbolic links, hence the copies and the lines for linker and compiler. Packages of other MPI libraries
bring files of the same names, which replace ours: ``limosa run`` and ``limosa cc`` then use those in folders of our
own. The libraries with the names of MPICH's and Open MPI's are in such folders only, so that they replace no other
package's.

Binaries are stripped; with ``LIMOSA_KEEP_SYMBOLS=1`` they keep the names of functions, for debuggers and profilers.
"""

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGES = ["limosa-abi", "limosa-cli", "limosa-profile", "limosa-check", "limosa-mpich", "limosa-openmpi"]
# Names of functions are for debuggers and profilers.
KEEPS_SYMBOLS = bool(os.environ.get("LIMOSA_KEEP_SYMBOLS"))
# Libraries that stand before the MPI library, by their places in lib/limosa.
AROUND = {
    "liblimosa_profile.so": "liblimosa_profile.so",
    "liblimosa_check.so": "liblimosa_check.so",
    "mpich/libmpi.so.12": "libmpi.so",
    "openmpi/libmpi.so.40": "libmpi40.so",
}
# Where the shells look for the completion of a command.
COMPLETIONS = {
    "bash": "bash-completion/completions/limosa",
    "zsh": "zsh/site-functions/_limosa",
    "fish": "fish/vendor_completions.d/limosa.fish",
}


class LimosaMetadataHook(MetadataHookInterface):
    """Gives the package the README as its description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set what `pyproject.toml` calls dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text)}


def description(readme: str) -> str:
    """Give the README without pictures and links that need the repository; the names of the pages stay."""
    elsewhere = r"\]\((?!https?:|#)[^)]*\)"
    # A picture goes with the paragraph that explains it.
    without_pictures = re.sub(rf"^!\[[^]]*{elsewhere}\n\n(?:.+\n)+\n", "", readme, flags=re.MULTILINE)
    return re.sub(rf"\[([^]]*){elsewhere}", r"\1", without_pictures)


class LimosaBuildHook(BuildHookInterface[Any]):
    """Compiles the library and the launcher and lists them as the wheel's files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build everything and tell hatchling where it goes; `version` is unused ("standard" or "editable")."""
        root = Path(self.root)
        staging = Path(self.directory) / "wheel-files"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)

        built: dict[str, Path] = {}
        with ThreadPoolExecutor() as pool:
            for file in cargo_build(root, PACKAGES):
                built[file.name] = file
                if file.name == "mpi.h":
                    mpi4py = pool.submit(mpi4py_modules, root, file, staging)
        header = artifact(built, "mpi.h")
        build_data["force_include"] |= mpi4py.result()
        library = strip(artifact(built, "libmpi_abi.so"), staging / "libmpi_abi.so.1")
        launcher = strip(artifact(built, "limosa"), staging / "limosa")
        around_library = {strip(artifact(built, made), staging / Path(at).name): at for at, made in AROUND.items()}
        linker_line = staging / "libmpi_abi.so"
        linker_line.write_text(
            "/* For the linker: the library and its only name at run time. */\nINPUT(libmpi_abi.so.1)\n"
        )
        for name in ("mpitb_functions.cc", "mpitb_constants.cc"):
            build_data["force_include"][str(artifact(built, name))] = f"limosa/octave/src/{name}"

        extensions = root / "crates" / "limosa-abi" / "include" / "limosa.h"

        scripts = root / "python" / "scripts"
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["shared_data"] |= {
            str(library): "lib/libmpi_abi.so.1",
            str(linker_line): "lib/libmpi_abi.so",
            **headers([header, extensions], staging),
            str(debians_name(staging / "libmpi.so.12")): "lib/limosa/mpich/libmpich.so.12",
            **{str(file): f"share/{place}" for file, place in command_line(launcher, staging).items()},
            **{str(file): f"lib/limosa/{place}" for file, place in around_library.items()},
        }
        for file in (library, linker_line):
            own = staging / "limosa-own" / file.name
            own.parent.mkdir(exist_ok=True)
            shutil.copy(file, own)
            build_data["shared_data"][str(own)] = f"lib/limosa/{file.name}"
        build_data["shared_scripts"] |= {str(launcher): "limosa"}
        commands = {
            "mpiexec": ["mpiexec", "mpirun"],
            "mpicc": ["mpicc", "mpicxx", "mpic++", "mpiCC", "mpifort", "mpif90", "mpif77"],
        }
        for script, names in commands.items():
            for name in names:
                copy = staging / name
                shutil.copy(scripts / script, copy)
                build_data["shared_scripts"][str(copy)] = name
        if (module := fast_path(root / "python" / "compiled", header, staging)) is not None:
            build_data["force_include"][str(module)] = f"limosa/{module.name}"
        if (tuned := substitution(root / "lab" / "limosa_lab" / "tune", header, staging)) is not None:
            build_data["shared_data"][str(tuned)] = f"lib/limosa/{tuned.name}"
        build_data["shared_data"] |= fortran(root / "fortran", built, library, staging)
        build_data.setdefault("sbom_files", []).append(str(bill_of_materials(root, staging)))
        if (classes := java_classes(root, artifact(built, "Abi.java"), staging)) is not None:
            build_data["force_include"][str(classes)] = "limosa/java/limosa.jar"


def headers(files: list[Path], staging: Path) -> dict[str, str]:
    """Give headers with their places, and those in the usual place, which include them."""
    places = {str(file): f"include/limosa/{file.name}" for file in files}
    for file in files:
        usual = staging / file.name
        usual.write_text(f'/* The header of Limosa. */\n#include "limosa/{file.name}"\n')
        places[str(usual)] = f"include/{file.name}"
    return places


def mpi4py_modules(root: Path, header: Path, staging: Path) -> dict[str, str]:
    """Give the modules for mpi4py, and its licence, with their places; a warning where they cannot be compiled."""
    build = runpy.run_path(str(root / "python" / "build_mpi4py.py"))
    try:
        made = build["modules"](header)
    except build["BuildError"] as reason:
        made = [reason]
    files: dict[str, str] = {}
    for module in made:
        if isinstance(module, build["BuildError"]):
            print(f"limosa: mpi4py's wheels will not find Limosa. The reason: {module}", file=sys.stderr)
            continue
        name = f"_mpi4py{module.name.removeprefix('MPI')}"
        files |= {str(strip(module, staging / name)): f"limosa/{name}"}
        files |= {str(module.with_name("LICENSE.rst")): "limosa/_mpi4py.LICENSE.rst"}
    return files


def bill_of_materials(root: Path, staging: Path) -> Path:
    """Write the list of the crates in the wheel, and of mpi4py, whose modules are compiled into it (PEP 770)."""
    version = runpy.run_path(str(root / "python" / "build_mpi4py.py"))["VERSION"]
    mpi4py = {
        "type": "library",
        "name": "mpi4py",
        "version": version,
        "licenses": [{"license": {"id": "BSD-3-Clause"}}],
        "purl": f"pkg:pypi/mpi4py@{version}",
    }
    made = staging / "limosa.cdx.json"
    made.write_text(runpy.run_path(str(root / "python" / "tools" / "notices.py"))["bill"](PACKAGES, [mpi4py]))
    return made


def java_classes(root: Path, bindings: Path, staging: Path) -> Path | None:
    """Compile the classes for Java; None, and a warning, where there is no JDK that is new enough."""
    search = runpy.run_path(str(root / "python" / "limosa" / "_java_find.py"))
    try:
        compiler = Path(search["find"]("javac"))
    except search["JavaError"] as missing:
        print(f"limosa: `limosa run Main.java` will not work: {missing}", file=sys.stderr)
        return None
    sources = [str(file) for file in sorted((root / "java" / "src" / "main" / "java").rglob("*.java"))]
    classes, jar = staging / "classes", staging / "limosa.jar"
    options = ["--release", str(search["OLDEST"]), "-encoding", "UTF-8", "-g", "-Xlint:all,-restricted", "-Werror"]
    run([str(compiler), *options, "-d", str(classes), str(bindings), *sources], root)
    run([str(compiler.with_name("jar")), "--create", "--file", str(jar), "-C", str(classes), "."], root)
    return jar


def cargo_build(root: Path, packages: list[str]) -> Iterator[Path]:
    """Compile packages in release form; give each file as soon as it is made, those of build scripts included."""
    arguments = [word for package in packages for word in ("-p", package)]
    # Without the last two, Cargo also links what only the tests run.
    command = ["cargo", "build", "--release", "--message-format=json-render-diagnostics", *arguments]
    command += ["--lib", "--bin=limosa"]
    try:
        process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE)
    except FileNotFoundError:
        raise SystemExit(
            "limosa: cargo is needed to build the wheel but is not installed; see https://rustup.rs"
        ) from None
    with process:
        for line in process.stdout or ():
            message = json.loads(line)
            if message["reason"] == "compiler-artifact":
                yield from map(Path, message["filenames"])
            elif message["reason"] == "build-script-executed":
                yield from Path(message["out_dir"]).iterdir()
    if process.returncode:
        raise SystemExit(f"limosa: `{' '.join(command)}` failed with exit code {process.returncode}")


def artifact(made: dict[str, Path], name: str) -> Path:
    """Pick a file that Cargo must have made."""
    if name not in made:
        raise SystemExit(f"limosa: Cargo made no {name}; it made {', '.join(sorted(made))}")
    return made[name]


def fast_path(source: Path, header: Path, staging: Path) -> Path | None:
    """Compile the module that spares `import limosa` time; None, and a warning, where that cannot be done."""
    # The buffer protocol belongs to the stable ABI from Python 3.11 on.
    stable = sys.version_info >= (3, 11)
    made = staging / ("_fast_path.abi3.so" if stable else "_fast_path" + sysconfig.get_config_var("EXT_SUFFIX"))
    include = sysconfig.get_paths()["include"]
    options = [*(["-DPy_LIMITED_API=0x030B0000"] if stable else []), f"-I{include}", f"-I{header.parent}"]
    return compiled(
        source,
        made,
        options,
        "`import limosa` works without it, but short messages and collectives of Python take longer",
    )


def substitution(source: Path, header: Path, staging: Path) -> Path | None:
    """Compile the library that replaces collectives at run time; None, and a warning, where that cannot be done."""
    made = staging / "liblimosa_tuned.so"
    return compiled(
        source, made, ["-pthread", f"-I{header.parent}"], "`limosa run --tuned --mpi` does not work without it"
    )


def fortran(source: Path, built: dict[str, Path], library: Path, staging: Path) -> dict[str, str]:
    """Compile the library behind Fortran's subroutines; give it and the sources of the modules with their places."""
    made, header = staging / "libmpi_abi_fortran.so", artifact(built, "mpi.h")
    options = ["-O1", "-pthread", "-Wl,-rpath,$ORIGIN", f"-I{header.parent}", str(library)]
    places = {"mpif.h": "include/limosa", "mpi.f90": "lib/limosa/fortran", "mpi_f08.f90": "lib/limosa/fortran"}
    files = {str(artifact(built, name)): f"{folder}/{name}" for name, folder in places.items()}
    if compiled(source, made, options, "programs in Fortran cannot be linked without it") is not None:
        files[str(made)] = f"lib/limosa/{made.name}"
    return files


def compiled(source: Path, made: Path, options: list[str], without: str) -> Path | None:
    """Compile the C files of a folder into a shared library; None, and a warning, where that cannot be done.

    `without` says what that means.
    """
    compiler = shlex.split(os.environ.get("CC") or "cc")
    sources = [str(file) for file in sorted(source.glob("*.c"))]
    command = [
        *compiler,
        "-O2",
        *([] if KEEPS_SYMBOLS else ["-s"]),
        "-shared",
        "-fPIC",
        *options,
        *sources,
        "-o",
        str(made),
    ]
    try:
        done = subprocess.run(command, capture_output=True)
        reason = done.stderr.decode(errors="replace").strip() if done.returncode else ""
    except OSError as error:
        reason = str(error)
    if not reason:
        return made
    print(f"limosa: what is in {source} could not be compiled; {without}. The reason: {reason}", file=sys.stderr)
    return None


def strip(source: Path, target: Path) -> Path:
    """Copy a binary without what only debuggers and profilers read."""
    shutil.copy(source, target)
    subprocess.run(["strip", "--strip-debug" if KEEPS_SYMBOLS else "--strip-unneeded", str(target)], check=True)
    return target


def debians_name(library: Path) -> Path:
    """Link a library without contents that has the name of Debian's MPICH and loads the one for MPICH's ABI."""
    made = library.with_name("libmpich.so.12")
    options = ["-s", "-shared", "-nostdlib", "-Wl,-soname,libmpich.so.12", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
    run([*shlex.split(os.environ.get("CC") or "cc"), *options, str(library), "-o", str(made)], library.parent)
    return made


def command_line(launcher: Path, staging: Path) -> dict[Path, str]:
    """Write the completion for shells and the man pages; give the files with their places in `share`."""
    pages = staging / "man1"
    run([str(launcher), "completion", "--man", str(pages)], staging)
    files = {page: f"man/man1/{page.name}" for page in sorted(pages.iterdir())}
    for shell, place in COMPLETIONS.items():
        script = staging / Path(place).name if shell != "bash" else staging / "limosa.bash"
        with script.open("w") as out:
            subprocess.run([str(launcher), "completion", shell], stdout=out, check=True)
        files[script] = place
    return files


def run(command: list[str], cwd: Path) -> None:
    """Run a command; its messages go to standard error."""
    try:
        subprocess.run(command, cwd=cwd, check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"limosa: `{' '.join(command)}` failed with exit code {error.returncode}") from None
