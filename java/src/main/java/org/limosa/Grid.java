package org.limosa;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator;
import org.limosa.engine.Lattice;

/** Ranks in a grid (MPI-5, section 8.5). They count along the last direction first. See {@link Comm#grid}. */
public final class Grid extends Comm {
    private final Lattice lattice;

    private Grid(Home home, Communicator communicator, Lattice lattice) {
        super(home, communicator);
        this.lattice = lattice;
    }

    static Grid of(Comm all, int[] dimensions, boolean[] periodic) {
        int[] complete = dimensions == null ? null : Lattice.complete(all.size(), dimensions);
        if (complete == null) {
            throw MPIException.of(
                    Abi.MPI_ERR_DIMS, all.size() + " ranks do not fit into " + Arrays.toString(dimensions));
        }
        if (periodic == null || periodic.length > complete.length) {
            throw MPIException.of(Abi.MPI_ERR_DIMS,
                    "there are more values of periodic than the " + complete.length + " dimensions");
        }
        Lattice lattice = new Lattice(complete, Arrays.copyOf(periodic, complete.length));
        return new Grid(all.home, all.communicator().duplicate(), lattice);
    }

    /**
     * How many ranks there are in each direction.
     *
     * @return a new array
     */
    public int[] dimensions() {
        return lattice.dims().clone();
    }

    /**
     * In which directions the first and the last rank are neighbours.
     *
     * @return a new array
     */
    public boolean[] periodic() {
        return lattice.periods().clone();
    }

    /**
     * Where this rank is.
     *
     * @return one number for each direction, counted from 0
     */
    public int[] coordinates() {
        return lattice.coords(rank);
    }

    /**
     * Where a rank is.
     *
     * @param rank the rank
     * @return one number for each direction, counted from 0
     * @throws Errors.RankException if there is no such rank
     */
    public int[] coordinates(int rank) {
        if (rank < 0 || rank >= size) {
            throw Errors.of(Abi.MPI_ERR_RANK,
                    "coordinates: there is no rank " + rank + "; ranks are 0 to " + (size - 1), null);
        }
        return lattice.coords(rank);
    }

    /**
     * Which rank is at a place. In periodic directions places beyond the edge are counted from the other edge.
     *
     * @param coordinates one number for each direction
     * @return the rank; {@link Rank#NONE} beyond an edge
     * @throws Errors.ArgumentException if it is not one number for each direction
     */
    public int rankAt(int... coordinates) {
        if (coordinates == null || coordinates.length != lattice.dims().length) {
            throw Errors.of(Abi.MPI_ERR_ARG, "rankAt: the grid has " + lattice.dims().length
                    + " directions, but the coordinates are " + Arrays.toString(coordinates), null);
        }
        return orNone(lattice.rank(coordinates));
    }

    private static int orNone(int found) {
        return found == Lattice.OUTSIDE ? Rank.NONE : found;
    }

    /**
     * The ranks beside this one, for each direction.
     *
     * @return the neighbours by direction
     */
    public List<Neighbours> neighbours() {
        return IntStream.range(0, lattice.dims().length).mapToObj(direction -> new Neighbours(
                orNone(lattice.beside(rank, direction, -1)), orNone(lattice.beside(rank, direction, 1)))).toList();
    }

    /**
     * The grids of the ranks that differ in some directions only ({@code MPI_Cart_sub}), such as the rows: {@code
     * sub(1)} of a grid with two directions. All ranks call it.
     *
     * @param directions the directions that remain, counted from 0
     * @return the grid to which this rank belongs
     * @throws Errors.ArgumentException if there is no such direction
     */
    public Grid sub(int... directions) {
        return call("sub", () -> {
            int count = lattice.dims().length;
            List<Integer> kept = new ArrayList<>();
            for (int direction : directions) {
                if (direction < 0 || direction >= count || kept.contains(direction)) {
                    throw MPIException.of(Abi.MPI_ERR_ARG, "the grid has " + count + " directions, but "
                            + Arrays.toString(directions) + " were asked for");
                }
                kept.add(direction);
            }
            kept.sort(null);
            int color = 0;
            int[] here = coordinates();
            for (int i = 0; i < count; i++) {
                color = kept.contains(i) ? color : color * lattice.dims()[i] + here[i];
            }
            boolean[] periods = new boolean[kept.size()];
            for (int i = 0; i < periods.length; i++) {
                periods[i] = lattice.periods()[kept.get(i)];
            }
            int[] dims = kept.stream().mapToInt(i -> lattice.dims()[i]).toArray();
            return new Grid(home, communicator().split(color, rank), new Lattice(dims, periods));
        });
    }
}
