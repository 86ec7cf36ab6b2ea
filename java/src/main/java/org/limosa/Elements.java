package org.limosa;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Array;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Type;
import org.limosa.engine.local.RankLoader;

/**
 * The elements of a program's buffer as memory. Booleans cannot be seen as memory: their memory is a copy, which
 * {@link #finish} copies back.
 */
record Elements(MemorySegment memory, Type type, boolean[] booleans, int offset) {
    /** Where ranks are threads, they copy from each other's memory. */
    private static final boolean RANKS_ARE_THREADS = RankLoader.engineOf(Elements.class) != null;
    private static final Thread ANOTHER = new Thread(() -> {});

    Elements {
        if (RANKS_ARE_THREADS && !memory.isAccessibleBy(ANOTHER)) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER, "the memory is of an arena of one thread, but ranks are threads "
                    + "here; take it from Arena.ofShared() or Arena.ofAuto()");
        }
    }

    /** The type whose elements have a primitive class; null if there is none. */
    static Type type(Class<?> primitive) {
        return primitive == byte.class ? Type.BYTE
                : primitive == int.class ? Type.INT
                : primitive == long.class ? Type.LONG
                : primitive == double.class ? Type.DOUBLE
                : primitive == float.class ? Type.FLOAT
                : primitive == short.class ? Type.SHORT
                : primitive == char.class ? Type.CHAR
                : primitive == boolean.class ? Type.BOOLEAN : null;
    }

    /** The elements of an array, a buffer or a slice; null for any other object. */
    static Elements of(Object buffer) {
        if (buffer == null) {
            return null;
        }
        if (buffer.getClass().isArray()) {
            if (buffer instanceof boolean[] array) {
                return ofBooleans(array, 0, array.length);
            }
            Type type = type(buffer.getClass().getComponentType());
            return type == null ? null : new Elements(Type.memory(buffer), type, null, 0);
        }
        return switch (buffer) {
            case MemorySegment segment -> new Elements(segment, Type.BYTE, null, 0);
            case Slice slice -> slice.elements();
            case Buffer nio -> ofBuffer(nio);
            default -> null;
        };
    }

    private static Elements ofBooleans(boolean[] array, int offset, int length) {
        byte[] copy = new byte[length];
        for (int i = 0; i < length; i++) {
            copy[i] = (byte) (array[offset + i] ? 1 : 0);
        }
        return new Elements(MemorySegment.ofArray(copy), Type.BOOLEAN, array, offset);
    }

    private static Elements ofBuffer(Buffer buffer) {
        Type type = switch (buffer) {
            case ByteBuffer b -> Type.BYTE;
            case CharBuffer b -> own(b.order(), Type.CHAR);
            case ShortBuffer b -> own(b.order(), Type.SHORT);
            case IntBuffer b -> own(b.order(), Type.INT);
            case LongBuffer b -> own(b.order(), Type.LONG);
            case FloatBuffer b -> own(b.order(), Type.FLOAT);
            case DoubleBuffer b -> own(b.order(), Type.DOUBLE);
            default -> null;
        };
        return type == null ? null : new Elements(MemorySegment.ofBuffer(buffer), type, null, 0);
    }

    private static Type own(ByteOrder order, Type type) {
        if (order != ByteOrder.nativeOrder()) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER, "the buffer is " + order
                    + "; make it with ByteBuffer.order(ByteOrder.nativeOrder())");
        }
        return type;
    }

    /** The elements of something that must be a buffer. */
    static Elements required(String name, Object buffer) {
        Elements elements = of(buffer);
        if (elements == null) {
            throw MPIException.of(buffer == null ? Abi.MPI_ERR_BUFFER : Abi.MPI_ERR_TYPE,
                    name + ": " + notBuffer(buffer));
        }
        return elements;
    }

    /** As {@link #required}, for memory that is written. */
    static Elements writable(String name, Object buffer) {
        Elements elements = required(name, buffer);
        if (elements.memory.isReadOnly()) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER, name + ": the memory can only be read");
        }
        return elements;
    }

    /** What is wrong with something that is no buffer. */
    static String notBuffer(Object object) {
        return object == null ? "the buffer is null" : "an object of class " + object.getClass().getTypeName()
                + " is no buffer; give an array of a primitive type, a Slice, a buffer of java.nio or a MemorySegment";
    }

    /** New elements in an array. */
    static Object allocate(Type type, int count) {
        return Array.newInstance(type.array.getComponentType(), count);
    }

    long count() {
        return memory.byteSize() / type.bytes;
    }

    Elements part(int from, int length) {
        return booleans != null ? ofBooleans(booleans, offset + from, length)
                : new Elements(memory.asSlice((long) from * type.bytes, (long) length * type.bytes), type, null, 0);
    }

    /** With the booleans as they are now. */
    Elements again() {
        return booleans == null ? this : ofBooleans(booleans, offset, (int) count());
    }

    /** Copies booleans that have come to their array. */
    void finish(long bytes) {
        for (int i = 0; booleans != null && i < bytes; i++) {
            booleans[offset + i] = memory.get(ValueLayout.JAVA_BYTE, i) != 0;
        }
    }

    void finish() {
        finish(memory.byteSize());
    }

    /** The name of the type, as in Java. */
    String typeName() {
        return type.array.getComponentType().getName();
    }
}
