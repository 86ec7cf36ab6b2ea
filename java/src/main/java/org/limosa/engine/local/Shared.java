package org.limosa.engine.local;

import java.util.Arrays;
import java.util.stream.IntStream;
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
    /** Ranks by their numbers in the job. Between two groups: those of each side. */
    final int[][] groups;
    /** Where the ranks of each group meet; null if not all are in this machine. */
    final Meeting[] meetings;

    /** The communicator that this one is a part of; null if it is none. */
    private final Shared outer;
    private volatile String name;

    /** Where all ranks are in this machine, they have a place where they meet. */
    Shared(long context, int[][] groups, boolean areHere, Waits waits) {
        this.context = context;
        this.groups = groups;
        outer = null;
        meetings = areHere
                ? IntStream.range(0, groups.length).mapToObj(side -> new Meeting(this, side, waits))
                        .toArray(Meeting[]::new)
                : null;
        name = groups.length == 1 ? "a communicator of " + count(groups[0])
                : "a communicator between " + count(groups[0]) + " and " + count(groups[1]);
    }

    private Shared(Shared outer, int number, int[]... groups) {
        context = outer.context + number;
        this.groups = groups;
        this.outer = outer;
        meetings = null;
    }

    private static String count(int[] ranks) {
        return ranks.length + (ranks.length == 1 ? " rank" : " ranks");
    }

    /** What people call it. */
    String name() {
        return outer == null ? name : outer.name();
    }

    void setName(String name) {
        this.name = name;
    }

    /** The number of the communicator that the program knows. */
    static long known(long context) {
        return context - context % NUMBERS;
    }

    private Shared inner(int number, int[]... groups) {
        return new Shared(this, number, groups);
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

    /** The number in the job of a rank that sends a message. */
    int sender(int source, int receiver) {
        boolean isBetween = groups.length > 1;
        boolean isFirst = Arrays.stream(groups[0]).anyMatch(each -> each == receiver);
        return groups[isBetween && isFirst ? 1 : 0][source];
    }

    boolean isSame(Shared other) {
        return context == other.context && Stream.of(groups).allMatch(
                group -> Stream.of(other.groups).anyMatch(each -> Arrays.equals(each, group)));
    }
}
