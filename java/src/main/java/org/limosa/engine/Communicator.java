package org.limosa.engine;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;

/**
 * A group of processes, or two, that exchange messages. Data are segments of heap or native memory that hold whole
 * elements; counts and displacements are in elements. Null stands for data that are not significant.
 *
 * <p>Ranks and tags are checked by the caller; {@link #ANY} stands for any source or tag.
 */
public interface Communicator {
    /** Any source, or any tag. */
    int ANY = -1;

    int rank();

    int size();

    /** The processes of the other side; 0 inside one group. */
    int remoteSize();

    Members members();

    Members remoteMembers();

    boolean isInter();

    /** What reports call it. */
    default void setName(String name) {}

    // --- messages ---

    void send(MemorySegment data, Type type, int dest, int tag, Mode mode);

    Envelope receive(MemorySegment data, Type type, int source, int tag);

    Operation startSend(MemorySegment data, Type type, int dest, int tag, Mode mode);

    Operation startReceive(MemorySegment data, Type type, int source, int tag);

    /** Whether objects can be handed over to a process as they are: it is a thread of this Java machine. */
    default boolean handsObjects(int dest) {
        return false;
    }

    /** Starts to send objects as they are: those that {@link Operation#handed} of the receive gives. */
    default Operation startHandover(Object[] objects, int dest, int tag, Mode mode) {
        throw new UnsupportedOperationException();
    }

    Operation persistentSend(MemorySegment data, Type type, int dest, int tag, Mode mode);

    Operation persistentReceive(MemorySegment data, Type type, int source, int tag);

    /** Sends and receives at the same time; the data may be the same memory. */
    Envelope exchange(
            MemorySegment sent, Type sentType, int dest, int sendTag,
            MemorySegment received, Type receivedType, int source, int receiveTag);

    /** Waits for a message and describes it. */
    Envelope probe(int source, int tag);

    /** As {@link #probe}, but null if there is none. */
    Envelope probeNow(int source, int tag);

    /** Takes a message out of the queue, to be received by {@link Taken#receive}; waits for it if asked to. */
    Taken take(int source, int tag, boolean waits);

    /** A message that only its owner can receive. */
    interface Taken {
        Envelope envelope();

        void receive(MemorySegment data);

        /** As {@link #receive(MemorySegment)}, for elements of the type that was sent. */
        default void receive(MemorySegment data, Type type) {
            receive(data);
        }
    }

    // --- other communicators: all processes call these together ---

    Communicator duplicate();

    /** Null for processes whose colour is negative. */
    Communicator split(int colour, int key);

    /** Null for processes that are no members. */
    Communicator create(Members members);

    /** Two groups beside each other; the leaders reach each other by the communicator {@code peer}. */
    Communicator connect(int localLeader, Communicator peer, int remoteLeader, int tag);

    Communicator merge(boolean high);

    void free();

    /** Whether both are the same communicator. */
    boolean isSame(Communicator other);

    // --- collective operations ---

    void barrier();

    void broadcast(MemorySegment data, Type type, int root);

    void gather(MemorySegment sent, MemorySegment received, Type type, int root);

    void gather(MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type, int root);

    void scatter(MemorySegment sent, MemorySegment received, Type type, int root);

    void scatter(MemorySegment sent, int[] counts, int[] displacements, MemorySegment received, Type type, int root);

    void allGather(MemorySegment sent, MemorySegment received, Type type);

    void allGather(MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type);

    void allToAll(MemorySegment sent, MemorySegment received, Type type);

    void allToAll(
            MemorySegment sent, int[] sendCounts, int[] sendDisplacements,
            MemorySegment received, int[] receiveCounts, int[] receiveDisplacements, Type type);

    void reduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, int root);

    void allReduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction);

    void reduceScatter(MemorySegment sent, MemorySegment received, int[] counts, Type type, Reduction reduction);

    /** Combines two parts of memory; the second holds the result. Not collective. */
    void reduceLocal(MemorySegment in, MemorySegment inout, Type type, Reduction reduction);

    void scan(MemorySegment sent, MemorySegment received, Type type, Reduction reduction);

    /** Collective operations that go on after their call; an exception of a function where there are none. */
    default NonBlocking nonBlocking(String function) {
        throw Engines.needsLibrary(function, "use the blocking operation");
    }

    /** Opens memory to all processes; displacements in it are in units of so many bytes. All processes call it. */
    default Window window(MemorySegment memory, int unit) {
        throw Engines.needsLibrary("Win", "send messages");
    }

    /**
     * Starts processes: the two groups are the callers and them. What the root gives is used.
     *
     * @param errors the error codes of the processes are put here, unless it is null
     */
    default Communicator spawn(List<Started> programs, int root, int[] errors) {
        throw Engines.needsLibrary("spawn", "start all ranks with the launcher");
    }

    /** A program to be started, so many times, with hints for the launcher. */
    record Started(String command, List<String> arguments, int processes, Map<String, String> hints) {}

    /** Waits at a port for another group that connects to it, or connects to a port at which another waits. */
    default Communicator meet(String port, boolean accepts, int root) {
        throw Engines.needsLibrary(accepts ? "accept" : "connect", "start all ranks with the launcher");
    }

    /** Waits for all messages and ends it. */
    default void disconnect() {
        free();
    }

    /**
     * A communicator of the same processes for the front end's own messages. The first call is collective.
     */
    Communicator hidden();
}
