package org.limosa.engine;

/** A started communication, or one that can be started again and again. */
public interface Operation {
    /** Waits until it is complete. */
    Envelope await();

    /** What {@link #await} returns, if it is complete; otherwise null. */
    Envelope test();

    /** The objects that a complete receive has got in place of data; null if data have come. */
    default Object[] handed() {
        return null;
    }

    /** Asks to end a receive, or a send, that has not begun. It must be waited for as before. */
    void cancel();

    /** Gives it up: what is under way still completes. */
    void free();

    /** Starts a persistent operation. */
    void start();

    /** Whether it is under way. A persistent operation is not before it is started and after it is complete. */
    boolean isActive();
}
