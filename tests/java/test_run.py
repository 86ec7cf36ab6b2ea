"""``limosa run`` of Java programs: source files, classes, archives; what goes wrong."""

import shutil
import signal
import subprocess

import pytest
from jobs import kill_rank_unseen

HELLO = """
import mpi.*;
public class Hello {
    public static void main(String[] args) {
        String[] own = MPI.Init(args);
        System.out.println("rank " + MPI.COMM_WORLD.Rank() + " " + String.join("+", own) + Part.TEXT);
        MPI.Finalize();
    }
}
"""
PART = 'class Part { static final String TEXT = "."; }'


@pytest.fixture
def hello(java):
    java.write(PART, "Part")
    return java.write(HELLO, "Hello")


@pytest.fixture
def classes(java, javac, hello):
    """The compiled program."""
    from limosa import _java

    folder = java.folder / "classes"
    command = [javac, "--release", "22", "-cp", f"{_java.jar()}:{java.folder}", "-d", folder, hello]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def archive(java, jdk, classes):
    """The program as an archive that names its main class."""
    manifest = java.folder / "manifest"
    manifest.write_text("Main-Class: Hello\n")
    file = java.folder / "app.jar"
    subprocess.run([jdk.with_name("jar"), "cfm", file, manifest, "-C", classes, "."], check=True)
    return file


def ranks(outcome):
    return sorted(outcome.out.splitlines())


def test_source_file_with_another_beside_it(java, hello):
    assert ranks(java.run("Hello.java", "a", "b")) == ["rank 0 a+b.", "rank 1 a+b."]


def test_source_file_in_a_package(java):
    folder = java.folder / "org" / "example"
    folder.mkdir(parents=True)
    (folder / "Part.java").write_text("package org.example;\n" + PART)
    (folder / "Hello.java").write_text("/* not: package a.b; */\npackage org.example;\n" + HELLO)
    assert ranks(java.run(folder / "Hello.java", "x")) == ["rank 0 x.", "rank 1 x."]


def test_a_changed_source_file_is_compiled_again(java, hello):
    java.run("Hello.java")
    java.write(PART.replace('"."', '"!"'), "Part")
    assert ranks(java.run("Hello.java")) == ["rank 0 !", "rank 1 !"]


def test_a_changed_source_file_of_another_package_is_compiled_again(java):
    folder = java.folder / "org" / "example"
    folder.mkdir(parents=True)
    shown = "package org.example;\npublic " + PART.replace("static", "public static")
    (folder / "Part.java").write_text(shown)
    java.write("import org.example.Part;\n" + HELLO, "Hello")
    assert ranks(java.run("Hello.java")) == ["rank 0 .", "rank 1 ."]
    (folder / "Part.java").write_text(shown.replace('"."', '"!"'))
    assert ranks(java.run("Hello.java")) == ["rank 0 !", "rank 1 !"]


LOADED = """
import mpi.*;
public class Loaded {
    public static void main(String[] args) throws Exception {
        MPI.Init(args);
        String said = java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments().toString();
        System.out.println(said.contains("SharedArchiveFile"));
        MPI.Finalize();
    }
}
"""


def test_an_archive_of_classes_is_written_once_for_each_java_and_library(java, jdk, javac, monkeypatch):
    from limosa import _java

    monkeypatch.setenv("XDG_CACHE_HOME", str(java.folder))
    subprocess.run([javac, "-cp", _java.jar(), "-d", java.folder, java.write(LOADED, "Loaded")], check=True)

    def is_used(*command, **env):
        outcome = java.run(*command, "-cp", java.folder, "Loaded", n=1, env=env)
        assert outcome.err == ""
        return outcome.out == "true\n"

    assert is_used() and is_used()
    (archive,) = java.folder.rglob("*.jsa")
    content = archive.read_bytes()
    assert len(content) > 1_000_000
    assert is_used(JAVA_LIMOSA_JAR=str(shutil.copy(_java.jar(), java.folder / "copy.jar")))
    assert len(list(java.folder.rglob("*.jsa"))) == 2
    assert not is_used(jdk.with_name("java"), "-Xmx200m")
    assert archive.read_bytes() == content
    archive.write_bytes(b"no archive")
    assert is_used()  # Java passes over it
    archive.write_bytes(b"")
    assert not is_used()


def test_without_a_cache_for_the_archive_a_program_runs(java, classes, monkeypatch):
    (java.folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(java.folder / "file"))
    outcome = java.run("-cp", "classes", "Hello", "x")
    assert (ranks(outcome), outcome.err) == (["rank 0 x.", "rank 1 x."], "")


def test_options_and_variables_that_concern_the_archive(java, jdk, classes):
    for words, variable in {
        ("-Xshare:off",): "",
        ("--add-modules", "java.sql"): "",
        ("--enable-native-access=java.sql",): "",
        (): "-Xshare:off",
    }.items():
        command = [jdk.with_name("java"), *words, "-cp", "classes", "Hello", "x"]
        outcome = java.run(*command, env={"JDK_JAVA_OPTIONS": variable})
        assert ranks(outcome) == ["rank 0 x.", "rank 1 x."]
        assert all(line.startswith("NOTE: Picked up JDK_JAVA_OPTIONS") for line in outcome.err.splitlines())


def test_class_in_a_class_path(java, classes):
    assert ranks(java.run("-cp", "classes", "Hello", "x")) == ["rank 0 x.", "rank 1 x."]


def test_archive(java, archive):
    assert ranks(java.run("app.jar", "x")) == ["rank 0 x.", "rank 1 x."]
    assert ranks(java.run("-jar", "app.jar", "x")) == ["rank 0 x.", "rank 1 x."]


def test_the_command_java(java, jdk, classes, archive):
    command = jdk.with_name("java")
    assert ranks(java.run(command, "-cp", "classes", "-Dx=y", "Hello", "x")) == ["rank 0 x.", "rank 1 x."]
    assert ranks(java.run(command, "-Xmx100m", "-jar", "app.jar")) == ["rank 0 .", "rank 1 ."]
    assert "version" in java.run(command, "-version", n=1).err


@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("", []),
        ("Thread.ofPlatform().start(() -> { throw new IllegalStateException(); }).join();", []),
        ("Thread.startVirtualThread(() -> { throw new IllegalStateException(); }).join();", []),
        ("Thread.startVirtualThread(() -> { throw new IllegalStateException(); }).join();", ["--threads"]),
    ],
)
def test_an_exception_that_nothing_catches_ends_the_job(java, where, options):
    outcome = java.body(
        f"""
        if (rank == 1) {{
            {where or 'throw new IllegalStateException("of rank 1");'}
        }}
        world.Recv(new int[1], 0, 1, MPI.INT, 1 - rank, 0);
        """,
        options=options,
        succeeds=False,
    )
    assert outcome.code == 1
    assert "rank 1: an exception that nothing has caught" in outcome.err
    assert "IllegalStateException" in outcome.err
    assert "Main.java" in outcome.err
    assert "org.limosa.run" not in outcome.err


@pytest.mark.parametrize("options", [[], ["--threads"]])
def test_the_hooks_of_a_rank_that_fails_run(java, options):
    outcome = java.body(
        """
        if (rank == 1) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
            Runtime.getRuntime().addShutdownHook(new Thread(() -> { throw new IllegalStateException("of a hook"); }));
            try {
                throw new IllegalStateException("of rank 1");
            } finally {
                System.out.println("finally");
            }
        }
        world.Recv(new int[1], 0, 1, MPI.INT, 1 - rank, 0);
        """,
        options=options,
        succeeds=False,
    )
    assert (outcome.code, outcome.out) == (1, "finally\nhook\n"), outcome.text
    assert outcome.err.index("of rank 1") < outcome.err.index("of a hook")


def test_hooks_that_do_not_end_do_not_keep_the_job(java):
    outcome = java.body(
        """
        if (rank == 1) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                while (true) java.util.concurrent.locks.LockSupport.park();
            }));
            throw new IllegalStateException("of rank 1");
        }
        world.Recv(new int[1], 0, 1, MPI.INT, 1 - rank, 0);
        """,
        succeeds=False,
    )
    assert outcome.code == 1
    assert outcome.err.index("of rank 1") < outcome.err.index("the shutdown hooks have not ended after 2 s")


def test_an_error_of_message_passing_ends_the_job(java):
    outcome = java.body("world.Send(new int[1], 0, 1, MPI.INT, 9, 0);", succeeds=False)
    assert outcome.code == 1
    assert "mpi.MPIException: Send: there is no destination 9; ranks are 0 to 1" in outcome.err


def test_the_death_of_another_rank_is_the_launchers_to_tell(java):
    java.write(
        """
        import mpi.*;
        class Main {
            public static void main(String[] args) throws Exception {
                MPI.Init(args);
                if (MPI.COMM_WORLD.Rank() == 1) Thread.sleep(600000);
                MPI.COMM_WORLD.Recv(new int[1], 0, 1, MPI.INT, 1, 0);
            }
        }
        """
    )
    job = java.start("Main.java")
    kill_rank_unseen(job.process.pid, victim=1, witness=0)
    outcome = job.wait(20)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert "SIGKILL" in outcome.err and "MPIException" not in outcome.err, outcome.text


def test_exit_codes(java):
    assert java.body("if (rank == 1) System.exit(7); else world.Barrier();", succeeds=False).code == 7
    assert java.body("if (rank == 1) world.Abort(5); else world.Barrier();", succeeds=False).code == 5


def test_main_methods_of_instances(java):
    java.write("import mpi.*; class Main { void main() { MPI.Init(null); System.out.println(1); MPI.Finalize(); } }")
    assert java.run("Main.java").out == "1\n1\n"


MISTAKES = {
    "class Main { void main( { }": "cannot be compiled",
    "class Main { int x; }": "it has no method main",
    "class Main { static int x = one(); static int one() { return 1 / 0; } void main() {} }": "Main cannot be run",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_programs_that_cannot_be_run(usual_java, text):
    usual_java.write(text)
    outcome = usual_java.run("Main.java", succeeds=False)
    assert outcome.code != 0
    assert MISTAKES[text] in outcome.err
    assert outcome.err.count(MISTAKES[text]) <= 2


def test_files_that_cannot_be_run(java):
    (java.folder / "bad.jar").write_text("no archive")
    assert "bad.jar cannot be read as a jar" in java.run("bad.jar", succeeds=False).err
    assert "there is no program `Nothing.java`" in java.run("Nothing.java", succeeds=False).err
    assert "Nothing cannot be run" in java.run("-cp", ".", "Nothing", succeeds=False).err


def test_without_a_jdk_the_reason_is_said_once(java, hello):
    outcome = java.run("Hello.java", succeeds=False, env={"JAVA_LIMOSA_JAR": "/nowhere/limosa.jar"})
    assert outcome.code == 3
    assert outcome.err.count("has no classes for Java") == 1


def test_memory_that_java_cannot_keep_open_is_copied(java, jdk, javac):
    """A plain command has no options of ``limosa run``: the arena is closed, and nothing is written into its memory."""
    from limosa import _java

    file = java.write(
        """
        import java.lang.foreign.Arena;
        import mpi.*;
        class Main {
            public static void main(String[] args) throws Exception {
                MPI.Init(args);
                Request request;
                try (Arena arena = Arena.ofShared()) {
                    request = MPI.COMM_WORLD.Irecv(arena.allocate(8), 0, 8, MPI.BYTE, 0, 5);
                }
                MPI.COMM_WORLD.Send(new byte[8], 0, 8, MPI.BYTE, 0, 5);
                try {
                    request.Wait();
                } catch (IllegalStateException e) {
                    System.out.println(e.getMessage());
                }
                try (Arena arena = Arena.ofShared()) {
                    var memory = arena.allocate(8);
                    request = MPI.COMM_WORLD.Irecv(memory, 0, 8, MPI.BYTE, 0, 5);
                    MPI.COMM_WORLD.Send(new byte[] {7}, 0, 1, MPI.BYTE, 0, 5);
                    request.Wait();
                    System.out.println(memory.get(java.lang.foreign.ValueLayout.JAVA_BYTE, 0));
                }
                MPI.Finalize();
            }
        }
        """
    )
    subprocess.run([javac, "-cp", _java.jar(), "-d", java.folder, file], check=True)
    command = [jdk.with_name("java"), "--enable-native-access=ALL-UNNAMED", "-cp", f"{_java.jar()}:{java.folder}"]
    assert java.run("env", *command, "Main", n=1).out == "Already closed\n7\n"


def test_a_hang_is_reported(java):
    hang = "world.Recv(new int[1], 0, 1, MPI.INT, 1 - rank, 3);"
    outcome = java.body(hang, options=["--on-hang", "abort"], succeeds=False)
    assert outcome.code == 86
    assert "this job hangs" in outcome.err
    assert "rank 0: MPI_Recv from rank 1, tag 3" in outcome.err
    assert outcome.err.count("in Main.main") >= 2
    assert "Main.java:10" in outcome.err
    assert "wait for each other in a circle" in outcome.err
    assert "or use Sendrecv or Irecv" in outcome.err


def test_a_right_program_leaves_nothing_that_the_check_would_report(java):
    text = """
        Object[] word = {"word " + rank};
        if (rank == 0) {
            world.Send(word, 0, 1, MPI.OBJECT, 1, 5);
        } else {
            world.Recv(word, 0, 1, MPI.OBJECT, 0, 5);
        }
        world.Bcast(word, 0, 1, MPI.OBJECT, 0);
        System.out.println(word[0]);
    """
    outcome = java.body(text, options=["--check"])
    assert outcome.out == "word 0\nword 0\n"
    assert outcome.err == ""
