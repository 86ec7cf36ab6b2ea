import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.Serializable;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.limosa.Errors;
import org.limosa.Errors.ArgumentException;
import org.limosa.Errors.BufferException;
import org.limosa.Errors.CountException;
import org.limosa.Errors.DatatypeException;
import org.limosa.Errors.DimensionsException;
import org.limosa.Errors.MismatchException;
import org.limosa.Errors.OperationException;
import org.limosa.Errors.RankException;
import org.limosa.Errors.RootException;
import org.limosa.Errors.TagException;
import org.limosa.Errors.TruncationException;
import org.limosa.LimosaException;
import org.limosa.Operation;
import org.limosa.Slice;
import org.limosa.World;
import org.limosa.abi.Abi;

/** What is wrong is told before anything is sent, each by its own exception; the world can be used after it. */
public class WorldMistakes {
    record Unsendable(Thread thread) implements Serializable {}

    static World world;
    static int right;
    static int left;

    static void messages() {
        int size = world.size();
        int[] ints = new int[4];
        Check.throwsA(RankException.class, () -> world.send(ints, size), "send on rank " + world.rank(),
                "no destination " + size, "0 to " + (size - 1));
        Check.throwsA(RankException.class, () -> world.sendAsync("x", -1), "sendAsync", "no destination -1");
        Check.throwsA(RankException.class, () -> world.receive(String.class, size), "no source " + size);
        Check.throwsA(RankException.class, () -> world.receiveInto(ints, -7), "no source -7");
        Check.throwsA(RankException.class, () -> world.receiveIntoAsync(ints, size), "no source " + size);
        Check.throwsA(RankException.class, () -> world.receiveAsync(String.class, size), "no source " + size);
        Check.throwsA(RankException.class, () -> world.sendReceive("x", 0, String.class, size), "no source " + size);
        Check.throwsA(RankException.class, () -> world.sendReceiveInto(ints, size, ints, 0), "no destination");
        Check.throwsA(TagException.class, () -> world.send(ints, 0, -1), "tag is -1");
        Check.throwsA(TagException.class, () -> world.receive(String.class, 0, -5), "tag is -5");
        Check.throwsA(BufferException.class, () -> world.send(null, 0), "value is null");
        Check.throwsA(BufferException.class, () -> world.receiveInto(null, 0), "buffer is null");
        Check.throwsA(DatatypeException.class, () -> world.receiveInto("text", 0), "java.lang.String", "no buffer");
        Check.throwsA(DatatypeException.class, () -> world.receiveInto(new Integer[1], 0), "java.lang.Integer[]");
        Check.throwsA(DatatypeException.class, () -> world.send(new Thread(), 0), "java.lang.Thread", "Serializable");
        Check.throwsA(DatatypeException.class, () -> world.send(new Unsendable(new Thread()), 0), "java.lang.Thread");
        Check.throwsA(DatatypeException.class, () -> world.receive(null, 0), "class is null");
        Check.throwsA(DatatypeException.class, () -> world.receive(ByteBuffer.class, 0), "receiveInto");
        Check.throwsA(DatatypeException.class, () -> world.receiveAsync(int[].class, 0), "receiveIntoAsync");
        MemorySegment text = MemorySegment.ofArray(new byte[4]).asReadOnly();
        Check.throwsA(BufferException.class, () -> world.receiveInto(text, 0), "only be read");
        IntBuffer swapped = ByteBuffer.allocate(8).asIntBuffer();
        Check.throwsA(BufferException.class, () -> world.send(swapped, 0), "BIG_ENDIAN", "nativeOrder");
        if (ranksAreThreads()) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment own = arena.allocate(8);
                Check.throwsA(BufferException.class, () -> world.send(own, 0), "Arena.ofShared");
                Check.throwsA(BufferException.class, () -> Slice.of(own, 0, 1), "Slice.of", "Arena.ofShared");
            }
        }
    }

    static boolean ranksAreThreads() {
        return WorldMistakes.class.getClassLoader() != ClassLoader.getSystemClassLoader();
    }

    static void slices() {
        Check.throwsA(BufferException.class, () -> Slice.of(new int[4], 2, 3), "3 elements from offset 2", "has 4");
        Check.throwsA(BufferException.class, () -> Slice.of(new int[4], -1, 1), "offset -1");
        Check.throwsA(BufferException.class, () -> Slice.of(new int[4], 0, -1), "-1 elements");
        Check.throwsA(BufferException.class, () -> Slice.of(new int[4], Integer.MAX_VALUE, Integer.MAX_VALUE), "has 4");
        Check.throwsA(DatatypeException.class, () -> Slice.of("text", 0, 1), "java.lang.String");
        Check.throwsA(DatatypeException.class, () -> Slice.of((Object) null, 0, 1), "null");
        MemorySegment odd = MemorySegment.ofArray(new byte[7]);
        Check.throwsA(BufferException.class, () -> Slice.of(odd, ValueLayout.JAVA_INT), "7 bytes", "has 4");
        Check.throwsA(DatatypeException.class, () -> Slice.of(odd, ValueLayout.ADDRESS), "cannot be sent");
    }

    static void collectives() {
        int size = world.size();
        int[] ints = new int[size];
        int[] one = new int[1];
        Check.throwsA(RootException.class, () -> world.bcast("x", size), "bcast on rank", "no root " + size);
        Check.throwsA(RootException.class, () -> world.gather("x", -1), "no root -1");
        Check.throwsA(RootException.class, () -> world.reduceInto(one, one, Operation.SUM, size), "no root");
        Check.throwsA(BufferException.class, () -> world.allgather(null), "value is null");
        Check.throwsA(DatatypeException.class, () -> world.allgather(new Thread()), "Serializable");
        Check.throwsA(CountException.class, () -> world.alltoall(List.of(1, 2, 3, 4, 5, 6, 7, 8)), "8 values");
        Check.throwsA(BufferException.class, () -> world.alltoall(null), "list of values is null");
        Check.throwsA(BufferException.class, () -> world.scatter(null, world.rank()), "list of values is null");
        Check.throwsA(BufferException.class, () -> world.bcastInto(null, 0), "buffer is null");
        Check.throwsA(DatatypeException.class, () -> world.allgatherInto(one, new long[size]), "type int", "type long");
        Check.throwsA(CountException.class, () -> world.allgatherInto(one, new int[3 * size]), "must have " + size);
        Check.throwsA(CountException.class, () -> world.gatherInto(one, new int[size + 1], world.rank()), "all");
        Check.throwsA(CountException.class, () -> world.allgatherInto(one, ints, new int[size + 1]), size + " counts");
        Check.throwsA(CountException.class, () -> world.allgatherInto(one, ints, null), "counts");
        int[] negative = new int[size];
        negative[0] = -1;
        Check.throwsA(CountException.class, () -> world.allgatherInto(one, ints, negative), "rank 0 is -1");
        int[] many = new int[size];
        Arrays.fill(many, 9);
        Check.throwsA(BufferException.class, () -> world.allgatherInto(new int[9], ints, many), "add up to");
        int[] none = new int[size];
        Check.throwsA(CountException.class, () -> world.allgatherInto(one, ints, none), "this one, is 0");
        Check.throwsA(CountException.class, () -> world.alltoallInto(ints, new int[2 * size]), "room for");
        Check.throwsA(CountException.class, () -> world.scatterInto(ints, new int[2], world.rank()), "2 for each");
        if (size > 1) {
            Check.throwsA(CountException.class, () -> world.alltoallInto(one, one), "cannot be divided");
        }
    }

    static void reductions() {
        Check.throwsA(OperationException.class, () -> world.allreduce(1, null), "operation is null");
        Check.throwsA(OperationException.class, () -> Operation.ofInts(null), "function is null");
        Check.throwsA(OperationException.class, () -> world.allreduce(1.5, Operation.AND), "Operation.AND", "double");
        Check.throwsA(OperationException.class, () -> world.allreduce(true, Operation.SUM), "Operation.SUM", "boolean");
        Operation ofInts = Operation.ofInts(Integer::sum);
        Check.throwsA(OperationException.class, () -> world.allreduce(1.5, ofInts), "ofInts", "double");
        Check.throwsA(DatatypeException.class, () -> world.allreduce("text", Operation.SUM), "java.lang.String");
        Check.throwsA(BufferException.class, () -> world.allreduce(null, Operation.SUM), "value is null");
        Check.throwsA(CountException.class,
                () -> world.allreduceInto(new int[2], new int[1], Operation.SUM), "room for 1");
        Check.throwsA(DatatypeException.class,
                () -> world.scanInto(new int[1], new float[1], Operation.SUM), "type float");
    }

    static void grids() {
        Check.throwsA(DimensionsException.class, () -> world.grid(new int[] {-1}), "do not fit", "[-1]");
        Check.throwsA(DimensionsException.class, () -> world.grid(null), "do not fit");
        Check.throwsA(DimensionsException.class, () -> world.grid(new int[1], true, true), "more values of periodic");
        try (var grid = world.grid(new int[1])) {
            Check.throwsA(RankException.class, () -> grid.coordinates(99), "no rank 99");
            Check.throwsA(ArgumentException.class, () -> grid.rankAt(1, 1), "1 directions");
            Check.throwsA(ArgumentException.class, () -> grid.sub(1), "1 directions");
            Check.throwsA(ArgumentException.class, () -> grid.sub(0, 0), "[0, 0]");
        }
    }

    /** What has come is not what was asked for. The next message can be received. */
    static void mismatches() {
        for (String text : new String[] {"text", "x".repeat(100_000)}) {
            CompletableFuture<Void> sent = world.sendAsync(text, right);
            Check.throwsA(MismatchException.class, () -> world.receive(Integer.class, left), "java.lang.String",
                    "java.lang.Integer was asked for");
            sent.join();
            sent = world.sendAsync(text, right);
            Check.throwsA(MismatchException.class, () -> world.receive(double[].class, left), "java.lang.String");
            sent.join();
            sent = world.sendAsync(text, right);
            Check.throwsA(MismatchException.class, () -> world.receiveInto(new byte[9000], left), "java.lang.String",
                    "receive(Class)");
            sent.join();
        }
        CompletableFuture<Void> sent = world.sendAsync(new int[3], right);
        Check.throwsA(MismatchException.class, () -> world.receive(String.class, left), "12 bytes", "java.lang.String");
        sent.join();
        sent = world.sendAsync(new int[3], right);
        Check.throwsA(MismatchException.class, () -> world.receive(double[].class, left), "12 bytes", "double[]");
        sent.join();
        sent = world.sendAsync(new int[3], right);
        Check.throwsA(TruncationException.class, () -> world.receiveInto(new int[2], left), "receiveInto on rank");
        sent.join();
        Check.same("next", world.sendReceive("next", right, String.class, left), "the next message");
    }

    /** A segment may be longer than an array; its pages are not there. */
    static void large() throws IOException {
        Path file = Files.createTempFile("limosa-sparse", "");
        long bytes = (1L << 31) + 10;
        try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw"); Arena arena = Arena.ofShared()) {
            opened.setLength(bytes);
            MemorySegment sparse = opened.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, bytes, arena);
            CompletableFuture<Void> sent = world.sendAsync(sparse, right);
            Check.throwsA(TruncationException.class, () -> world.receiveInto(new byte[16], left));
            sent.join();
            Check.throwsA(CountException.class, () -> world.scatterInto(sparse, new byte[1], world.rank()), "" + bytes);
        } finally {
            Files.delete(file);
        }
    }

    /** There is one exception for each error class of the table. */
    static void classes() throws ReflectiveOperationException {
        Set<Integer> known = new HashSet<>();
        for (Class<?> each : Errors.class.getDeclaredClasses()) {
            Check.that(LimosaException.class.isAssignableFrom(each), each + " is no LimosaException");
            Check.that(Modifier.isPublic(each.getModifiers()), each + " is not public");
        }
        var of = Errors.class.getDeclaredMethod("of", int.class, String.class, Throwable.class);
        of.setAccessible(true);
        for (var field : Abi.class.getFields()) {
            if (field.getName().startsWith("MPI_ERR_") && !field.getName().equals("MPI_ERR_LASTCODE")) {
                LimosaException made = (LimosaException) of.invoke(null, field.getInt(null), "text", null);
                Check.same(field.getInt(null), made.errorClass(), field.getName());
                known.add(made.errorClass());
            }
        }
        Check.that(known.size() > 50, "classes: " + known.size());
    }

    public static void main(String[] args) {
        World.run(args, all -> {
            world = all;
            right = (world.rank() + 1) % world.size();
            left = (world.rank() + world.size() - 1) % world.size();
            messages();
            slices();
            collectives();
            reductions();
            grids();
            mismatches();
            large();
            classes();
            Check.end(world);
        });
    }
}
