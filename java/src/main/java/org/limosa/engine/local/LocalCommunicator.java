package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import mpi.MPIException;
import org.limosa.abi.Abi;
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

    private Call of(int other) {
        return meeting.callOf(other);
    }

    /** Makes a collective call together with the others. */
    private void together(Call call, Runnable part) {
        called();
        checkShared(call.data());
        meeting.call(rank, call);
        meeting.part(rank, part);
    }

    /** Copies what another rank gives to this one, if there is room for it. */
    private void take(int other, long at, long bytes, MemorySegment received, long place, long room) {
        if (bytes > room) {
            Call theirs = of(other);
            throw MPIException.of(Abi.MPI_ERR_TRUNCATE, theirs.name() + ": rank " + other + " gives rank " + rank + " "
                    + bytes / theirs.type().bytes + " elements of MPI." + theirs.type() + ", but that one has room for "
                    + room / theirs.type().bytes);
        }
        copy(theirData(other), at, received, place, bytes);
    }

    private MemorySegment theirData(int other) {
        return of(other).data();
    }

    @Override
    public void barrier() {
        called();
        meeting.call(rank, Call.BARRIER);
    }

    @Override
    void barrierOfTheEnd() {
        meeting.call(rank, Call.FINALIZE);
    }

    @Override
    public void broadcast(MemorySegment data, Type type, int root) {
        together(Call.of("Bcast", root, type, data), () -> {
            if (rank != root) {
                take(root, 0, of(root).bytes(), data, 0, bytes(data));
            }
        });
    }

    /** Takes as much from each rank. */
    private void collect(MemorySegment received) {
        long each = bytes(received) / size();
        for (int other = 0; other < size(); other++) {
            take(other, 0, of(other).bytes(), received, other * each, each);
        }
    }

    private void collect(MemorySegment received, int[] counts, int[] displacements, Type type) {
        for (int other = 0; other < size(); other++) {
            take(other, 0, of(other).bytes(), received, (long) displacements[other] * type.bytes,
                    (long) counts[other] * type.bytes);
        }
    }

    @Override
    public void gather(MemorySegment sent, MemorySegment received, Type type, int root) {
        together(Call.of("Gather", root, type, sent), () -> {
            if (rank == root) {
                collect(received);
            }
        });
    }

    @Override
    public void gather(
            MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type, int root) {
        together(Call.of("Gatherv", root, type, sent), () -> {
            if (rank == root) {
                collect(received, counts, displacements, type);
            }
        });
    }

    @Override
    public void scatter(MemorySegment sent, MemorySegment received, Type type, int root) {
        together(Call.of("Scatter", root, type, sent), () -> {
            long each = of(root).bytes() / size();
            take(root, rank * each, each, received, 0, bytes(received));
        });
    }

    /** What every rank gets of this one is another part of the data. */
    private static Call dealt(
            String name, int root, Type type, MemorySegment data, int[] counts, int[] displacements) {
        return new Call(name, root, type, null, data, counts, displacements);
    }

    @Override
    public void scatter(
            MemorySegment sent, int[] counts, int[] displacements, MemorySegment received, Type type, int root) {
        together(dealt("Scatterv", root, type, sent, counts, displacements), () ->
                take(root, of(root).place(rank), of(root).share(rank), received, 0, bytes(received)));
    }

    /** What is shown must not change while others look at it: a copy if the operation writes the same memory. */
    private static MemorySegment apart(MemorySegment sent, MemorySegment received) {
        boolean same = sent != null && received != null && sent.asOverlappingSlice(received).isPresent();
        return same ? copyOf(sent) : sent;
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, Type type) {
        together(Call.of("Allgather", Call.NO_ROOT, type, apart(sent, received)), () -> collect(received));
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type) {
        together(Call.of("Allgatherv", Call.NO_ROOT, type, apart(sent, received)), () ->
                collect(received, counts, displacements, type));
    }

    @Override
    public void allToAll(MemorySegment sent, MemorySegment received, Type type) {
        together(Call.of("Alltoall", Call.NO_ROOT, type, apart(sent, received)), () -> {
            long room = bytes(received) / size();
            for (int other = 0; other < size(); other++) {
                long each = of(other).bytes() / size();
                take(other, rank * each, each, received, other * room, room);
            }
        });
    }

    @Override
    public void allToAll(
            MemorySegment sent, int[] sendCounts, int[] sendDisplacements,
            MemorySegment received, int[] receiveCounts, int[] receiveDisplacements, Type type) {
        Call call = dealt("Alltoallv", Call.NO_ROOT, type, apart(sent, received), sendCounts, sendDisplacements);
        together(call, () -> {
            for (int other = 0; other < size(); other++) {
                take(other, of(other).place(rank), of(other).share(rank), received,
                        (long) receiveDisplacements[other] * type.bytes, (long) receiveCounts[other] * type.bytes);
            }
        });
    }

    /** The elements from one place to another of what the first ranks have shown, combined. */
    private MemorySegment combined(long from, long to, int ranks, Type type, Reduction reduction) {
        MemorySegment result = type.allocate((to - from) / type.bytes);
        copy(theirData(ranks - 1), from, result, 0, to - from);
        for (int other = ranks - 2; other >= 0 && to > from; other--) {
            Arithmetic.combine(theirData(other).asSlice(from, to - from), result, type, reduction);
        }
        return result;
    }

    /** Where the share of a rank begins if all combine a part. */
    private long share(int ranks, long bytes, Type type) {
        return bytes / type.bytes * ranks / size() * type.bytes;
    }

    @Override
    public void reduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, int root) {
        reduceTo(Call.of("Reduce", root, type, sent, reduction), received, rank == root);
    }

    @Override
    public void allReduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        reduceTo(Call.of("Allreduce", Call.NO_ROOT, type, sent, reduction), received, true);
    }

    /** Each rank combines a part; then those that want the result copy all parts. */
    private void reduceTo(Call call, MemorySegment received, boolean isWanted) {
        Type type = call.type();
        long bytes = call.bytes();
        MemorySegment[] mine = new MemorySegment[1];
        together(call, () -> mine[0] = combined(
                share(rank, bytes, type), share(rank + 1, bytes, type), size(), type, call.reduction()));
        meeting.show(rank, mine[0]);
        for (int other = 0; other < size() && isWanted; other++) {
            MemorySegment theirs = (MemorySegment) meeting.of(other);
            copy(theirs, 0, received, share(other, bytes, type), bytes(theirs));
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
        long from = start;
        long bytes = (long) counts[rank] * type.bytes;
        MemorySegment[] mine = new MemorySegment[1];
        together(new Call("Reduce_scatter", Call.NO_ROOT, type, reduction, sent, counts, null), () ->
                mine[0] = combined(from, from + bytes, size(), type, reduction));
        copy(mine[0], 0, received, 0, bytes);
    }

    @Override
    public void scan(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        MemorySegment[] mine = new MemorySegment[1];
        together(Call.of("Scan", Call.NO_ROOT, type, sent, reduction), () ->
                mine[0] = combined(0, bytes(sent), rank + 1, type, reduction));
        copy(mine[0], 0, received, 0, bytes(mine[0]));
    }
}
