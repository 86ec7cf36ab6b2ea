package org.limosa;

import java.util.ArrayList;
import java.util.List;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.ByteChannel;
import org.limosa.engine.Communicator;
import org.limosa.engine.Trees;
import org.limosa.engine.Type;

/**
 * Calls that all ranks of a communicator make together, in the same order: the second part of {@link Comm}. Those with
 * {@code Into} in their names go from buffers into buffers that exist; all ranks give as many elements as the others
 * expect. The others take any value and give new ones.
 */
public abstract sealed class Collectives extends Messages permits Reductions {
    Collectives(Home home, Communicator communicator) {
        super(home, communicator);
    }

    final ByteChannel channel() {
        communicator();
        return new ByteChannel(hidden);
    }

    final void checkRoot(int root) {
        if (root < 0 || root >= size) {
            throw MPIException.of(
                    Abi.MPI_ERR_ROOT, "there is no root " + root + "; ranks are 0 to " + (size - 1));
        }
    }

    @SuppressWarnings("unchecked")
    static <T> T read(byte[] message) {
        return (T) Values.read(message);
    }

    /** The values in messages; the own one as it was given. */
    private <T> List<T> readAll(List<byte[]> messages, T mine) {
        List<T> values = new ArrayList<>(messages.size());
        for (int other = 0; other < messages.size(); other++) {
            values.add(other == rank ? mine : read(messages.get(other)));
        }
        return values;
    }

    private <T> List<byte[]> writeAll(List<T> values) {
        if (values == null) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER, "the list of values is null");
        }
        if (values.size() != size) {
            throw MPIException.of(Abi.MPI_ERR_COUNT,
                    "the list has " + values.size() + " values, but there are " + size + " ranks");
        }
        return values.stream().map(Values::write).toList();
    }

    /** Checks that two buffers have elements of one type. */
    static void same(Elements sent, Elements received) {
        if (sent.type() != received.type()) {
            throw MPIException.of(Abi.MPI_ERR_TYPE, "the elements sent are of type " + sent.typeName()
                    + ", those received of type " + received.typeName());
        }
    }

    /** The elements of each rank in a buffer for all of them. */
    private long each(String name, Elements all) {
        if (all.count() % size != 0) {
            throw MPIException.of(Abi.MPI_ERR_COUNT,
                    name + ": " + all.count() + " elements cannot be divided among " + size + " ranks");
        }
        return all.count() / size;
    }

    /** Checks that a buffer for all ranks has as much room for each as one of them has elements. */
    private void whole(String name, Elements all, Elements one) {
        if (each(name, all) != one.count()) {
            throw MPIException.of(Abi.MPI_ERR_COUNT, name + ": the buffer for all " + size + " ranks has " + all.count()
                    + " elements, but it must have " + size * one.count() + ", " + one.count() + " for each");
        }
    }

    /** Where the blocks of all ranks begin if they are contiguous. */
    private int[] places(String name, int[] counts, Elements all) {
        if (counts == null || counts.length != size) {
            throw MPIException.of(Abi.MPI_ERR_COUNT, name + ": there must be " + size + " counts, one for each rank, "
                    + "but there are " + (counts == null ? "none" : counts.length));
        }
        int[] places = new int[size];
        long next = 0;
        for (int i = 0; i < size; i++) {
            if (counts[i] < 0) {
                throw MPIException.of(Abi.MPI_ERR_COUNT, name + ": the count of rank " + i + " is " + counts[i]);
            }
            places[i] = (int) Math.min(next, Integer.MAX_VALUE);
            next += counts[i];
        }
        if (next > all.count()) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER,
                    name + ": the counts add up to " + next + ", but the buffer has " + all.count() + " elements");
        }
        if (next > Integer.MAX_VALUE) {
            throw MPIException.of(Abi.MPI_ERR_COUNT, name + ": the counts add up to " + next + "; " + Integer.MAX_VALUE
                    + " elements are the most with counts. Use larger elements: Slice.of(segment, JAVA_LONG)");
        }
        return places;
    }

    // --- values ---

    /** Waits until all ranks have called it ({@code MPI_Barrier}). */
    public void barrier() {
        call("barrier", () -> communicator().barrier());
    }

    /** The value of rank 0. See {@link #bcast(Object, int)}. */
    public <T> T bcast(T value) {
        return bcast(value, 0);
    }

    /**
     * Gives the value of one rank to all.
     *
     * @param value the value on the root; ignored elsewhere, where null may be given
     * @param root the rank whose value it is
     * @return the value; on the root the given one
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> T bcast(T value, int root) {
        return call("bcast", () -> {
            checkRoot(root);
            byte[] mine = rank == root ? Values.write(value) : null;
            byte[] message = Trees.broadcast(channel(), mine, root);
            return rank == root ? value : read(message);
        });
    }

    /** The values of all on rank 0. See {@link #gather(Object, int)}. */
    public <T> List<T> gather(T value) {
        return gather(value, 0);
    }

    /**
     * Brings the values of all ranks to one. Arrays may have different lengths.
     *
     * @param value the value of this rank
     * @param root the rank that gets them
     * @return on the root the values by rank, elsewhere an empty list
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> List<T> gather(T value, int root) {
        return call("gather", () -> {
            checkRoot(root);
            List<byte[]> all = Trees.gather(channel(), Values.write(value), root);
            return rank == root ? readAll(all, value) : List.of();
        });
    }

    /** One of the values of rank 0. See {@link #scatter(List, int)}. */
    public <T> T scatter(List<T> values) {
        return scatter(values, 0);
    }

    /**
     * Gives each rank one of the values of the root.
     *
     * @param values on the root one value for each rank; ignored elsewhere, where null may be given
     * @param root the rank whose values they are
     * @return the value for this rank
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> T scatter(List<T> values, int root) {
        return call("scatter", () -> {
            checkRoot(root);
            List<byte[]> all = rank == root ? writeAll(values) : null;
            byte[] message = Trees.scatter(channel(), all, root);
            return rank == root ? values.get(rank) : read(message);
        });
    }

    /**
     * Gives the values of all ranks to all.
     *
     * @param value the value of this rank
     * @return the values by rank
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> List<T> allgather(T value) {
        return call("allgather", () -> readAll(Trees.allGather(channel(), Values.write(value)), value));
    }

    /**
     * Gives each rank one of the values of every rank.
     *
     * @param values one value for each rank
     * @return what the ranks had for this one
     * @param <T> the class
     * @throws LimosaException if an argument is wrong
     */
    public <T> List<T> alltoall(List<T> values) {
        return call("alltoall", () -> {
            List<byte[]> mine = writeAll(values);
            return readAll(Trees.allToAll(channel(), mine), values.get(rank));
        });
    }

    // --- buffers ---

    /**
     * Copies the elements of one rank to all ({@code MPI_Bcast}).
     *
     * @param buffer an array of a primitive type, a {@link Slice}, a buffer of {@code java.nio} or a memory segment
     * @param root the rank whose elements they are
     * @throws LimosaException if an argument is wrong
     */
    public void bcastInto(Object buffer, int root) {
        call("bcastInto", () -> {
            checkRoot(root);
            Elements elements = rank == root
                    ? Elements.required("buffer", buffer) : Elements.writable("buffer", buffer);
            communicator().broadcast(elements.memory(), elements.type(), root);
            elements.finish();
        });
    }

    /**
     * Brings as many elements from each rank to one ({@code MPI_Gather}).
     *
     * @param elements the elements of this rank
     * @param all on the root, room for the elements of all ranks; ignored elsewhere, where null may be given
     * @param root the rank that gets them
     * @throws LimosaException if an argument is wrong
     */
    public void gatherInto(Object elements, Object all, int root) {
        call("gatherInto", () -> {
            checkRoot(root);
            Elements in = Elements.required("elements", elements);
            if (rank != root) {
                communicator().gather(in.memory(), null, in.type(), root);
                return;
            }
            Elements out = Elements.writable("all", all);
            same(in, out);
            whole("all", out, in);
            communicator().gather(in.memory(), out.memory(), in.type(), root);
            out.finish();
        });
    }

    /**
     * Brings elements from each rank to one ({@code MPI_Gatherv}), contiguously.
     *
     * @param elements the elements of this rank
     * @param all on the root, room for the elements of all ranks; ignored elsewhere, where null may be given
     * @param counts on the root, how many elements each rank has; ignored elsewhere, where null may be given
     * @param root the rank that gets them
     * @throws LimosaException if an argument is wrong
     */
    public void gatherInto(Object elements, Object all, int[] counts, int root) {
        call("gatherInto", () -> {
            checkRoot(root);
            Elements in = Elements.required("elements", elements);
            if (rank != root) {
                communicator().gather(in.memory(), null, null, null, in.type(), root);
                return;
            }
            Elements out = Elements.writable("all", all);
            same(in, out);
            int[] places = places("counts", counts, out);
            own("counts", counts, in);
            communicator().gather(in.memory(), out.memory(), counts, places, in.type(), root);
            out.finish();
        });
    }

    /** Checks that this rank has as many elements as the counts say. */
    private void own(String name, int[] counts, Elements mine) {
        if (counts[rank] != mine.count()) {
            throw MPIException.of(Abi.MPI_ERR_COUNT, name + ": the count of rank " + rank + ", this one, is "
                    + counts[rank] + ", but its buffer has " + mine.count() + " elements");
        }
    }

    /**
     * Gives each rank as many of the elements of one ({@code MPI_Scatter}).
     *
     * @param all on the root, the elements for all ranks; ignored elsewhere, where null may be given
     * @param elements room for the elements of this rank
     * @param root the rank whose elements they are
     * @throws LimosaException if an argument is wrong
     */
    public void scatterInto(Object all, Object elements, int root) {
        call("scatterInto", () -> {
            checkRoot(root);
            Elements out = Elements.writable("elements", elements);
            Elements in = rank == root ? Elements.required("all", all) : null;
            if (in != null) {
                same(in, out);
                whole("all", in, out);
            }
            communicator().scatter(in == null ? null : in.memory(), out.memory(), out.type(), root);
            out.finish();
        });
    }

    /**
     * Gives each rank some of the elements of one ({@code MPI_Scatterv}), contiguously.
     *
     * @param all on the root, the elements for all ranks; ignored elsewhere, where null may be given
     * @param counts on the root, how many elements each rank gets; ignored elsewhere, where null may be given
     * @param elements room for the elements of this rank
     * @param root the rank whose elements they are
     * @throws LimosaException if an argument is wrong
     */
    public void scatterInto(Object all, int[] counts, Object elements, int root) {
        call("scatterInto", () -> {
            checkRoot(root);
            Elements out = Elements.writable("elements", elements);
            if (rank != root) {
                communicator().scatter(null, null, null, out.memory(), out.type(), root);
            } else {
                Elements in = Elements.required("all", all);
                same(in, out);
                int[] places = places("counts", counts, in);
                own("counts", counts, out);
                communicator().scatter(in.memory(), counts, places, out.memory(), out.type(), root);
            }
            out.finish();
        });
    }

    /**
     * Gives as many elements of each rank to all ({@code MPI_Allgather}).
     *
     * @param elements the elements of this rank
     * @param all room for the elements of all ranks
     * @throws LimosaException if an argument is wrong
     */
    public void allgatherInto(Object elements, Object all) {
        call("allgatherInto", () -> {
            Elements in = Elements.required("elements", elements);
            Elements out = Elements.writable("all", all);
            same(in, out);
            whole("all", out, in);
            communicator().allGather(in.memory(), out.memory(), in.type());
            out.finish();
        });
    }

    /**
     * Gives elements of each rank to all ({@code MPI_Allgatherv}), contiguously.
     *
     * @param elements the elements of this rank
     * @param all room for the elements of all ranks
     * @param counts how many elements each rank has
     * @throws LimosaException if an argument is wrong
     */
    public void allgatherInto(Object elements, Object all, int[] counts) {
        call("allgatherInto", () -> {
            Elements in = Elements.required("elements", elements);
            Elements out = Elements.writable("all", all);
            same(in, out);
            int[] places = places("counts", counts, out);
            own("counts", counts, in);
            communicator().allGather(in.memory(), out.memory(), counts, places, in.type());
            out.finish();
        });
    }

    /**
     * Gives each rank as many elements of every rank ({@code MPI_Alltoall}).
     *
     * @param elements the elements for all ranks
     * @param all room for as many elements
     * @throws LimosaException if an argument is wrong
     */
    public void alltoallInto(Object elements, Object all) {
        call("alltoallInto", () -> {
            Elements in = Elements.required("elements", elements);
            Elements out = Elements.writable("all", all);
            same(in, out);
            if (each("elements", in) != each("all", out)) {
                throw MPIException.of(Abi.MPI_ERR_COUNT,
                        in.count() + " elements are sent, but there is room for " + out.count());
            }
            communicator().allToAll(in.memory(), out.memory(), in.type());
            out.finish();
        });
    }

    /**
     * Gives each rank some elements of every rank ({@code MPI_Alltoallv}), contiguously.
     *
     * @param elements the elements for all ranks
     * @param sendCounts how many each rank gets
     * @param all room for the elements from all ranks
     * @param receiveCounts how many each rank sends
     * @throws LimosaException if an argument is wrong
     */
    public void alltoallInto(Object elements, int[] sendCounts, Object all, int[] receiveCounts) {
        call("alltoallInto", () -> {
            Elements in = Elements.required("elements", elements);
            Elements out = Elements.writable("all", all);
            same(in, out);
            int[] from = places("sendCounts", sendCounts, in);
            int[] to = places("receiveCounts", receiveCounts, out);
            Type type = in.type();
            communicator().allToAll(in.memory(), sendCounts, from, out.memory(), receiveCounts, to, type);
            out.finish();
        });
    }
}
