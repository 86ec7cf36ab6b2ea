"""Ranks that are threads of one Java machine: static fields of their own, and what goes wrong in one of them."""

import pytest


def threads(java, text, **options):
    return java.body(text, options=["--threads"], **options)


def test_static_fields_belong_to_the_rank(java):
    java.write(
        """
        import mpi.*;
        class Main {
            static int mine;
            public static void main(String[] args) {
                MPI.Init(args);
                mine += MPI.COMM_WORLD.Rank() + 1;
                MPI.COMM_WORLD.Barrier();
                int[] all = new int[MPI.COMM_WORLD.Size()];
                MPI.COMM_WORLD.Gather(new int[] {mine}, 0, 1, MPI.INT, all, 0, 1, MPI.INT, 0);
                if (MPI.COMM_WORLD.Rank() == 0) System.out.println(java.util.Arrays.toString(all));
                MPI.Finalize();
            }
        }
        """
    )
    outcome = java.run("Main.java", n=4, options=["--threads"])
    assert outcome.out == "[1, 2, 3, 4]\n"


def test_objects_are_read_with_the_classes_of_the_rank(java):
    java.write(
        """
        import mpi.*;
        class Main {
            record Pair(int a, String b) implements java.io.Serializable {}
            public static void main(String[] args) {
                MPI.Init(args);
                int rank = MPI.COMM_WORLD.Rank();
                Object[] got = new Pair[1];
                MPI.COMM_WORLD.Sendrecv(new Pair[] {new Pair(rank, "x")}, 0, 1, MPI.OBJECT, 1 - rank, 0,
                                        got, 0, 1, MPI.OBJECT, 1 - rank, 0);
                if (((Pair) got[0]).a() != 1 - rank) throw new AssertionError();
                System.out.println("ok");
                MPI.Finalize();
            }
        }
        """
    )
    assert java.run("Main.java", options=["--threads"]).out == "ok\nok\n"


def test_threads_of_a_rank_belong_to_it(java):
    outcome = threads(
        java,
        """
        Thread other = new Thread(() -> world.Send(new int[] {rank}, 0, 1, MPI.INT, 1 - rank, 3));
        other.start();
        int[] got = new int[1];
        world.Recv(got, 0, 1, MPI.INT, 1 - rank, 3);
        other.join();
        System.out.println(got[0]);
        """,
    )
    assert sorted(outcome.out.split()) == ["0", "1"]


def test_an_exception_of_one_rank_ends_all(java):
    outcome = threads(
        java,
        """
        if (rank == 1) throw new IllegalStateException("of rank 1");
        world.Recv(new int[1], 0, 1, MPI.INT, 1, 0);
        """,
        succeeds=False,
    )
    assert outcome.code == 1
    assert "rank 1: an exception that nothing has caught" in outcome.err
    assert "IllegalStateException: of rank 1" in outcome.err


def test_an_exception_in_another_thread_of_a_rank_ends_all(java):
    outcome = threads(
        java,
        """
        if (rank == 1) new Thread(() -> { throw new IllegalStateException("elsewhere"); }).start();
        world.Recv(new int[1], 0, 1, MPI.INT, 1 - rank, 0);
        """,
        succeeds=False,
    )
    assert outcome.code == 1
    assert "rank 1: an exception" in outcome.err
    assert "elsewhere" in outcome.err


def test_memory_that_is_exhausted_ends_all(java):
    outcome = threads(
        java,
        """
        if (rank == 1) { long[][] all = new long[100][]; for (int i = 0; i < 100; i++) all[i] = new long[1 << 30]; }
        world.Barrier();
        """,
        succeeds=False,
    )
    assert outcome.code == 1
    assert "OutOfMemoryError" in outcome.err


def test_exit_and_abort_end_all_with_their_code(java):
    assert threads(java, "if (rank == 1) System.exit(7); else world.Barrier();", succeeds=False).code == 7
    assert threads(java, "if (rank == 1) world.Abort(5); else world.Barrier();", succeeds=False).code == 5


def test_an_exit_that_ends_other_ranks_says_so(java):
    outcome = threads(java, "if (rank == 1) System.exit(7);\nworld.Barrier();", succeeds=False)
    assert outcome.err.startswith(
        "limosa: System.exit at Main.java:10 in Main.main ends all ranks, which are threads of one process; rank 0 had "
        "not finished\n"
    )


def test_an_exit_after_finalize_lets_the_others_end(java):
    outcome = threads(
        java,
        """
        MPI.Finalize();
        if (rank == 1) Thread.sleep(500);
        System.out.println("end");
        System.exit(0);
        """,
    )
    assert outcome.out == "end\nend\n"
    assert outcome.err == ""


def test_a_communicator_before_init_has_a_hint(java):
    file = java.write("class Main { public static void main(String[] args) { mpi.MPI.COMM_WORLD.Rank(); } }")
    outcome = java.run(file, options=["--threads"], succeeds=False)
    assert "\nhint: communicators are there between MPI.Init and MPI.Finalize\n" in outcome.err


def test_a_datatype_that_is_null(java):
    outcome = threads(
        java,
        """
        int[] one = new int[1];
        Runnable[] calls = {
            () -> world.Allreduce(one, 0, one, 0, 1, null, MPI.SUM),
            () -> world.Gather(one, 0, 1, null, one, 0, 1, null, 0),
            () -> world.Sendrecv(one, 0, 1, null, 0, 0, one, 0, 1, MPI.INT, 0, 0)
        };
        for (Runnable each : calls) {
            try {
                each.run();
            } catch (MPIException e) {
                System.out.println(e.getMessage());
            }
        }
        """,
    )
    said = [f"{call}: the datatype is null" for call in ("Allreduce", "Gather", "Sendrecv")]
    assert sorted(outcome.out.splitlines()) == sorted(2 * said)


def test_an_interrupted_thread_waits_on(java):
    outcome = threads(
        java,
        """
        Thread.currentThread().interrupt();
        world.Barrier();
        System.out.println(Thread.interrupted());
        """,
    )
    assert outcome.out == "true\ntrue\n"


def test_options_that_do_not_fit(java):
    file = java.write("class Main { void main() {} }")
    outcome = java.run(file, options=["--threads", "-host", "localhost"], succeeds=False)
    assert "--threads needs no hosts" in outcome.err


@pytest.mark.parametrize("machines", [[], ["--per-jvm", "1"]])
def test_lines_are_tagged_with_the_ranks_that_have_written_them(java, machines):
    outcome = java.body(
        """
        System.out.print("from ");
        System.out.println(rank);
        Thread.startVirtualThread(() -> System.err.println("error of\\n" + rank)).join();
        world.Barrier();
        System.out.print("end");
        """,
        options=["--threads", *machines, "-l"],
    )
    assert sorted(outcome.out.splitlines()) == ["[0] end", "[0] from 0", "[1] end", "[1] from 1"]
    assert sorted(outcome.err.splitlines()) == ["[0] 0", "[0] error of", "[1] 1", "[1] error of"]


def test_programs_and_options_that_need_processes_are_refused(java, jdk):
    file = java.write("class Main { void main() { System.out.println(1); } }")
    for words, problem in {
        ("--check", file): "--check does not work with --threads",
        ("--profile", file): "--profile does not work with --threads",
        ("echo", "1"): "--threads is for Java programs, but echo is none",
        (jdk.with_name("java"), "-version"): "ranks that are threads need a class",
    }.items():
        outcome = java.run(*words, options=["--threads"], succeeds=False)
        assert outcome.code != 0 and outcome.out == "", outcome.text
        assert problem in outcome.err


def test_objects_of_shared_classes_are_handed_over_and_others_copied(java):
    outcome = threads(
        java,
        """
        String text = new String("text " + rank);
        Object[] sent = {text, 7, null, Thread.State.NEW};
        int[] row = {1, 2};
        Object[] got = new Object[4];
        int[][] rows = new int[1][];
        Request[] all = {
            world.Isend(sent, 0, 4, MPI.OBJECT, 1 - rank, 0),
            world.Isend(new int[][] {row}, 0, 1, MPI.OBJECT, 1 - rank, 1)
        };
        row[0] = 9;
        sent[1] = 8;
        Status status = world.Recv(got, 0, 4, MPI.OBJECT, 1 - rank, 0);
        world.Recv(rows, 0, 1, MPI.OBJECT, 1 - rank, 1);
        Request.Waitall(all);
        if (!got[0].equals("text " + (1 - rank)) || !got[1].equals(7) || got[2] != null || got[3] != Thread.State.NEW
                || status.Get_count(MPI.OBJECT) != 4 || rows[0] == row || rows[0][0] != 1) {
            throw new AssertionError(Arrays.toString(got) + Arrays.toString(rows[0]));
        }
        System.out.println("ok");
        """,
    )
    assert outcome.out == "ok\nok\n"


def test_objects_that_come_where_there_are_none_expected(java):
    outcome = threads(
        java,
        """
        if (rank == 0) world.Send(new Object[] {"text"}, 0, 1, MPI.OBJECT, 1, 0);
        else world.Recv(new int[1], 0, 1, MPI.INT, 0, 0);
        """,
        succeeds=False,
    )
    assert "a message from rank 0 has come that holds objects; receive them as objects" in outcome.err
