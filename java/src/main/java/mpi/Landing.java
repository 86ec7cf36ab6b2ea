package mpi;

import java.lang.foreign.MemorySegment;

/** Where a message arrives: the program's buffer itself, or memory from which the buffer is filled afterwards. */
final class Landing {
    final MemorySegment memory;
    private final Object buffer;
    private final int offset;
    private final Datatype type;
    private final boolean direct;

    private Landing(MemorySegment memory, Object buffer, int offset, Datatype type, boolean direct) {
        this.memory = memory;
        this.buffer = buffer;
        this.offset = offset;
        this.type = type;
        this.direct = direct;
    }

    /**
     * Room for a message of up to so many items. The items may run past the end of the buffer as long as the message
     * does not: only what arrives must fit.
     */
    static Landing of(String function, Object buffer, int offset, int count, Datatype type) {
        Layout.checkWritable(function, buffer);
        Layout.check(function, buffer, offset, count, type);
        if (buffer == null || type.base == null) {
            return new Landing(null, null, 0, type, true);
        }
        long length = Layout.length(buffer, type.base);
        if (offset > length) {
            throw Errors.buffer(function + ": the offset is " + offset + ", but the buffer has " + length
                    + " elements");
        }
        if (Layout.isDirect(buffer, type)) {
            long room = Math.min((long) count * type.size(), length - offset);
            int bytes = type.base.bytes;
            MemorySegment memory = Layout.memory(buffer).asSlice((long) offset * bytes, room * bytes);
            return new Landing(memory, buffer, offset, type, true);
        }
        return new Landing(type.base.allocate(Math.multiplyExact(count, type.size())), buffer, offset, type, false);
    }

    /** Room for a message without data. */
    static MemorySegment nothing() {
        return MemorySegment.ofArray(new byte[0]);
    }

    /** Puts what has arrived where it belongs. */
    void finish(String function, long bytes) {
        if (!direct && bytes > 0) {
            long elements = bytes / type.base.bytes;
            int items = (int) ((elements + type.size() - 1) / type.size());
            Layout.checkRoom(function, buffer, offset, items, type);
            Layout.unpack(memory, elements, buffer, offset, type);
        }
    }

    /** As {@link #finish}, for all of it. */
    void finishAll(String function) {
        if (!direct) {
            finish(function, memory.byteSize());
        }
    }
}
