package org.limosa.engine.local;

/** Takes messages to one rank. */
interface Post {
    /** Sends from a rank. The operation is complete at once, or when the message has been received. */
    void deliver(LocalOperation send, int from, boolean isSynchronous);
}
