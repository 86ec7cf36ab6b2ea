package org.limosa.engine;

import java.lang.foreign.MemorySegment;
import java.util.List;

/** What carries the messages: the MPI library, or Java itself. */
public interface Engine {
    /** The communicator of all processes that were started together. */
    Communicator world();

    /** The communicator of the calling process alone. */
    Communicator self();

    /** The set without members. */
    Members nobody();

    /** The communicator between those that have started these processes, and them; null if no program has. */
    default Communicator parent() {
        return null;
    }

    /** Ports, at which groups wait for others, and names for ports. */
    default Ports ports(String function) {
        throw Engines.needsLibrary(function, "start all ranks with the launcher");
    }

    /** Ends the job. */
    void abort(Communicator communicator, int code);

    /** Completes all communication; nothing can be sent afterwards. */
    void close();

    /** Something to be done when communication is about to end by the {@link #close} of another front end. */
    default void beforeClose(Runnable action) {}

    String processorName();

    /** The largest tag of a message. */
    int largestTag();

    /** Native memory for messages in buffered mode. */
    void attachBuffer(MemorySegment buffer);

    /** Waits until all buffered messages have left. */
    void detachBuffer();

    /** The bytes that a buffered message takes beyond its data. */
    int bufferedOverhead();

    /** Waits until one of the active operations is complete: its index. -1 if none is active. */
    int awaitAny(List<Operation> operations, Envelope[] result);
}
