import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import mpi.Cartcomm;
import mpi.Datatype;
import mpi.Group;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Op;
import mpi.Prequest;
import mpi.Request;
import mpi.Status;
import mpi.User_function;

/** What programs for mpiJava and MPJ Express rely on beside what MPI promises. */
public class Rules {
    static Intracomm world;
    static int rank;
    static int size;
    static int next;
    static int previous;

    static int sum() {
        return size * (size - 1) / 2;
    }

    static void sameArray() {
        int root = size - 1;
        int[] both = {rank, 1};
        world.Reduce(both, 0, both, 0, 2, MPI.INT, MPI.SUM, root);
        Check.same(rank == root ? new int[] {sum(), size} : new int[] {rank, 1}, both, "Reduce");
        both = new int[] {rank, 1};
        world.Allreduce(both, 0, both, 0, 2, MPI.INT, MPI.SUM);
        Check.same(new int[] {sum(), size}, both, "Allreduce");
        both = new int[] {rank, 1};
        world.Scan(both, 0, both, 0, 2, MPI.INT, MPI.SUM);
        Check.same(new int[] {rank * (rank + 1) / 2, rank + 1}, both, "Scan");
        int[] parts = new int[size];
        Arrays.setAll(parts, i -> i);
        int[] counts = new int[size];
        Arrays.fill(counts, 1);
        world.Reduce_scatter(parts, 0, parts, 0, counts, MPI.INT, MPI.SUM);
        Check.same(size * rank, parts[0], "Reduce_scatter");
        Object[] words = {"" + rank};
        world.Allreduce(words, 0, words, 0, 1, MPI.OBJECT, new Op(new Longest(), true));
        Check.same(1, ((String) words[0]).length(), "Allreduce of objects");
    }

    static final class Longest extends User_function {
        @Override
        public void Call(Object in, int at, Object inout, int to, int count, Datatype type) {
            for (int i = 0; i < count; i++) {
                String mine = (String) ((Object[]) inout)[to + i];
                String other = (String) ((Object[]) in)[at + i];
                ((Object[]) inout)[to + i] = other.length() > mine.length() ? other : mine;
            }
        }
    }

    static void rows() {
        double[][] matrix = new double[3][4];
        matrix[2][3] = rank == 0 ? 7 : -1;
        double[] old = matrix[2];
        world.Bcast(matrix, 0, 3, MPI.OBJECT, 0);
        Check.same(7.0, matrix[2][3], "Bcast of rows");
        Check.that(rank == 0 || matrix[2] != old, "fresh rows");
        double[][] all = new double[size][];
        world.Allgather(new double[][] {{rank, 0.5}}, 0, 1, MPI.OBJECT, all, 0, 1, MPI.OBJECT);
        Check.same(new double[] {size - 1, 0.5}, all[size - 1], "Allgather of rows");
        int[][] mine = new int[1][];
        int[][] parts = new int[size][];
        Arrays.setAll(parts, i -> new int[i + 1]);
        world.Scatter(parts, 0, 1, MPI.OBJECT, mine, 0, 1, MPI.OBJECT, 0);
        Check.same(rank + 1, mine[0].length, "Scatter of rows");
        world.Alltoall(parts, 0, 1, MPI.OBJECT, parts, 0, 1, MPI.OBJECT);
        Check.same(rank + 1, parts[size - 1].length, "Alltoall of rows, in one array");
    }

    static void untouched() {
        int root = size - 1;
        int[] received = new int[size + 1];
        Arrays.fill(received, -7);
        int[] before = received.clone();
        int[] sent = {rank};
        world.Gather(sent, 0, 1, MPI.INT, received, 1, 1, MPI.INT, root);
        if (rank == root) {
            Check.same(-7, received[0], "before the offset of Gather");
            Check.same(root, received[size], "Gather");
        } else {
            Check.same(before, received, "the receive buffer of Gather");
        }
        int[] parts = new int[size];
        Arrays.setAll(parts, i -> 10 * rank + i);
        int[] copy = parts.clone();
        int[] landing = {-7, -7, -7};
        world.Scatter(parts, 0, 1, MPI.INT, landing, 1, 1, MPI.INT, root);
        Check.same(copy, parts, "the send buffer of Scatter");
        Check.same(new int[] {-7, 10 * root + rank, -7}, landing, "the offset of Scatter");
        int[] result = {-7};
        world.Reduce(sent, 0, result, 0, 1, MPI.INT, MPI.SUM, root);
        Check.same(rank == root ? sum() : -7, result[0], "the receive buffer of Reduce");
        int[] counts = new int[size];
        Arrays.fill(counts, 1);
        world.Reduce_scatter(parts, 0, result, 0, counts, MPI.INT, MPI.MAX);
        Check.same(copy, parts, "the send buffer of Reduce_scatter");
        Check.same(10 * root + rank, result[0], "Reduce_scatter");
    }

    /** Pairs at every third element; displacements count the extent of 2, from offset 1 on. */
    static void displacements() {
        Datatype pair = Datatype.Contiguous(2, MPI.INT);
        int[] counts = new int[size];
        int[] displs = new int[size];
        Arrays.fill(counts, 1);
        Arrays.setAll(displs, i -> size - 1 - i);
        int[] received = new int[2 * size + 1];
        world.Allgatherv(new int[] {rank, rank + 100}, 0, 1, pair, received, 1, counts, displs, pair);
        for (int i = 0; i < size; i++) {
            Check.same(size - 1 - i, received[1 + 2 * i], "first of a pair");
            Check.same(size - 1 - i + 100, received[2 + 2 * i], "second of a pair");
        }
        Check.same(0, received[0], "before the offset");
    }

    static void nothing() {
        for (Object buffer : new Object[] {null, new int[0], new int[3]}) {
            Request request = world.Isend(buffer, 0, 0, MPI.INT, next, 1);
            Check.same(0, world.Recv(buffer, 0, 0, MPI.INT, previous, 1).Get_count(MPI.INT), "no items");
            request.Wait();
            world.Bcast(buffer, 0, 0, MPI.INT, 0);
            world.Allreduce(buffer, 0, buffer, 0, 0, MPI.INT, MPI.SUM);
            world.Gather(buffer, 0, 0, MPI.INT, buffer, 0, 0, MPI.INT, 0);
        }
        world.Bcast(new Object[0], 0, 0, MPI.OBJECT, 0);
    }

    /** Both send before they receive. */
    static void shortSends() {
        byte[] sent = new byte[4096];
        sent[4095] = (byte) rank;
        world.Send(sent, 0, 4096, MPI.BYTE, next, 2);
        world.Recv(sent, 0, 4096, MPI.BYTE, previous, 2);
        Check.same((byte) previous, sent[4095], "sent before it was received");
    }

    static void persistentModes() {
        int[] sent = new int[10];
        int[] got = new int[10];
        Prequest[] synchronous = {
            world.Recv_init(got, 0, 10, MPI.INT, previous, 3), world.Ssend_init(sent, 0, 10, MPI.INT, next, 3)
        };
        Prequest[] ready = {
            world.Recv_init(got, 0, 10, MPI.INT, previous, 4), world.Rsend_init(sent, 0, 10, MPI.INT, next, 4)
        };
        for (int round = 0; round < 2; round++) {
            for (Prequest[] pair : new Prequest[][] {synchronous, ready}) {
                sent[9] = 100 * round + rank;
                pair[0].Start();
                world.Barrier();
                pair[1].Start();
                Request.Waitall(pair);
                Check.same(100 * round + previous, got[9], "round " + round);
            }
        }
    }

    static void serialised() {
        Object[] things = {"a", 5, null, "b"};
        Datatype second = Datatype.Vector(2, 1, 2, MPI.OBJECT);
        byte[] bytes = world.Object_Serialize(things, 1, 1, second);
        Object[] got = new Object[3];
        world.Object_Deserialize(got, bytes, 0, 1, second);
        Check.same(new Object[] {5, null, "b"}, got, "Object_Deserialize");
        Check.fails(
                () -> world.Object_Serialize(new Object[] {new Thread()}, 0, 1, MPI.OBJECT), "Object_Serialize",
                "Serializable");
        Check.fails(() -> world.Object_Deserialize(got, new byte[] {1, 2}, 0, 1, MPI.OBJECT), "cannot be read");
        Check.fails(() -> world.Object_Serialize(new int[1], 0, 1, MPI.INT), "Object_Serialize", "MPI.INT");
    }

    static void spellings() {
        Group firstOnly = world.Group().Incl(new int[] {0});
        Check.same(rank == 0, world.Creat(firstOnly) != null, "Creat");
    }

    /** By the clock of the host, which its processes share. */
    static void barrier() {
        long[] times = {System.nanoTime(), 0};
        world.Barrier();
        times[1] = System.nanoTime();
        long[] all = new long[2 * size];
        world.Allgather(times, 0, 2, MPI.LONG, all, 0, 2, MPI.LONG);
        for (int i = 0; i < size; i++) {
            Check.that(all[2 * i] - times[1] <= 0, "rank " + i + " came after this rank had gone on");
        }
    }

    static void reduceLocal() {
        double[] inout = {1, 2, 3};
        world.Reduce_local(new double[] {10, 20, 30}, inout, 2, MPI.DOUBLE, MPI.SUM);
        Check.same(new double[] {11, 22, 3}, inout, "Reduce_local");
        String[] words = {"a"};
        world.Reduce_local(new String[] {"long"}, words, 1, MPI.OBJECT, new Op(new Longest(), true));
        Check.same("long", words[0], "Reduce_local of the program's operation");
        boolean[] flags = {true, false};
        world.Reduce_local(new boolean[] {true, true}, flags, 2, MPI.BOOLEAN, MPI.LAND);
        Check.same(new boolean[] {true, false}, flags, "Reduce_local of booleans");
    }

    static void coordinates() {
        int[] dims = {0, 0, 0};
        Cartcomm.Dims_create(size, dims);
        Cartcomm grid = world.Create_cart(dims, new boolean[3], false);
        for (int r = 0; r < size; r++) {
            Check.same(r, grid.Rank(grid.Coords(r)), "Rank of Coords");
        }
        Check.fails(() -> grid.Coords(size), "no rank " + size);
        Check.fails(() -> grid.Shift(3, 1), "no dimension 3");
    }

    static void blocks() {
        int[] from = {0, 1, 2, 3, 4, 5, 6, 7};
        Datatype pair = Datatype.Contiguous(2, MPI.INT);
        Datatype odd = Datatype.Hindexed(new int[] {1, 2}, new int[] {5, 0}, pair);
        odd.Commit();
        int[] got = new int[6];
        Request request = world.Isend(from, 0, 1, odd, rank, 6);
        Status status = world.Recv(got, 0, 6, MPI.INT, rank, 6);
        request.Wait();
        Check.same(new int[] {5, 6, 0, 1, 2, 3}, got, "Hindexed");
        Check.same(1, status.Get_count(odd), "one item");
        odd.free();
    }

    static void counts() {
        Datatype pair = Datatype.Contiguous(2, MPI.LONG);
        Request request = world.Isend(new long[] {1, 2, 3, 4}, 0, 2, pair, rank, 7);
        Status status = world.Recv(new long[6], 0, 3, pair, rank, 7);
        request.Wait();
        Check.same(2, status.count, "items");
        Check.same(4, status.numEls, "elements");
        Check.same(2, status.Get_count(pair), "items");
        Check.same(4, status.Get_elements(pair), "elements");
        Check.same(8, status.Get_count(MPI.INT), "as another type");
    }

    static void operationsOnObjects() {
        for (Op op : new Op[] {MPI.SUM, MPI.MAX, MPI.LAND, MPI.BOR}) {
            Check.fails(() -> world.Allreduce(new Object[1], 0, new Object[1], 0, 1, MPI.OBJECT, op), "MPI.OBJECT");
        }
    }

    /** Pairs behind different offsets; the lowest index of equal values. */
    static void located() {
        int last = size - 1;
        short[] shorts = new short[2];
        world.Allreduce(new short[] {9, (short) -rank, (short) rank}, 1, shorts, 0, 1, MPI.SHORT2, MPI.MINLOC);
        Check.same(new short[] {(short) -last, (short) last}, shorts, "SHORT2");
        int[] ints = new int[4];
        world.Allreduce(new int[] {3, rank}, 0, ints, 2, 1, MPI.INT2, MPI.MAXLOC);
        Check.same(new int[] {0, 0, 3, 0}, ints, "INT2");
        long[] longs = new long[2];
        world.Allreduce(new long[] {1L << 40 | rank, rank}, 0, longs, 0, 1, MPI.LONG2, MPI.MAXLOC);
        Check.same(new long[] {1L << 40 | last, last}, longs, "LONG2");
        float[] floats = new float[2];
        world.Allreduce(new float[] {0.5f * rank, rank}, 0, floats, 0, 1, MPI.FLOAT2, MPI.MAXLOC);
        Check.same(new float[] {0.5f * last, last}, floats, "FLOAT2");
        double[] doubles = new double[3];
        world.Reduce(new double[] {-0.5 * rank, rank}, 0, doubles, 1, 1, MPI.DOUBLE2, MPI.MINLOC, last);
        Check.same(rank == last ? new double[] {0, -0.5 * last, last} : new double[3], doubles, "DOUBLE2");
        Check.fails(() -> world.Allreduce(new int[2], 0, new int[2], 0, 2, MPI.INT, MPI.MINLOC), "MINLOC", "MPI.INT");
    }

    /** Four threads of each rank send and receive, each with its own tag. */
    static void threads() throws InterruptedException {
        AtomicReference<Throwable> problem = new AtomicReference<>();
        Thread[] threads = new Thread[4];
        for (int t = 0; t < threads.length; t++) {
            int tag = 20 + t;
            threads[t] = new Thread(() -> {
                for (int i = 0; i < 50; i++) {
                    int[] got = new int[1];
                    world.Sendrecv(
                            new int[] {100 * i + tag}, 0, 1, MPI.INT, next, tag, got, 0, 1, MPI.INT, previous, tag);
                    Check.same(100 * i + tag, got[0], "a message of thread " + tag);
                }
            });
            threads[t].setUncaughtExceptionHandler((thread, thrown) -> problem.set(thrown));
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Check.that(problem.get() == null, "" + problem.get());
    }

    public static void main(String[] args) throws InterruptedException {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        next = (rank + 1) % size;
        previous = (rank + size - 1) % size;
        sameArray();
        rows();
        untouched();
        displacements();
        nothing();
        shortSends();
        persistentModes();
        serialised();
        spellings();
        barrier();
        reduceLocal();
        coordinates();
        blocks();
        counts();
        operationsOnObjects();
        located();
        threads();
        Check.end();
    }
}
