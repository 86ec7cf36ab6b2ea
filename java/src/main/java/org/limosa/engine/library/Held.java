package org.limosa.engine.library;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.limosa.abi.Abi;
import org.limosa.engine.Lease;
import org.limosa.engine.Type;

/**
 * The buffers of an operation that goes on after its call: native ones as they are, arrays as copies in blocks of the
 * pool, which go back to it when the operation is complete.
 */
final class Held {
    /** Holds counts and displacements as long as this lives. */
    private final Arena arena = Arena.ofAuto();
    private final List<MemorySegment> blocks = new ArrayList<>();
    /** Native memory that must be neither collected nor freed. */
    private final List<MemorySegment> kept = new ArrayList<>();
    private MemorySegment written;
    private MemorySegment received;
    private int[] counts;
    private int[] displacements;
    private int bytesOfEach;

    private MemorySegment block(MemorySegment data) {
        MemorySegment block = Staging.take(data.byteSize());
        blocks.add(block);
        return block;
    }

    /** Native memory that the operation uses as it is: neither is it collected, nor its arena closed. */
    MemorySegment keep(MemorySegment data) {
        Lease.begin(data);
        kept.add(data);
        return data;
    }

    /** The address of what the operation reads. */
    MemorySegment input(MemorySegment data) {
        if (data == null) {
            return MemorySegment.NULL;
        }
        return LibraryOperation.isUsable(data) ? keep(data) : block(data).copyFrom(data);
    }

    /**
     * As above; if the data are native memory which the operation writes, MPI_IN_PLACE for the caller's own part, which
     * begins so many bytes from the start of what is received, and a copy of any other.
     */
    MemorySegment input(MemorySegment data, MemorySegment received, long own) {
        if (!LibraryCommunicator.overlap(data, received) || !Lease.canHold(received)) {
            return input(data);
        }
        return data.address() == received.address() + own ? Abi.MPI_IN_PLACE : block(data).copyFrom(data);
    }

    /** The address of what the operation writes: all of it. */
    MemorySegment output(MemorySegment data) {
        return output(data, null, null, null);
    }

    /** The address of what the operation writes: blocks, with other elements between them. */
    MemorySegment output(MemorySegment data, int[] counts, int[] displacements, Type type) {
        if (data == null) {
            return MemorySegment.NULL;
        }
        if (LibraryOperation.isUsable(data)) {
            return keep(data);
        }
        received = data;
        written = block(data);
        this.counts = counts;
        this.displacements = displacements;
        bytesOfEach = type == null ? 0 : type.bytes;
        return written;
    }

    /** Counts or displacements of a function with large counts. */
    MemorySegment numbers(int[] values) {
        return LibraryCommunicator.numbers(arena, values);
    }

    /** The operation is complete: copies what it has written to the array. */
    void arrived() {
        if (received == null) {
            return;
        }
        if (counts == null) {
            MemorySegment.copy(written, 0, received, 0, received.byteSize());
        } else {
            Staged.finish(written, received, counts, displacements, bytesOfEach);
        }
    }

    /** Gives the memory back. */
    void give() {
        kept.forEach(Lease::end);
        kept.clear();
        blocks.forEach(Staging::give);
        blocks.clear();
    }
}
