package org.limosa.engine.local;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * The threads of a machine that sleep for each other, and for what. Those that need not sleep are not here. Messages to
 * and from other machines are counted.
 */
final class Waits {
    /** A thread that sleeps, and since when. */
    record Sleeper(Thread thread, Wait goal, long since) {}

    private final Map<Thread, Sleeper> sleepers = new ConcurrentHashMap<>();
    private final LongAdder changes = new LongAdder();
    /** Threads that have sent or received. Virtual ones may be very many, and are not told apart. */
    private final Set<Thread> callers = ConcurrentHashMap.newKeySet();
    private volatile boolean virtualHasCalled;
    private final AtomicLong sent = new AtomicLong();
    private final AtomicLong received = new AtomicLong();

    /** Parks the calling thread until the wait is complete. The thread that completes it unparks the caller. */
    void sleep(Wait wait) {
        boolean isInterrupted = false;
        begin(wait);
        while (!wait.isOver()) {
            LockSupport.park(wait);
            // The operations of MPI cannot be interrupted, and a thread with this mark does not sleep.
            isInterrupted |= Thread.interrupted();
        }
        end();
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** The calling thread is about to sleep. */
    void begin(Wait wait) {
        Thread thread = Thread.currentThread();
        sleepers.put(thread, new Sleeper(thread, wait, System.nanoTime()));
        changes.increment();
    }

    /** It sleeps no longer. */
    void end() {
        sleepers.remove(Thread.currentThread());
        changes.increment();
    }

    /** A thread has sent or received. */
    void calledBy(Thread thread) {
        if (thread.isVirtual()) {
            virtualHasCalled = true;
        } else {
            callers.add(thread);
        }
    }

    Map<Thread, Sleeper> sleepers() {
        return sleepers;
    }

    /** A number that grows with each begin and end of a sleep. */
    long changes() {
        return changes.sum();
    }

    boolean hasCalled(Thread thread) {
        return callers.contains(thread);
    }

    boolean virtualHasCalled() {
        return virtualHasCalled;
    }

    void forgetEnded() {
        callers.removeIf(thread -> !thread.isAlive());
    }

    /** A message is about to be sent to another machine. */
    void countSent() {
        sent.incrementAndGet();
    }

    /** A message of another machine has been received, and what follows from it has been done. */
    void countReceived() {
        received.incrementAndGet();
    }

    long sent() {
        return sent.get();
    }

    long received() {
        return received.get();
    }
}
