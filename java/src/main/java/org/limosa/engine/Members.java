package org.limosa.engine;

import java.util.stream.IntStream;

/** An ordered set of processes. */
public interface Members {
    /** The rank of a process that is no member. */
    int NONE = -1;

    int size();

    /** The rank of the calling process, or {@link #NONE}. */
    int rank();

    /** The ranks that these members have in another set. */
    int[] translate(int[] ranks, Members to);

    /** These members in this order. */
    Members include(int[] ranks);

    /** All of this set, then those of the other that are not in this one. */
    Members union(Members other);

    default Members intersection(Members other) {
        return include(those(other, true));
    }

    default Members difference(Members other) {
        return include(those(other, false));
    }

    private int[] those(Members other, boolean inside) {
        int[] all = IntStream.range(0, size()).toArray();
        int[] there = translate(all, other);
        return IntStream.of(all).filter(rank -> (there[rank] != NONE) == inside).toArray();
    }

    /** Whether both have the same members, and these the same ranks. */
    default boolean isIdentical(Members other) {
        int[] all = IntStream.range(0, size()).toArray();
        return size() == other.size() && java.util.Arrays.equals(all, translate(all, other));
    }

    /** Whether both have the same members. */
    default boolean isSimilar(Members other) {
        return size() == other.size() && those(other, true).length == size();
    }

    /** Gives back what the engine keeps for it. */
    default void free() {}
}
