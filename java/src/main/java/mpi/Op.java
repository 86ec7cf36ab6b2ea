package mpi;

import org.limosa.engine.Reduction;
import org.limosa.engine.Type;

/** An operation of reductions. */
public class Op {
    /** What the engine knows it as; null for those that are in Java. */
    final Reduction reduction;
    final User_function function;
    final boolean commute;
    private final String name;

    /** An operation of the program. It is called in the calling thread of a collective operation. */
    public Op(User_function function, boolean commute) throws MPIException {
        this(null, function, commute, "an operation of the program");
        if (function == null) {
            throw Errors.op("Op: the function is null");
        }
    }

    Op(Reduction reduction, User_function function, boolean commute, String name) {
        this.reduction = reduction;
        this.function = function;
        this.commute = commute;
        this.name = name;
    }

    /** Nothing is kept for an operation. */
    public void Free() throws MPIException {}

    /** Checks that the operation is defined for the type. */
    void check(String where, Datatype type) {
        if (function instanceof Located) {
            Located.check(where, type);
        }
        boolean fits = function != null
                || reduction != null && type.base != null && reduction.fits(type.base);
        if (type == MPI.FLOAT_COMPLEX || type == MPI.DOUBLE_COMPLEX) {
            fits = function != null || reduction == Reduction.SUM;
        }
        if (!fits) {
            throw Errors.op(where + ": " + name + " is not defined for " + type);
        }
    }

    /** The smallest, or largest, of pairs of a value and an index; of equal values the smallest index. */
    static Op located(boolean largest) {
        return new Op(null, new Located(largest), true, largest ? "MPI.MAXLOC" : "MPI.MINLOC");
    }

    private static final class Located extends User_function {
        private final boolean largest;

        Located(boolean largest) {
            this.largest = largest;
        }

        static void check(String where, Datatype type) {
            boolean isPair = type.base != null && type.size() == 2 && type.isDense() && type.base != Type.BOOLEAN;
            if (!isPair && Pair.of(type) == null || type == MPI.FLOAT_COMPLEX || type == MPI.DOUBLE_COMPLEX) {
                throw Errors.op(where + ": MPI.MINLOC and MPI.MAXLOC are not defined for " + type + "; they are for "
                        + "MPI.SHORT2, INT2, LONG2, FLOAT2, DOUBLE2, SHORT_INT, LONG_INT, FLOAT_INT and DOUBLE_INT");
            }
        }

        @Override
        public void Call(Object in, int at, Object inout, int to, int count, Datatype type) {
            Pair pair = Pair.of(type);
            if (pair != null && in instanceof byte[] bytes) {
                pair.combine(bytes, at, (byte[]) inout, to, count, largest);
                return;
            }
            for (int i = 0; i < 2 * count; i += 2) {
                int order = compare(in, at + i, inout, to + i);
                boolean wins = largest ? order > 0 : order < 0;
                if (wins || order == 0 && compare(in, at + i + 1, inout, to + i + 1) < 0) {
                    System.arraycopy(in, at + i, inout, to + i, 2);
                }
            }
        }

        private static int compare(Object a, int i, Object b, int k) {
            return switch (a) {
                case short[] values -> Short.compare(values[i], ((short[]) b)[k]);
                case int[] values -> Integer.compare(values[i], ((int[]) b)[k]);
                case long[] values -> Long.compare(values[i], ((long[]) b)[k]);
                case float[] values -> Float.compare(values[i], ((float[]) b)[k]);
                case double[] values -> Double.compare(values[i], ((double[]) b)[k]);
                default -> throw Errors.op("MINLOC and MAXLOC are not defined for " + a.getClass().getTypeName());
            };
        }
    }

    @Override
    public String toString() {
        return name;
    }

    // --- the names of Open MPI's bindings ---

    /** An operation of the program. */
    public Op(UserFunction function, boolean commute) throws MPIException {
        this(function == null ? null : function.asUserFunction(), commute);
    }

    /** Whether the order of its operands does not matter. */
    public boolean isCommutative() {
        return commute;
    }

    /** Whether there is no operation. */
    public boolean isNull() {
        return false;
    }

    /** Nothing is kept for an operation. */
    public void free() throws MPIException {}
}
