package org.limosa.engine.library;

import java.lang.foreign.MemorySegment;

/** The buffers of one call that waits: native ones as they are, arrays as copies in the thread's staging memory. */
final class Staged {
    private static final long ALIGNED = 64;

    private final MemorySegment block;
    private long used;

    /** Makes room for all the buffers that the call may have; null stands for none. */
    Staged(MemorySegment first, MemorySegment second) {
        long bytes = room(first) + room(second);
        block = bytes == 0 ? null : Staging.ofThread(bytes);
    }

    /** An empty array has room, too: it needs an address. */
    private static long room(MemorySegment data) {
        return data == null || data.isNative() ? 0 : data.byteSize() / ALIGNED * ALIGNED + ALIGNED;
    }

    /** The address of what the call reads. */
    MemorySegment input(MemorySegment data) {
        MemorySegment address = output(data);
        if (data != null && !data.isNative()) {
            MemorySegment.copy(data, 0, address, 0, data.byteSize());
        }
        return address;
    }

    /** The address of what the call writes; {@link #finish} copies it to the array. */
    MemorySegment output(MemorySegment data) {
        if (data == null || data.byteSize() == 0) {
            return MemorySegment.NULL;
        }
        if (data.isNative()) {
            return Calls.shown(data);
        }
        MemorySegment address = block.asSlice(used, data.byteSize());
        used += room(data);
        return address;
    }

    /** Copies what the call has written. */
    static void finish(MemorySegment address, MemorySegment data) {
        if (data != null && !data.isNative()) {
            MemorySegment.copy(address, 0, data, 0, data.byteSize());
        }
    }

    /** Copies the blocks that the call has written and leaves what is between them. Positions are in elements. */
    static void finish(MemorySegment address, MemorySegment data, int[] counts, int[] displacements, int bytes) {
        if (data != null && !data.isNative()) {
            for (int i = 0; i < counts.length; i++) {
                long at = (long) displacements[i] * bytes;
                MemorySegment.copy(address, at, data, at, (long) counts[i] * bytes);
            }
        }
    }
}
