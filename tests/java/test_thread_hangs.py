"""Hangs of ranks that are threads: what is said of a job that hangs, and silence about a job that does not."""

from __future__ import annotations

import re
import threading

import pytest
from jobs import patient

HANG_CODE = 86
ABORT = ["--threads", "--on-hang=abort"]
RECEIVE = "world.Recv(new int[1], 0, 1, MPI.INT, 1 - rank, 5);"


def hang(java, text, n=2, options=(), **more):
    """Run statements that end in a hang; what is said of it, without times."""
    outcome = java.body(text, n=n, options=[*ABORT, *options], succeeds=False, **more)
    assert outcome.code == HANG_CODE, outcome.text
    assert outcome.err.count("limosa: ending the job because of the hang (--on-hang=abort)\n") == 1, outcome.err
    return re.sub(r", for [\d.]+ s\n", "\n", outcome.err)


def test_two_ranks_that_both_receive(java):
    said = hang(java, RECEIVE)
    assert said.startswith(
        "limosa: this job hangs: ranks 0, 1 wait and nothing is under way\n"
        "  rank 0: Comm.Recv from rank 1, tag 5, on MPI.COMM_WORLD\n"
        "      at Main.java:10 in Main.main\n"
        "  rank 1: Comm.Recv from rank 0, tag 5, on MPI.COMM_WORLD\n"
        "      at Main.java:10 in Main.main\n"
        "limosa: ranks 0, 1 wait for each other in a circle: 0 -> 1 -> 0\n"
        "hint: each of them receives before it sends: let one send first, or use Sendrecv or Irecv\n"
    ), said


def test_long_messages_that_all_send_first(java):
    said = hang(java, "world.Send(new byte[1 << 20], 0, 1 << 20, MPI.BYTE, (rank + 1) % size, 7);", n=3)
    assert "  rank 2: Comm.Send to rank 0, tag 7, on MPI.COMM_WORLD\n" in said
    assert "limosa: ranks 0-2 wait for each other in a circle: 0 -> 1 -> 2 -> 0\n" in said
    assert "hint: each of them sends before it receives" in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"if (rank == 1) world.Send(new int[1], 0, 1, MPI.INT, 0, 6); {RECEIVE}",
            "tag 6 from rank 1 lies unreceived at rank 0 while tag 5 is awaited",
        ),
        (
            f"if (rank == 0) world.Send(new int[1], 0, 1, MPI.INT, 0, 5); {RECEIVE}",
            "tag 5 from rank 0 lies unreceived at rank 0 while it is awaited from rank 1",
        ),
        (
            f"Comm other = world.clone(); if (rank == 1) other.Send(new int[1], 0, 1, MPI.INT, 0, 5); {RECEIVE}",
            "tag 5 from rank 1 lies unreceived at rank 0 on a communicator of 2 ranks, while a message on "
            "MPI.COMM_WORLD is awaited",
        ),
    ],
    ids=["tag", "source", "communicator"],
)
def test_a_message_that_lies_there_unreceived_is_named(java, text, sentence):
    assert f"limosa: {sentence}\n" in hang(java, text)


def test_a_rank_missing_from_a_barrier(java):
    said = hang(java, "if (rank == 2) world.Recv(new int[1], 0, 1, MPI.INT, 0, 12); else world.Barrier();", n=3)
    assert "  ranks 0, 1: Intracomm.Barrier on MPI.COMM_WORLD, which needs rank 2\n" in said
    assert (
        "limosa: rank 2 is not in Intracomm.Barrier on MPI.COMM_WORLD; it waits in Comm.Recv from rank 0, tag 12, "
        "on MPI.COMM_WORLD\n"
    ) in said
    assert re.findall(r"in a circle: (.*)", said) == ["0 -> 2 -> 0"]


def test_collective_calls_that_are_made_of_messages(java):
    said = hang(java, "if (rank == 0) world.Barrier(); else world.Bcast(new Object[1], 0, 1, MPI.OBJECT, 0);")
    assert "  rank 0: Intracomm.Barrier on MPI.COMM_WORLD, which needs rank 1\n" in said
    assert "  rank 1: Intracomm.Bcast on MPI.COMM_WORLD, which needs rank 0\n" in said


def test_a_rank_that_has_ended(java):
    said = hang(java, f"if (rank == 0) return; {RECEIVE}")
    assert said.startswith("limosa: this job hangs: rank 1 (the other one has left) waits and nothing is under way\n")
    assert "  rank 0: has ended\n" in said
    assert "limosa: rank 0 has ended while rank 1 waits for it\n" in said


def test_a_rank_that_is_in_finalize(java):
    said = hang(java, f"if (rank == 0) {RECEIVE}")
    assert "  rank 1: MPI.Finalize on MPI.COMM_WORLD, which needs rank 0\n" in said


@pytest.mark.parametrize("thread", ["Thread.ofPlatform()", "Thread.ofVirtual()"])
def test_a_thread_that_joins_one_that_waits(java, thread):
    said = hang(java, f"{thread}.start(() -> {{\n{RECEIVE}\n}}).join();")
    assert "  rank 0: Comm.Recv from rank 1, tag 5, on MPI.COMM_WORLD\n      at Main.java:11" in said
    assert (
        "  ranks 0, 1: another thread, which waits for a lock or for the end of a thread\n      at Main.java:12 in "
        "Main.main\n"
    ) in said


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Request.Waitall(new Request[] {world.Irecv(new int[1], 0, 1, MPI.INT, 1 - rank, 3)});", "from rank 0, tag 3"),
        (
            "Request.Waitany(new Request[] {world.Irecv(new int[1], 0, 1, MPI.INT, 1 - rank, 3), "
            "world.Irecv(new int[1], 0, 1, MPI.INT, MPI.ANY_SOURCE, MPI.ANY_TAG)});",
            "from rank 0, tag 3 or from any rank, any tag",
        ),
        ("world.Probe(1 - rank, 3);", "from rank 0, tag 3"),
        ("world.recv(new int[1], 1, MPI.INT, 1 - rank, 3);", "from rank 0, tag 3"),
    ],
    ids=["Request.Waitall", "Request.Waitany", "Comm.Probe", "Comm.recv"],
)
def test_other_calls_that_wait(java, request, text, what):
    call = request.node.callspec.id
    assert f"  rank 1: {call} {what}, on MPI.COMM_WORLD\n" in hang(java, text)


def test_calls_of_the_interface_org_limosa(java):
    java.write(
        """
        import org.limosa.*;
        class Main {
            public static void main(String[] args) {
                World.run(world -> {
                    if (world.rank() == 0) world.receive(String.class, 1, 4);
                    else world.receiveAsync(String.class, 0, 4).join();
                });
            }
        }
        """
    )
    outcome = java.run("Main.java", options=ABORT, succeeds=False)
    assert outcome.code == HANG_CODE, outcome.text
    assert "  rank 0: World.receive from rank 1, tag 4, for" in outcome.err
    assert "  rank 1: CompletableFuture from rank 0, tag 4, on World, for" in outcome.err
    assert "  rank 1: another thread, which waits for a lock or for the end of a thread\n" in outcome.err
    assert "use sendReceive or receiveAsync\n" in outcome.err


def test_the_default_is_to_report_and_to_keep_waiting(java):
    java.write(
        """
        import mpi.*;
        class Main {
            public static void main(String[] args) {
                MPI.Init(args);
                MPI.COMM_WORLD.Probe(MPI.ANY_SOURCE, 0);
            }
        }
        """
    )
    job = java.start("Main.java", options=["--threads"])
    seen = []
    reader = threading.Thread(target=lambda: seen.append(job.process.stderr.readline()))
    reader.start()
    reader.join(patient(30))
    assert seen, "no report"
    assert "hangs" in seen[0]
    assert job.process.poll() is None


SECONDS = "try { Thread.sleep(%d); } catch (InterruptedException e) { throw new AssertionError(e); }"
NOTHING_HAPPENS = {
    "sleep": f"if (rank == 0) {{ {SECONDS % 3000} }} world.Barrier();",
    "computation": "long end = System.nanoTime() + 3_000_000_000L; double sum = 0; "
    "while (rank == 0 && System.nanoTime() < end) sum += Math.sin(sum); world.Barrier();",
    "another thread that sends later": "if (rank == 0) { Thread.ofPlatform().start(() -> { "
    f"world.Send(new int[1], 0, 1, MPI.INT, 1, 6); {SECONDS % 3000} world.Send(new int[1], 0, 1, MPI.INT, 1, 5); }}); "
    "} else { world.Recv(new int[1], 0, 1, MPI.INT, 0, 6); world.Recv(new int[1], 0, 1, MPI.INT, 0, 5); }",
    "a virtual thread that sends later": "if (rank == 0) { Thread.ofVirtual().start(() -> { "
    f"world.Send(new int[1], 0, 1, MPI.INT, 0, 6); {SECONDS % 3000} world.Send(new int[1], 0, 1, MPI.INT, 0, 5); }}); "
    "world.Recv(new int[1], 0, 1, MPI.INT, 0, 6); world.Recv(new int[1], 0, 1, MPI.INT, 0, 5); } world.Barrier();",
    "a pool": "if (rank == 0) { var pool = java.util.concurrent.Executors.newCachedThreadPool(); "
    f"pool.submit(() -> {{ {SECONDS % 3000} }}).get(); pool.shutdown(); }} world.Barrier();",
    "a process": 'if (rank == 0) new ProcessBuilder("sleep", "3").start().waitFor(); world.Barrier();',
}


@pytest.mark.parametrize("text", NOTHING_HAPPENS.values(), ids=NOTHING_HAPPENS)
def test_no_false_alarm(java, text):
    # Far shorter than what they wait, even with a doubt.
    outcome = java.body(text, options=ABORT, env={"LIMOSA_HANG_AFTER": "0.1", "LIMOSA_HANG_GRACE": "0"})
    assert outcome.err == ""


def test_a_thread_that_never_called_leaves_a_doubt(java):
    doubt = "Thread other = new Thread(() -> { try { Thread.sleep(600_000); } catch (InterruptedException e) { } });"
    said = hang(
        java,
        f"{doubt} other.setDaemon(true); other.start(); {RECEIVE}",
        env={"LIMOSA_HANG_AFTER": "0.1", "LIMOSA_HANG_GRACE": "0"},
    )
    assert said.startswith("limosa: this job may hang: ranks 0, 1 wait and nothing has happened for ")
    assert (
        "limosa: rank 0 has another thread, which sleeps and never called the library: this is a deadlock if it does "
        "not call it\n"
    ) in said
    assert "limosa: the job will be ended in 0.0 s if nothing happens (--on-hang=abort, LIMOSA_HANG_GRACE)\n" in said


def test_off(java):
    java.write(
        """
        import java.lang.management.*;
        class Main {
            public static void main(String[] args) {
                mpi.MPI.Init(args);
                for (ThreadInfo each : ManagementFactory.getThreadMXBean().dumpAllThreads(false, false)) {
                    if (each.getThreadName().equals("limosa-watch")) throw new AssertionError();
                }
                mpi.MPI.Finalize();
            }
        }
        """
    )
    java.run("Main.java", options=["--threads", "--on-hang=off"])


INT = "new int[2], 0, %s, MPI.INT"
MISMATCHES = {
    "calls": (
        f"if (rank == 0) world.Bcast({INT % 1}, 0); else world.Barrier();",
        "do not make the same collective call: rank 0 calls Bcast, ranks 1, 2 Barrier",
    ),
    "roots": (
        f"world.Bcast({INT % 1}, rank % 2);",
        "do not make the same collective call: ranks 0, 2 call Bcast with root 0, rank 1 Bcast with root 1",
    ),
    "operations": (
        "world.Allreduce(new int[1], 0, new int[1], 0, 1, MPI.INT, rank == 2 ? MPI.MAX : MPI.SUM);",
        "do not make the same collective call: ranks 0, 1 call Allreduce with MPI.SUM, rank 2 Allreduce with MPI.MAX",
    ),
    "counts": (
        "world.Reduce(new int[2], 0, new int[2], 0, rank == 0 ? 1 : 2, MPI.INT, MPI.SUM, 0);",
        "do not make the same collective call: rank 0 calls Reduce with 1 elements, ranks 1, 2 Reduce with 2 elements",
    ),
    "types": (
        "if (rank == 0) world.Bcast(new float[1], 0, 1, MPI.FLOAT, 0); else world.Bcast(new int[1], 0, 1, MPI.INT, 0);",
        "do not make the same collective call: rank 0 calls Bcast of MPI.FLOAT, ranks 1, 2 Bcast of MPI.INT",
    ),
    "room": (
        f"world.Bcast({INT % '2 - rank % 2'}, 0);",
        "Bcast: rank 0 gives rank 1 2 elements of MPI.INT, but that one has room for 1",
    ),
    "the end": ("if (rank > 0) world.Barrier();", "rank 0 calls MPI.Finalize, ranks 1, 2 Barrier"),
}


@pytest.mark.parametrize(("text", "problem"), MISMATCHES.values(), ids=MISMATCHES)
def test_collective_calls_that_do_not_fit_together_are_told_on_all_ranks(java, text, problem):
    outcome = java.body(
        f"""
        try {{
            {text}
            {"MPI.Finalize();" if "Finalize" in problem else ""}
            System.out.println("nothing");
        }} catch (MPIException e) {{
            System.out.println(e.getMessage());
        }}
        int[] sum = new int[1];
        world.Allreduce(new int[] {{1}}, 0, sum, 0, 1, MPI.INT, MPI.SUM);
        if (sum[0] != size) throw new AssertionError();
        """,
        n=3,
        options=["--threads"],
    )
    lines = outcome.out.splitlines()
    assert len(lines) == 3
    assert all(line.endswith(problem) for line in lines), outcome.out


def test_what_fails_in_one_rank_of_a_collective_call_fails_in_all(java):
    outcome = java.body(
        """
        int[] counts = {1, 1};
        int[] places = {0, 1};
        try {
            world.Gatherv(new int[3], 0, rank == 1 ? 3 : 1, MPI.INT, new int[9], 0, counts, places, MPI.INT, 0);
        } catch (MPIException e) {
            System.out.println(e.getErrorClass() + " " + e.getMessage());
        }
        """,
        options=["--threads"],
    )
    assert outcome.out == "15 Gatherv: rank 1 gives rank 0 3 elements of MPI.INT, but that one has room for 1\n" * 2
