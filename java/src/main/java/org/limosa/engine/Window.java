package org.limosa.engine;

import java.lang.foreign.MemorySegment;

/**
 * Memory of each process of a communicator that the others read and write (MPI-5, chapter 12). Data are native memory
 * that holds whole elements, and that the caller keeps until the operation is complete; displacements are in the units
 * of the target. Without a reduction, elements are replaced.
 */
public interface Window {
    Members members();

    void put(MemorySegment data, Type type, int target, long displacement);

    void get(MemorySegment data, Type type, int target, long displacement);

    void accumulate(MemorySegment data, Type type, int target, long displacement, Reduction reduction);

    /** As {@link #accumulate}, and what was there before; without data nothing is changed. */
    void getAccumulate(
            MemorySegment data, MemorySegment result, Type type, int target, long displacement, Reduction reduction);

    /** Replaces an element if it has a value; what was there before. */
    void compareAndSwap(
            MemorySegment data, MemorySegment compare, MemorySegment result, Type type, int target, long displacement);

    Operation startPut(MemorySegment data, Type type, int target, long displacement);

    Operation startGet(MemorySegment data, Type type, int target, long displacement);

    Operation startAccumulate(MemorySegment data, Type type, int target, long displacement, Reduction reduction);

    Operation startGetAccumulate(
            MemorySegment data, MemorySegment result, Type type, int target, long displacement, Reduction reduction);

    // --- epochs; assertions are those of the MPI library ---

    void fence(int assertion);

    void start(Members targets, int assertion);

    void complete();

    void post(Members origins, int assertion);

    void await();

    boolean test();

    void lock(boolean exclusive, int target, int assertion);

    void unlock(int target);

    void lockAll(int assertion);

    void unlockAll();

    /** Completes the operations at one target, or at all if it is {@link #ALL}; locally, or there, too. */
    void flush(int target, boolean locally);

    /** All targets. */
    int ALL = -1;

    void sync();

    void free();
}
