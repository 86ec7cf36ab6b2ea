"""What users get wrong or do not have: no JDK, an old one, damaged archives, no memory; each has a message that helps.

Wrong arguments of calls are in ``programs/Mistakes.java``.
"""

import stat
import zipfile
from pathlib import Path

import pytest
from limosa import _java_find

HELLO = "class Hello { public static void main(String[] args) { mpi.MPI.Init(args); mpi.MPI.Finalize(); } }"


@pytest.fixture
def no_jdk(monkeypatch, tmp_path):
    """As on a machine without Java."""
    monkeypatch.setattr(_java_find, "_PLACES", (str(tmp_path / "jvm"),))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def old_jdk(folder: Path, version="17.0.2"):
    """A JDK that says that it is an old one."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return java


def test_no_jdk(no_jdk):
    with pytest.raises(_java_find.JavaError, match=r"need a JDK 22 or newer\. Get one from .* in JAVA_HOME"):
        _java_find.find()


@pytest.mark.parametrize("place", ["jvm/old", "home"])
def test_only_an_old_jdk(no_jdk, tmp_path, monkeypatch, place):
    java = old_jdk(tmp_path / place)
    if place == "home":
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / place))
    with pytest.raises(_java_find.JavaError, match=f"need a JDK 22 or newer; {java} is version 17. Get one"):
        _java_find.find()


def test_a_program_for_which_the_jdk_is_too_old_to_run(java):
    file = java.write(HELLO, "Hello")
    found = old_jdk(java.folder / "old")
    outcome = java.run(found, file, succeeds=False)
    assert f"limosa: {found} is version 17; programs that pass messages need 22 or newer" in outcome.err


def test_the_old_jdk_of_java_home_is_passed_over(java):
    old_jdk(java.folder / "old")
    java.run(java.write(HELLO, "Hello"), env={"JAVA_HOME": str(java.folder / "old")})


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no end"])
def test_damaged_classes_of_limosa(java, content):
    damaged = java.folder / "limosa.jar"
    damaged.write_bytes(content)
    outcome = java.run(java.write(HELLO, "Hello"), env={"JAVA_LIMOSA_JAR": str(damaged)}, succeeds=False)
    assert outcome.code == 3
    assert outcome.err.count(f"{damaged}, which has the classes of Limosa, is damaged") == 1


def test_a_damaged_class_in_an_archive(java):
    archive = java.folder / "app.jar"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("META-INF/MANIFEST.MF", "Main-Class: Hello\n")
        opened.writestr("Hello.class", b"\xca\xfe\xba\xbe\0\0\0")
    for options in ([], ["--threads"]):
        outcome = java.run(archive, options=options, succeeds=False)
        assert outcome.code == 1
        assert "limosa: the class Hello cannot be run: java.lang.ClassFormatError" in outcome.err


def test_an_archive_that_is_cut_off(java):
    archive = java.folder / "app.jar"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("META-INF/MANIFEST.MF", "Main-Class: Hello\n" + 4000 * " ")
    archive.write_bytes(archive.read_bytes()[:-30])
    outcome = java.run(archive, succeeds=False)
    assert outcome.code == 3
    assert f"{archive} cannot be read as a jar" in outcome.err or "app.jar cannot be read as a jar" in outcome.err


def test_memory_that_is_exhausted_in_a_process(java):
    outcome = java.body(
        """
        if (rank == 1) {
            long[][] all = new long[100][];
            for (int i = 0; i < 100; i++) all[i] = new long[1 << 30];
        }
        world.Barrier();
        """,
        succeeds=False,
    )
    assert outcome.code == 1
    assert "rank 1: an exception that nothing has caught" in outcome.err
    assert "OutOfMemoryError" in outcome.err


@pytest.mark.parametrize("options", [[], ["--threads"]])
def test_native_memory_that_is_not_there(java, options):
    """What is wrong is an exception, and the program goes on."""
    outcome = java.body(
        """
        try {
            MPI.newByteBuffer(Integer.MAX_VALUE);
            System.out.println("none");
        } catch (OutOfMemoryError e) {
            System.out.println("caught");
        }
        world.Barrier();
        """,
        options=options,
        env={"JAVA_TOOL_OPTIONS": "-XX:MaxDirectMemorySize=1m"},
    )
    assert outcome.out == "caught\ncaught\n"


@pytest.mark.parametrize("options", [[], ["--threads"]])
def test_an_exception_in_an_operation_of_the_program(java, options):
    outcome = java.body(
        """
        Op op = new Op(new User_function() {
            public void Call(Object in, int at, Object inout, int to, int count, Datatype type) {
                throw new IllegalStateException("in the operation");
            }
        }, true);
        world.Allreduce(new int[1], 0, new int[1], 0, 1, MPI.INT, op);
        """,
        options=options,
        succeeds=False,
    )
    assert outcome.code == 1
    assert "IllegalStateException: in the operation" in outcome.err


def test_a_stack_that_overflows_ends_the_job(java):
    java.write(
        """
        import mpi.*;
        class Main {
            static int deeper(int n) { return deeper(n + 1) + 1; }
            public static void main(String[] args) {
                MPI.Init(args);
                if (MPI.COMM_WORLD.Rank() == 0) deeper(0);
                MPI.COMM_WORLD.Barrier();
            }
        }
        """
    )
    for options in ([], ["--threads"]):
        outcome = java.run("Main.java", options=options, succeeds=False)
        assert outcome.code == 1
        assert "rank 0: an exception that nothing has caught" in outcome.err
        assert "StackOverflowError" in outcome.err
