package org.limosa.engine.library;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.List;
import java.util.stream.Stream;
import org.limosa.abi.Memory;

/**
 * Native memory through which the data of Java's arrays pass: the collector may move an array while a call waits.
 *
 * <p>Every thread keeps one block for calls that wait, which grows to what they need up to {@link #KEPT}. Operations
 * that go on after their call take blocks of powers of two from a pool. The collector knows nothing of these: a request
 * that the program has forgotten may still be under way.
 */
final class Staging {
    private static final long SMALLEST = 1 << 12;
    /** The largest block that is kept. */
    private static final long KEPT = 64L << 20;
    /** What the pool keeps of each size. */
    private static final int SPARE = 8;
    private static final ThreadLocal<Staging> MINE = ThreadLocal.withInitial(Staging::new);
    /** Spare blocks by the logarithm of their size. */
    private static final List<ArrayDeque<MemorySegment>> POOL =
            Stream.generate(ArrayDeque<MemorySegment>::new).limit(Long.SIZE).toList();

    /** Virtual threads may be very many. */
    private MemorySegment block =
            Arena.ofAuto().allocate(Thread.currentThread().isVirtual() ? SMALLEST : 1 << 16, 64);

    private Staging() {}

    /** Memory of the calling thread, valid until its next call of this. */
    static MemorySegment ofThread(long bytes) {
        Staging mine = MINE.get();
        if (mine.block.byteSize() < bytes) {
            MemorySegment larger = Arena.ofAuto().allocate(roundUp(bytes), 64);
            if (bytes > KEPT) {
                return larger;
            }
            mine.block = larger;
        }
        return mine.block;
    }

    private static long roundUp(long bytes) {
        return bytes <= SMALLEST ? SMALLEST : Long.highestOneBit(bytes - 1) << 1;
    }

    /** A block of at least so many bytes. */
    static MemorySegment take(long bytes) {
        long size = roundUp(bytes);
        ArrayDeque<MemorySegment> spare = POOL.get(Long.numberOfTrailingZeros(size));
        synchronized (spare) {
            MemorySegment found = spare.poll();
            if (found != null) {
                return found;
            }
        }
        return Memory.allocate(size);
    }

    /** Gives a block back that {@link #take} has returned. */
    static void give(MemorySegment block) {
        ArrayDeque<MemorySegment> spare = POOL.get(Long.numberOfTrailingZeros(block.byteSize()));
        synchronized (spare) {
            if (block.byteSize() <= KEPT && spare.size() < SPARE) {
                spare.push(block);
                return;
            }
        }
        Memory.free(block);
    }
}
