package org.limosa.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** What the elements of a message are. Booleans travel as bytes 0 and 1, objects as serialised bytes. */
public enum Type {
    BYTE(1, byte[].class),
    CHAR(2, char[].class),
    SHORT(2, short[].class),
    BOOLEAN(1, boolean[].class),
    INT(4, int[].class),
    LONG(8, long[].class),
    FLOAT(4, float[].class),
    DOUBLE(8, double[].class),
    PACKED(1, byte[].class);

    /** Some machines keep a few elements. */
    private static final int LONGEST_ARRAY = Integer.MAX_VALUE - 8;

    /** Bytes of an element. */
    public final int bytes;
    /** The class of the arrays that hold such elements. */
    public final Class<?> array;

    Type(int bytes, Class<?> array) {
        this.bytes = bytes;
        this.array = array;
    }

    /** The elements of an array; null for booleans, which cannot be seen as memory, and for all that is no array. */
    public static MemorySegment memory(Object array) {
        return switch (array) {
            case byte[] bytes -> MemorySegment.ofArray(bytes);
            case int[] ints -> MemorySegment.ofArray(ints);
            case double[] doubles -> MemorySegment.ofArray(doubles);
            case float[] floats -> MemorySegment.ofArray(floats);
            case long[] longs -> MemorySegment.ofArray(longs);
            case short[] shorts -> MemorySegment.ofArray(shorts);
            case char[] chars -> MemorySegment.ofArray(chars);
            default -> null;
        };
    }

    /** New elements: an array, or native memory if they are more than an array can have. */
    public MemorySegment allocate(long elements) {
        if (elements > LONGEST_ARRAY) {
            return Arena.ofAuto().allocate(elements * bytes, Long.BYTES);
        }
        int count = (int) elements;
        return switch (this) {
            case BYTE, BOOLEAN, PACKED -> MemorySegment.ofArray(new byte[count]);
            case CHAR -> MemorySegment.ofArray(new char[count]);
            case SHORT -> MemorySegment.ofArray(new short[count]);
            case INT -> MemorySegment.ofArray(new int[count]);
            case LONG -> MemorySegment.ofArray(new long[count]);
            case FLOAT -> MemorySegment.ofArray(new float[count]);
            case DOUBLE -> MemorySegment.ofArray(new double[count]);
        };
    }
}
