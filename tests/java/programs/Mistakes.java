import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import mpi.Cartcomm;
import mpi.Comm;
import mpi.Datatype;
import mpi.Group;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Message;
import mpi.Op;
import mpi.Prequest;
import mpi.Request;
import mpi.Status;
import mpi.User_function;

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

    /** What is null where something is needed. */
    static void nulls(int rank) {
        int[] ints = new int[4];
        Check.fails(() -> world.Recv(null, 0, 1, MPI.INT, rank, 0), "Recv", "buffer is null");
        Check.fails(() -> world.Bcast(null, 0, 1, MPI.INT, 0), "Bcast", "buffer is null");
        Check.fails(() -> world.Gather(null, 0, 1, MPI.INT, ints, 0, 1, MPI.INT, rank), "Gather", "buffer is null");
        Check.fails(() -> world.Gather(ints, 0, 1, MPI.INT, null, 0, 1, MPI.INT, rank), "Gather", "buffer is null");
        Check.fails(() -> world.Scatter(null, 0, 1, MPI.INT, ints, 0, 1, MPI.INT, rank), "Scatter", "buffer is null");
        Check.fails(() -> world.Allreduce(ints, 0, null, 0, 1, MPI.INT, MPI.SUM), "Allreduce", "buffer is null");
        Check.fails(() -> world.Scan(null, 0, ints, 0, 1, MPI.INT, MPI.SUM), "Scan", "buffer is null");
        Check.fails(() -> world.Send(null, 0, 1, MPI.OBJECT, rank, 0), "Send", "buffer is null");
        Check.fails(() -> world.Send_init(null, 0, 1, MPI.INT, rank, 0), "Send_init", "buffer is null");
        Check.fails(() -> world.Allgather(ints, 0, 1, null, ints, 0, 1, MPI.INT), "Allgather", "datatype is null");
        Check.fails(() -> world.Gather(ints, 0, 1, null, ints, 0, 1, MPI.INT, rank), "Gather", "datatype is null");
        Check.fails(() -> world.Allreduce(ints, 0, ints, 0, 1, null, MPI.SUM), "Allreduce", "datatype is null");
        Check.fails(
                () -> world.Sendrecv(ints, 0, 1, null, rank, 0, ints, 0, 1, MPI.INT, rank, 0), "Sendrecv",
                "datatype is null");
        Check.fails(() -> world.Pack(ints, 0, 1, MPI.INT, null, 0), "Pack", "outbuf is null");
        Check.fails(() -> world.Unpack(null, 0, ints, 0, 1, MPI.INT), "Unpack", "inbuf is null");
        Check.fails(() -> new Status().Get_count(null), "Get_count", "datatype is null");
        Check.fails(() -> Datatype.Contiguous(2, null), "Contiguous", "datatype is null");
        Check.fails(() -> Datatype.Indexed(null, new int[1], MPI.INT), "Indexed", "blocklengths is null");
        Check.fails(
                () -> Datatype.Struct(new int[1], new int[1], new Datatype[1]), "Struct", "datatype is null");
        Check.fails(() -> world.Group().Incl(null), "Incl", "ranks is null");
        Check.fails(() -> world.Group().Range_incl(new int[1][]), "Range_incl", "null");
        Check.fails(() -> Group.Union(world.Group(), null), "Union", "a group is null");
        Check.fails(() -> world.Create(null), "Create", "the group is null");
        Check.fails(() -> Comm.Compare(world, MPI.COMM_NULL), "Compare", "null");
        Check.fails(() -> world.Create_intercomm(null, 0, 0, 0), "Create_intercomm", "null");
        Check.fails(() -> world.Create_cart(null, new boolean[1], false), "Create_cart", "dims is null");
        Check.fails(() -> world.Create_graph(new int[1], null, false), "edges is null");
        Check.fails(() -> Cartcomm.Dims_create(4, null), "Dims_create", "dims is null");
        Check.fails(() -> Request.Waitall(null), "Waitall", "requests is null");
        Check.fails(() -> Prequest.Startall(new Prequest[1]), "Startall", "a request is null");
    }

    /** What can only be read is refused before a message is taken for it. */
    static void readOnly(int rank, int size) throws IOException {
        Path file = Files.createTempFile("limosa-read-only", ".bin");
        Files.write(file, new byte[64]);
        try (FileChannel channel = FileChannel.open(file)) {
            MemorySegment mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, 64, Arena.ofAuto());
            for (Object into : new Object[] {
                channel.map(FileChannel.MapMode.READ_ONLY, 0, 64), ByteBuffer.allocateDirect(64).asReadOnlyBuffer(),
                ByteBuffer.allocate(64).asReadOnlyBuffer(), mapped, MemorySegment.ofArray(new byte[64]).asReadOnly()
            }) {
                readOnly(rank, size, into);
            }
            world.Sendrecv(mapped, 0, 64, MPI.BYTE, rank, 0, new byte[64], 0, 64, MPI.BYTE, rank, 0);
        } finally {
            Files.delete(file);
        }
    }

    static void readOnly(int rank, int size, Object into) {
        Request sent = world.Isend(new byte[] {5}, 0, 1, MPI.BYTE, rank, 3);
        Datatype gaps = Datatype.Vector(2, 1, 2, MPI.BYTE);
        for (Datatype type : new Datatype[] {MPI.BYTE, gaps}) {
            refused("Recv", () -> world.Recv(into, 0, 1, type, rank, 3));
            refused("Irecv", () -> world.Irecv(into, 0, 1, type, rank, 3));
            refused("Recv_init", () -> world.Recv_init(into, 0, 1, type, rank, 3));
        }
        byte[] from = new byte[2 * size];
        refused("Sendrecv", () -> world.Sendrecv(from, 0, 1, MPI.BYTE, rank, 4, into, 0, 1, MPI.BYTE, rank, 3));
        Message message = new Message();
        message.mProbe(rank, 3, world);
        refused("mRecv", () -> message.mRecv(into, 1, MPI.BYTE));
        byte[] received = new byte[1];
        message.mRecv(received, 1, MPI.BYTE);
        Check.same((byte) 5, received[0], "the message is there after all refusals");
        sent.Wait();
        refused("Unpack", () -> world.Unpack(from, 0, into, 0, 1, MPI.BYTE));
        refused("Gather", () -> world.Gather(from, 0, 1, MPI.BYTE, into, 0, 1, MPI.BYTE, rank));
        int[] counts = new int[size];
        refused("Gatherv", () -> world.Gatherv(from, 0, 0, MPI.BYTE, into, 0, counts, counts, MPI.BYTE, rank));
        refused("Scatter", () -> world.Scatter(from, 0, 1, MPI.BYTE, into, 0, 1, MPI.BYTE, rank));
        refused("Scatterv", () -> world.Scatterv(from, 0, counts, counts, MPI.BYTE, into, 0, 0, MPI.BYTE, rank));
        refused("Allgather", () -> world.Allgather(from, 0, 1, MPI.BYTE, into, 0, 1, MPI.BYTE));
        refused("Allgatherv", () -> world.Allgatherv(from, 0, 0, MPI.BYTE, into, 0, counts, counts, MPI.BYTE));
        refused("Alltoall", () -> world.Alltoall(from, 0, 1, MPI.BYTE, into, 0, 1, MPI.BYTE));
        refused("Alltoallv", () -> world.Alltoallv(
                from, 0, counts, counts, MPI.BYTE, into, 0, counts, counts, MPI.BYTE));
        Op own = new Op(new User_function() {
            @Override
            public void Call(Object in, int inOffset, Object inout, int inoutOffset, int count, Datatype type) {}
        }, true);
        for (Op op : new Op[] {MPI.SUM, own}) {
            refused("Reduce", () -> world.Reduce(from, 0, into, 0, 1, MPI.BYTE, op, rank));
            refused("Allreduce", () -> world.Allreduce(from, 0, into, 0, 1, MPI.BYTE, op));
            refused("Reduce_scatter", () -> world.Reduce_scatter(from, 0, into, 0, counts, MPI.BYTE, op));
            refused("Scan", () -> world.Scan(from, 0, into, 0, 1, MPI.BYTE, op));
            refused("Reduce_local", () -> world.Reduce_local(from, into, 1, MPI.BYTE, op));
        }
        if (size > 1) {
            refused("Bcast", () -> world.Bcast(into, 0, 1, MPI.BYTE, (rank + 1) % size));
        }
    }

    static void refused(String function, Runnable statement) {
        Check.fails(statement, function + ": the buffer is read-only");
    }

    static void objects() {
        int rank = world.Rank();
        Check.fails(
                () -> world.Send(new Object[] {new Thread()}, 0, 1, MPI.OBJECT, rank, 0), "java.lang.Thread",
                "Serializable");
        Object[] hidden = {java.util.List.of(new Object[] {new Thread()})};
        Check.fails(() -> world.Bcast(hidden, 0, 1, MPI.OBJECT, rank), "Bcast", "java.lang.Thread", "Serializable");
        Check.fails(() -> world.Gather(hidden, 0, 1, MPI.OBJECT, null, 0, 1, MPI.OBJECT, rank), "java.lang.Thread");
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

    public static void main(String[] args) throws IOException {
        Check.fails(() -> MPI.Get_processor_name(), "MPI.Init has not been called");
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        arguments(world.Rank(), world.Size());
        nulls(world.Rank());
        readOnly(world.Rank(), world.Size());
        objects();
        truncation();
        Check.end();
    }
}
