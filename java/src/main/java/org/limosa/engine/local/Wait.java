package org.limosa.engine.local;

import java.util.List;

/** What a thread sleeps for. */
interface Wait {
    /** Whether the thread need not sleep any longer. */
    boolean isOver();

    /** What must happen; several if one of them suffices. Asked when a job seems to hang. */
    List<Awaited> awaited();

    /** The rank that the thread acts for. */
    int owner();
}
