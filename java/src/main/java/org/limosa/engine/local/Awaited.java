package org.limosa.engine.local;

import java.io.Serializable;
import java.util.List;
import org.limosa.engine.Communicator;

/**
 * A message or a collective operation that a thread sleeps for.
 *
 * @param kind what it is
 * @param peer the rank in the communicator that it is from, or goes to; {@link #ANY} for any
 * @param needed the ranks of the job that must still do their part; none if it can be any
 * @param tag its tag, or {@link #ANY}
 * @param context the number of the communicator
 * @param communicator the name of the communicator
 * @param members how many ranks that has
 */
record Awaited(Kind kind, int peer, List<Integer> needed, int tag, long context, String communicator, int members)
        implements Serializable {
    static final int ANY = Communicator.ANY;

    enum Kind { RECEIVE, SEND, COLLECTIVE }

    /** A message that is a part of a collective operation. */
    Awaited inCollective() {
        return new Awaited(Kind.COLLECTIVE, peer, needed, ANY, context, communicator, members);
    }

    /** As the program knows it: on its communicator, of which others are parts. */
    Awaited ofProgram() {
        return new Awaited(kind, peer, needed, tag, Shared.known(context), communicator, members);
    }
}
