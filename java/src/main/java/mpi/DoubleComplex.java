package mpi;

import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;

/** A complex number in a buffer or array of {@code double}: an item of {@link MPI#DOUBLE_COMPLEX}. */
public final class DoubleComplex {
    private final DoubleBuffer buffer;
    private final int place;

    private DoubleComplex(DoubleBuffer buffer, int index) {
        place = Math.multiplyExact(2, index);
        if (buffer == null || index < 0 || place > buffer.capacity() - 2) {
            throw Errors.buffer("DoubleComplex.get: there is no number " + index + " in the buffer"
                    + (buffer == null ? ", which is null" : ", which has " + buffer.capacity() + " elements"));
        }
        this.buffer = buffer;
    }

    /** The first number of a buffer. */
    public static DoubleComplex get(DoubleBuffer buffer) {
        return get(buffer, 0);
    }

    /** A number of a buffer. */
    public static DoubleComplex get(DoubleBuffer buffer, int index) {
        return new DoubleComplex(buffer, index);
    }

    /** The first number of a buffer. */
    public static DoubleComplex get(ByteBuffer buffer) {
        return get(buffer, 0);
    }

    /** A number of a buffer. */
    public static DoubleComplex get(ByteBuffer buffer, int index) {
        return get(buffer == null ? null : buffer.duplicate().clear().order(buffer.order()).asDoubleBuffer(), index);
    }

    /** The first number of an array. */
    public static DoubleComplex get(double[] array) {
        return get(array, 0);
    }

    /** A number of an array. */
    public static DoubleComplex get(double[] array, int index) {
        return get(array == null ? null : DoubleBuffer.wrap(array), index);
    }

    /** The real part. */
    public double getReal() {
        return buffer.get(place);
    }

    /** The imaginary part. */
    public double getImag() {
        return buffer.get(place + 1);
    }

    /** Sets the real part. */
    public void putReal(double real) {
        buffer.put(place, real);
    }

    /** Sets the imaginary part. */
    public void putImag(double imag) {
        buffer.put(place + 1, imag);
    }

    /** The buffer from this number on. */
    public DoubleBuffer getBuffer() {
        return place == 0 ? buffer : MPI.slice(buffer, place);
    }
}
