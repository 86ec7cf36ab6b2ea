package mpi;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Queue;
import org.limosa.engine.Arguments;
import org.limosa.engine.Communicator;
import org.limosa.engine.Mode;
import org.limosa.engine.Operation;
import org.limosa.engine.Type;

/**
 * Standard sends that do not wait for their receives: MPJ Express stores messages of up to 128 KB between processes,
 * and programs for it rely on that. So it is with {@code limosa run --dialect mpj}; otherwise the library decides.
 */
final class EagerSends {
    /** What every library stores. */
    private static final int SHORT = 4 << 10;
    private static final int LONGEST = 128 << 10;

    private final boolean isWanted = Arguments.isMpjExpress();
    private final Queue<Operation> underWay = new ArrayDeque<>();

    /** Whether a message is stored here: short ones are by the library. */
    boolean store(MemorySegment data) {
        return isWanted && data != null && data.byteSize() > SHORT && data.byteSize() <= LONGEST;
    }

    /** Sends a copy, and does not wait. */
    void send(Communicator communicator, MemorySegment data, Type type, int dest, int tag) {
        MemorySegment copy = type.allocate((int) (data.byteSize() / type.bytes)).copyFrom(data);
        synchronized (underWay) {
            underWay.add(communicator.startSend(copy, type, dest, tag, Mode.STANDARD));
            while (!underWay.isEmpty() && underWay.peek().test() != null) {
                underWay.remove();
            }
        }
    }

    /** Waits until all have left. */
    void finish() {
        synchronized (underWay) {
            while (!underWay.isEmpty()) {
                underWay.remove().await();
            }
        }
    }
}
