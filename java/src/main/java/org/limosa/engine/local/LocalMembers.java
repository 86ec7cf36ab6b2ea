package org.limosa.engine.local;

import java.util.Arrays;
import java.util.stream.IntStream;
import org.limosa.engine.Members;

/** Ranks of a machine, by their numbers in the job; {@code me} is the number of the caller. */
record LocalMembers(int[] numbers, int me) implements Members {
    private int find(int number) {
        for (int i = 0; i < numbers.length; i++) {
            if (numbers[i] == number) {
                return i;
            }
        }
        return NONE;
    }

    @Override
    public int size() {
        return numbers.length;
    }

    @Override
    public int rank() {
        return find(me);
    }

    @Override
    public int[] translate(int[] ranks, Members to) {
        return Arrays.stream(ranks).map(rank -> ((LocalMembers) to).find(numbers[rank])).toArray();
    }

    @Override
    public Members include(int[] ranks) {
        return new LocalMembers(Arrays.stream(ranks).map(rank -> numbers[rank]).toArray(), me);
    }

    @Override
    public Members union(Members other) {
        IntStream added = Arrays.stream(((LocalMembers) other).numbers).filter(number -> find(number) == NONE);
        return new LocalMembers(IntStream.concat(Arrays.stream(numbers), added).toArray(), me);
    }
}
