"""`pkg install` takes a tarball of the package; what it installs works without `limosa run`."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

from conftest import LIMOSA, OPTIONS, ROOT


def test_pkg_installs_the_package(modules, tmp_path: Path):
    tarball = tmp_path / "limosa-octave.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        archive.add(ROOT / "octave", "octave")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LIMOSA_", "OCTAVE_"))}
    environment["PATH"] = f"{LIMOSA.parent}:{environment['PATH']}"
    environment["OPTIMIZATION"] = "-O0"  # the fixture has compiled the same as users do
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")

    def octave(text: str) -> str:
        line = [
            "octave-cli",
            *OPTIONS,
            "--eval",
            f"pkg prefix {tmp_path}/p {tmp_path}/compiled; pkg local_list {tmp_path}/l;" + text,
        ]
        done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=900, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    octave(f"pkg install {tarball}")
    said = octave(
        """
        pkg load limosa
        limosa_toolbox matlabmpi
        printf ("%d of %d, %d %d\\n", limosa_rank (), limosa_size (), exist ("MPI_Run"), exist ("MPI_Send") > 0);
        limosa_send ({"x"}, limosa_rank ()); disp (limosa_recv (){1});
        """
    )
    assert said.splitlines()[-2:] == ["0 of 1, 2 1", "x"]
