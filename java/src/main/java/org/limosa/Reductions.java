package org.limosa;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Array;
import java.util.Optional;
import java.util.function.BinaryOperator;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator;
import org.limosa.engine.Reduction;
import org.limosa.engine.Trees;

/**
 * Reductions: the third part of {@link Comm}. Values are combined in the order of ranks, so that an operation need not
 * be commutative; it must be associative.
 */
public abstract sealed class Reductions extends Collectives permits Comm {
    Reductions(Home home, Communicator communicator) {
        super(home, communicator);
    }

    /** Which reduction it is. */
    private enum Kind { REDUCE, ALL, SCAN }

    // --- elements ---

    /** Combines buffers; the result is null where there is none. */
    private void combine(Kind kind, Elements in, Elements out, Operation operation, int root) {
        if (operation == null) {
            throw MPIException.of(Abi.MPI_ERR_OP, "the operation is null");
        }
        Reduction known = operation.reduction(in.type());
        MemorySegment result = out == null ? null : out.memory();
        if (known == null) {
            if (in.memory().byteSize() > Integer.MAX_VALUE) {
                throw MPIException.of(Abi.MPI_ERR_COUNT, "an operation of the program combines up to "
                        + Integer.MAX_VALUE + " bytes, but there are " + in.memory().byteSize());
            }
            byte[] mine = in.memory().toArray(ValueLayout.JAVA_BYTE);
            byte[] found = combine(kind, mine, operation.onBytes(), root);
            if (out != null) {
                MemorySegment.copy(MemorySegment.ofArray(found), 0, result, 0, found.length);
            }
        } else {
            switch (kind) {
                case REDUCE -> communicator().reduce(in.memory(), result, in.type(), known, root);
                case ALL -> communicator().allReduce(in.memory(), result, in.type(), known);
                case SCAN -> communicator().scan(in.memory(), result, in.type(), known);
            }
        }
        if (out != null) {
            out.finish();
        }
    }

    /** Combines messages. */
    private byte[] combine(Kind kind, byte[] mine, BinaryOperator<byte[]> operation, int root) {
        return switch (kind) {
            case REDUCE -> Trees.reduce(channel(), mine, operation, root);
            case ALL -> Trees.broadcast(channel(), Trees.reduce(channel(), mine, operation, 0), 0);
            case SCAN -> Trees.scan(channel(), mine, operation);
        };
    }

    private void into(Kind kind, Object elements, Object result, Operation operation, int root) {
        checkRoot(root);
        Elements in = Elements.required("elements", elements);
        Elements out = kind == Kind.REDUCE && rank != root ? null : Elements.writable("result", result);
        if (out != null) {
            same(in, out);
            if (in.count() != out.count()) {
                throw MPIException.of(Abi.MPI_ERR_COUNT,
                        in.count() + " elements are combined, but there is room for " + out.count());
            }
        }
        combine(kind, in, out, operation, root);
    }

    /**
     * Combines the elements of all ranks on one ({@code MPI_Reduce}).
     *
     * @param elements the elements of this rank
     * @param result on the root, room for as many elements; it may be the same buffer. Ignored elsewhere, where null
     *     may be given
     * @param operation how two elements are combined
     * @param root the rank that gets the result
     * @throws LimosaException if an argument is wrong
     */
    public void reduceInto(Object elements, Object result, Operation operation, int root) {
        call("reduceInto", () -> into(Kind.REDUCE, elements, result, operation, root));
    }

    /**
     * Combines the elements of all ranks on all ({@code MPI_Allreduce}).
     *
     * @param elements the elements of this rank
     * @param result room for as many elements; it may be the same buffer
     * @param operation how two elements are combined
     * @throws LimosaException if an argument is wrong
     */
    public void allreduceInto(Object elements, Object result, Operation operation) {
        call("allreduceInto", () -> into(Kind.ALL, elements, result, operation, 0));
    }

    /**
     * Combines the elements of this rank and of those with lower ranks ({@code MPI_Scan}).
     *
     * @param elements the elements of this rank
     * @param result room for as many elements; it may be the same buffer
     * @param operation how two elements are combined
     * @throws LimosaException if an argument is wrong
     */
    public void scanInto(Object elements, Object result, Operation operation) {
        call("scanInto", () -> into(Kind.SCAN, elements, result, operation, 0));
    }

    // --- numbers and arrays ---

    /** A number or a boolean as an array of one element; an array as it is. */
    private static Object array(Object value) {
        if (value == null) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER, "the value is null");
        }
        Class<?> primitive = java.lang.invoke.MethodType.methodType(value.getClass()).unwrap().returnType();
        if (!primitive.isPrimitive()) {
            return value;
        }
        Object one = Array.newInstance(primitive, 1);
        Array.set(one, 0, value);
        return one;
    }

    @SuppressWarnings("unchecked")
    private <T> T combined(Kind kind, T value, Operation operation, int root) {
        checkRoot(root);
        Object array = array(value);
        if (!array.getClass().isArray() || Elements.type(array.getClass().getComponentType()) == null) {
            throw MPIException.of(Abi.MPI_ERR_TYPE, "an object of class " + value.getClass().getTypeName()
                    + " cannot be combined by " + operation + "; give a function of two values, or a number or an array"
                    + " of a primitive type");
        }
        Elements in = Elements.of(array);
        Object result = kind == Kind.REDUCE && rank != root ? null : Elements.allocate(in.type(), (int) in.count());
        combine(kind, in, result == null ? null : Elements.of(result), operation, root);
        return (T) (result == null || array == value ? result : Array.get(result, 0));
    }

    /**
     * Combines the values of all ranks on one ({@code MPI_Reduce}).
     *
     * @param value a number, a boolean, or an array of a primitive type, with as many elements on all ranks
     * @param operation how they are combined
     * @param root the rank that gets the result
     * @return the result; empty on all other ranks
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> Optional<T> reduce(T value, Operation operation, int root) {
        return call("reduce", () -> Optional.ofNullable(combined(Kind.REDUCE, value, operation, root)));
    }

    /**
     * Combines the values of all ranks on all ({@code MPI_Allreduce}).
     *
     * @param value a number, a boolean, or an array of a primitive type, with as many elements on all ranks
     * @param operation how they are combined
     * @return the result, in a new array if it is one
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> T allreduce(T value, Operation operation) {
        return call("allreduce", () -> combined(Kind.ALL, value, operation, 0));
    }

    /** As {@link #allreduce(Object, Operation)}. */
    public int allreduce(int value, Operation operation) {
        int[] all = {value};
        allreduce(all, operation, all);
        return all[0];
    }

    /** As {@link #allreduce(Object, Operation)}. */
    public long allreduce(long value, Operation operation) {
        long[] all = {value};
        allreduce(all, operation, all);
        return all[0];
    }

    /** As {@link #allreduce(Object, Operation)}. */
    public double allreduce(double value, Operation operation) {
        double[] all = {value};
        allreduce(all, operation, all);
        return all[0];
    }

    private void allreduce(Object one, Operation operation, Object result) {
        call("allreduce", () -> into(Kind.ALL, one, result, operation, 0));
    }

    /**
     * Combines the values of this rank and of those with lower ranks ({@code MPI_Scan}).
     *
     * @param value a number, a boolean, or an array of a primitive type, with as many elements on all ranks
     * @param operation how they are combined
     * @return the result, in a new array if it is one
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> T scan(T value, Operation operation) {
        return call("scan", () -> combined(Kind.SCAN, value, operation, 0));
    }

    // --- values of any kind ---

    private <T> T combined(Kind kind, T value, BinaryOperator<T> operation, int root) {
        checkRoot(root);
        if (operation == null) {
            throw MPIException.of(Abi.MPI_ERR_OP, "the operation is null");
        }
        BinaryOperator<byte[]> onBytes =
                (lower, higher) -> Values.write(operation.apply(read(lower), read(higher)));
        byte[] found = combine(kind, Values.write(value), onBytes, root);
        return found == null ? null : read(found);
    }

    /**
     * Combines the values of all ranks on one by a function of the program. It is called in the calling threads; if it
     * throws an exception, other ranks may wait for its result.
     *
     * @param value any serializable value, or an array of a primitive type, which is combined as a whole
     * @param operation an associative function; its first argument is of the lower ranks
     * @param root the rank that gets the result
     * @return the result; empty on all other ranks
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> Optional<T> reduce(T value, BinaryOperator<T> operation, int root) {
        return call("reduce", () -> Optional.ofNullable(combined(Kind.REDUCE, value, operation, root)));
    }

    /**
     * As {@link #reduce(Object, BinaryOperator, int)}, with the result on all ranks.
     *
     * @param value any serializable value
     * @param operation an associative function; its first argument is of the lower ranks
     * @return the result
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> T allreduce(T value, BinaryOperator<T> operation) {
        return call("allreduce", () -> combined(Kind.ALL, value, operation, 0));
    }

    /**
     * Combines the values of this rank and of those with lower ranks by a function of the program.
     *
     * @param value any serializable value
     * @param operation an associative function; its first argument is of the lower ranks
     * @return the result
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> T scan(T value, BinaryOperator<T> operation) {
        return call("scan", () -> combined(Kind.SCAN, value, operation, 0));
    }
}
