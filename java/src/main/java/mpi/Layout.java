package mpi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Array;
import java.nio.Buffer;
import org.limosa.engine.Type;

/** Finds the elements of a message in the program's array or direct buffer, and checks the arguments that say where. */
final class Layout {
    private Layout() {}

    /** The elements of an array from an offset on, to their end; booleans cannot be seen as memory. */
    static MemorySegment memory(Object buffer) {
        return switch (buffer) {
            case MemorySegment segment -> segment;
            case Buffer direct -> MemorySegment.ofBuffer(direct.duplicate().clear());
            default -> Type.memory(buffer);
        };
    }

    /** The length of a buffer in elements of a type. */
    static long length(Object buffer, Type type) {
        if (buffer.getClass().isArray()) {
            return Array.getLength(buffer);
        }
        return memory(buffer).byteSize() / type.bytes;
    }

    /** Checks that a buffer holds such elements, and where they are to be. */
    static void check(String function, Object buffer, int offset, int count, Datatype type) {
        if (type == null) {
            throw Errors.type(function + ": the datatype is null");
        }
        if (count < 0) {
            throw Errors.count(function + ": the count is " + count + "; it cannot be negative");
        }
        if (buffer == null) {
            if (count > 0 && type.size() > 0) {
                throw Errors.buffer(function + ": the buffer is null, but the count is " + count);
            }
            return;
        }
        if (!fits(buffer, type)) {
            throw Errors.type(function + ": the buffer is of class " + buffer.getClass().getTypeName()
                    + ", but the datatype is " + type + (type.isObject ? "; it takes an array of objects" : ""));
        }
        if (offset < 0) {
            throw Errors.buffer(function + ": the offset is " + offset + "; it cannot be negative");
        }
    }

    /** Checks that a call may write into a buffer. */
    static void checkWritable(String function, Object buffer) {
        boolean isReadOnly = buffer instanceof MemorySegment segment && segment.isReadOnly()
                || buffer instanceof Buffer elements && elements.isReadOnly();
        if (isReadOnly) {
            throw Errors.buffer(function + ": the buffer is read-only, but the call writes into it; pass one that "
                    + "can be written");
        }
    }

    private static boolean fits(Object buffer, Datatype type) {
        if (type.isObject) {
            return buffer instanceof Object[];
        }
        if (type.base == null || type.size() == 0) {
            return true;
        }
        if (buffer.getClass().isArray()) {
            return type.base.array == buffer.getClass();
        }
        return buffer instanceof MemorySegment || buffer instanceof Buffer elements && (elements.isDirect() || isOfClass(elements, type.base));
    }

    /** Whether a buffer that is no direct one is a part of an array of such elements. */
    private static boolean isOfClass(Buffer elements, Type base) {
        return elements.hasArray() && elements.array().getClass() == base.array;
    }

    /** Checks that all items are inside the buffer. */
    static void checkRoom(String function, Object buffer, int offset, int count, Datatype type) {
        if (count == 0 || type.size() == 0) {
            return;
        }
        long length = type.isObject ? ((Object[]) buffer).length : length(buffer, type.base);
        long shift = (long) (count - 1) * type.extent();
        long first = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        if (type.isDense()) {
            first = Math.min(0, shift);
            last = Math.max(0, shift) + type.size() - 1;
        } else {
            for (int k = 0; k < type.size(); k++) {
                first = Math.min(first, type.place(k) + Math.min(0, shift));
                last = Math.max(last, type.place(k) + Math.max(0, shift));
            }
        }
        if (offset + first < 0 || offset + last >= length) {
            throw Errors.buffer(function + ": " + count + " items of " + type + " from offset " + offset
                    + " use the elements " + (offset + first) + " to " + (offset + last) + ", but the buffer has "
                    + length);
        }
    }

    /** The elements of items as memory: the array itself, or a copy. Null for none. */
    static MemorySegment outgoing(String function, Object buffer, int offset, int count, Datatype type) {
        check(function, buffer, offset, count, type);
        if (buffer == null || type.base == null) {
            return null;
        }
        checkRoom(function, buffer, offset, count, type);
        if (isDirect(buffer, type)) {
            int bytes = type.base.bytes;
            return memory(buffer).asSlice((long) offset * bytes, (long) count * type.size() * bytes);
        }
        return pack(buffer, offset, count, type);
    }

    /** Whether the elements are next to each other in memory that MPI can be shown. */
    static boolean isDirect(Object buffer, Datatype type) {
        return type.isDense() && !(buffer instanceof boolean[]);
    }

    /** Copies the elements of items to a new array. */
    static MemorySegment pack(Object buffer, int offset, int count, Datatype type) {
        int size = type.size();
        MemorySegment packed = type.base.allocate(Math.multiplyExact(count, size));
        for (int i = 0; i < count; i++) {
            long origin = offset + (long) i * type.extent();
            if (type.isDense() && !(buffer instanceof boolean[])) {
                move(buffer, origin, packed, (long) i * size, size, type.base);
                continue;
            }
            for (int k = 0; k < size; k++) {
                moveOne(buffer, origin + type.place(k), packed, (long) i * size + k, type.base);
            }
        }
        return packed;
    }

    /** Copies so many elements back to where the items have them. */
    static void unpack(MemorySegment packed, long elements, Object buffer, int offset, Datatype type) {
        int size = type.size();
        for (long done = 0; done < elements; done++) {
            long place = offset + done / size * type.extent() + type.place((int) (done % size));
            putOne(packed, done, buffer, place, type.base);
        }
    }

    private static void move(Object from, long at, MemorySegment to, long index, int count, Type type) {
        MemorySegment.copy(memory(from), at * type.bytes, to, index * type.bytes, (long) count * type.bytes);
    }

    private static void moveOne(Object from, long at, MemorySegment to, long index, Type type) {
        if (from instanceof boolean[] array) {
            to.set(ValueLayout.JAVA_BYTE, index, (byte) (array[(int) at] ? 1 : 0));
        } else {
            MemorySegment.copy(memory(from), at * type.bytes, to, index * type.bytes, type.bytes);
        }
    }

    private static void putOne(MemorySegment from, long index, Object to, long at, Type type) {
        if (to instanceof boolean[] array) {
            array[(int) at] = from.get(ValueLayout.JAVA_BYTE, index) != 0;
        } else {
            MemorySegment.copy(from, index * type.bytes, memory(to), at * type.bytes, type.bytes);
        }
    }
}
