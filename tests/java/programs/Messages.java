import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Prequest;
import mpi.Request;
import mpi.Status;

/** Messages of every basic type, in every mode, in arrays and direct buffers, from each rank to the next. */
public class Messages {
    static Intracomm world;
    static int rank;
    static int size;
    static int next;
    static int previous;

    static final List<Datatype> TYPES = List.of(
            MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE, MPI.OBJECT);

    /** The value of an element that says where it comes from. */
    static void set(Object array, int i, int seed) {
        int value = (seed * 31 + i * 7) % 100;
        switch (array) {
            case byte[] a -> a[i] = (byte) (value - 50);
            case char[] a -> a[i] = (char) (value + 60000);
            case short[] a -> a[i] = (short) (value - 30000);
            case boolean[] a -> a[i] = value % 3 == 0;
            case int[] a -> a[i] = value * 1_000_003;
            case long[] a -> a[i] = value * 1_000_000_000_007L;
            case float[] a -> a[i] = value / 3f;
            case double[] a -> a[i] = value / 3.0;
            default -> Array.set(array, i, "text " + value);
        }
    }

    static Object filled(Datatype type, int length, int seed) {
        Object array = Check.array(type, length);
        for (int i = 0; i < length; i++) {
            set(array, i, seed);
        }
        return array;
    }

    interface Sender {
        void send(Object buf, int offset, int count, Datatype type);
    }

    /** Sends a part of an array in some way, and receives it into a part of another, which is otherwise unchanged. */
    static void ring(String name, Datatype type, int count, Sender sender) {
        Object sent = filled(type, count + 5, rank);
        Object received = filled(type, count + 9, 77);
        Object expected = filled(type, count + 9, 77);
        Object theirs = filled(type, count + 5, previous);
        System.arraycopy(theirs, 2, expected, 3, count);
        Request request = world.Irecv(received, 3, count, type, previous, 5);
        sender.send(sent, 2, count, type);
        Status status = request.Wait();
        Check.same(expected, received, name + " of " + count + " " + type);
        Check.same(previous, status.source, name + ": source");
        Check.same(5, status.tag, name + ": tag");
        Check.same(count, status.Get_count(type), name + ": count of " + type);
    }

    static void modes() {
        MPI.Buffer_attach(new byte[4 << 20]);
        for (Datatype type : TYPES) {
            for (int count : new int[] {0, 1, 7, 5000}) {
                ring("Send", type, count, (b, o, c, t) -> world.Send(b, o, c, t, next, 5));
                ring("Bsend", type, count, (b, o, c, t) -> world.Bsend(b, o, c, t, next, 5));
                ring("Isend", type, count, (b, o, c, t) -> world.Isend(b, o, c, t, next, 5).Wait());
                ring("Ibsend", type, count, (b, o, c, t) -> world.Ibsend(b, o, c, t, next, 5).Wait());
                if (type != MPI.OBJECT) {
                    // The receive is posted, and nothing waits for a message that is taken from the queue.
                    ring("Ssend", type, count, (b, o, c, t) -> world.Ssend(b, o, c, t, next, 5));
                    world.Barrier();
                    ring("Rsend", type, count, (b, o, c, t) -> {
                        world.Barrier();
                        world.Rsend(b, o, c, t, next, 5);
                    });
                    ring("Irsend", type, count, (b, o, c, t) -> {
                        world.Barrier();
                        world.Irsend(b, o, c, t, next, 5).Wait();
                    });
                    ring("Issend", type, count, (b, o, c, t) -> world.Issend(b, o, c, t, next, 5).Wait());
                }
                ring("Send_init", type, count, (b, o, c, t) -> started(world.Send_init(b, o, c, t, next, 5)));
                ring("Bsend_init", type, count, (b, o, c, t) -> started(world.Bsend_init(b, o, c, t, next, 5)));
            }
        }
        Check.that(MPI.Buffer_detach() instanceof byte[], "the buffer comes back");
    }

    static void started(Prequest request) {
        request.Start();
        request.Wait();
        Check.that(!request.Is_null(), "a persistent request stays");
        request.Free();
    }

    static void persistent() {
        for (Datatype type : TYPES) {
            Object sent = Check.array(type, 10);
            Object received = Check.array(type, 10);
            Prequest send = world.Send_init(sent, 0, 10, type, next, 8);
            Prequest receive = world.Recv_init(received, 0, 10, type, previous, 8);
            for (int round = 0; round < 5; round++) {
                for (int i = 0; i < 10; i++) {
                    set(sent, i, rank + 10 * round);
                }
                Prequest.Startall(new Prequest[] {receive, send});
                Request.Waitall(new Request[] {receive, send});
                Check.same(filled(type, 10, previous + 10 * round), received, "round " + round + " of " + type);
            }
        }
    }

    static void exchanges() {
        for (Datatype type : TYPES) {
            Object buffer = filled(type, 6, rank);
            world.Sendrecv_replace(buffer, 0, 6, type, next, 3, previous, 3);
            Check.same(filled(type, 6, previous), buffer, "Sendrecv_replace of " + type);
            Object received = Check.array(type, 6);
            world.Sendrecv(filled(type, 6, rank), 0, 6, type, next, 3, received, 0, 6, type, previous, MPI.ANY_TAG);
            Check.same(filled(type, 6, previous), received, "Sendrecv of " + type);
        }
    }

    static void directBuffers() {
        ByteBuffer sent = ByteBuffer.allocateDirect(80).order(ByteOrder.nativeOrder());
        ByteBuffer received = ByteBuffer.allocateDirect(80).order(ByteOrder.nativeOrder());
        sent.asDoubleBuffer().put(3, 1.5 + rank);
        Request request = world.Irecv(received, 0, 10, MPI.DOUBLE, previous, 1);
        world.Send(sent.asDoubleBuffer(), 0, 10, MPI.DOUBLE, next, 1);
        request.Wait();
        Check.same(1.5 + previous, received.asDoubleBuffer().get(3), "direct buffers");
    }

    static void probes() {
        Request request = world.Isend(new int[] {1, 2, 3}, 0, 3, MPI.INT, next, 40 + rank);
        Status status = world.Probe(MPI.ANY_SOURCE, 40 + previous);
        Check.same(3, status.Get_count(MPI.INT), "probed count");
        Check.same(MPI.UNDEFINED, status.Get_count(MPI.DOUBLE), "12 bytes are no whole doubles");
        Check.that(world.Iprobe(previous, 40 + previous) != null, "Iprobe finds it");
        Check.that(world.Iprobe(previous, 39) == null, "Iprobe finds nothing else");
        int[] received = new int[10];
        Check.same(3, world.Recv(received, 0, 10, MPI.INT, previous, MPI.ANY_TAG).Get_count(MPI.INT), "less than posted");
        request.Wait();
    }

    static void nobody() {
        Status status = world.Recv(null, 0, 0, MPI.INT, MPI.PROC_NULL, 3);
        Check.same(MPI.PROC_NULL, status.source, "source of nothing");
        Check.same(0, status.Get_count(MPI.INT), "count of nothing");
        world.Send(new int[1], 0, 1, MPI.INT, MPI.PROC_NULL, 3);
        world.Isend(new int[1], 0, 1, MPI.INT, MPI.PROC_NULL, 3).Wait();
        world.Irecv(new Object[1], 0, 1, MPI.OBJECT, MPI.PROC_NULL, 3).Wait();
    }

    /** A receive may be posted for more than the array holds, as long as the message fits. */
    static void postedPastTheEnd() {
        Request send = world.Isend(new double[] {rank, 2, 3}, 0, 3, MPI.DOUBLE, next, 6);
        double[] received = new double[5];
        Status status = world.Recv(received, 2, 100, MPI.DOUBLE, previous, 6);
        Check.same(3, status.Get_count(MPI.DOUBLE), "posted past the end");
        Check.same(new double[] {0, 0, previous, 2, 3}, received, "posted past the end");
        send.Wait();
    }

    /** Waiting virtual threads leave processors to others, however many there are. */
    static void virtualThreads() throws InterruptedException {
        int processors = Runtime.getRuntime().availableProcessors();
        List<IntConsumer> waits = List.of(
                tag -> world.Recv(new int[1], 0, 1, MPI.INT, previous, tag),
                tag -> world.Recv(new Object[1], 0, 1, MPI.OBJECT, previous, tag),
                tag -> world.Irecv(new int[1], 0, 1, MPI.INT, previous, tag).Wait(),
                tag -> Request.Waitany(new Request[] {world.Irecv(new int[1], 0, 1, MPI.INT, previous, tag)}),
                tag -> {
                    world.Probe(previous, tag);
                    world.Recv(new int[1], 0, 1, MPI.INT, previous, tag);
                });
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < waits.size() * processors; i++) {
            int tag = 100 + i;
            threads.add(Thread.startVirtualThread(() -> waits.get((tag - 100) / processors).accept(tag)));
        }
        threads.add(Thread.startVirtualThread(() -> {
            for (int i = 0; i < waits.size() * processors; i++) {
                boolean isObject = i / processors == 1;
                Object value = isObject ? new Object[] {"text"} : new int[1];
                world.Send(value, 0, 1, isObject ? MPI.OBJECT : MPI.INT, next, 100 + i);
            }
        }));
        Intracomm[] groups = new Intracomm[2 * processors];
        for (int i = 0; i < groups.length; i++) {
            groups[i] = world.clone();
        }
        for (int i = 0; i < groups.length; i++) {
            Intracomm group = groups[rank % 2 == 0 ? i : groups.length - 1 - i];
            threads.add(Thread.startVirtualThread(() -> {
                int[] sums = new int[1];
                group.Allreduce(new int[] {1}, 0, sums, 0, 1, MPI.INT, MPI.SUM);
                Check.same(size, sums[0], "Allreduce in a virtual thread");
            }));
        }
        threads.add(Thread.startVirtualThread(Messages::ownMemory));
        for (Thread thread : threads) {
            thread.join();
        }
        for (Intracomm group : groups) {
            group.Free();
        }
    }

    /** Memory that only a virtual thread can use. */
    static void ownMemory() {
        if (System.getenv("JAVA_LIMOSA_THREADS") != null) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment own = arena.allocate(2);
            own.set(ValueLayout.JAVA_BYTE, 0, (byte) rank);
            MemorySegment got = own.asSlice(1);
            world.Sendrecv(own, 0, 1, MPI.BYTE, next, 99, got, 0, 1, MPI.BYTE, previous, 99);
            Check.same((byte) previous, got.get(ValueLayout.JAVA_BYTE, 0), "memory of a virtual thread");
            Request sent = world.Isend(own, 0, 1, MPI.BYTE, next, 98);
            world.Recv(got, 0, 1, MPI.BYTE, previous, 98);
            sent.Wait();
            world.Send(own, 0, 1, MPI.BYTE, next, 97);
            world.Irecv(got, 0, 1, MPI.BYTE, previous, 97).Wait();
            Check.same((byte) previous, got.get(ValueLayout.JAVA_BYTE, 0), "memory of a virtual thread");
        }
    }

    public static void main(String[] args) throws InterruptedException {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        next = (rank + 1) % size;
        previous = (rank + size - 1) % size;
        modes();
        persistent();
        exchanges();
        directBuffers();
        probes();
        nobody();
        postedPastTheEnd();
        virtualThreads();
        Check.end();
    }
}
