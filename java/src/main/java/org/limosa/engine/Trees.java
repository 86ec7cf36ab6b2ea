package org.limosa.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BinaryOperator;

/**
 * Collective operations on values of any kind, made of messages: for what the MPI library cannot know, such as objects
 * and operations written in Java, and where there is no MPI library.
 */
public final class Trees {
    private Trees() {}

    /** The value of the root, by a binomial tree. */
    public static <T> T broadcast(Channel<T> channel, T value, int root) {
        int size = channel.size();
        int place = Math.floorMod(channel.rank() - root, size);
        int step = 1;
        while (step < size && (place & step) == 0) {
            step <<= 1;
        }
        T result = value;
        if (place != 0) {
            result = channel.receive((place - step + root) % size);
        }
        for (step >>= 1; step > 0; step >>= 1) {
            if (place + step < size) {
                channel.send(result, (place + step + root) % size);
            }
        }
        return result;
    }

    /** The values of all at the root, by rank; null elsewhere. */
    public static <T> List<T> gather(Channel<T> channel, T value, int root) {
        if (channel.rank() != root) {
            channel.send(value, root);
            return null;
        }
        List<T> all = new ArrayList<>(channel.size());
        for (int source = 0; source < channel.size(); source++) {
            all.add(source == root ? value : channel.receive(source));
        }
        return all;
    }

    /** The value with the process's rank of those that the root gives. */
    public static <T> T scatter(Channel<T> channel, List<T> values, int root) {
        if (channel.rank() != root) {
            return channel.receive(root);
        }
        for (int dest = 0; dest < channel.size(); dest++) {
            if (dest != root) {
                channel.send(values.get(dest), dest);
            }
        }
        return values.get(root);
    }

    /** The values of all, by rank; they go around in a ring. */
    public static <T> List<T> allGather(Channel<T> channel, T value) {
        int size = channel.size();
        int rank = channel.rank();
        List<T> all = new ArrayList<>(java.util.Collections.nCopies(size, null));
        all.set(rank, value);
        for (int step = 1; step < size; step++) {
            int sent = Math.floorMod(rank - step + 1, size);
            int next = (rank + 1) % size;
            int previous = Math.floorMod(rank - 1, size);
            all.set(Math.floorMod(rank - step, size), channel.exchange(all.get(sent), next, previous));
        }
        return all;
    }

    /** What every process has for this one, by rank. */
    public static <T> List<T> allToAll(Channel<T> channel, List<T> values) {
        int size = channel.size();
        int rank = channel.rank();
        List<T> all = new ArrayList<>(values);
        for (int step = 1; step < size; step++) {
            int dest = (rank + step) % size;
            int source = Math.floorMod(rank - step, size);
            all.set(source, channel.exchange(values.get(dest), dest, source));
        }
        all.set(rank, values.get(rank));
        return all;
    }

    /**
     * The values of all combined in the order of ranks, at the root; null elsewhere. The operation may be
     * non-commutative: its first argument is that of the lower ranks.
     */
    public static <T> T reduce(Channel<T> channel, T value, BinaryOperator<T> operation, int root) {
        int rank = channel.rank();
        T result = value;
        for (int step = 1; step < channel.size(); step <<= 1) {
            if ((rank & step) != 0) {
                channel.send(result, rank - step);
                result = null;
                break;
            }
            if (rank + step < channel.size()) {
                result = operation.apply(result, channel.receive(rank + step));
            }
        }
        if (root == 0) {
            return result;
        }
        if (rank == 0) {
            channel.send(result, root);
            return null;
        }
        return rank == root ? channel.receive(0) : null;
    }

    /** The values of this process and of all with lower ranks combined in the order of ranks. */
    public static <T> T scan(Channel<T> channel, T value, BinaryOperator<T> operation) {
        int rank = channel.rank();
        T result = rank == 0 ? value : operation.apply(channel.receive(rank - 1), value);
        if (rank + 1 < channel.size()) {
            channel.send(result, rank + 1);
        }
        return result;
    }

    /** Waits until all processes have called it. */
    public static <T> void barrier(Channel<T> channel, T anything) {
        int size = channel.size();
        int rank = channel.rank();
        for (int step = 1; step < size; step <<= 1) {
            channel.exchange(anything, (rank + step) % size, Math.floorMod(rank - step, size));
        }
    }
}
