package org.limosa.engine.local;

import java.util.function.BooleanSupplier;

/**
 * How a rank waits for its peers. It looks for somewhat longer than it takes to wake a thread, and then sleeps
 * ({@link Waits}). Looking keeps a processor from others: it is done only if each rank may have one, and only as long
 * as it succeeds. When the ranks are not at work at the same time, as on a machine with other work, it does not. A rank
 * that tries it again sees one that is woken in the meantime, so both look from then on.
 */
final class Waiting {
    private static final long LOOK_NANOS = 100_000;
    /** Looks between two readings of the clock. */
    private static final int LOOKS = 32;
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
        if (looksForAWhile(hasHappened)) {
            if (before < MOST_TRUST) {
                trust = Math.max(before, 0) + 1;
            }
            return true;
        }
        trust = Math.max(before, 0) - 1;
        return false;
    }

    private static boolean looksForAWhile(BooleanSupplier hasHappened) {
        for (int i = 0; i < LOOKS; i++) {
            if (hasHappened.getAsBoolean()) {
                return true;
            }
            Thread.onSpinWait();
        }
        long end = System.nanoTime() + LOOK_NANOS;
        do {
            for (int i = 0; i < LOOKS; i++) {
                if (hasHappened.getAsBoolean()) {
                    return true;
                }
                Thread.onSpinWait();
            }
        } while (System.nanoTime() < end);
        return false;
    }
}
