"""Start a Java program as a rank: ``python -m limosa._java PROGRAM ARGUMENTS...`` becomes a Java virtual machine.

A program is a source file (``Main.java``), a ``.jar`` or, with ``-cp``, a class. ``limosa run`` starts this for every
rank. Source files are compiled once, into ``${XDG_CACHE_HOME:-~/.cache}/limosa/java/``: the first rank does it, the
others wait. Options before the program are those of ``java``. An archive of classes there, made once for each Java and
installation of Limosa, halves the time that a rank takes to start.

``python -m limosa._java --java FILE ...`` takes this ``java`` and the words that would follow it;
``--class-path`` prints where the classes of Limosa are. For ``limosa run --threads``, ``JAVA_LIMOSA_THREADS`` is the
number of ranks that are threads of this process, or, with ``JAVA_LIMOSA_PER_JVM``, of several that it starts, with so
many ranks in each.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sys
import time
import zipfile
from pathlib import Path

from limosa import _peers
from limosa._java_find import OLDEST, JavaError, find, version_of

TYPE_CHECKING = False  # each rank starts with this module, so it imports little: not `typing`
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["JavaError", "command", "find", "jar"]

_TIME_OF_FIRST = 10.0
"""How long a rank that cannot start leaves it to rank 0 to say why, in seconds; then the launcher ends the job."""

#: Hang reports read the threads of a machine; without a listener from the start, that takes a signal and a file in the
#: program's folder. The machine's own warnings are no output of the program. The package that is exported keeps arenas
#: open while requests use their memory.
_MACHINE = (
    "--enable-native-access=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.foreign=ALL-UNNAMED",
    "-XX:+StartAttachListener",
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",
)
#: For the compiler's own machine: it runs for a second, in which its best code and a parallel collector do not pay.
_COMPILER = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")

#: Loads what most programs load; Java compiles it in its own machine, so that the compiler's classes are there, too.
_USUAL = """
import mpi.*;

class Usual {
    public static void main(String[] args) throws Exception {
        Class.forName("org.limosa.run.Start");
        MPI.Init(args);
        Object[] value = {"text"};
        int[] sum = {1};
        MPI.COMM_WORLD.Bcast(value, 0, 1, MPI.OBJECT, 0);
        MPI.COMM_WORLD.Allreduce(sum, 0, sum, 0, 1, MPI.INT, MPI.SUM);
        MPI.COMM_WORLD.Sendrecv(value, 0, 1, MPI.OBJECT, 0, 0, value, 0, 1, MPI.OBJECT, 0, 0);
        MPI.Finalize();
        org.limosa.World.run(world -> world.barrier());
    }
}
"""

#: An archive is only right for a machine with the same memory and modules: with options for these there is none.
_OWN_MACHINE = re.compile(r"(?<!\S)-(X|p\b|agent|javaagent|-(limit|patch|upgrade)-|-module-path)")

_PACKAGES = ("mpi/", "org/limosa/", "mpjdev/", "mpjbuf/")

_MANIFEST = "META-INF/MANIFEST.MF"

_CLASS_PATH = ("-cp", "-classpath", "--class-path")

#: Options of ``java`` that take the next word.
_WITH_VALUE = {
    *_CLASS_PATH,
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--limit-modules",
    "--patch-module",
    "--enable-native-access",
    "--source",
}


def jar() -> Path:
    """Give the file with the classes of Limosa.

    Raises
    ------
    JavaError
        If this installation has none, or a damaged one.
    """
    given = os.environ.get("JAVA_LIMOSA_JAR")
    file = Path(given) if given else Path(__file__).resolve().parent / "java" / "limosa.jar"
    if not file.is_file():
        raise JavaError(
            f"this installation of Limosa has no classes for Java: there was no JDK {OLDEST} or newer when it was "
            "built. Install one and Limosa again"
        )
    if not zipfile.is_zipfile(file):
        raise JavaError(f"{file}, which has the classes of Limosa, is damaged: it is no archive. Install Limosa again")
    return file


def command(arguments: list[str], java: Path | None = None) -> list[str]:
    """Give the command of a rank, for a program and its arguments, with options of ``java`` before it.

    Raises
    ------
    JavaError
        If something is missing or wrong.
    """
    given = java is not None
    java = java or find()
    threads = "JAVA_LIMOSA_THREADS" in os.environ
    if given and (version := version_of(java)) < OLDEST:
        if threads:
            raise JavaError(f"{java} is version {version}; ranks that are threads need {OLDEST} or newer")
        # It may have nothing to do with message passing.
        if os.environ.get("LIMOSA_RANK", "0") == "0":
            _say(f"{java} is version {version}; programs that pass messages need {OLDEST} or newer")
        return [str(java), *arguments]
    options, paths, rest = _divide(arguments)
    if rest[:1] == ["-jar"]:
        del rest[0]
    if not rest or rest[0].startswith("-"):
        if threads:
            raise JavaError(
                "ranks that are threads need a class, a source file or an archive behind the options of java; "
                "modules and other starts are for ranks that are processes, without --threads"
            )
        return [str(java), *_MACHINE, *arguments]
    program = rest.pop(0)
    paths = paths if paths is not None else os.environ.get("CLASSPATH", "" if given else ".")
    if program.endswith(".java"):
        place, main = compiled(Path(program), paths, java)
        paths = os.pathsep.join(filter(None, [str(place), paths]))
    elif program.endswith(".jar"):
        paths, main = program, main_class(Path(program))
    else:
        main = program
    paths = paths or "."
    if _has_own_classes(paths):
        return [str(java), *_MACHINE, *options, "-cp", os.pathsep.join([paths, str(jar())]), *_start(), main, *rest]
    # The archive of classes is for a class path that begins as that of the machine that wrote it.
    paths = os.pathsep.join([str(jar()), paths])
    return [str(java), *_MACHINE, *_archive(java, options), *options, "-cp", paths, *_start(), main, *rest]


def _has_own_classes(paths: str) -> bool:
    """Tell whether a class path has classes of Limosa's packages, such as the Maven artefact, which come first then."""
    for entry in paths.split(os.pathsep):
        for file in Path(entry[:-1]).glob("*.jar") if entry.endswith("*") else [Path(entry)]:
            if any((file / package).is_dir() for package in _PACKAGES):
                return True
            if file.is_file():
                try:
                    with zipfile.ZipFile(file) as archive:
                        names = archive.namelist()
                        manifest = archive.read(_MANIFEST) if _MANIFEST in names else b""
                except (OSError, zipfile.BadZipFile):
                    return True
                if b"Class-Path:" in manifest or any(name.startswith(_PACKAGES) for name in names):
                    return True
    return False


def _archive(java: Path, options: list[str]) -> list[str]:
    """Give the options by which a machine takes Java's classes and Limosa's from an archive (class data sharing).

    There are none if a machine may differ from the one that wrote the archive, if the cache cannot be written, or while
    another rank makes the archive: a rank then only takes longer to start.
    """
    of_user = [*options, *(os.environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"))]
    if any(_OWN_MACHINE.search(words) for words in of_user):
        return []
    try:
        built = [f"{file} {file.stat().st_mtime_ns}" for file in (java.resolve(), jar())]
        told = hashlib.sha256(" ".join([*built, *_MACHINE, _USUAL]).encode())
        archive = _peers.cache_folder() / "java" / f"{told.hexdigest()[:16]}.jsa"
        if not archive.exists():
            archive.parent.mkdir(parents=True, exist_ok=True)
            with archive.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not archive.exists():
                    _write_archive(java, archive)
        if archive.stat().st_size == 0:  # Java could not write it
            return []
    except OSError:
        return []
    # Should it be of no use after all, Java says nothing and loads the classes.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off:stderr"]


def _write_archive(java: Path, archive: Path) -> None:
    """Write the archive of classes, or an empty file if that fails."""
    import subprocess
    import tempfile

    # The program is no rank of this job.
    kept = ("PATH", "HOME", "LD_LIBRARY_PATH", "JAVA_LIMOSA_LIBRARY")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    with tempfile.TemporaryDirectory(dir=archive.parent) as name:
        folder = Path(name)
        (folder / "Usual.java").write_text(_USUAL)
        machine = [str(java), *_MACHINE, "-Xlog:disable", "-cp", str(jar())]
        for words in (
            ["-XX:DumpLoadedClassList=classes", "Usual.java"],
            ["-Xshare:dump", "-XX:SharedClassListFile=classes", "-XX:SharedArchiveFile=archive"],
        ):
            subprocess.run([*machine, *words], cwd=folder, env=env, capture_output=True)
        (folder / "archive").touch()
        (folder / "archive").replace(archive)


def _start() -> list[str]:
    """Give the class that starts the program as one rank or several, with its arguments."""
    ranks = os.environ.get("JAVA_LIMOSA_THREADS")
    if ranks is None:
        return ["org.limosa.run.Start"]
    each = os.environ.get("JAVA_LIMOSA_PER_JVM")
    if each is None or int(each) >= int(ranks):
        return ["org.limosa.run.Threads", ranks]
    return ["org.limosa.run.Run", "--quiet", "-n", ranks, "--per-jvm", each]


def _divide(arguments: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Divide the words after ``java`` into options, the class path, and the program with its arguments."""
    options: list[str] = []
    paths: str | None = None
    i = 0
    while i < len(arguments):
        word = arguments[i]
        if word in _CLASS_PATH and i + 1 < len(arguments):
            paths = arguments[i + 1]
            i += 2
        elif word.startswith("--class-path="):
            paths = word.partition("=")[2]
            i += 1
        elif word in _WITH_VALUE and i + 1 < len(arguments):
            options += arguments[i : i + 2]
            i += 2
        elif word.startswith("-") and word not in {"-jar", "-m", "--module"}:
            options.append(word)
            i += 1
        else:
            break
    return options, paths, arguments[i:]


def main_class(file: Path) -> str:
    """Give the main class that a ``.jar`` names.

    Raises
    ------
    JavaError
        If it is no such file, or names none.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            manifest = archive.read(_MANIFEST).decode()
    except (OSError, zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise JavaError(f"{file} cannot be read as a jar: {error}") from None
    # A line goes on in the next one behind a blank.
    found = re.search(r"^Main-Class:\s*(\S+)", re.sub(r"\r?\n ", "", manifest), re.MULTILINE)
    if found is None:
        raise JavaError(f"{file} names no main class in its manifest; run a class of it with -cp {file} CLASS")
    return found[1]


def compiled(source: Path, paths: str, java: Path) -> tuple[Path, str]:
    """Give the folder with the classes of a source file, and the name of its main class.

    Raises
    ------
    JavaError
        If it cannot be compiled.
    """
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JavaError(f"{source} cannot be read: {error}") from None
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    package = re.search(r"^\s*package\s+([\w.]+)\s*;", plain, re.MULTILINE)
    names = package[1].split(".") if package else []
    root = source.absolute().parent
    for _ in names:
        root = root.parent
    key = f"{java.resolve()} {paths} {source.absolute()} {jar().stat().st_mtime_ns}"
    place = _peers.cache_folder() / "java" / hashlib.sha256(key.encode()).hexdigest()[:16]
    place.mkdir(parents=True, exist_ok=True)
    # The packages that the program was found to use; what is in their folders decides whether it is compiled again.
    known = place / "packages"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = known.read_text().splitlines() if known.exists() else ["/".join(names)]
        built = place / _digest(root, packages)
        if not built.exists():
            import shutil
            import tempfile

            with tempfile.TemporaryDirectory(dir=place) as made:
                _compile(source, root, paths, Path(made), java)
                used = sorted({str(file.parent.relative_to(made)) for file in Path(made).rglob("*.class")})
                known.write_text("\n".join(used))
                # A job that still runs keeps the classes of before.
                built = place / _digest(root, used)
                if not built.exists():
                    shutil.copytree(made, built)
    return built, ".".join([*names, source.stem])


def _digest(root: Path, packages: list[str]) -> str:
    """Give a digest of the source files of packages below a folder."""
    told = hashlib.sha256()
    for package in packages:
        for file in sorted((root / package).glob("*.java")):
            told.update(f"{package} {file.name}".encode() + b"\0" + file.read_bytes())
    return told.hexdigest()[:16]


def _compile(source: Path, root: Path, paths: str, built: Path, java: Path) -> None:
    """Compile a source file and what it uses beside it."""
    import subprocess

    compiler = java.resolve().parent / "javac"
    if not compiler.is_file():
        compiler = find("javac")
    line = [str(compiler), *_COMPILER]
    if shared := _archive(compiler.with_name("java"), []):
        line += [f"-J{word}" for word in (*_MACHINE, *shared, f"-Djava.class.path={jar()}")]
    line += ["-d", str(built), "-sourcepath", str(root)]
    line += ["-cp", os.pathsep.join(filter(None, [paths, str(jar())])), "-encoding", "UTF-8", str(source)]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise JavaError(f"{source} cannot be compiled:\n{done.stdout}{done.stderr}".rstrip())
    if done.stderr:
        print(done.stderr, file=sys.stderr, end="", flush=True)


def _say(text: str) -> None:
    """Tell the user something."""
    print(f"limosa: {text}", file=sys.stderr, flush=True)


def main() -> NoReturn:
    """Become Java."""
    words = sys.argv[1:]
    if not words:
        sys.exit("usage: python -m limosa._java [OPTIONS] PROGRAM [ARGUMENTS]... | --class-path")
    try:
        if words == ["--class-path"]:
            print(jar())
            sys.exit()
        java = Path(words[1]) if words[0] == "--java" and len(words) > 1 else None
        line = command(words[2:] if java else words, java)
    except JavaError as error:
        # Mostly all ranks have the same reason.
        if os.environ.get("LIMOSA_RANK", "0") != "0":
            time.sleep(_TIME_OF_FIRST)
        _say(str(error))
        sys.exit(3)
    os.execv(line[0], line)  # noqa: S606 - Java takes the place of this process


if __name__ == "__main__":
    main()
