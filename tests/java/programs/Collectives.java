import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.List;
import mpi.Datatype;
import mpi.Intracomm;
import mpi.MPI;
import mpi.Op;
import mpi.User_function;

/** Every collective operation, of every type, compared with what follows from the values that all ranks have. */
public class Collectives {
    static Intracomm world;
    static int rank;
    static int size;

    static void set(Object array, int i, int value) {
        switch (array) {
            case byte[] a -> a[i] = (byte) value;
            case char[] a -> a[i] = (char) value;
            case short[] a -> a[i] = (short) value;
            case boolean[] a -> a[i] = value % 2 == 1;
            case int[] a -> a[i] = value;
            case long[] a -> a[i] = value;
            case float[] a -> a[i] = value;
            case double[] a -> a[i] = value;
            default -> Array.set(array, i, value);
        }
    }

    interface Value {
        int at(int i);
    }

    static Object filled(Datatype type, int length, Value value) {
        Object array = Check.array(type, length);
        for (int i = 0; i < length; i++) {
            set(array, i, value.at(i));
        }
        return array;
    }

    /** What rank r has at place i. */
    static int of(int r, int i) {
        return (r * 17 + i * 3) % 100;
    }

    static void movements(Datatype type, int n, int root) {
        String name = " of " + n + " " + type + " from " + root;
        boolean isRoot = rank == root;
        Object buffer = isRoot ? filled(type, n + 2, i -> of(root, i)) : Check.array(type, n + 2);
        Object expected = Check.array(type, n + 2);
        if (isRoot) {
            expected = filled(type, n + 2, i -> of(root, i));
        } else {
            for (int i = 1; i <= n; i++) {
                set(expected, i, of(root, i));
            }
        }
        world.Bcast(buffer, 1, n, type, root);
        Check.same(expected, buffer, "Bcast" + name);

        Object mine = filled(type, n, i -> of(rank, i));
        Object all = filled(type, n * size, i -> of(i / Math.max(1, n), i % Math.max(1, n)));
        Object received = isRoot ? Check.array(type, n * size) : null;
        world.Gather(mine, 0, n, type, received, 0, n, type, root);
        if (isRoot) {
            Check.same(all, received, "Gather" + name);
        }
        received = Check.array(type, n);
        world.Scatter(isRoot ? all : null, 0, n, type, received, 0, n, type, root);
        Check.same(mine, received, "Scatter" + name);
        received = Check.array(type, n * size);
        world.Allgather(mine, 0, n, type, received, 0, n, type);
        Check.same(all, received, "Allgather" + name);
        Object sent = filled(type, n * size, i -> of(rank, i));
        received = Check.array(type, n * size);
        world.Alltoall(sent, 0, n, type, received, 0, n, type);
        Check.same(
                filled(type, n * size, i -> of(i / n, rank * n + i % n)), n == 0 ? Check.array(type, 0) : received,
                "Alltoall" + name);
        vectors(type, root, name);
    }

    /** Rank r has r + 1 items, one place apart from each other. */
    static void vectors(Datatype type, int root, String name) {
        int[] counts = new int[size + 3];
        int[] displs = new int[size + 3];
        int total = 0;
        for (int r = 0; r < size; r++) {
            counts[r] = r + 1;
            displs[r] = total;
            total += r + 2;
        }
        int length = total;
        Object mine = filled(type, rank + 1, i -> of(rank, i));
        Object expected = Check.array(type, length);
        for (int r = 0; r < size; r++) {
            for (int i = 0; i <= r; i++) {
                set(expected, displs[r] + i, of(r, i));
            }
        }
        boolean isRoot = rank == root;
        Object received = isRoot ? Check.array(type, length) : null;
        world.Gatherv(mine, 0, rank + 1, type, received, 0, counts, displs, type, root);
        if (isRoot) {
            Check.same(expected, received, "Gatherv" + name);
        }
        received = Check.array(type, rank + 1);
        world.Scatterv(isRoot ? expected : null, 0, counts, displs, type, received, 0, rank + 1, type, root);
        Check.same(mine, received, "Scatterv" + name);
        received = Check.array(type, length);
        world.Allgatherv(mine, 0, rank + 1, type, received, 0, counts, displs, type);
        Check.same(expected, received, "Allgatherv" + name);
        // Everyone sends r + 1 items to rank r.
        int[] same = new int[size];
        int[] steps = new int[size];
        for (int r = 0; r < size; r++) {
            same[r] = rank + 1;
            steps[r] = r * (rank + 2);
        }
        Object sent = filled(type, length, i -> of(rank, i));
        received = Check.array(type, size * (rank + 2));
        world.Alltoallv(sent, 0, counts, displs, type, received, 0, same, steps, type);
        expected = Check.array(type, size * (rank + 2));
        for (int r = 0; r < size; r++) {
            for (int i = 0; i <= rank; i++) {
                set(expected, steps[r] + i, of(r, displs[rank] + i));
            }
        }
        Check.same(expected, received, "Alltoallv" + name);
    }

    interface Combine {
        int of(int a, int b);
    }

    record Known(String name, Op op, Combine combine) {}

    static final List<Known> ARITHMETIC = List.of(
            new Known("MAX", MPI.MAX, Math::max), new Known("MIN", MPI.MIN, Math::min),
            new Known("SUM", MPI.SUM, (a, b) -> a + b), new Known("PROD", MPI.PROD, (a, b) -> a * b));
    static final List<Known> BITWISE = List.of(
            new Known("BAND", MPI.BAND, (a, b) -> a & b), new Known("BOR", MPI.BOR, (a, b) -> a | b),
            new Known("BXOR", MPI.BXOR, (a, b) -> a ^ b));
    static final List<Known> LOGICAL = List.of(
            new Known("LAND", MPI.LAND, (a, b) -> a & b), new Known("LOR", MPI.LOR, (a, b) -> a | b),
            new Known("LXOR", MPI.LXOR, (a, b) -> a ^ b));

    /** Small values: a product of bytes must not overflow. */
    static int small(int r, int i) {
        return (r + i) % 2 + 1;
    }

    static void reductions(Datatype type, Known known, int n, int root) {
        boolean logical = LOGICAL.contains(known);
        Value before = i -> logical ? (rank + i) % 2 : small(rank, i);
        Object mine = filled(type, n, before);
        int[] results = new int[n];
        int[] partial = new int[n];
        for (int i = 0; i < n; i++) {
            for (int r = 0; r < size; r++) {
                int value = logical ? (r + i) % 2 : small(r, i);
                results[i] = r == 0 ? value : known.combine.of(results[i], value);
                partial[i] = r == rank ? results[i] : partial[i];
            }
        }
        String name = known.name + " of " + type;
        Object expected = filled(type, n, i -> results[i]);
        Object received = rank == root ? Check.array(type, n) : null;
        world.Reduce(mine, 0, received, 0, n, type, known.op, root);
        if (rank == root) {
            Check.same(expected, received, "Reduce " + name);
        }
        received = Check.array(type, n);
        world.Allreduce(mine, 0, received, 0, n, type, known.op);
        Check.same(expected, received, "Allreduce " + name);
        Object both = filled(type, n, before);
        world.Allreduce(both, 0, both, 0, n, type, known.op);
        Check.same(expected, both, "Allreduce in place " + name);
        received = Check.array(type, n);
        world.Scan(mine, 0, received, 0, n, type, known.op);
        Check.same(filled(type, n, i -> partial[i]), received, "Scan " + name);
        int[] counts = new int[size + 2];
        int start = 0;
        for (int r = 0; r < size; r++) {
            counts[r] = r == size - 1 ? n - start : n / size;
            if (r < rank) {
                start += counts[r];
            } else if (r < size - 1) {
                counts[r] = n / size;
            }
        }
        int first = rank * (n / size);
        counts[size - 1] = n - (size - 1) * (n / size);
        received = Check.array(type, counts[rank]);
        world.Reduce_scatter(mine, 0, received, 0, counts, type, known.op);
        Check.same(filled(type, counts[rank], i -> results[first + i]), received, "Reduce_scatter " + name);
    }

    /** a op b = b's first digit behind a's: not commutative, but associative. Texts show the order. */
    static final class Join extends User_function {
        @Override
        public void Call(Object in, int at, Object inout, int to, int count, Datatype type) {
            for (int i = 0; i < count; i++) {
                if (type == MPI.OBJECT) {
                    ((Object[]) inout)[to + i] = "" + ((Object[]) in)[at + i] + ((Object[]) inout)[to + i];
                } else {
                    // 2 x 2 matrices of rank: the product is not commutative.
                    double[] a = (double[]) in;
                    double[] b = (double[]) inout;
                    int p = at + 4 * i;
                    int q = to + 4 * i;
                    double[] c = {
                        a[p] * b[q] + a[p + 1] * b[q + 2], a[p] * b[q + 1] + a[p + 1] * b[q + 3],
                        a[p + 2] * b[q] + a[p + 3] * b[q + 2], a[p + 2] * b[q + 1] + a[p + 3] * b[q + 3]
                    };
                    System.arraycopy(c, 0, b, q, 4);
                }
            }
        }
    }

    static void ownOperations() {
        Op join = new Op(new Join(), false);
        Object[] words = {"a" + rank, "b" + rank};
        String[] expected = {"", ""};
        String[] partial = {"", ""};
        for (int r = 0; r < size; r++) {
            expected[0] += "a" + r;
            expected[1] += "b" + r;
            if (r <= rank) {
                partial[0] += "a" + r;
                partial[1] += "b" + r;
            }
        }
        for (int root = 0; root < size; root++) {
            Object[] result = new Object[2];
            world.Reduce(words, 0, result, 0, 2, MPI.OBJECT, join, root);
            Check.same(rank == root ? expected : new Object[2], result, "Reduce of texts in the order of ranks");
        }
        String[] result = new String[2];
        world.Allreduce(words, 0, result, 0, 2, MPI.OBJECT, join);
        Check.same(expected, result, "Allreduce of texts");
        world.Scan(words, 0, result, 0, 2, MPI.OBJECT, join);
        Check.same(partial, result, "Scan of texts");
        Datatype matrix = Datatype.Contiguous(4, MPI.DOUBLE);
        matrix.Commit();
        double[] sent = {1, rank + 1, 0, 1, 2, 0, rank, 1};
        double[] product = {1, 0, 0, 1, 1, 0, 0, 1};
        for (int r = 0; r < size; r++) {
            double[] theirs = {1, r + 1, 0, 1, 2, 0, r, 1};
            new Join().Call(product.clone(), 0, theirs, 0, 2, matrix);
            product = theirs;
        }
        double[] found = new double[8];
        world.Allreduce(sent, 0, found, 0, 2, matrix, join);
        Check.same(product, found, "Allreduce of matrices");
    }

    static void located() {
        int[] pairs = {10 - rank, rank, 5, rank};
        int[] found = new int[4];
        world.Allreduce(pairs, 0, found, 0, 2, MPI.INT2, MPI.MINLOC);
        Check.same(new int[] {11 - size, size - 1, 5, 0}, found, "MINLOC");
        double[] values = {rank * 0.5, rank, -1, rank};
        double[] most = new double[4];
        world.Allreduce(values, 0, most, 0, 2, MPI.DOUBLE2, MPI.MAXLOC);
        Check.same(new double[] {(size - 1) * 0.5, size - 1, -1, 0}, most, "MAXLOC");
    }

    /** Every second element of what others have. */
    static void derived() {
        Datatype second = Datatype.Vector(3, 1, 2, MPI.INT);
        second.Commit();
        int[] sent = {rank, -1, rank + 1, -1, rank + 2, -1};
        int[] received = new int[6 * size];
        world.Allgather(sent, 0, 1, second, received, 0, 3, MPI.INT);
        for (int r = 0; r < size; r++) {
            Check.same(new int[] {r, r + 1, r + 2}, Arrays.copyOfRange(received, 3 * r, 3 * r + 3), "Allgather");
        }
        int[] spread = new int[5 * size];
        world.Allgather(new int[] {rank, rank, rank}, 0, 3, MPI.INT, spread, 0, 1, second);
        for (int r = 0; r < size; r++) {
            Check.same(new int[] {r, 0, r, 0, r}, Arrays.copyOfRange(spread, 5 * r, 5 * r + 5), "into every second");
        }
    }

    public static void main(String[] args) {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.Rank();
        size = world.Size();
        for (Datatype type : List.of(
                MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.BOOLEAN, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE, MPI.OBJECT)) {
            for (int n : new int[] {1, 4, 3000}) {
                movements(type, n, size - 1);
            }
            movements(type, 2, 0);
        }
        for (Datatype type : List.of(
                MPI.BYTE, MPI.CHAR, MPI.SHORT, MPI.INT, MPI.LONG, MPI.FLOAT, MPI.DOUBLE)) {
            ARITHMETIC.forEach(known -> reductions(type, known, 7, size - 1));
            if (type != MPI.FLOAT && type != MPI.DOUBLE) {
                BITWISE.forEach(known -> reductions(type, known, 7, 0));
            }
        }
        LOGICAL.forEach(known -> reductions(MPI.BOOLEAN, known, 7, 0));
        movements(MPI.INT, 0, 0);
        ARITHMETIC.forEach(known -> reductions(MPI.DOUBLE, known, 0, 0));
        ownOperations();
        located();
        derived();
        Check.fails(() -> world.Allreduce(new int[1], 0, new int[1], 0, 1, MPI.INT, MPI.LAND), "MPI.LAND", "MPI.INT");
        Check.fails(() -> world.Bcast(new int[1], 0, 1, MPI.INT, size), "Bcast", "no root " + size);
        Check.fails(
                () -> world.Allgather(new int[1], 0, 1, MPI.INT, new int[size], 1, 1, MPI.INT), "Allgather",
                "buffer has " + size);
        Check.end();
    }
}
