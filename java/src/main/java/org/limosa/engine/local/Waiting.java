package org.limosa.engine.local;

import java.util.function.BooleanSupplier;

/**
 * How a rank waits for another one. It looks for about as long as it takes to wake a thread, and then sleeps
 * ({@link Waits}). Looking keeps a processor from others: it is done only if each rank may have one, and only as long
 * as it succeeds. When the ranks are not at work at the same time, as on a machine with other work, it does not.
 */
final class Waiting {
    private static final int LOOKS = 1000;
    /** How many failures it takes to look no more, and how many waits go by before it is tried again. */
    private static final int MOST_TRUST = 8;
    private static final int PAUSE = 16;

    /** Whether each rank of this machine may have a processor of its own. */
    private static volatile boolean mayLook = true;
    /** Above 0 while looking succeeds. All threads write it, without harm if a value is lost. */
    private static int trust = MOST_TRUST;

    private Waiting() {}

    static void setRanks(int ranks) {
        mayLook = ranks <= Runtime.getRuntime().availableProcessors();
    }

    /** Looks; whether it has happened. A thread that does not wait any longer sleeps until it is woken. */
    static boolean looks(BooleanSupplier hasHappened) {
        if (!mayLook) {
            return hasHappened.getAsBoolean();
        }
        int before = trust;
        if (before <= 0 && before > -PAUSE) {
            trust = before - 1;
            return hasHappened.getAsBoolean();
        }
        for (int i = 0; i < LOOKS; i++) {
            if (hasHappened.getAsBoolean()) {
                if (before < MOST_TRUST) {
                    trust = Math.max(before, 0) + 1;
                }
                return true;
            }
            Thread.onSpinWait();
        }
        trust = Math.max(before, 0) - 1;
        return false;
    }
}
