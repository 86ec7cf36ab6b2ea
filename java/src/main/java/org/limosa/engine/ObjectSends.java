package org.limosa.engine;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Queue;
import mpi.MPIException;
import org.limosa.abi.Abi;

/**
 * Messages that hold objects. A message holds a mark, the length of their stream, a number, and the stream up to {@link
 * #WHOLE} bytes. The rest of a longer stream goes by another message, tagged with the number, on the hidden
 * communicator. So a receive of objects is a receive of MPI like others, though it does not know how long the stream
 * will be.
 *
 * <p>The rest is a copy that belongs to Limosa, so a send need not wait until it has left. Every rank has one of these.
 */
public final class ObjectSends {
    /** No numbers of a program begin like this, except by intent. */
    private static final long MARK = 0x9d4c_494d_4f53_418aL;
    private static final ValueLayout.OfLong FIRST = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final int HEADER = Long.BYTES + Integer.BYTES + Integer.BYTES;
    /** What a first message holds at most. */
    public static final int WHOLE = 8192;

    /** Rests that may be under way. */
    private final Queue<Operation> rests = new ArrayDeque<>();

    private int numbers;

    /** Starts to send the rest of a stream; the first message. */
    public MemorySegment begin(Communicator hidden, int dest, byte[] stream) {
        int first = Math.min(stream.length, WHOLE - HEADER);
        int number = 0;
        if (first < stream.length) {
            synchronized (rests) {
                number = ++numbers % 0x7fff + 1;
                MemorySegment rest = MemorySegment.ofArray(stream).asSlice(first);
                rests.add(hidden.startSend(rest, Type.BYTE, dest, number, Mode.STANDARD));
                while (!rests.isEmpty() && rests.peek().test() != null) {
                    rests.remove();
                }
            }
        }
        byte[] message = new byte[HEADER + first];
        ByteBuffer.wrap(message).putLong(MARK).putInt(stream.length).putInt(number).put(stream, 0, first);
        return MemorySegment.ofArray(message);
    }

    /** Waits until all has left. */
    public void finish() {
        synchronized (rests) {
            while (!rests.isEmpty()) {
                rests.remove().await();
            }
        }
    }

    /** A stream of which the first message has come, with room for the rest. */
    public record Stream(byte[] bytes, int number, int first) {
        /** Whether a message is the first one of objects. */
        public static boolean isIn(byte[] message, long length) {
            return isIn(MemorySegment.ofArray(message), length);
        }

        /** Whether a message of so many bytes is the first one of objects. */
        public static boolean isIn(MemorySegment message, long length) {
            return length >= HEADER && message.get(FIRST, 0) == MARK;
        }

        /** The stream of which a first message has come. */
        public static Stream of(byte[] message, long length) {
            if (!isIn(message, length)) {
                throw MPIException.of(Abi.MPI_ERR_TYPE,
                        "a message of " + length + " bytes has come that holds no objects; receive its elements");
            }
            ByteBuffer header = ByteBuffer.wrap(message, Long.BYTES, (int) length - Long.BYTES);
            int all = header.getInt();
            int number = header.getInt();
            int first = (int) length - HEADER;
            if (all < first) {
                throw MPIException.of(Abi.MPI_ERR_OTHER, "a message of objects is damaged: it has " + first
                        + " bytes, but says that there are " + all);
            }
            byte[] bytes = new byte[all];
            header.get(bytes, 0, first);
            return new Stream(bytes, number, first);
        }

        public boolean isComplete() {
            return first == bytes.length;
        }

        /** Starts to receive the rest. */
        public Operation rest(Communicator hidden, int source) {
            return hidden.startReceive(MemorySegment.ofArray(bytes).asSlice(first), Type.BYTE, source, number);
        }
    }
}
