package org.limosa.engine.local;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Where the ranks of a communicator meet: each shows something to the others, all look, and all part. No rank shows the
 * next thing before all have looked.
 */
final class Meeting {
    private final Object[] shown;
    private final Thread[] waiting;
    private final AtomicInteger left;
    private volatile int round;

    Meeting(int size) {
        shown = new Object[size];
        waiting = new Thread[size];
        left = new AtomicInteger(size);
    }

    /** Shows something; returns when all have. */
    void show(int rank, Object something) {
        shown[rank] = something;
        await(rank);
    }

    /** What a rank has shown. */
    Object of(int rank) {
        return shown[rank];
    }

    /** Returns when all have called it. */
    void await(int rank) {
        int before = round;
        waiting[rank] = Thread.currentThread();
        if (left.decrementAndGet() == 0) {
            left.set(shown.length);
            Thread[] all = waiting.clone();
            round = before + 1;
            for (Thread each : all) {
                LockSupport.unpark(each);
            }
            return;
        }
        if (!Waiting.looks(() -> round != before)) {
            Waiting.sleeps(this, () -> round != before);
        }
    }
}
