package org.limosa.engine;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The predefined reductions in Java, element by element. */
public final class Arithmetic {
    private Arithmetic() {}

    private interface OnLong {
        long of(long a, long b);
    }

    private interface OnDouble {
        double of(double a, double b);
    }

    /** Sets every element of {@code inout} to (element of {@code in}) op (element of {@code inout}). */
    public static void combine(MemorySegment in, MemorySegment inout, Type type, Reduction reduction) {
        switch (type) {
            case FLOAT, DOUBLE -> combineReal(in, inout, type, real(reduction));
            default -> combineWhole(in, inout, type, whole(reduction));
        }
    }

    private static OnLong whole(Reduction reduction) {
        return switch (reduction) {
            case MAX -> Math::max;
            case MIN -> Math::min;
            case SUM -> (a, b) -> a + b;
            case PROD -> (a, b) -> a * b;
            case LAND, BAND -> (a, b) -> a & b;
            case LOR, BOR -> (a, b) -> a | b;
            case LXOR, BXOR -> (a, b) -> a ^ b;
        };
    }

    private static OnDouble real(Reduction reduction) {
        return switch (reduction) {
            case MAX -> Math::max;
            case MIN -> Math::min;
            case SUM -> (a, b) -> a + b;
            case PROD -> (a, b) -> a * b;
            default -> throw new IllegalArgumentException(reduction + " of real numbers");
        };
    }

    private static void combineReal(MemorySegment in, MemorySegment inout, Type type, OnDouble op) {
        for (long at = 0; at < in.byteSize(); at += type.bytes) {
            if (type == Type.DOUBLE) {
                ValueLayout.OfDouble layout = ValueLayout.JAVA_DOUBLE_UNALIGNED;
                inout.set(layout, at, op.of(in.get(layout, at), inout.get(layout, at)));
            } else {
                ValueLayout.OfFloat layout = ValueLayout.JAVA_FLOAT_UNALIGNED;
                inout.set(layout, at, (float) op.of(in.get(layout, at), inout.get(layout, at)));
            }
        }
    }

    private static void combineWhole(MemorySegment in, MemorySegment inout, Type type, OnLong op) {
        for (long at = 0; at < in.byteSize(); at += type.bytes) {
            set(inout, type, at, op.of(get(in, type, at), get(inout, type, at)));
        }
    }

    private static long get(MemorySegment data, Type type, long at) {
        return switch (type) {
            case BYTE, BOOLEAN, PACKED -> data.get(ValueLayout.JAVA_BYTE, at);
            case CHAR -> data.get(ValueLayout.JAVA_CHAR_UNALIGNED, at);
            case SHORT -> data.get(ValueLayout.JAVA_SHORT_UNALIGNED, at);
            case INT -> data.get(ValueLayout.JAVA_INT_UNALIGNED, at);
            default -> data.get(ValueLayout.JAVA_LONG_UNALIGNED, at);
        };
    }

    private static void set(MemorySegment data, Type type, long at, long value) {
        switch (type) {
            case BYTE, BOOLEAN, PACKED -> data.set(ValueLayout.JAVA_BYTE, at, (byte) value);
            case CHAR -> data.set(ValueLayout.JAVA_CHAR_UNALIGNED, at, (char) value);
            case SHORT -> data.set(ValueLayout.JAVA_SHORT_UNALIGNED, at, (short) value);
            case INT -> data.set(ValueLayout.JAVA_INT_UNALIGNED, at, (int) value);
            default -> data.set(ValueLayout.JAVA_LONG_UNALIGNED, at, value);
        }
    }
}
