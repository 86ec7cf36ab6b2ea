package org.limosa.engine;

import java.lang.foreign.MemorySegment;

/**
 * Collective operations that go on after their call: the program may use their buffers when they are complete. All
 * processes call them in the same order. Data, counts and displacements are as in {@link Communicator}.
 */
public interface NonBlocking {
    Operation barrier();

    Operation broadcast(MemorySegment data, Type type, int root);

    Operation gather(
            MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type, int root);

    Operation scatter(
            MemorySegment sent, int[] counts, int[] displacements, MemorySegment received, Type type, int root);

    Operation allGather(MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type);

    Operation allToAll(
            MemorySegment sent, int[] sendCounts, int[] sendDisplacements,
            MemorySegment received, int[] receiveCounts, int[] receiveDisplacements, Type type);

    Operation reduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, int root);

    Operation allReduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction);

    Operation reduceScatter(
            MemorySegment sent, MemorySegment received, int[] counts, Type type, Reduction reduction);

    /** With those of the lower ranks, and with the own part or without it. */
    Operation scan(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, boolean withOwn);
}
