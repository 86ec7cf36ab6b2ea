"""Writes the Javadoc of the packages for Java into target/javadoc, and the page that leads there.

usage: python python/tools/pages/reference_java.py

`make docs` runs it before MkDocs. Without a JDK that is new enough it says so, and so does the page.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CLASSES = ROOT / "target/javadoc"
# As in java/pom.xml: what programs do not use.
EXCLUDED = [
    "org.limosa.abi",
    "org.limosa.engine",
    "org.limosa.engine.library",
    "org.limosa.engine.local",
    "org.limosa.run",
]
PACKAGES = {
    "org.limosa": "Limosa's own interface for new programs: `World`, `Comm`, requests as futures, virtual threads.",
    "mpi": "The interface of mpiJava 1.2 and MPJ Express, with the names of Open MPI's bindings beside it.",
}


def classes() -> list[Path]:
    """The files of the Javadoc."""
    return [path for path in sorted(CLASSES.rglob("*")) if path.is_file()]


def page() -> str:
    """The page that leads to the classes, or says why they are not there."""
    out = ["# Java classes\n\nThe [guide](../java.md) shows how they work together.\n"]
    if not (CLASSES / "index.html").exists():
        out.append("No JDK of version 22 or newer was found when this site was built, so the Javadoc is missing.\n")
        return "\n".join(out)
    for package, about in PACKAGES.items():
        summary = f"java/{package.replace('.', '/')}/package-summary.html"
        out.append(f"- [`{package}`]({summary}): {about}")
    out.append("\n[All classes](java/allclasses-index.html), with a search of their own.\n")
    return "\n".join(out)


def main() -> None:
    """Write the Javadoc."""
    search = runpy.run_path(str(ROOT / "python/limosa/_java_find.py"))
    shutil.rmtree(CLASSES, ignore_errors=True)
    try:
        javadoc = search["find"]("javadoc")
    except search["JavaError"] as error:
        print(f"The site gets no Javadoc: {error}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        bindings = Path(folder) / "org/limosa/abi/Abi.java"
        bindings.parent.mkdir(parents=True)
        command = ["cargo", "run", "--quiet", "--package", "limosa-api", "--", "java"]
        bindings.write_bytes(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
        options = ["-quiet", "-notimestamp", "--no-platform-links", "-Xdoclint:all,-missing", "-Werror"]
        places = ["-d", str(CLASSES), "-sourcepath", f"{ROOT / 'java/src/main/java'}:{folder}"]
        chosen = ["-subpackages", "mpi:org.limosa", "-exclude", ":".join(EXCLUDED), "-windowtitle", "Limosa for Java"]
        subprocess.run([javadoc, *options, *places, *chosen], check=True)


if __name__ == "__main__":
    main()
