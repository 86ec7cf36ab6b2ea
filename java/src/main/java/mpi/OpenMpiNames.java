package mpi;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;

/** The methods of {@link MPI} under the names that they have in Open MPI's bindings for Java. */
abstract class OpenMpiNames {
    OpenMpiNames() {}

    /** Starts message passing; the thread level that is provided. */
    public static int InitThread(String[] args, int required) throws MPIException {
        MPI.Init(args);
        return MPI.queryThread();
    }

    /** Whether Init was called, also if Finalize was. */
    public static boolean isInitialized() throws MPIException {
        return MPI.Initialized() || isFinalized();
    }

    /** Whether Finalize was called, and no Init after it. */
    public static boolean isFinalized() throws MPIException {
        return MPI.hasEnded();
    }

    /** Whether the calling thread is the one that has called Init. */
    public static boolean isThreadMain() throws MPIException {
        return MPI.isMainThread();
    }

    /** Seconds since some time in the past. */
    public static double wtime() throws MPIException {
        return MPI.Wtime();
    }

    /** The resolution of {@link #wtime}. */
    public static double wtick() throws MPIException {
        return MPI.Wtick();
    }

    /** The name of the host. */
    public static String getProcessorName() throws MPIException {
        return MPI.Get_processor_name();
    }

    /** Room for messages in buffered mode. */
    public static void attachBuffer(ByteBuffer buffer) throws MPIException {
        MPI.Buffer_attach(buffer);
    }

    /** Waits until the messages in the buffer have left; the buffer, or null if there was none. */
    public static ByteBuffer detachBuffer() throws MPIException {
        return MPI.detach() instanceof ByteBuffer buffer ? buffer : null;
    }

    // --- direct buffers ---

    /** A direct buffer. */
    public static ByteBuffer newByteBuffer(int capacity) {
        return ByteBuffer.allocateDirect(capacity).order(ByteOrder.nativeOrder());
    }

    /** A direct buffer. */
    public static CharBuffer newCharBuffer(int capacity) {
        return newByteBuffer(Math.multiplyExact(capacity, Character.BYTES)).asCharBuffer();
    }

    /** A direct buffer. */
    public static ShortBuffer newShortBuffer(int capacity) {
        return newByteBuffer(Math.multiplyExact(capacity, Short.BYTES)).asShortBuffer();
    }

    /** A direct buffer. */
    public static IntBuffer newIntBuffer(int capacity) {
        return newByteBuffer(Math.multiplyExact(capacity, Integer.BYTES)).asIntBuffer();
    }

    /** A direct buffer. */
    public static LongBuffer newLongBuffer(int capacity) {
        return newByteBuffer(Math.multiplyExact(capacity, Long.BYTES)).asLongBuffer();
    }

    /** A direct buffer. */
    public static FloatBuffer newFloatBuffer(int capacity) {
        return newByteBuffer(Math.multiplyExact(capacity, Float.BYTES)).asFloatBuffer();
    }

    /** A direct buffer. */
    public static DoubleBuffer newDoubleBuffer(int capacity) {
        return newByteBuffer(Math.multiplyExact(capacity, Double.BYTES)).asDoubleBuffer();
    }

    // --- parts of buffers and arrays: they begin at the offset, and share the elements ---

    /** The elements from an offset on. */
    public static ByteBuffer slice(ByteBuffer buf, int offset) {
        return buf.slice(offset, buf.capacity() - offset).order(buf.order());
    }

    /** The elements from an offset on. */
    public static ByteBuffer slice(byte[] buf, int offset) {
        return slice(ByteBuffer.wrap(buf), offset);
    }

    /** The elements from an offset on. */
    public static CharBuffer slice(CharBuffer buf, int offset) {
        return buf.slice(offset, buf.capacity() - offset);
    }

    /** The elements from an offset on. */
    public static CharBuffer slice(char[] buf, int offset) {
        return slice(CharBuffer.wrap(buf), offset);
    }

    /** The elements from an offset on. */
    public static ShortBuffer slice(ShortBuffer buf, int offset) {
        return buf.slice(offset, buf.capacity() - offset);
    }

    /** The elements from an offset on. */
    public static ShortBuffer slice(short[] buf, int offset) {
        return slice(ShortBuffer.wrap(buf), offset);
    }

    /** The elements from an offset on. */
    public static IntBuffer slice(IntBuffer buf, int offset) {
        return buf.slice(offset, buf.capacity() - offset);
    }

    /** The elements from an offset on. */
    public static IntBuffer slice(int[] buf, int offset) {
        return slice(IntBuffer.wrap(buf), offset);
    }

    /** The elements from an offset on. */
    public static LongBuffer slice(LongBuffer buf, int offset) {
        return buf.slice(offset, buf.capacity() - offset);
    }

    /** The elements from an offset on. */
    public static LongBuffer slice(long[] buf, int offset) {
        return slice(LongBuffer.wrap(buf), offset);
    }

    /** The elements from an offset on. */
    public static FloatBuffer slice(FloatBuffer buf, int offset) {
        return buf.slice(offset, buf.capacity() - offset);
    }

    /** The elements from an offset on. */
    public static FloatBuffer slice(float[] buf, int offset) {
        return slice(FloatBuffer.wrap(buf), offset);
    }

    /** The elements from an offset on. */
    public static DoubleBuffer slice(DoubleBuffer buf, int offset) {
        return buf.slice(offset, buf.capacity() - offset);
    }

    /** The elements from an offset on. */
    public static DoubleBuffer slice(double[] buf, int offset) {
        return slice(DoubleBuffer.wrap(buf), offset);
    }
}
