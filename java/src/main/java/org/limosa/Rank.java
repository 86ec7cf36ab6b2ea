package org.limosa;

/** Ranks with a meaning of their own. */
public final class Rank {
    /**
     * No process: {@code MPI_PROC_NULL}. Sending to it does nothing; receiving from it gives null, or leaves the buffer
     * as it is. The neighbour beyond the edge of a {@link Grid} has this rank.
     */
    public static final int NONE = -2;

    private Rank() {}
}
