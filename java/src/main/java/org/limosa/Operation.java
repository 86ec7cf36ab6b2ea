package org.limosa;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.BinaryOperator;
import java.util.function.DoubleBinaryOperator;
import java.util.function.IntBinaryOperator;
import java.util.function.LongBinaryOperator;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;

/**
 * How a reduction combines numbers, and arrays element by element. Operations of the program must be associative; they
 * are called in the calling threads, with the value of the lower ranks first.
 */
public final class Operation {
    /** The sum. */
    public static final Operation SUM = new Operation("SUM", Reduction.SUM, Reduction.SUM);
    /** The product. */
    public static final Operation PROD = new Operation("PROD", Reduction.PROD, Reduction.PROD);
    /** The largest. */
    public static final Operation MAX = new Operation("MAX", Reduction.MAX, Reduction.MAX);
    /** The smallest. */
    public static final Operation MIN = new Operation("MIN", Reduction.MIN, Reduction.MIN);
    /** And, of booleans, and of the bits of integers. */
    public static final Operation AND = new Operation("AND", Reduction.BAND, Reduction.LAND);
    /** Or, of booleans, and of the bits of integers. */
    public static final Operation OR = new Operation("OR", Reduction.BOR, Reduction.LOR);
    /** Exclusive or, of booleans, and of the bits of integers. */
    public static final Operation XOR = new Operation("XOR", Reduction.BXOR, Reduction.LXOR);

    private interface Combine {
        /** Sets each element of {@code higher} to (element of {@code lower}) op (element of {@code higher}). */
        void into(MemorySegment lower, MemorySegment higher);
    }

    private final String name;
    private final Reduction ofNumbers;
    private final Reduction ofBooleans;
    /** What the program has written, for one type; null for predefined ones. */
    private final Combine function;
    private final Type type;

    private Operation(String name, Reduction ofNumbers, Reduction ofBooleans) {
        this.name = name;
        this.ofNumbers = ofNumbers;
        this.ofBooleans = ofBooleans;
        function = null;
        type = null;
    }

    private Operation(String name, Type type, Object given, Combine function) {
        if (given == null) {
            throw Errors.of(Abi.MPI_ERR_OP, name + ": the function is null", null);
        }
        this.name = name;
        this.type = type;
        this.function = function;
        ofNumbers = null;
        ofBooleans = null;
    }

    /**
     * An operation on {@code int} values.
     *
     * @param function an associative function
     * @return the operation
     */
    public static Operation ofInts(IntBinaryOperator function) {
        ValueLayout.OfInt layout = ValueLayout.JAVA_INT_UNALIGNED;
        return new Operation("Operation.ofInts", Type.INT, function, (lower, higher) -> {
            for (long at = 0; at < higher.byteSize(); at += Integer.BYTES) {
                higher.set(layout, at, function.applyAsInt(lower.get(layout, at), higher.get(layout, at)));
            }
        });
    }

    /**
     * An operation on {@code long} values.
     *
     * @param function an associative function
     * @return the operation
     */
    public static Operation ofLongs(LongBinaryOperator function) {
        ValueLayout.OfLong layout = ValueLayout.JAVA_LONG_UNALIGNED;
        return new Operation("Operation.ofLongs", Type.LONG, function, (lower, higher) -> {
            for (long at = 0; at < higher.byteSize(); at += Long.BYTES) {
                higher.set(layout, at, function.applyAsLong(lower.get(layout, at), higher.get(layout, at)));
            }
        });
    }

    /**
     * An operation on {@code double} values.
     *
     * @param function an associative function
     * @return the operation
     */
    public static Operation ofDoubles(DoubleBinaryOperator function) {
        ValueLayout.OfDouble layout = ValueLayout.JAVA_DOUBLE_UNALIGNED;
        return new Operation("Operation.ofDoubles", Type.DOUBLE, function, (lower, higher) -> {
            for (long at = 0; at < higher.byteSize(); at += Double.BYTES) {
                higher.set(layout, at, function.applyAsDouble(lower.get(layout, at), higher.get(layout, at)));
            }
        });
    }

    /** What the engine knows it as; null for an operation of the program. */
    Reduction reduction(Type elements) {
        Reduction reduction = elements == Type.BOOLEAN ? ofBooleans : ofNumbers;
        boolean fits = function != null ? elements == type : reduction.fits(elements);
        if (!fits) {
            throw MPIException.of(Abi.MPI_ERR_OP,
                    this + " is not defined for elements of type " + elements.array.getComponentType().getName());
        }
        return reduction;
    }

    /** The operation of the program on elements as bytes. */
    BinaryOperator<byte[]> onBytes() {
        return (lower, higher) -> {
            byte[] result = higher.clone();
            function.into(MemorySegment.ofArray(lower), MemorySegment.ofArray(result));
            return result;
        };
    }

    @Override
    public String toString() {
        return function == null ? "Operation." + name : "an operation of " + name;
    }
}
