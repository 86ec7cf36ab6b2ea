import java.lang.reflect.Array;
import java.util.Arrays;
import mpi.Datatype;
import mpi.MPI;
import org.limosa.World;

/** What the test programs say when something is wrong. */
final class Check {
    private Check() {}

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(rank() + ": " + what);
        }
    }

    private static String rank() {
        return MPI.Initialized() ? "rank " + MPI.COMM_WORLD.Rank() : "a rank";
    }

    static void same(Object expected, Object found, String what) {
        that(Arrays.deepEquals(new Object[] {expected}, new Object[] {found}),
                what + ": expected " + text(expected) + ", found " + text(found));
    }

    private static String text(Object value) {
        String all = Arrays.deepToString(new Object[] {value});
        return all.substring(1, Math.min(all.length() - 1, 200));
    }

    /** A new array for elements of a type. */
    static Object array(Datatype type, int length) {
        if (type == MPI.BYTE) return new byte[length];
        if (type == MPI.CHAR) return new char[length];
        if (type == MPI.SHORT) return new short[length];
        if (type == MPI.BOOLEAN) return new boolean[length];
        if (type == MPI.INT) return new int[length];
        if (type == MPI.LONG) return new long[length];
        if (type == MPI.FLOAT) return new float[length];
        if (type == MPI.DOUBLE) return new double[length];
        return new Object[length];
    }

    /** The statement must throw an exception whose text holds all the words. */
    static void fails(Runnable statement, String... words) {
        try {
            statement.run();
        } catch (RuntimeException e) {
            for (String word : words) {
                that(String.valueOf(e.getMessage()).contains(word), "\"" + word + "\" is not in: " + e.getMessage());
            }
            return;
        }
        throw new AssertionError(rank() + ": no exception that says " + Arrays.toString(words));
    }

    /** As {@link #fails}, with an exception of a class. */
    static void throwsA(Class<? extends RuntimeException> type, Runnable statement, String... words) {
        fails(() -> {
            try {
                statement.run();
            } catch (RuntimeException e) {
                that(type.isInstance(e), "an exception of " + e.getClass() + ", not " + type + ": " + e.getMessage());
                throw e;
            }
        }, words);
    }

    /** The first elements of an array, or zeros behind all of them. */
    static Object copyOfLength(Object array, int length) {
        Object copy = Array.newInstance(array.getClass().getComponentType(), length);
        System.arraycopy(array, 0, copy, 0, Math.min(length, Array.getLength(array)));
        return copy;
    }

    /** All ranks have come to the end. */
    static void end(World world) {
        world.barrier();
        if (world.rank() == 0) {
            System.out.println("ok");
        }
    }

    /** All ranks have come to the end. */
    static void end() {
        MPI.COMM_WORLD.Barrier();
        if (MPI.COMM_WORLD.Rank() == 0) {
            System.out.println("ok");
        }
        MPI.Finalize();
    }
}
