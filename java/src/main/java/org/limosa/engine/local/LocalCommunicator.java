package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import org.limosa.engine.Arithmetic;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;

/**
 * A communicator of ranks that are threads of one machine. In collective operations every rank shows its data to the
 * others, which copy from there what they need, so all data are copied once.
 */
final class LocalCommunicator extends JavaCommunicator {
    private final Meeting meeting;

    LocalCommunicator(LocalJob job, Shared shared, int side, int me) {
        super(job, shared, side, me);
        meeting = shared.meetings[side];
    }

    private MemorySegment of(int other) {
        return (MemorySegment) meeting.of(other);
    }

    @Override
    public void barrier() {
        meeting.await(rank);
    }

    @Override
    public void broadcast(MemorySegment data, Type type, int root) {
        meeting.show(rank, data);
        if (rank != root) {
            copy(of(root), 0, data, 0, Math.min(bytes(data), bytes(of(root))));
        }
        meeting.await(rank);
    }

    @Override
    public void gather(MemorySegment sent, MemorySegment received, Type type, int root) {
        meeting.show(rank, sent);
        if (rank == root) {
            collect(received);
        }
        meeting.await(rank);
    }

    private void collect(MemorySegment received) {
        long each = bytes(received) / size();
        for (int other = 0; other < size(); other++) {
            copy(of(other), 0, received, other * each, Math.min(each, bytes(of(other))));
        }
    }

    @Override
    public void gather(
            MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type, int root) {
        meeting.show(rank, sent);
        if (rank == root) {
            collect(received, counts, displacements, type);
        }
        meeting.await(rank);
    }

    private void collect(MemorySegment received, int[] counts, int[] displacements, Type type) {
        for (int other = 0; other < size(); other++) {
            long bytes = (long) counts[other] * type.bytes;
            copy(of(other), 0, received, (long) displacements[other] * type.bytes, bytes);
        }
    }

    @Override
    public void scatter(MemorySegment sent, MemorySegment received, Type type, int root) {
        meeting.show(rank, sent);
        copy(of(root), rank * (bytes(of(root)) / size()), received, 0, bytes(of(root)) / size());
        meeting.await(rank);
    }

    private record Dealt(MemorySegment data, int[] counts, int[] displacements) {
        void copyTo(int rank, MemorySegment to, long at, Type type) {
            copy(data, (long) displacements[rank] * type.bytes, to, at, (long) counts[rank] * type.bytes);
        }
    }

    @Override
    public void scatter(
            MemorySegment sent, int[] counts, int[] displacements, MemorySegment received, Type type, int root) {
        meeting.show(rank, rank == root ? new Dealt(sent, counts, displacements) : null);
        ((Dealt) meeting.of(root)).copyTo(rank, received, 0, type);
        meeting.await(rank);
    }

    /** What is shown must not change while others look at it: a copy if the operation writes the same memory. */
    private static MemorySegment apart(MemorySegment sent, MemorySegment received) {
        boolean same = sent != null && received != null && sent.asOverlappingSlice(received).isPresent();
        return same ? copyOf(sent) : sent;
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, Type type) {
        meeting.show(rank, apart(sent, received));
        collect(received);
        meeting.await(rank);
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type) {
        meeting.show(rank, apart(sent, received));
        collect(received, counts, displacements, type);
        meeting.await(rank);
    }

    @Override
    public void allToAll(MemorySegment sent, MemorySegment received, Type type) {
        meeting.show(rank, apart(sent, received));
        long each = bytes(received) / size();
        for (int other = 0; other < size(); other++) {
            copy(of(other), rank * each, received, other * each, each);
        }
        meeting.await(rank);
    }

    @Override
    public void allToAll(
            MemorySegment sent, int[] sendCounts, int[] sendDisplacements,
            MemorySegment received, int[] receiveCounts, int[] receiveDisplacements, Type type) {
        meeting.show(rank, new Dealt(apart(sent, received), sendCounts, sendDisplacements));
        for (int other = 0; other < size(); other++) {
            ((Dealt) meeting.of(other)).copyTo(rank, received, (long) receiveDisplacements[other] * type.bytes, type);
        }
        meeting.await(rank);
    }

    /** The elements from one place to another of what the first ranks have shown, combined. */
    private MemorySegment combined(long from, long to, int ranks, Type type, Reduction reduction) {
        MemorySegment result = type.allocate((int) ((to - from) / type.bytes));
        copy(of(ranks - 1), from, result, 0, to - from);
        for (int other = ranks - 2; other >= 0 && to > from; other--) {
            Arithmetic.combine(of(other).asSlice(from, to - from), result, type, reduction);
        }
        return result;
    }

    /** Where the share of a rank begins if all combine a part. */
    private long share(int ranks, long bytes, Type type) {
        return bytes / type.bytes * ranks / size() * type.bytes;
    }

    @Override
    public void reduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, int root) {
        reduceTo(sent, received, type, reduction, rank == root);
    }

    @Override
    public void allReduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        reduceTo(sent, received, type, reduction, true);
    }

    /** Each rank combines a part; then those that want the result copy all parts. */
    private void reduceTo(
            MemorySegment sent, MemorySegment received, Type type, Reduction reduction, boolean isWanted) {
        long bytes = bytes(sent);
        meeting.show(rank, sent);
        MemorySegment mine = combined(
                share(rank, bytes, type), share(rank + 1, bytes, type), size(), type, reduction);
        meeting.await(rank);
        meeting.show(rank, mine);
        for (int other = 0; other < size() && isWanted; other++) {
            copy(of(other), 0, received, share(other, bytes, type), bytes(of(other)));
        }
        meeting.await(rank);
    }

    @Override
    public void reduceScatter(
            MemorySegment sent, MemorySegment received, int[] counts, Type type, Reduction reduction) {
        long start = 0;
        for (int other = 0; other < rank; other++) {
            start += (long) counts[other] * type.bytes;
        }
        meeting.show(rank, sent);
        long bytes = (long) counts[rank] * type.bytes;
        MemorySegment mine = combined(start, start + bytes, size(), type, reduction);
        meeting.await(rank);
        copy(mine, 0, received, 0, bytes);
    }

    @Override
    public void scan(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        meeting.show(rank, sent);
        MemorySegment mine = combined(0, bytes(sent), rank + 1, type, reduction);
        meeting.await(rank);
        copy(mine, 0, received, 0, bytes(mine));
    }
}
