import java.io.Serializable;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.limosa.Operation;
import org.limosa.Slice;
import org.limosa.World;

/** Collective calls of org.limosa, on every root. */
public class WorldCollectives {
    record Part(int rank, double[] data) implements Serializable {}

    static World world;
    static int rank;
    static int size;

    static void values(int root) {
        Check.same("x" + root, world.bcast(rank == root ? "x" + root : null, root), "bcast");
        double[] sent = rank == root ? new double[] {root, 0.5} : null;
        Check.same(new double[] {root, 0.5}, world.bcast(sent, root), "bcast of an array");
        boolean[] flags = world.bcast(rank == root ? new boolean[] {true, false} : null, root);
        Check.same(new boolean[] {true, false}, flags, "bcast of booleans");
        List<Integer> ranks = IntStream.range(0, size).boxed().toList();
        Check.same(rank == root ? ranks : List.of(), world.gather(rank, root), "gather");
        // Different lengths.
        List<int[]> arrays = world.gather(new int[rank + 1], root);
        for (int i = 0; i < arrays.size(); i++) {
            Check.same(i + 1, arrays.get(i).length, "length of an array");
        }
        List<String> texts = rank == root ? ranks.stream().map(i -> "for " + i).toList() : null;
        Check.same("for " + rank, world.scatter(texts, root), "scatter");
        Optional<Integer> sum = world.reduce(rank, Operation.SUM, root);
        Check.same(rank == root ? Optional.of(size * (size - 1) / 2) : Optional.empty(), sum, "reduce");
        // Not commutative.
        String digits = IntStream.range(0, size).mapToObj(String::valueOf).reduce("", String::concat);
        Optional<String> joined = world.reduce("" + rank, String::concat, root);
        Check.same(rank == root ? Optional.of(digits) : Optional.empty(), joined, "reduce by a function");
    }

    static void buffers(int root) {
        int[] shared = rank == root ? new int[] {root, 7} : new int[2];
        world.bcastInto(shared, root);
        Check.same(new int[] {root, 7}, shared, "bcastInto");
        long[] all = rank == root ? new long[2 * size] : null;
        world.gatherInto(new long[] {rank, -rank}, all, root);
        for (int i = 0; i < size && rank == root; i++) {
            Check.same(new long[] {i, -i}, new long[] {all[2 * i], all[2 * i + 1]}, "gatherInto");
        }
        long[] one = new long[2];
        world.scatterInto(all, one, root);
        Check.same(new long[] {rank, -rank}, one, "scatterInto");
        int[] counts = IntStream.range(0, size).toArray();
        float[] some = new float[rank];
        java.util.Arrays.fill(some, rank);
        float[] triangle = rank == root ? new float[size * (size - 1) / 2 + 3] : null;
        world.gatherInto(some, triangle, rank == root ? counts : null, root);
        if (rank == root) {
            Check.same(triangle(3), triangle, "gatherInto with counts");
        }
        float[] back = new float[rank];
        world.scatterInto(triangle, rank == root ? counts : null, back, root);
        Check.same(some, back, "scatterInto with counts");
        double[] result = rank == root ? new double[2] : null;
        world.reduceInto(new double[] {rank, 1}, result, Operation.SUM, root);
        if (rank == root) {
            Check.same(new double[] {size * (size - 1) / 2, size}, result, "reduceInto");
        }
    }

    /** 1, 2 2, 3 3 3 and so on, and zeros. */
    static float[] triangle(int zeros) {
        float[] all = new float[size * (size - 1) / 2 + zeros];
        int next = 0;
        for (int i = 0; i < size; i++) {
            for (int k = 0; k < i; k++) {
                all[next++] = i;
            }
        }
        return all;
    }

    static void toAll() {
        List<Part> parts = world.allgather(new Part(rank, new double[rank]));
        for (int i = 0; i < size; i++) {
            Check.same(i, parts.get(i).rank(), "allgather");
            Check.same(i, parts.get(i).data().length, "allgather");
        }
        List<String> mine = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            mine.add(rank + " to " + i);
        }
        List<String> theirs = world.alltoall(mine);
        for (int i = 0; i < size; i++) {
            Check.same(i + " to " + rank, theirs.get(i), "alltoall");
        }
        char[] letters = new char[size];
        world.allgatherInto(new char[] {(char) ('a' + rank)}, letters);
        Check.same("abcdefgh".substring(0, size), new String(letters), "allgatherInto");
        boolean[] flags = new boolean[size];
        world.allgatherInto(new boolean[] {rank % 2 == 0}, flags);
        for (int i = 0; i < size; i++) {
            Check.same(i % 2 == 0, flags[i], "allgatherInto of booleans");
        }
        float[] all = new float[size * (size - 1) / 2];
        float[] some = new float[rank];
        java.util.Arrays.fill(some, rank);
        world.allgatherInto(some, all, IntStream.range(0, size).toArray());
        Check.same(triangle(0), all, "allgatherInto with counts");
        short[] out = new short[size];
        short[] in = new short[size];
        for (int i = 0; i < size; i++) {
            out[i] = (short) (10 * rank + i);
        }
        world.alltoallInto(out, in);
        for (int i = 0; i < size; i++) {
            Check.same((short) (10 * i + rank), in[i], "alltoallInto");
        }
        // Rank i sends i + 1 elements to each.
        int[] sends = new int[size];
        java.util.Arrays.fill(sends, rank + 1);
        int[] receives = IntStream.range(1, size + 1).toArray();
        int[] data = new int[size * (rank + 1)];
        java.util.Arrays.fill(data, rank);
        int[] got = new int[size * (size + 1) / 2];
        world.alltoallInto(data, sends, got, receives);
        Check.same(IntStream.range(0, size).flatMap(i -> IntStream.range(0, i + 1).map(k -> i)).toArray(), got,
                "alltoallInto with counts");
    }

    static void reductions() {
        int sum = size * (size - 1) / 2;
        Check.same(sum, world.allreduce(rank, Operation.SUM), "int");
        Check.same((long) size - 1, world.allreduce((long) rank, Operation.MAX), "long");
        Check.same(0.5, world.allreduce(rank + 0.5, Operation.MIN), "double");
        Check.same(0.5f, world.allreduce((Float) (rank + 0.5f), Operation.MIN), "float");
        Check.same((short) sum, world.allreduce((Short) (short) rank, Operation.SUM), "short");
        Check.same(size > 1, world.allreduce(rank > 0, Operation.OR), "boolean");
        Check.same(size == 1, world.allreduce(rank == 0, Operation.AND), "boolean");
        Check.same(true, world.allreduce(rank == 0, Operation.XOR), "boolean");
        Check.same((1 << size) - 1, world.allreduce(1 << rank, Operation.OR), "bits");
        Check.same(1 << (size - 1) > 1 ? 0 : 1, world.allreduce(1 << rank, Operation.AND), "bits");
        Check.same(IntStream.rangeClosed(1, size).reduce(1, (a, b) -> a * b),
                world.allreduce(rank + 1, Operation.PROD), "product");
        byte[] bytes = world.allreduce(new byte[] {(byte) -rank, (byte) rank}, Operation.MIN);
        Check.same(new byte[] {(byte) (1 - size), 0}, bytes, "bytes are signed");
        boolean[] flags = world.allreduce(new boolean[] {true, rank == 0}, Operation.AND);
        Check.same(new boolean[] {true, size == 1}, flags, "booleans");
        int[] same = {rank, 1};
        world.allreduceInto(same, same, Operation.SUM);
        Check.same(new int[] {sum, size}, same, "one array for both");
        try (Arena arena = Arena.ofShared()) {
            Slice numbers = Slice.of(arena.allocateFrom(ValueLayout.JAVA_DOUBLE, rank, 1), ValueLayout.JAVA_DOUBLE);
            double[] result = new double[2];
            world.allreduceInto(numbers, result, Operation.SUM);
            Check.same(new double[] {sum, size}, result, "memory");
        }
        Check.same(rank * (rank + 1) / 2, world.scan(rank, Operation.SUM), "scan");
        double[] partial = new double[1];
        world.scanInto(new double[] {rank}, partial, Operation.SUM);
        Check.same(new double[] {rank * (rank + 1) / 2}, partial, "scanInto");
    }

    static void functions() {
        String digits = "01234567".substring(0, size);
        Check.same(digits, world.allreduce("" + rank, String::concat), "function");
        Check.same(digits.substring(0, rank + 1), world.scan("" + rank, String::concat), "scan by a function");
        // Compositions of a * x + b: associative, not commutative.
        int[] line = world.allreduce(new int[] {2, rank}, (f, g) -> new int[] {f[0] * g[0], f[1] * g[0] + g[1]});
        int a = 1;
        int b = 0;
        for (int i = 0; i < size; i++) {
            a *= 2;
            b = 2 * b + i;
        }
        Check.same(new int[] {a, b}, line, "function of arrays");
        Operation first = Operation.ofInts((x, y) -> x);
        Check.same(new int[] {0, 5}, world.allreduce(new int[] {rank, rank + 5}, first), "lower ranks come first");
        Check.same(0, world.allreduce(rank, first), "number");
        Check.same((long) size - 1, world.scan((long) rank, Operation.ofLongs(Math::max)) + size - 1 - rank, "longs");
        double[] norm = new double[1];
        world.allreduceInto(new double[] {1}, norm, Operation.ofDoubles(Math::hypot));
        Check.that(Math.abs(norm[0] - Math.sqrt(size)) < 1e-12, "doubles");
        Optional<double[]> root = world.reduce(new double[] {1}, Operation.ofDoubles(Double::sum), size - 1);
        Check.same(rank == size - 1, root.isPresent(), "only the root has a result");
    }

    public static void main(String[] args) {
        World.run(args, all -> {
            world = all;
            rank = world.rank();
            size = world.size();
            for (int root = 0; root < size; root++) {
                values(root);
                buffers(root);
            }
            Check.same("of 0", world.bcast(rank == 0 ? "of 0" : null), "bcast of rank 0");
            Check.same(rank == 0 ? size : 0, world.gather(1).size(), "gather on rank 0");
            Check.same(rank, world.scatter(rank == 0 ? IntStream.range(0, size).boxed().toList() : null), "scatter");
            world.barrier();
            toAll();
            reductions();
            functions();
            Check.end(world);
        });
    }
}
