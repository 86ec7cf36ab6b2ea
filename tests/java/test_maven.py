"""The Maven artefact ``org.limosa:limosa-mpi``: what it holds, and a program that runs with it."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
POM = ROOT / "java" / "pom.xml"
UNREACHABLE = re.compile(r"Could not transfer artifact|Unknown host|offline mode and the artifact", re.IGNORECASE)

HELLO = """
import mpi.*;
public class Hello {
    public static void main(String[] args) {
        MPI.Init(args);
        String from = MPI.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        System.out.println(MPI.COMM_WORLD.Rank() + " " + from);
        MPI.Finalize();
    }
}
"""


def maven(jdk, *words):
    """Run Maven; the test is reported as not run where its plugins cannot be had."""
    program = shutil.which("mvn")
    if program is None:
        pytest.skip("not run: Maven (mvn) is not installed")
    env = os.environ | {"JAVA_HOME": str(jdk.resolve().parents[1])}
    command = [program, "--batch-mode", "--no-transfer-progress", "--quiet", "--file", POM, *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800)
    if done.returncode and (found := UNREACHABLE.search(done.stdout)):
        line = done.stdout[found.start() :].partition("\n")[0]
        pytest.skip(f"not run: Maven Central, from which Maven takes its plugins, cannot be reached: {line}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(jdk, tmp_path_factory):
    """The folder with what Maven has built."""
    folder = tmp_path_factory.mktemp("maven")
    said = maven(jdk, "package", f"-Dlimosa.build={folder}")
    assert "WARNING" not in said
    return folder


def names(archive):
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


def artefact(built, kind=""):
    (found,) = built.glob(f"limosa-mpi-*[0-9]{kind}.jar")
    return found


def test_a_program_runs_with_the_artefact(java, jdk, built):
    archive = artefact(built)
    source = java.write(HELLO, "Hello")
    subprocess.run([jdk, "-cp", archive, "-d", java.folder / "classes", source], check=True)
    outcome = java.run("-cp", f"{archive}:classes", "Hello")
    assert sorted(outcome.out.splitlines()) == [f"{rank} {archive}" for rank in range(2)]


def test_the_artefact_has_the_classes_of_the_wheel(built):
    from limosa import _java

    def classes(archive):
        return {name for name in names(archive) if name.endswith(".class")}

    assert classes(artefact(built)) == classes(_java.jar())


def test_sources_and_documentation_are_beside_it(built):
    sources = names(artefact(built, "-sources"))
    assert {"mpi/Comm.java", "org/limosa/abi/Abi.java", "org/limosa/run/Start.java"} <= sources
    pages = names(artefact(built, "-javadoc"))
    assert any(page.endswith("/mpi/Intracomm.html") for page in pages)
    assert not any("/engine/" in page for page in pages)


def test_bindings_can_be_given(jdk, built, tmp_path):
    given = built / "generated-sources" / "abi"
    maven(jdk, "compile", f"-Dlimosa.build={tmp_path}", f"-Dlimosa.bindings={given}")
    assert (tmp_path / "classes" / "org" / "limosa" / "abi" / "Abi.class").is_file()
    assert not (tmp_path / "generated-sources" / "abi").exists()


def test_the_version_is_that_of_the_crates():
    version = ET.parse(POM).getroot().findtext("{http://maven.apache.org/POM/4.0.0}version")
    assert f'\nversion = "{version}"\n' in (ROOT / "Cargo.toml").read_text()
