package org.limosa;

import org.limosa.engine.Communicator;

/** Sources of a message, beside ranks. */
public final class Source {
    /** Any rank: {@code MPI_ANY_SOURCE}. */
    public static final int ANY = Communicator.ANY;

    private Source() {}
}
