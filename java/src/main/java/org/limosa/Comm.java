package org.limosa;

import java.util.Optional;
import org.limosa.engine.Communicator;

/**
 * A communicator: ranks that exchange messages. All methods may be called by several threads, collective ones by one at
 * a time. The verbs are those of MPI and of {@code import limosa} in Python.
 *
 * <p>A value is any serializable object, such as a string or a record, or an array of a primitive type. A buffer is an
 * array of a primitive type, a {@link Slice}, a buffer of {@code java.nio} or a
 * {@link java.lang.foreign.MemorySegment}. Arguments are checked before anything is sent.
 */
public sealed class Comm extends Reductions implements AutoCloseable permits Grid, World {
    Comm(Home home, Communicator communicator) {
        super(home, communicator);
    }

    /**
     * The number of this process in the communicator.
     *
     * @return 0 to {@code size() - 1}
     */
    public int rank() {
        return rank;
    }

    /**
     * The number of processes in the communicator.
     *
     * @return at least 1
     */
    public int size() {
        return size;
    }

    /**
     * Makes communicators of the ranks with the same color ({@code MPI_Comm_split}). All ranks call it.
     *
     * @param color which one this rank joins; none if it is negative
     * @return the new communicator, in which ranks have the same order; empty if the color is negative
     * @throws LimosaException if the communicator was closed
     */
    public Optional<Comm> split(int color) {
        return split(color, rank);
    }

    /**
     * As {@link #split(int)}, with another order.
     *
     * @param color which one this rank joins; none if it is negative
     * @param key ranks are numbered by it, equal ones by their ranks here
     * @return the new communicator; empty if the color is negative
     * @throws LimosaException if the communicator was closed
     */
    public Optional<Comm> split(int color, int key) {
        return call("split", () -> Optional.ofNullable(communicator().split(color, key))
                .map(made -> new Comm(home, made)));
    }

    /**
     * Makes a communicator of the same ranks, whose messages never meet those of this one ({@code MPI_Comm_dup}).
     *
     * @return the new communicator
     * @throws LimosaException if the communicator was closed
     */
    public Comm duplicate() {
        return call("duplicate", () -> new Comm(home, communicator().duplicate()));
    }

    /**
     * Arranges ranks in a grid ({@code MPI_Cart_create}), without another order. All ranks call it.
     *
     * @param dimensions how many ranks there are in each direction; 0 for a number that fits, near to a cube. The
     *     product must be the number of ranks
     * @param periodic whether the first and the last are neighbours, for each direction; false for those not given
     * @return the grid
     * @throws Errors.DimensionsException if the dimensions do not fit
     */
    public Grid grid(int[] dimensions, boolean... periodic) {
        return call("grid", () -> Grid.of(this, dimensions, periodic));
    }

    /**
     * Ends all processes of the job.
     *
     * @param code the exit code of the job
     */
    public void abort(int code) {
        System.out.flush();
        System.err.flush();
        home.engine.abort(home.world, code);
    }

    /**
     * Gives the communicator back ({@code MPI_Comm_free}). All ranks call it. Later calls throw
     * {@link Errors.CommunicatorException}.
     */
    @Override
    public void close() {
        Communicator last = end();
        if (last != null) {
            call("close", last::free);
        }
    }

    @Override
    public String toString() {
        return getClass().getSimpleName() + ": rank " + rank + " of " + size;
    }
}
