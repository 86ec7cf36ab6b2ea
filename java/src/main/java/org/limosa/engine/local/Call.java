package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;

/**
 * A collective call of one rank, which the others see: they compare it with theirs, and copy its data.
 *
 * @param name the name of the call
 * @param root the rank of its root; {@link #NO_ROOT} if it has none
 * @param type the type of its elements; null if it has no data
 * @param reduction how they are combined, or null
 * @param data what the rank gives to others, or null
 * @param counts the number of elements for or of each rank, or null
 * @param displacements where they begin, or null
 */
record Call(
        String name, int root, Type type, Reduction reduction, MemorySegment data, int[] counts, int[] displacements) {
    static final int NO_ROOT = -1;
    static final Call BARRIER = new Call("Barrier", NO_ROOT, null, null, null, null, null);
    static final Call FINALIZE = new Call("MPI.Finalize", NO_ROOT, null, null, null, null, null);

    /** One that gives each rank the same number of elements, or all of them to the root. */
    static Call of(String name, int root, Type type, MemorySegment data) {
        return new Call(name, root, type, null, data, null, null);
    }

    /** One that combines elements. */
    static Call of(String name, int root, Type type, MemorySegment data, Reduction reduction) {
        return new Call(name, root, type, reduction, data, null, null);
    }

    long bytes() {
        return data == null ? 0 : data.byteSize();
    }

    /** Where the elements for a rank begin. */
    long place(int rank) {
        return (long) displacements[rank] * type.bytes;
    }

    /** How many bytes a rank gets. */
    long share(int rank) {
        return (long) counts[rank] * type.bytes;
    }

    /** Why these calls of all ranks do not fit together; null if they do. */
    static MPIException problem(Object[] calls, String communicator) {
        Call first = (Call) calls[0];
        for (Object each : calls) {
            Call call = (Call) each;
            if (!call.name.equals(first.name)) {
                return told(calls, communicator, Abi.MPI_ERR_OTHER, any -> any.name);
            }
            if (call.root != first.root) {
                return told(calls, communicator, Abi.MPI_ERR_ROOT, any -> any.name + " with root " + any.root);
            }
            if (call.reduction != first.reduction) {
                return told(calls, communicator, Abi.MPI_ERR_OP, any -> any.name + " with MPI." + any.reduction);
            }
            if (call.reduction != null && !Arrays.equals(call.counts, first.counts)) {
                return told(calls, communicator, Abi.MPI_ERR_COUNT,
                        any -> any.name + " with the counts " + Arrays.toString(any.counts));
            }
            if (call.reduction != null && call.bytes() / call.type.bytes != first.bytes() / first.type.bytes) {
                return told(calls, communicator, Abi.MPI_ERR_COUNT,
                        any -> any.name + " with " + any.bytes() / any.type.bytes + " elements");
            }
            if (call.type != first.type && call.isTyped() && first.isTyped()) {
                return told(calls, communicator, Abi.MPI_ERR_TYPE,
                        any -> any.name + (any.isTyped() ? " of MPI." + any.type : " of no elements"));
            }
        }
        return null;
    }

    /** Packed data are of any type. */
    private boolean isTyped() {
        return bytes() > 0 && type != Type.PACKED;
    }

    private static MPIException told(Object[] calls, String communicator, int errorClass, Function<Call, String> what) {
        Map<String, List<Integer>> callers = new LinkedHashMap<>();
        for (int rank = 0; rank < calls.length; rank++) {
            callers.computeIfAbsent(what.apply((Call) calls[rank]), key -> new ArrayList<>()).add(rank);
        }
        List<String> parts = new ArrayList<>();
        callers.forEach((call, ranks) -> parts.add(
                Words.ranks(ranks) + (parts.isEmpty() ? Words.verb(ranks, " calls ", " call ") : " ") + call));
        return MPIException.of(errorClass, "the ranks of " + communicator + " do not make the same collective call: "
                + String.join(", ", parts));
    }
}
