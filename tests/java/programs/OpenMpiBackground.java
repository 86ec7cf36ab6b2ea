import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.util.Arrays;
import mpi.*;

/** Open MPI's collective operations that go on after their call, with arrays and direct buffers. */
public class OpenMpiBackground {
    static Intracomm world;
    static int rank;
    static int size;
    static int root;

    static int[] filled(int length, int first) {
        int[] values = new int[length];
        Arrays.setAll(values, i -> first + i);
        return values;
    }

    static int[] of(IntBuffer buffer) {
        int[] values = new int[buffer.capacity()];
        buffer.get(0, values);
        return values;
    }

    static IntBuffer direct(int... values) {
        return MPI.newIntBuffer(values.length).put(0, values);
    }

    /** Messages go on between the start and the end. */
    static void barrierAndBcast() throws MPIException {
        Request barrier = world.iBarrier();
        int[] values = rank == root ? filled(1000, 5) : new int[1000];
        boolean[] flags = {rank == root, false};
        Request bcast = world.iBcast(values, 1000, MPI.INT, root);
        Request other = world.iBcast(flags, 2, MPI.BOOLEAN, root);
        int[] got = new int[1];
        world.sendRecv(
                new int[] {rank}, 1, MPI.INT, (rank + 1) % size, 1, got, 1, MPI.INT, (rank + size - 1) % size, 1);
        Request.waitAll(new Request[] {barrier, bcast, other});
        Check.same(filled(1000, 5), values, "iBcast");
        Check.same(new boolean[] {true, false}, flags, "iBcast of booleans");
        Check.that(barrier.isNull(), "a barrier that is complete");
        Request again = world.iBarrier();
        while (!again.test()) {
            Thread.onSpinWait();
        }
        IntBuffer buffer = rank == root ? direct(1, 2, 3) : MPI.newIntBuffer(3);
        Request.waitAny(new Request[] {null, world.iBcast(MPI.slice(buffer, 1), 2, MPI.INT, root)});
        Check.same(3, buffer.get(2), "iBcast of a direct buffer");
    }

    /** An arena cannot be closed while an operation uses its memory. */
    static void arenas() throws MPIException {
        Arena arena = Arena.ofShared();
        IntBuffer memory = arena.allocate(ValueLayout.JAVA_INT, 2).asByteBuffer().order(ByteOrder.nativeOrder())
                .asIntBuffer();
        Request all = world.iAllReduce(new int[] {1}, memory, 1, MPI.INT, MPI.SUM);
        Request one = world.iReduce(MPI.slice(memory, 1), new int[1], 1, MPI.INT, MPI.SUM, root);
        Check.throwsA(IllegalStateException.class, arena::close);
        all.waitFor();
        Check.throwsA(IllegalStateException.class, arena::close);
        one.waitFor();
        Check.same(size, memory.get(0), "iAllReduce into an arena");
        arena.close();
    }

    static void parts() throws MPIException {
        int[] all = new int[2 * size];
        world.iGather(new int[] {rank, -rank}, 2, MPI.INT, all, 2, MPI.INT, root).waitFor();
        Check.same(rank == root ? -root : 0, all[2 * size - 1], "iGather");
        int[] mine = new int[2];
        world.iScatter(all, 2, MPI.INT, mine, 2, MPI.INT, root).waitFor();
        Check.same(new int[] {rank, -rank}, mine, "iScatter");
        world.iAllGather(new int[] {rank, 7}, 2, MPI.INT, all, 2, MPI.INT).waitFor();
        for (int i = 0; i < size; i++) {
            Check.same(i, all[2 * i], "iAllGather");
        }
        int[] received = new int[size];
        world.iAllToAll(filled(size, 100 * rank), 1, MPI.INT, received, 1, MPI.INT).waitFor();
        for (int i = 0; i < size; i++) {
            Check.same(100 * i + rank, received[i], "iAllToAll");
        }
        IntBuffer same = direct(filled(size, 100 * rank));
        world.iAllToAll(same, 1, MPI.INT, same, 1, MPI.INT).waitFor();
        Check.same(received, of(same), "iAllToAll in one direct buffer");
    }

    /** Rank r has r + 1 items with a gap of one behind them, which stays as it is. */
    static void vectors() throws MPIException {
        int[] counts = filled(size, 1);
        int[] displs = new int[size];
        for (int r = 1; r < size; r++) {
            displs[r] = displs[r - 1] + counts[r - 1] + 1;
        }
        int total = displs[size - 1] + size + 1;
        int[] expected = new int[total];
        Arrays.fill(expected, -1);
        for (int r = 0; r < size; r++) {
            System.arraycopy(filled(r + 1, 10 * r), 0, expected, displs[r], r + 1);
        }
        int[] mine = filled(rank + 1, 10 * rank);
        int[] received = new int[total];
        Arrays.fill(received, -1);
        world.iAllGatherv(mine, rank + 1, MPI.INT, received, counts, displs, MPI.INT).waitFor();
        Check.same(expected, received, "iAllGatherv");
        Arrays.fill(received, -1);
        world.iGatherv(mine, rank + 1, MPI.INT, received, counts, displs, MPI.INT, root).waitFor();
        Check.same(rank == root ? expected : received, received, "iGatherv");
        int[] part = new int[rank + 1];
        world.iScatterv(received, counts, displs, MPI.INT, part, rank + 1, MPI.INT, root).waitFor();
        Check.same(mine, part, "iScatterv");
        int[] one = new int[size];
        Arrays.fill(one, 1);
        int[] turned = new int[size];
        Arrays.setAll(turned, i -> size - 1 - i);
        int[] got = new int[size];
        world.iAllToAllv(filled(size, 100 * rank), one, turned, MPI.INT, got, one, turned, MPI.INT).waitFor();
        for (int i = 0; i < size; i++) {
            Check.same(100 * i + turned[rank], got[turned[i]], "iAllToAllv");
        }
    }

    static void inPlace() throws MPIException {
        for (boolean isDirect : new boolean[] {false, true}) {
            int[] array = new int[size];
            array[rank] = rank + 1;
            IntBuffer all = isDirect ? direct(array) : IntBuffer.wrap(array);
            world.iAllGather(all, 1, MPI.INT).waitFor();
            Check.same(filled(size, 1), of(all), "iAllGather in place");
            int[] places = new int[size];
            Arrays.setAll(places, i -> size - 1 - i);
            int[] one = new int[size];
            Arrays.fill(one, 1);
            IntBuffer turned = isDirect ? MPI.newIntBuffer(size) : IntBuffer.allocate(size);
            turned.put(places[rank], rank);
            world.iAllGatherv(turned, one, places, MPI.INT).waitFor();
            Check.same(places, of(turned), "iAllGatherv in place");
            IntBuffer part = isDirect ? MPI.newIntBuffer(size) : IntBuffer.allocate(size);
            part.put(rank == root ? root : 0, 10 + rank);
            world.iGather(part, 1, MPI.INT, root).waitFor();
            Check.same(rank == root ? filled(size, 10) : of(part), of(part), "iGather in place");
            world.iScatter(part, 1, MPI.INT, root).waitFor();
            Check.same(10 + rank, part.get(rank == root ? root : 0), "iScatter in place");
            if (rank == root) {
                world.iGatherv(turned, one, places, MPI.INT, root).waitFor();
                world.iScatterv(turned, one, places, MPI.INT, root).waitFor();
            } else {
                world.iGatherv(new int[] {rank}, 1, MPI.INT, root).waitFor();
                int[] mine = new int[1];
                world.iScatterv(mine, 1, MPI.INT, root).waitFor();
                Check.same(rank, mine[0], "iScatterv in place");
            }
            IntBuffer sum = isDirect ? direct(rank) : IntBuffer.wrap(new int[] {rank});
            world.iAllReduce(sum, 1, MPI.INT, MPI.SUM).waitFor();
            Check.same(size * (size - 1) / 2, sum.get(0), "iAllReduce in place");
            IntBuffer most = isDirect ? direct(rank) : IntBuffer.wrap(new int[] {rank});
            world.iReduce(most, 1, MPI.INT, MPI.MAX, root).waitFor();
            Check.same(rank == root ? size - 1 : rank, most.get(0), "iReduce in place");
            IntBuffer scanned = isDirect ? direct(1) : IntBuffer.wrap(new int[] {1});
            world.iScan(scanned, 1, MPI.INT, MPI.SUM).waitFor();
            Check.same(rank + 1, scanned.get(0), "iScan in place");
            world.iExScan(scanned, 1, MPI.INT, MPI.MAX).waitFor();
            Check.same(rank == 0 ? 1 : rank, scanned.get(0), "iExScan in place");
            IntBuffer dealt = isDirect ? direct(filled(size, 0)) : IntBuffer.wrap(filled(size, 0));
            world.iReduceScatter(dealt, one, MPI.INT, MPI.SUM).waitFor();
            Check.same(size * rank, dealt.get(0), "iReduceScatter in place");
            dealt = isDirect ? direct(filled(size, 0)) : IntBuffer.wrap(filled(size, 0));
            world.iReduceScatterBlock(dealt, 1, MPI.INT, MPI.SUM).waitFor();
            Check.same(size * rank, dealt.get(0), "iReduceScatterBlock in place");
        }
    }

    static void reductions() throws MPIException {
        double[] sum = new double[2];
        boolean[] all = new boolean[1];
        Request[] both = {
            world.iAllReduce(new double[] {rank, 0.5}, sum, 2, MPI.DOUBLE, MPI.SUM),
            world.iAllReduce(new boolean[] {rank != root}, all, 1, MPI.BOOLEAN, MPI.LAND)
        };
        Request.waitAll(both);
        Check.same(new double[] {size * (size - 1) / 2.0, size * 0.5}, sum, "iAllReduce");
        Check.same(false, all[0], "iAllReduce of booleans");
        int[] result = {-1};
        world.iReduce(new int[] {rank}, result, 1, MPI.INT, MPI.SUM, root).waitFor();
        Check.same(rank == root ? size * (size - 1) / 2 : -1, result[0], "iReduce");
        world.iScan(new int[] {1}, result, 1, MPI.INT, MPI.SUM).waitFor();
        Check.same(rank + 1, result[0], "iScan");
        result[0] = -1;
        world.iExScan(new int[] {1}, result, 1, MPI.INT, MPI.SUM).waitFor();
        Check.same(rank == 0 ? -1 : rank, result[0], "iExScan");
        int[] counts = filled(size, 0);
        int[] mine = new int[rank];
        int total = size * (size - 1) / 2;
        world.iReduceScatter(filled(total, 0), mine, counts, MPI.INT, MPI.MAX).waitFor();
        Check.same(filled(rank, rank * (rank - 1) / 2), mine, "iReduceScatter");
        world.iReduceScatterBlock(filled(size, 0), result, 1, MPI.INT, MPI.SUM).waitFor();
        Check.same(size * rank, result[0], "iReduceScatterBlock");
    }

    static void mistakes() {
        Check.fails(() -> world.iBcast(new Object[1], 1, MPI.OBJECT, 0), "iBcast", "blocking operations only");
        Check.fails(() -> world.iBcast(new int[1], 1, MPI.INT, size), "no root " + size);
        Check.fails(() -> world.iBcast(new int[1], 1, null, 0), "datatype is null");
        Check.fails(
                () -> world.iAllReduce(new int[2], new int[2], 1, MPI.INT2, MPI.MINLOC),
                "MPI.MINLOC is called in Java");
        Check.fails(() -> world.iAllReduce(new int[2], new int[1], 2, MPI.INT, MPI.SUM), "iAllReduce", "buffer has 1");
        Check.fails(() -> world.iAllGather(new long[1], 1, MPI.INT, new int[size], 1, MPI.INT), "long[]");
        Request barrier = world.iBarrier();
        Check.fails(barrier::cancel, "cannot be cancelled");
        barrier.waitFor();
    }

    /** Where ranks are threads. */
    static void withoutLibrary() {
        Check.fails(() -> world.iBarrier(), "iBarrier", "needs the MPI library", "without --threads");
        Check.fails(
                () -> world.iAllReduce(new int[1], new int[1], 1, MPI.INT, MPI.SUM), "iAllReduce",
                "use the blocking operation");
    }

    static void exclusive() throws MPIException {
        int[] result = {-1, -1};
        world.exScan(new int[] {1, rank}, result, 2, MPI.INT, MPI.SUM);
        Check.same(rank == 0 ? new int[] {-1, -1} : new int[] {rank, rank * (rank - 1) / 2}, result, "exScan");
        String[] text = {"" + rank};
        world.exScan(text, 1, MPI.OBJECT, new Op(new UserFunction() {
            @Override
            public void call(Object in, Object inOut, int count, Datatype type) {
                ((Object[]) inOut)[0] = "" + ((Object[]) in)[0] + ((Object[]) inOut)[0];
            }
        }, false));
        Check.same(rank == 0 ? "0" : "01234".substring(0, rank), text[0], "exScan in the order of ranks");
    }

    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.getRank();
        size = world.getSize();
        root = size - 1;
        exclusive();
        if (System.getenv("JAVA_LIMOSA_THREADS") != null) {
            withoutLibrary();
        } else {
            barrierAndBcast();
            arenas();
            parts();
            vectors();
            inPlace();
            reductions();
            mistakes();
        }
        Check.end();
    }
}
