"""Open MPI's names for processes that a program starts, and for groups that meet at a port."""

import pytest

SPAWN = """
import mpi.*;
public class Main {
    public static void main(String[] args) throws Exception {
        MPI.Init(args);
        Intracomm world = MPI.COMM_WORLD;
        Intercomm parent = Intercomm.getParent();
        if (parent.isNull()) {
            Info info = new Info();
            info.set("wdir", "/");
            String classes = System.getProperty("java.class.path");
            String[] words = {"--enable-native-access=ALL-UNNAMED", "-cp", classes, "Main", "x"};
            int[] codes = {7, 7, 7};
            String java = System.getProperty("java.home") + "/bin/java";
            Intercomm children = world.spawn(java, words, 3, info, 1, codes);
            if (world.getRank() == 1 && codes[0] + codes[1] + codes[2] != 0) throw new AssertionError();
            children.send(new int[] {world.getRank()}, 1, MPI.INT, world.getRank(), 5);
            double[] sum = new double[1];
            children.allReduce(new double[] {0.5}, sum, 1, MPI.DOUBLE, MPI.SUM);
            Intercomm copy = children.dup();
            Object[] text = new Object[1];
            copy.recv(text, 1, MPI.OBJECT, 2, 6);
            if (world.getRank() == 0) System.out.println(sum[0] + " " + text[0] + " " + children.getRemoteSize());
            copy.disconnect();
            children.disconnect();
            MPI.Finalize();
            return;
        }
        int rank = world.getRank();
        int[] got = {-1};
        if (rank < 2) parent.recv(got, 1, MPI.INT, rank, 5);
        if (rank < 2 && got[0] != rank) throw new AssertionError();
        try {
            parent.send(new Object[] {"too early"}, 1, MPI.OBJECT, 0, 6);
            throw new AssertionError();
        } catch (MPIException e) {
            if (!e.getMessage().contains("make a copy with dup()")) throw e;
        }
        double[] sum = new double[1];
        parent.allReduce(new double[] {rank}, sum, 1, MPI.DOUBLE, MPI.SUM);
        if (sum[0] != 1) throw new AssertionError();
        String folder = new java.io.File("").getAbsolutePath();
        Intercomm copy = parent.dup();
        for (int i = 0; rank == 2 && i < 2; i++) {
            copy.send(new Object[] {args[0] + " in " + folder}, 1, MPI.OBJECT, i, 6);
        }
        copy.disconnect();
        parent.disconnect();
        MPI.Finalize();
    }
}
"""


def test_processes_that_a_program_starts(java):
    assert java.run(java.write(SPAWN)).out == "3.0 x in / 3\n"


def test_groups_that_meet_at_a_port(java):
    outcome = java.body(
        """
        Intracomm half = world.split(rank % 2, rank);
        String[] port = {rank == 0 ? Intracomm.openPort() : null};
        world.bcast(port, 1, MPI.OBJECT, 0);
        Intercomm both = rank % 2 == 0 ? half.accept(port[0], 0) : half.connect(port[0], MPI.INFO_NULL, 0);
        int[] got = new int[1];
        both.sendRecv(new int[] {rank}, 1, MPI.INT, 0, 1, got, 1, MPI.INT, 0, 1);
        System.out.println(rank + " " + got[0]);
        both.disconnect();
        if (rank == 0) {
            Intracomm.publishName("java-test", port[0]);
            if (!Intracomm.lookupName("java-test").equals(port[0])) throw new AssertionError();
            Intracomm.unpublishName("java-test", port[0]);
            Intracomm.closePort(port[0]);
        }
        """
    )
    assert sorted(outcome.out.splitlines()) == ["0 1", "1 0"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('world.spawn("java", null, 0, MPI.INFO_NULL, 0, null)', "0 processes of java"),
        ("world.spawn(null, null, 1, MPI.INFO_NULL, 0, null)", "the command is null"),
        ('world.spawn("java", null, 1, MPI.INFO_NULL, size, null)', "spawn: there is no root 1"),
        ('world.spawn("/nowhere/program", null, 1, MPI.INFO_NULL, 0, null)', "/nowhere/program"),
        ("world.accept(null, 0)", "the port is null"),
        ('Intracomm.lookupName("nothing of this name")', "nothing of this name"),
    ],
)
def test_what_cannot_be_started(java, call, words):
    outcome = java.body(f"try {{ {call}; }} catch (MPIException e) {{ System.out.println(e.getMessage()); }}", n=1)
    assert words in outcome.out


@pytest.mark.parametrize(
    "call", ['world.spawn("java", null, 1, MPI.INFO_NULL, 0, null)', 'world.accept("x", 0)', "Intracomm.openPort()"]
)
def test_ranks_that_are_threads_start_nothing(java, call):
    outcome = java.body(
        f"""
        if (!Intercomm.getParent().isNull()) throw new AssertionError();
        try {{ {call}; }} catch (MPIException e) {{ System.out.println(e.getMessage()); }}
        """,
        n=1,
        options=["--threads"],
    )
    assert "this needs the MPI library" in outcome.out
    assert "start all ranks with the launcher" in outcome.out
