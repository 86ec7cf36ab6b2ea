"""Find a Java that is new enough. The build of the wheel uses this, too: it needs nothing else of the package."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

__all__ = ["OLDEST", "JavaError", "find", "version_of"]

OLDEST = 22
"""The first version of Java with the Foreign Function & Memory API."""


_PLACES = ("/usr/lib/jvm", "/opt")
"""Folders of which each folder may be a JDK."""


class JavaError(Exception):
    """Java or a part of it is missing; the text says what to do."""


def version_of(java: Path) -> int:
    """Give the version of a ``java``, from the file ``release`` beside it or by asking it; 0 if it does not run."""
    try:
        text = (java.resolve().parents[1] / "release").read_text()
        found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    except (OSError, IndexError):
        found = None
    if found is None:
        import subprocess

        try:
            done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return 0
        found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found else 0


def find(program: str = "java") -> Path:
    """Give a ``java`` (or ``javac``) that is new enough: of ``JAVA_HOME``, in ``PATH``, or where Linux keeps them.

    Raises
    ------
    JavaError
        If there is none; says which older ones there are.
    """
    places = [Path(home) / "bin" / program] if (home := os.environ.get("JAVA_HOME")) else []
    if in_path := shutil.which(program):
        places.append(Path(in_path))
    known = [each / "bin" / program for root in _PLACES for each in Path(root).glob("*")]
    places += sorted(known, key=lambda file: -version_of(file) if file.is_file() else 0)
    older: dict[str, int] = {}
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            version = version_of(place)
            if version >= OLDEST:
                return place
            older[str(place)] = version
    seen = "".join(f"; {file} is version {version}" for file, version in older.items() if version)
    raise JavaError(
        f"Java programs need a JDK {OLDEST} or newer{seen}. Get one from https://adoptium.net or your distribution, "
        "and put its folder bin in PATH or name the JDK in JAVA_HOME"
    )
