"""Ranks in several Java machines, whose messages Java carries: no native part of Limosa is needed."""

import contextlib
import os
import re
import signal
import socket
import subprocess

import pytest
from jobs import Job

MACHINES = ["--threads", "--per-jvm", "1"]
DEATHS = [MACHINES, ["--threads", "--per-jvm", "2"]]
KEY = "00112233445566778899aabbccddeeff"


@pytest.fixture
def hello(java, jdk, javac):
    """A compiled program that says its rank, and where Java's own launcher is."""
    from limosa import _java

    java.write(
        """
        import mpi.*;
        class Hello {
            public static void main(String[] args) {
                MPI.Init(args);
                int[] sum = new int[1];
                MPI.COMM_WORLD.Allreduce(new int[] {MPI.COMM_WORLD.Rank()}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
                System.out.println("rank " + MPI.COMM_WORLD.Rank() + ": " + sum[0]);
                MPI.Finalize();
            }
        }
        """,
        "Hello",
    )
    subprocess.run([javac, "-cp", _java.jar(), "-d", java.folder, java.folder / "Hello.java"], check=True)
    return [jdk.with_name("java"), "-cp", f"{_java.jar()}:{java.folder}", "org.limosa.run.Run"]


@pytest.fixture
def start():
    """Start commands; those that still run at the end are killed."""
    jobs = []

    def started(*words, env=None):
        jobs.append(Job([str(word) for word in words], env=os.environ | (env or {})))
        return jobs[-1]

    yield started
    for job in jobs:
        job.kill()


def is_there(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_java_alone_starts_a_job_and_says_so(hello, start):
    outcome = start(*hello, "-n", 3, "--per-jvm", 2, "Hello").wait(60)
    assert sorted(outcome.out.splitlines()) == ["rank 0: 3", "rank 1: 3", "rank 2: 3"]
    assert outcome.err == "limosa: Java carries the messages of 3 ranks in 2 processes; no MPI library is used\n"


def test_parts_of_a_job_that_are_started_apart_find_each_other(hello, start):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"JAVA_LIMOSA_KEY": KEY}
    one = start(*hello, "-n", 3, "--here", 2, "--address", f"127.0.0.1:{port}", "Hello", env=env)
    other = start(*hello, "-n", 1, "--join", f"127.0.0.1:{port}", "--first", 2, "Hello", env=env)
    assert other.wait(60).out == "rank 2: 3\n"
    assert sorted(one.wait(60).out.splitlines()) == ["rank 0: 3", "rank 1: 3"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "there is no class to run"),
        (["-n", "0", "Hello"], "-n needs a whole number above 0, not 0"),
        (["--many", "3", "Hello"], "there is no option --many"),
        (["-n", "3", "--here", "2", "Hello"], "JAVA_LIMOSA_KEY must be set for several hosts"),
    ],
)
def test_wrong_options(hello, start, words, problem):
    outcome = start(*hello, *words).wait(60)
    assert outcome.code == 2
    assert outcome.err.startswith(f"limosa: {problem}\n")


def test_per_jvm_needs_threads(java):
    file = java.write("class Main { void main() {} }")
    assert "--threads" in java.run(file, options=["--per-jvm", "2"], succeeds=False).err


LONG_WAIT = "world.Recv(new int[1], 0, 1, MPI.INT, MPI.ANY_SOURCE, 0);"


@pytest.mark.parametrize("options", DEATHS)
def test_a_killed_machine_is_named_and_ends_all(java, options):
    outcome = java.body(
        f"""
        System.out.println(ProcessHandle.current().pid());
        world.Barrier();
        String pid = "" + ProcessHandle.current().pid();
        if (rank == 2) Runtime.getRuntime().exec(new String[] {{"kill", "-9", pid}});
        {LONG_WAIT}
        """,
        n=3,
        options=options,
        succeeds=False,
    )
    assert outcome.code == 128 + signal.SIGKILL
    assert "limosa: rank 2 was ended by signal 9" in outcome.err
    assert not any(is_there(int(pid)) for pid in re.findall(r"^\d+$", outcome.out, re.MULTILINE))


@pytest.mark.parametrize("options", DEATHS)
def test_exits_and_exceptions_of_one_rank_end_all(java, options):
    def body(text):
        return java.body(text, n=3, options=options, succeeds=False)

    assert body(f"if (rank == 2) System.exit(7); {LONG_WAIT}").code == 7
    assert body(f"if (rank == 2) world.Abort(5); {LONG_WAIT}").code == 5
    outcome = body(f'if (rank == 2) throw new IllegalStateException("of rank 2"); {LONG_WAIT}')
    assert outcome.code == 1
    assert "rank 2: an exception that nothing has caught" in outcome.err
    outcome = body(
        f"if (rank == 2) {{ long[][] all = new long[99][]; for (int i = 0; i < 99; i++) all[i] = "
        f"new long[1 << 30]; }} {LONG_WAIT}"
    )
    assert outcome.code == 1
    assert "rank 2: an exception that nothing has caught" in outcome.err
    assert "OutOfMemoryError" in outcome.err


def test_a_rank_that_ends_without_finalize_is_named(java):
    outcome = java.body(f"if (rank == 2) System.exit(0); {LONG_WAIT}", n=3, options=MACHINES, succeeds=False)
    assert outcome.code == 1
    assert "rank 2 has ended without MPI.Finalize while others need it" in outcome.err


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("world.Recv(new int[1], 0, 1, MPI.INT, (rank + 1) % size, 5);", "in a circle: 0 -> 1 -> 2 -> 0"),
        (
            "world.Send(new byte[1 << 20], 0, 1 << 20, MPI.BYTE, (rank + 1) % size, 5);",
            "in a circle: 0 -> 1 -> 2 -> 0",
        ),
        (
            "if (rank == 2) world.Send(new int[1], 0, 1, MPI.INT, 0, 6); "
            "world.Recv(new int[1], 0, 1, MPI.INT, (rank + 2) % size, 5);",
            "tag 6 from rank 2 lies unreceived at rank 0 while tag 5 is awaited",
        ),
        ("if (rank == 0) world.Bcast(new int[1], 0, 1, MPI.INT, 0); else world.Barrier();", "not in Intracomm.Barrier"),
    ],
    ids=["receives", "sends", "tags", "collectives"],
)
@pytest.mark.parametrize("options", DEATHS)
def test_a_hang_is_reported(java, options, text, finding):
    outcome = java.body(text, n=3, options=[*options, "--on-hang=abort"], succeeds=False)
    assert outcome.code == 86, outcome.text
    assert outcome.err.startswith("limosa: this job hangs: ranks 0-2 wait and nothing is under way\n"), outcome.err
    assert finding in outcome.err
    assert "  rank 1: " in outcome.err or "  ranks 1, 2: " in outcome.err
    assert "at Main.java:10 in Main.main\n" in outcome.err
    assert "limosa: ending the job because of the hang (--on-hang=abort)\n" in outcome.err


@pytest.mark.parametrize(
    "pause",
    [
        "Thread.sleep(3000);",
        "long end = System.nanoTime() + 3_000_000_000L; double sum = 0; "
        "while (System.nanoTime() < end) sum += Math.sin(sum);",
    ],
    ids=["sleep", "computation"],
)
def test_a_rank_of_another_machine_that_is_at_work_is_no_hang(java, pause):
    outcome = java.body(
        f"if (rank == 1) {{ {pause} }} world.Barrier();",
        options=[*MACHINES, "--on-hang=abort"],
        env={"LIMOSA_HANG_AFTER": "0.1", "LIMOSA_HANG_GRACE": "0"},
    )
    assert outcome.err == ""


def test_strangers_are_dropped(java):
    java.write(
        """
        import java.net.*;
        import mpi.*;
        class Main {
            public static void main(String[] args) throws Exception {
                String place = System.getenv("JAVA_LIMOSA_PLACE");
                int port = Integer.parseInt(place.substring(place.indexOf(':') + 1));
                for (int i = 0; i < 3; i++) {
                    Socket stranger = new Socket("127.0.0.1", port);
                    stranger.getOutputStream().write("GET / HTTP/1.0\\r\\n\\r\\n".repeat(100).getBytes());
                }
                MPI.Init(args);
                MPI.COMM_WORLD.Barrier();
                System.out.println("ok");
                MPI.Finalize();
            }
        }
        """
    )
    assert java.run("Main.java", n=2, options=MACHINES).out == "ok\nok\n"
