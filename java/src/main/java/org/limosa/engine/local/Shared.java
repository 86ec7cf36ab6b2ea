package org.limosa.engine.local;

import java.util.Arrays;
import java.util.stream.Stream;

/** What the ranks of a communicator have in common; those of one machine have the same object. */
final class Shared {
    /** How many numbers a communicator has: its own, and those of its inner communicators. */
    static final int NUMBERS = 8;
    private static final int HIDDEN = 1;
    private static final int WITHIN = 2;
    private static final int LEADERS = 4;

    /** Tells its messages from those of others. */
    final long context;
    /** Ranks by their numbers in the job. Between two groups: those of one side, and of the other. */
    final int[][] groups;
    /** Where the ranks of each group meet; null if not all are in this machine. */
    final Meeting[] meetings;

    Shared(long context, int[][] groups, boolean areHere) {
        this.context = context;
        this.groups = groups;
        meetings = areHere
                ? Arrays.stream(groups).map(group -> new Meeting(group.length)).toArray(Meeting[]::new) : null;
    }

    private Shared inner(int number, int[]... groups) {
        return new Shared(context + number, groups, false);
    }

    /** For messages of the front end. */
    Shared hidden() {
        return inner(HIDDEN, groups);
    }

    /** For messages inside one group. */
    Shared within(int side) {
        return inner(WITHIN, groups[side]);
    }

    /** For messages between the leaders of two groups. */
    Shared leaders() {
        return inner(LEADERS, groups);
    }

    boolean isSame(Shared other) {
        return context == other.context && Stream.of(groups).allMatch(
                group -> Stream.of(other.groups).anyMatch(each -> Arrays.equals(each, group)));
    }
}
