package org.limosa.engine.local;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** How a rank waits for another one: it looks for a short while, lets others run, and then sleeps. */
final class Waiting {
    private static final int LOOKS = 1000;
    private static final int YIELDS = 50;

    private Waiting() {}

    /** Looks; whether it has happened. A thread that does not wait any longer sleeps until it is woken. */
    static boolean looks(BooleanSupplier hasHappened) {
        for (int i = 0; i < LOOKS; i++) {
            if (hasHappened.getAsBoolean()) {
                return true;
            }
            Thread.onSpinWait();
        }
        for (int i = 0; i < YIELDS; i++) {
            if (hasHappened.getAsBoolean()) {
                return true;
            }
            Thread.yield();
        }
        return hasHappened.getAsBoolean();
    }

    /** Waits; whoever makes it happen wakes the thread. */
    static void sleeps(Object where, BooleanSupplier hasHappened) {
        while (!hasHappened.getAsBoolean()) {
            LockSupport.park(where);
        }
    }
}
