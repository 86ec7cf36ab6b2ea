import java.io.Serializable;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.limosa.Rank;
import org.limosa.Received;
import org.limosa.Slice;
import org.limosa.Source;
import org.limosa.Tag;
import org.limosa.World;

/** Messages of org.limosa: all kinds of values and buffers go to the right neighbour. */
public class WorldMessages {
    record Point(int x, double y, List<String> names) implements Serializable {}

    enum Color { RED, GREEN }

    static World world;
    static int right;
    static int left;

    /** Sends to the right and receives from the left, so that no rank waits for ever. */
    static <T> Received<T> pass(Object value, Class<T> type, int tag) {
        CompletableFuture<Void> sent = world.sendAsync(value, right, tag);
        Received<T> received = world.receiveMessage(type, left, tag);
        sent.join();
        return received;
    }

    static void arrays(int length) {
        byte[] bytes = new byte[length];
        char[] chars = new char[length];
        short[] shorts = new short[length];
        boolean[] booleans = new boolean[length];
        int[] ints = new int[length];
        long[] longs = new long[length];
        float[] floats = new float[length];
        double[] doubles = new double[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) i;
            chars[i] = (char) (i + 300);
            shorts[i] = (short) -i;
            booleans[i] = i % 3 == 0;
            ints[i] = i * 70_000;
            longs[i] = i * 5_000_000_000L;
            floats[i] = i / 3f;
            doubles[i] = i / 3.0;
        }
        for (Object array : new Object[] {bytes, chars, shorts, booleans, ints, longs, floats, doubles}) {
            Received<?> received = pass(array, array.getClass(), 5);
            Check.same(array, received.value(), "array");
            Check.same(List.of(left, 5, length), List.of(received.source(), received.tag(), received.count()), "end");
            Object into = Check.copyOfLength(array, length + 2);
            CompletableFuture<Void> sent = world.sendAsync(array, right);
            Check.same(length, world.receiveInto(into, left).count(), "count");
            sent.join();
            Check.same(Check.copyOfLength(array, length + 2), into, "array into another");
        }
    }

    static void values() {
        Point point = new Point(3, 4.5, List.of("a", "b"));
        Check.same(point, pass(point, Point.class, 0).value(), "record");
        Check.same("text", pass("text", String.class, 1).value(), "text");
        Check.same(7, pass(7, int.class, 1).value(), "int");
        Check.same(7L, pass(7L, Number.class, 1).value(), "number");
        Check.same(Color.GREEN, pass(Color.GREEN, Color.class, 1).value(), "enum");
        Check.same(new String[] {"x", null}, pass(new String[] {"x", null}, String[].class, 1).value(), "texts");
        Check.same(new int[][] {{1}, {2, 3}}, pass(new int[][] {{1}, {2, 3}}, int[][].class, 1).value(), "rows");
        Check.same(Map.of("a", 1), pass(Map.of("a", 1), Map.class, 1).value(), "map");
        for (int length : new int[] {8000, 8150, 8192, 100_000, 3_000_000}) {
            String text = "x".repeat(length);
            Check.same(text, pass(text, String.class, 1).value(), "long text");
        }
    }

    static void slices() {
        int[] all = {0, 1, 2, 3, 4, 5, 6, 7};
        int[] into = new int[8];
        Received<Slice> received = world.sendReceiveInto(Slice.of(all, 2, 4), right, Slice.of(into, 1, 6), left);
        Check.same(4, received.count(), "count of a slice");
        Check.same(new int[] {0, 2, 3, 4, 5, 0, 0, 0}, into, "slice");
        boolean[] flags = {true, false, true};
        boolean[] got = new boolean[3];
        world.sendReceiveInto(Slice.of(flags, 1, 2), right, Slice.of(got, 1, 2), left);
        Check.same(new boolean[] {false, false, true}, got, "slice of booleans");
        world.sendReceiveInto(all, right, all, left);
        Check.same(new int[] {0, 1, 2, 3, 4, 5, 6, 7}, all, "one array for both");
    }

    static void memory() {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment numbers = arena.allocateFrom(ValueLayout.JAVA_DOUBLE, 1, 2, 3);
            double[] got = new double[3];
            world.sendReceiveInto(Slice.of(numbers, ValueLayout.JAVA_DOUBLE), right, got, left);
            Check.same(new double[] {1, 2, 3}, got, "segment with a layout");
            MemorySegment bytes = arena.allocate(24);
            Check.same(24, world.sendReceiveInto(numbers, right, bytes, left).count(), "bytes");
            Check.same(-1L, numbers.mismatch(bytes), "segment");
        }
        ByteBuffer direct = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());
        DoubleBuffer doubles = direct.asDoubleBuffer().put(new double[] {0, 1, 2, 3}).flip().position(1);
        DoubleBuffer into = DoubleBuffer.allocate(3);
        Check.same(3, world.sendReceiveInto(doubles, right, into, left).count(), "from the position to the limit");
        Check.same(new double[] {1, 2, 3}, into.array(), "buffer");
        Check.same(1, doubles.position(), "the position stays");
    }

    static void anybody() {
        CompletableFuture<Void> sent = world.sendAsync("any", right, 9);
        Check.same("any", world.receive(String.class), "any source and tag");
        sent.join();
        sent = world.sendAsync(new int[] {1}, right, 9);
        Received<int[]> received = world.receiveInto(new int[1], Source.ANY, Tag.ANY);
        Check.same(List.of(left, 9), List.of(received.source(), received.tag()), "the source");
        sent.join();
        sent = world.sendAsync(new int[] {2}, right, 9);
        Check.same(1, world.receiveInto(new int[1]).count(), "any source and tag, into");
        sent.join();
        // A tag chooses.
        CompletableFuture<Void> first = world.sendAsync("first", right, 1);
        CompletableFuture<Void> second = world.sendAsync("second", right, 2);
        Check.same("second", world.receive(String.class, left, 2), "chosen by tag");
        Check.same("first", world.receive(String.class, left, 1), "the other");
        CompletableFuture.allOf(first, second).join();
    }

    static void nobody() {
        world.send("x", Rank.NONE);
        world.send(new int[1], Rank.NONE);
        world.sendAsync("x", Rank.NONE).join();
        Check.same(null, world.receive(String.class, Rank.NONE), "from no rank");
        int[] kept = {5};
        Check.same(0, world.receiveInto(kept, Rank.NONE).count(), "from no rank");
        Check.same(new int[] {5}, kept, "buffer");
        Check.same(null, world.receiveAsync(String.class, Rank.NONE).join(), "from no rank");
        Check.same(Rank.NONE, world.receiveIntoAsync(kept, Rank.NONE).join().source(), "from no rank");
        Check.same(null, world.sendReceive("x", Rank.NONE, String.class, Rank.NONE), "no rank");
        world.sendReceiveInto(new int[1], Rank.NONE, kept, Rank.NONE);
        Check.same(new int[] {5}, kept, "buffer");
    }

    static void both() {
        Check.same("from " + left, world.sendReceive("from " + world.rank(), right, String.class, left), "exchange");
        double[] got = world.sendReceive(new double[] {world.rank()}, right, double[].class, left, 4);
        Check.same(new double[] {left}, got, "array exchanged");
        List<Integer> list = new ArrayList<>(List.of(1));
        CompletableFuture<Void> sent = world.sendAsync(list, right);
        list.add(2);
        Check.same(List.of(1), world.receive(List.class, left), "a value can be changed at once");
        sent.join();
    }

    public static void main(String[] args) {
        World.run(args, all -> {
            world = all;
            right = (world.rank() + 1) % world.size();
            left = (world.rank() + world.size() - 1) % world.size();
            for (int length : new int[] {0, 1, 10, 5000, 100_000}) {
                arrays(length);
            }
            values();
            slices();
            memory();
            anybody();
            nobody();
            both();
            Check.end(world);
        });
    }
}
