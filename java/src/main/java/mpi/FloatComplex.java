package mpi;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;

/** A complex number in a buffer or array of {@code float}: an item of {@link MPI#FLOAT_COMPLEX}. */
public final class FloatComplex {
    private final FloatBuffer buffer;
    private final int place;

    private FloatComplex(FloatBuffer buffer, int index) {
        place = Math.multiplyExact(2, index);
        if (buffer == null || index < 0 || place > buffer.capacity() - 2) {
            throw Errors.buffer("FloatComplex.get: there is no number " + index + " in the buffer"
                    + (buffer == null ? ", which is null" : ", which has " + buffer.capacity() + " elements"));
        }
        this.buffer = buffer;
    }

    /** The first number of a buffer. */
    public static FloatComplex get(FloatBuffer buffer) {
        return get(buffer, 0);
    }

    /** A number of a buffer. */
    public static FloatComplex get(FloatBuffer buffer, int index) {
        return new FloatComplex(buffer, index);
    }

    /** The first number of a buffer. */
    public static FloatComplex get(ByteBuffer buffer) {
        return get(buffer, 0);
    }

    /** A number of a buffer. */
    public static FloatComplex get(ByteBuffer buffer, int index) {
        return get(buffer == null ? null : buffer.duplicate().clear().order(buffer.order()).asFloatBuffer(), index);
    }

    /** The first number of an array. */
    public static FloatComplex get(float[] array) {
        return get(array, 0);
    }

    /** A number of an array. */
    public static FloatComplex get(float[] array, int index) {
        return get(array == null ? null : FloatBuffer.wrap(array), index);
    }

    /** The real part. */
    public float getReal() {
        return buffer.get(place);
    }

    /** The imaginary part. */
    public float getImag() {
        return buffer.get(place + 1);
    }

    /** Sets the real part. */
    public void putReal(float real) {
        buffer.put(place, real);
    }

    /** Sets the imaginary part. */
    public void putImag(float imag) {
        buffer.put(place + 1, imag);
    }

    /** The buffer from this number on. */
    public FloatBuffer getBuffer() {
        return place == 0 ? buffer : MPI.slice(buffer, place);
    }
}
