package org.limosa;

import org.limosa.engine.Communicator;

/** Which messages are received, beside those with a certain tag. */
public final class Tag {
    /** Any tag: {@code MPI_ANY_TAG}. */
    public static final int ANY = Communicator.ANY;

    private Tag() {}
}
