import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Request;

/** What is wrong is said, before anything is sent; the program can go on. */
public class Mistakes {
    static Intracomm world;

    static void arguments(int rank, int size) {
        int[] ints = new int[4];
        Check.fails(() -> world.Send(ints, 0, 4, MPI.DOUBLE, 0, 0), "Send", "int[]", "MPI.DOUBLE");
        Check.fails(() -> world.Send(ints, 0, 4, MPI.OBJECT, 0, 0), "Send", "int[]", "array of objects");
        Check.fails(() -> world.Send("text", 0, 4, MPI.CHAR, 0, 0), "java.lang.String", "MPI.CHAR");
        Check.fails(() -> world.Send(ints, 2, 3, MPI.INT, 0, 0), "Send", "elements 2 to 4", "buffer has 4");
        Check.fails(() -> world.Send(ints, -1, 1, MPI.INT, 0, 0), "offset is -1");
        Check.fails(() -> world.Send(ints, 0, -1, MPI.INT, 0, 0), "count is -1");
        Check.fails(() -> world.Send(null, 0, 1, MPI.INT, 0, 0), "buffer is null");
        Check.fails(() -> world.Send(ints, 0, 1, null, 0, 0), "datatype is null");
        Check.fails(() -> world.Send(ints, 0, 1, MPI.INT, size, 0), "no destination " + size);
        Check.fails(() -> world.Send(ints, 0, 1, MPI.INT, MPI.ANY_SOURCE, 0), "no destination -1");
        Check.fails(() -> world.Send(ints, 0, 1, MPI.INT, 0, -5), "tag is -5");
        Check.fails(() -> world.Send(ints, 0, 1, MPI.INT, 0, MPI.ANY_TAG), "tag is -1");
        Check.fails(() -> world.Recv(ints, 0, 1, MPI.INT, size, 0), "no source " + size);
        Check.fails(() -> world.Recv(ints, 5, 1, MPI.INT, 0, 0), "Recv", "offset is 5");
        Check.fails(() -> world.Irecv(new float[1], 0, 1, MPI.INT, 0, 0), "Irecv", "float[]");
        Datatype far = Datatype.Vector(2, 1, 10, MPI.INT);
        Check.fails(() -> world.Send(ints, 0, 1, far, 0, 0), "elements 0 to 10");
        Check.fails(() -> world.Reduce(ints, 0, ints, 0, 1, MPI.INT, null, 0), "operation is null");
        Check.fails(() -> world.Gatherv(ints, 0, 1, MPI.INT, ints, 0, null, null, MPI.INT, rank), "recvcounts");
        Check.fails(() -> new mpi.Op((mpi.User_function) null, true), "function is null");
        Check.fails(() -> MPI.Init(new String[0]), "MPI.Init was called before");
    }

    static void objects() {
        int rank = world.Rank();
        Check.fails(
                () -> world.Send(new Object[] {new Thread()}, 0, 1, MPI.OBJECT, rank, 0), "java.lang.Thread",
                "Serializable");
        Request request = world.Isend(new Object[] {"text"}, 0, 1, MPI.OBJECT, rank, 0);
        Check.fails(() -> world.Recv(new Integer[1], 0, 1, MPI.OBJECT, rank, 0), "java.lang.String", "Integer[]");
        request.Wait();
        request = world.Isend(new Object[] {1, 2}, 0, 2, MPI.OBJECT, rank, 0);
        Check.fails(() -> world.Recv(new Object[2], 0, 1, MPI.OBJECT, rank, 0), "2 objects", "room for 1");
        request.Wait();
    }

    static void truncation() {
        int rank = world.Rank();
        for (int round = 0; round < 2; round++) {
            Request request = world.Isend(new int[100], 0, 100, MPI.INT, rank, 0);
            int[] small = new int[10];
            try {
                if (round == 0) {
                    world.Recv(small, 0, 10, MPI.INT, rank, 0);
                } else {
                    world.Irecv(small, 0, 1000, MPI.INT, rank, 0).Wait();
                }
                throw new AssertionError("a message that is too long was received");
            } catch (MPIException e) {
                Check.same(15, e.getErrorClass(), "error class of " + e.getMessage());
            }
            request.Wait();
        }
    }

    public static void main(String[] args) {
        Check.fails(() -> MPI.Get_processor_name(), "MPI.Init has not been called");
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        arguments(world.Rank(), world.Size());
        objects();
        truncation();
        Check.end();
    }
}
