import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import mpi.*;

/** Open MPI's windows: memory that others read and write. */
public class OpenMpiWindows {
    static Intracomm world;
    static int rank;
    static int size;
    static int next;
    static int previous;

    static void fences() throws MPIException {
        IntBuffer memory = MPI.newIntBuffer(4);
        Win window = new Win(memory, 4, 1, MPI.INFO_NULL, world);
        Check.same(MPI.IDENT, Group.compare(window.getGroup(), world.getGroup()), "getGroup");
        IntBuffer mine = MPI.newIntBuffer(2).put(0, rank).put(1, 10 * rank);
        IntBuffer got = MPI.newIntBuffer(2);
        window.fence(MPI.MODE_NOPRECEDE);
        window.put(mine, 2, MPI.INT, next, 1, 2, MPI.INT);
        window.put(mine, 2, MPI.INT, MPI.PROC_NULL, 1, 2, MPI.INT);
        window.fence(0);
        Check.same(previous, memory.get(1), "put");
        Check.same(10 * previous, memory.get(2), "put");
        window.get(got, 1, MPI.INT2, next, 1, 2, MPI.INT);
        window.fence(MPI.MODE_NOPUT);
        Check.same(rank, got.get(0), "get");
        Check.same(10 * rank, got.get(1), "get");
        window.accumulate(mine, 1, MPI.INT, 0, 3, 1, MPI.INT, MPI.SUM);
        window.fence(MPI.MODE_NOSUCCEED);
        Check.same(rank == 0 ? size * (size - 1) / 2 : 0, memory.get(3), "accumulate");
        window.free();
        Check.that(window.isNull(), "free");
        Check.fails(() -> window.fence(0), "the window was freed");
    }

    static void locks() throws MPIException {
        LongBuffer memory = MPI.newLongBuffer(3);
        memory.put(1, 100);
        Win window = new Win(memory, 3, 1, MPI.INFO_NULL, world);
        LongBuffer one = MPI.newLongBuffer(1).put(0, 1);
        LongBuffer before = MPI.newLongBuffer(1);
        window.lock(MPI.LOCK_EXCLUSIVE, 0, 0);
        window.fetchAndOp(one, before, MPI.LONG, 0, 0, MPI.SUM);
        window.unlock(0);
        long[] tickets = new long[size];
        world.allGather(new long[] {before.get(0)}, 1, MPI.LONG, tickets, 1, MPI.LONG);
        java.util.Arrays.sort(tickets);
        for (int i = 0; i < size; i++) {
            Check.same((long) i, tickets[i], "each has another ticket");
        }
        window.lockAll(0);
        window.fetchAndOp(null, before, MPI.LONG, 0, 0, MPI.NO_OP);
        window.flush(0);
        Check.same((long) size, before.get(0), "NO_OP");
        LongBuffer expected = MPI.newLongBuffer(1).put(0, 100);
        LongBuffer mine = MPI.newLongBuffer(1).put(0, rank);
        window.compareAndSwap(mine, expected, before, MPI.LONG, 0, 1);
        window.flushAll();
        long[] winners = {before.get(0) == 100 ? 1 : 0};
        world.allReduce(winners, 1, MPI.LONG, MPI.SUM);
        Check.same(1L, winners[0], "one has won");
        Request put = window.rPut(mine, 1, MPI.LONG, next, 2, 1, MPI.LONG);
        put.waitFor();
        window.flushLocal(next);
        window.flushAll();
        world.barrier();
        Request get = window.rGet(before, 1, MPI.LONG, rank, 2, 1, MPI.LONG);
        get.waitFor();
        Check.same((long) previous, before.get(0), "rPut and rGet");
        world.barrier();
        Request both = window.rGetAccumulate(
                one, 1, MPI.LONG, before, 1, MPI.LONG, rank, 2, 1, MPI.LONG, MPI.REPLACE);
        window.rAccumulate(one, 1, MPI.LONG, rank, 2, 1, MPI.LONG, MPI.SUM).waitFor();
        both.waitFor();
        Check.same((long) previous, before.get(0), "rGetAccumulate");
        window.flushLocalAll();
        window.sync();
        window.unlockAll();
        Check.same(2L, memory.get(2), "REPLACE and SUM");
        world.barrier();
        window.free();
    }

    static void postAndStart() throws MPIException {
        DoubleBuffer memory = MPI.newDoubleBuffer(2);
        Win window = new Win(memory, 2, 2, MPI.INFO_NULL, world);
        Group all = world.getGroup();
        Group from = all.incl(new int[] {previous});
        Group to = all.incl(new int[] {next});
        for (int round = 0; round < 2; round++) {
            window.post(from, 0);
            window.start(to, 0);
            DoubleBuffer value = MPI.newDoubleBuffer(1).put(0, rank + 0.5 * round);
            window.put(value, 1, MPI.DOUBLE, next, 0, 1, MPI.DOUBLE);
            window.complete();
            if (round == 0) {
                window.waitFor();
            } else {
                while (!window.test()) {
                    Thread.onSpinWait();
                }
            }
            Check.same(previous + 0.5 * round, memory.get(0), "post and start");
            world.barrier();
        }
        window.free();
    }

    static IntBuffer of(Arena arena) {
        return arena.allocate(ValueLayout.JAVA_INT).asByteBuffer().order(ByteOrder.nativeOrder()).asIntBuffer();
    }

    /** An arena cannot be closed while a window or an access uses its memory. */
    static void arenas() throws MPIException {
        Arena exposed = Arena.ofShared();
        Arena origin = Arena.ofShared();
        IntBuffer got = of(origin);
        Win window = new Win(of(exposed).put(0, rank), 1, 1, MPI.INFO_NULL, world);
        window.fence(0);
        window.get(got, 1, MPI.INT, next, 0, 1, MPI.INT);
        Check.throwsA(IllegalStateException.class, origin::close);
        window.fence(0);
        Check.same(next, got.get(0), "get into an arena");
        window.lockAll(0);
        Request request = window.rGet(got, 1, MPI.INT, next, 0, 1, MPI.INT);
        Check.throwsA(IllegalStateException.class, origin::close);
        request.waitFor();
        window.unlockAll();
        origin.close();
        Check.throwsA(IllegalStateException.class, exposed::close);
        window.free();
        exposed.close();
    }

    static void mistakes() throws MPIException {
        IntBuffer memory = MPI.newIntBuffer(4);
        Check.fails(() -> new Win(memory, 5, 1, MPI.INFO_NULL, world), "Win", "size is 5", "buffer has 4");
        Check.fails(() -> new Win(IntBuffer.allocate(1), 1, 1, MPI.INFO_NULL, world), "direct buffers");
        Check.fails(() -> new Win(null, 1, 1, MPI.INFO_NULL, world), "the buffer is null");
        Check.fails(() -> new Win(memory, 1, 0, MPI.INFO_NULL, world), "at least 1");
        Win window = new Win(memory, 4, 1, MPI.INFO_NULL, world);
        window.fence(0);
        Check.fails(() -> window.put(memory, 1, MPI.INT, size, 0, 1, MPI.INT), "put", "no target " + size);
        Check.fails(() -> window.put(memory, 1, MPI.INT, 0, -1, 1, MPI.INT), "displacement is -1");
        Check.fails(() -> window.put(memory, 1, MPI.INT, 0, 0, 2, MPI.INT), "not as many elements");
        Check.fails(() -> window.put(memory, 1, MPI.INT, 0, 0, 1, MPI.LONG), "MPI.LONG");
        Check.fails(() -> window.put(memory, 5, MPI.INT, 0, 0, 5, MPI.INT), "buffer has 4");
        Check.fails(() -> window.put(IntBuffer.wrap(new int[1]), 1, MPI.INT, 0, 0, 1, MPI.INT), "direct buffers");
        Datatype gaps = Datatype.createVector(2, 1, 2, MPI.INT);
        Check.fails(() -> window.put(memory, 1, gaps, 0, 0, 2, MPI.INT), "has gaps");
        Check.fails(() -> window.accumulate(memory, 1, MPI.INT, 0, 0, 1, MPI.INT, MPI.LAND), "MPI.LAND");
        Check.fails(() -> window.accumulate(memory, 1, MPI.INT2, 0, 0, 1, MPI.INT2, MPI.MINLOC), "called in Java");
        Check.fails(() -> window.lock(5, 0, 0), "no kind of locks");
        IntBuffer fixed = memory.asReadOnlyBuffer();
        String readOnly = "the buffer is read-only";
        Check.fails(() -> new Win(fixed, 4, 1, MPI.INFO_NULL, world), "Win: " + readOnly);
        Check.fails(() -> window.get(fixed, 1, MPI.INT, 0, 0, 1, MPI.INT), "get: " + readOnly);
        Check.fails(() -> window.rGet(fixed, 1, MPI.INT, 0, 0, 1, MPI.INT), "rGet: " + readOnly);
        Check.fails(() -> window.fetchAndOp(memory, fixed, MPI.INT, 0, 0, MPI.SUM), "getAccumulate: " + readOnly);
        Check.fails(
                () -> window.rGetAccumulate(memory, 1, MPI.INT, fixed, 1, MPI.INT, 0, 0, 1, MPI.INT, MPI.SUM),
                "rGetAccumulate: " + readOnly);
        Check.fails(
                () -> window.compareAndSwap(memory, memory, fixed, MPI.INT, 0, 0), "compareAndSwap: " + readOnly);
        Check.fails(() -> world.allReduce(new int[1], 1, MPI.INT, MPI.REPLACE), "MPI.REPLACE is not defined");
        window.fence(0);
        window.free();
    }

    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.getRank();
        size = world.getSize();
        next = (rank + 1) % size;
        previous = (rank + size - 1) % size;
        if (System.getenv("JAVA_LIMOSA_THREADS") != null) {
            Check.fails(
                    () -> new Win(MPI.newIntBuffer(1), 1, 1, MPI.INFO_NULL, world), "Win", "needs the MPI library",
                    "send messages");
        } else {
            fences();
            locks();
            postAndStart();
            arenas();
            mistakes();
        }
        Check.end();
    }
}
