package mpi;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** Blocks of a buffer, one for each process: as memory that the engine can use, with counts in elements. */
final class Blocks {
    final int[] counts;
    final int[] displacements;
    MemorySegment memory;
    private final boolean direct;
    private final Object buffer;
    private final int offset;
    private final int[] places;
    private final int[] items;
    private final Datatype type;

    Blocks(String function, Object buffer, int offset, int[] items, int[] places, Datatype type, boolean filled) {
        if (!filled) {
            Layout.checkWritable(function, buffer);
        }
        Layout.check(function, buffer, offset, Arrays.stream(items).max().orElse(0), type);
        this.buffer = buffer;
        this.offset = offset;
        this.items = items;
        this.places = places;
        this.type = type;
        direct = buffer == null || type.base == null || Layout.isDirect(buffer, type);
        counts = new int[items.length];
        displacements = new int[items.length];
        int total = 0;
        for (int i = 0; i < items.length; i++) {
            if (items[i] < 0) {
                throw Errors.count(function + ": the count of rank " + i + " is " + items[i]);
            }
            counts[i] = Math.multiplyExact(items[i], type.size());
            displacements[i] = direct ? Math.multiplyExact(places[i], type.size()) : total;
            total = direct ? 0 : Math.addExact(total, counts[i]);
            if (buffer != null) {
                Layout.checkRoom(function, buffer, offset + places[i] * type.extent(), items[i], type);
            }
        }
        memory = buffer == null || type.base == null ? null
                : direct ? Layout.memory(buffer).asSlice((long) offset * type.base.bytes)
                : type.base.allocate(total);
        if (filled && !direct) {
            for (int i = 0; i < items.length; i++) {
                MemorySegment block = Layout.pack(buffer, origin(i), items[i], type);
                MemorySegment.copy(block, 0, memory, at(i), block.byteSize());
            }
        }
    }

    private int origin(int i) {
        return offset + places[i] * type.extent();
    }

    private long at(int i) {
        return (long) displacements[i] * type.base.bytes;
    }

    /** Puts what has arrived where it belongs. */
    void finish() {
        for (int i = 0; i < items.length && !direct; i++) {
            MemorySegment block = memory.asSlice(at(i), (long) counts[i] * type.base.bytes);
            Layout.unpack(block, counts[i], buffer, origin(i), type);
        }
    }
}
