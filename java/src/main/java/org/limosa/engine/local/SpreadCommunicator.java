package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BinaryOperator;
import org.limosa.engine.Arithmetic;
import org.limosa.engine.ByteChannel;
import org.limosa.engine.Communicator;
import org.limosa.engine.Reduction;
import org.limosa.engine.Trees;
import org.limosa.engine.Type;

/**
 * A communicator of ranks in several Java machines: collective operations are made of messages. Their tags are
 * different for each operation, root and reduction, so ranks that do not make the same call wait, and do not get wrong
 * data.
 */
final class SpreadCommunicator extends JavaCommunicator {
    private static final byte[] NOTHING = {};

    private static final int NO_ROOT = 0;

    private enum Kind {
        BARRIER, END, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, REDUCE,
        ALLREDUCE, REDUCE_SCATTER, SCAN
    }

    private Communicator within;

    SpreadCommunicator(LocalJob job, Shared shared, int side, int me) {
        super(job, shared, side, me);
    }

    private ByteChannel channel(Kind kind) {
        return channel(kind, NO_ROOT);
    }

    private ByteChannel channel(Kind kind, int root) {
        return channel(kind, root, null);
    }

    private synchronized ByteChannel channel(Kind kind, int root, Reduction reduction) {
        if (within == null) {
            within = within().on();
        }
        int number = reduction == null ? 0 : 1 + reduction.ordinal();
        int numbers = 1 + Reduction.values().length;
        return new ByteChannel(within, (root * numbers + number) * Kind.values().length + kind.ordinal());
    }

    // --- data as bytes ---

    private static byte[] part(MemorySegment data, long at, long bytes) {
        byte[] copy = new byte[Math.toIntExact(bytes)];
        copy(data, at, MemorySegment.ofArray(copy), 0, bytes);
        return copy;
    }

    private static byte[] all(MemorySegment data) {
        return part(data, 0, bytes(data));
    }

    private static void put(byte[] from, MemorySegment to, long at) {
        if (from != null && to != null) {
            copy(MemorySegment.ofArray(from), 0, to, at, Math.min(from.length, to.byteSize() - at));
        }
    }

    /** One part of the data for each rank, all of the same length. */
    private List<byte[]> dealt(MemorySegment data) {
        long each = bytes(data) / size();
        List<byte[]> parts = new ArrayList<>();
        for (int other = 0; other < size(); other++) {
            parts.add(part(data, other * each, each));
        }
        return parts;
    }

    private List<byte[]> dealt(MemorySegment data, int[] counts, int[] displacements, Type type) {
        List<byte[]> parts = new ArrayList<>();
        for (int other = 0; other < size(); other++) {
            long bytes = (long) counts[other] * type.bytes;
            parts.add(part(data, (long) displacements[other] * type.bytes, bytes));
        }
        return parts;
    }

    private void collect(List<byte[]> parts, MemorySegment received) {
        long each = bytes(received) / size();
        for (int other = 0; parts != null && other < size(); other++) {
            put(parts.get(other), received, other * each);
        }
    }

    private void collect(List<byte[]> parts, MemorySegment received, int[] displacements, Type type) {
        for (int other = 0; parts != null && other < size(); other++) {
            put(parts.get(other), received, (long) displacements[other] * type.bytes);
        }
    }

    private static BinaryOperator<byte[]> operation(Type type, Reduction reduction) {
        return (lower, higher) -> {
            byte[] result = higher.clone();
            Arithmetic.combine(MemorySegment.ofArray(lower), MemorySegment.ofArray(result), type, reduction);
            return result;
        };
    }

    // --- collective operations ---

    @Override
    public void barrier() {
        Trees.barrier(channel(Kind.BARRIER), NOTHING);
    }

    @Override
    void barrierOfTheEnd() {
        Trees.barrier(channel(Kind.END), NOTHING);
    }

    @Override
    public void broadcast(MemorySegment data, Type type, int root) {
        byte[] found = Trees.broadcast(channel(Kind.BCAST, root), rank == root ? all(data) : null, root);
        if (rank != root) {
            put(found, data, 0);
        }
    }

    @Override
    public void gather(MemorySegment sent, MemorySegment received, Type type, int root) {
        collect(Trees.gather(channel(Kind.GATHER, root), all(sent), root), received);
    }

    @Override
    public void gather(
            MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type, int root) {
        List<byte[]> parts = Trees.gather(channel(Kind.GATHERV, root), all(sent), root);
        if (rank == root) {
            collect(parts, received, displacements, type);
        }
    }

    @Override
    public void scatter(MemorySegment sent, MemorySegment received, Type type, int root) {
        put(Trees.scatter(channel(Kind.SCATTER, root), rank == root ? dealt(sent) : null, root), received, 0);
    }

    @Override
    public void scatter(
            MemorySegment sent, int[] counts, int[] displacements, MemorySegment received, Type type, int root) {
        List<byte[]> parts = rank == root ? dealt(sent, counts, displacements, type) : null;
        put(Trees.scatter(channel(Kind.SCATTERV, root), parts, root), received, 0);
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, Type type) {
        collect(Trees.allGather(channel(Kind.ALLGATHER), all(sent)), received);
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type) {
        collect(Trees.allGather(channel(Kind.ALLGATHERV), all(sent)), received, displacements, type);
    }

    @Override
    public void allToAll(MemorySegment sent, MemorySegment received, Type type) {
        collect(Trees.allToAll(channel(Kind.ALLTOALL), dealt(sent)), received);
    }

    @Override
    public void allToAll(
            MemorySegment sent, int[] sendCounts, int[] sendDisplacements,
            MemorySegment received, int[] receiveCounts, int[] receiveDisplacements, Type type) {
        List<byte[]> parts = dealt(sent, sendCounts, sendDisplacements, type);
        collect(Trees.allToAll(channel(Kind.ALLTOALLV), parts), received, receiveDisplacements, type);
    }

    @Override
    public void reduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, int root) {
        ByteChannel channel = channel(Kind.REDUCE, root, reduction);
        byte[] result = Trees.reduce(channel, all(sent), operation(type, reduction), root);
        if (rank == root) {
            put(result, received, 0);
        }
    }

    @Override
    public void allReduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        ByteChannel channel = channel(Kind.ALLREDUCE, NO_ROOT, reduction);
        byte[] result = Trees.reduce(channel, all(sent), operation(type, reduction), 0);
        put(Trees.broadcast(channel, result, 0), received, 0);
    }

    @Override
    public void reduceScatter(
            MemorySegment sent, MemorySegment received, int[] counts, Type type, Reduction reduction) {
        ByteChannel channel = channel(Kind.REDUCE_SCATTER, NO_ROOT, reduction);
        byte[] result = Trees.reduce(channel, all(sent), operation(type, reduction), 0);
        List<byte[]> parts = null;
        if (rank == 0) {
            int[] displacements = new int[size()];
            for (int other = 1; other < size(); other++) {
                displacements[other] = displacements[other - 1] + counts[other - 1];
            }
            parts = dealt(MemorySegment.ofArray(result), counts, displacements, type);
        }
        put(Trees.scatter(channel, parts, 0), received, 0);
    }

    @Override
    public void scan(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        ByteChannel channel = channel(Kind.SCAN, NO_ROOT, reduction);
        put(Trees.scan(channel, all(sent), operation(type, reduction)), received, 0);
    }
}
