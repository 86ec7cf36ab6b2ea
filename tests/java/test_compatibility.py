"""Forms of programs that other implementations take: Open MPI's examples, MPJ Express's arguments, Init again."""

import pytest
from conftest import PROGRAMS

AGAIN = """
import mpi.*;
public class Again {
    public static void main(String[] args) {
        for (int i = 0; i < 10; i++) {
            MPI.Init(args);
            Intracomm copy = (Intracomm) MPI.COMM_WORLD.clone();
            int[] sum = {1};
            copy.Allreduce(sum, 0, sum, 0, 1, MPI.INT, MPI.SUM);
            Object[] text = {"round " + i + " of " + sum[0]};
            copy.Bcast(text, 0, 1, MPI.OBJECT, 0);
            int rank = MPI.COMM_WORLD.Rank();
            copy.Free();
            MPI.Finalize();
            if (rank == 0) System.out.println(text[0]);
        }
    }
}
"""

ARGUMENTS = """
import mpi.*;
public class Main {
    public static void main(String[] args) {
        String[] own = MPI.Init(args);
        int rank = MPI.COMM_WORLD.Rank();
        if (!args[0].equals("" + rank) || !args[1].equals("" + MPI.COMM_WORLD.Size())) throw new AssertionError();
        System.out.println(rank + " " + args[3] + args.length + " " + String.join("+", own));
        MPI.Finalize();
    }
}
"""

RANKS = [[], ["--threads"]]


@pytest.mark.parametrize("options", RANKS)
def test_examples_of_open_mpi(java, options):
    outcome = java.run(PROGRAMS / "openmpi" / "Ring.java", n=3, options=options)
    assert sorted(outcome.out.splitlines()) == [f"rank {rank} of 3 has 0" for rank in range(3)]
    outcome = java.run(PROGRAMS / "openmpi" / "Connectivity.java", "-v", n=3, options=options)
    assert sorted(outcome.out.splitlines()) == ["0 and 1", "0 and 2", "1 and 2", "3 processes are connected"]


@pytest.mark.parametrize("options", RANKS)
def test_init_after_finalize(java, options):
    outcome = java.run(java.write(AGAIN, "Again"), n=3, options=options)
    assert outcome.out.splitlines() == [f"round {i} of 3" for i in range(10)]
    assert outcome.err == ""


@pytest.mark.parametrize("options", RANKS)
def test_arguments_in_the_form_of_mpj_express(java, options):
    outcome = java.run(java.write(ARGUMENTS), "a", "b", options=["--dialect", "mpj", *options])
    assert sorted(outcome.out.splitlines()) == ["0 a5 a+b", "1 a5 a+b"]


@pytest.mark.parametrize("options", RANKS)
def test_packages_that_programs_of_mpj_express_import(java, options):
    java.write(
        """
        import mpi.*;
        import mpjbuf.*;
        import mpjdev.*;
        public class Main {
            public static void main(String[] args) {
                MPI.Init(args);
                Comm world = MPI.COMM_WORLD;
                Status status = world.Sendrecv(new int[1], 0, 1, MPI.INT, world.Rank(), 0,
                                               new int[1], 0, 1, MPI.INT, world.Rank(), 0);
                System.out.println(status.Get_count(MPI.INT));
                MPI.Finalize();
            }
        }
        """
    )
    assert java.run("Main.java", options=options).out == "1\n1\n"


@pytest.mark.parametrize("options", RANKS)
def test_sends_that_mpj_express_stores(java, options):
    """Both ranks send, and receive afterwards."""
    outcome = java.body(
        """
        for (int n : new int[] {1, 1024, 16 * 1024}) {
            double[] sent = new double[n];
            sent[n - 1] = rank + n;
            for (int i = 0; i < 5; i++) world.Send(sent, 0, n, MPI.DOUBLE, 1 - rank, i);
            Arrays.fill(sent, 0);
            for (int i = 0; i < 5; i++) {
                double[] got = new double[n];
                world.Recv(got, 0, n, MPI.DOUBLE, 1 - rank, i);
                if (got[n - 1] != 1 - rank + n) throw new AssertionError(got[n - 1]);
            }
            Object[] text = {"x".repeat(n)};
            world.Send(text, 0, 1, MPI.OBJECT, 1 - rank, 9);
            world.Recv(text, 0, 1, MPI.OBJECT, 1 - rank, 9);
        }
        world.Send(new byte[100000], 0, 100000, MPI.BYTE, 1 - rank, 10);
        System.out.println("sent");
        world.Recv(new byte[100000], 0, 100000, MPI.BYTE, 1 - rank, 10);
        """,
        options=["--dialect", "mpj", *options],
    )
    assert outcome.out == "sent\nsent\n"
    assert outcome.err == ""
