package mpi;

import java.util.Arrays;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator;
import org.limosa.engine.Lattice;

/** A grid of processes: ranks count along the last dimension first (MPI-5, section 8.5). */
public class Cartcomm extends Intracomm {
    private final int[] dims;
    private final boolean[] periods;
    private final Neighbourhood neighbours;

    Cartcomm(Communicator communicator, int[] dims, boolean[] periods) {
        super(communicator);
        this.dims = dims;
        this.periods = periods;
        neighbours = Neighbourhood.of(this, new Intracomm(communicator.duplicate()));
    }

    /** The same one as an object of a subclass. */
    Cartcomm(Cartcomm made) {
        super(made.communicator());
        dims = made.dims;
        periods = made.periods;
        neighbours = made.neighbours;
    }

    @Override
    Neighbourhood neighbours() {
        return neighbours;
    }

    @Override
    public void Free() throws MPIException {
        super.Free();
        neighbours.messages().Free();
    }

    @Override
    Comm with(Communicator other) {
        return new Cartcomm(other, dims, periods);
    }

    @Override
    public int Topo_test() throws MPIException {
        return MPI.CART;
    }

    private Lattice lattice() {
        return new Lattice(dims, periods);
    }

    /** The number of processes of a grid. */
    static int product(String function, int[] dims) {
        int nodes = 1;
        for (int dim : Errors.present(function, "dims", dims)) {
            if (dim <= 0) {
                throw MPIException.of(
                        Abi.MPI_ERR_DIMS,
                        function + ": the dims " + Arrays.toString(dims) + " must be positive");
            }
            nodes = Math.multiplyExact(nodes, dim);
        }
        return nodes;
    }

    /** Sets those dims that are 0 so that the product is {@code nnodes} and the grid is near to a cube. */
    public static void Dims_create(int nnodes, int[] dims) throws MPIException {
        Errors.present("Dims_create", "dims", dims);
        int[] complete = Lattice.complete(nnodes, dims);
        if (complete == null) {
            boolean negative = Arrays.stream(dims).anyMatch(dim -> dim < 0);
            throw MPIException.of(Abi.MPI_ERR_DIMS, negative
                    ? "Dims_create: the dims " + Arrays.toString(dims) + " cannot be negative"
                    : "Dims_create: " + nnodes + " processes do not fit into " + Arrays.toString(dims));
        }
        System.arraycopy(complete, 0, dims, 0, dims.length);
    }

    public CartParms Get() throws MPIException {
        return new CartParms(dims.clone(), periods.clone(), Coords(Rank()));
    }

    /** The rank of a place; places beyond the edge of a periodic dimension are counted from the other edge. */
    public int Rank(int[] coords) throws MPIException {
        if (Errors.present("Cartcomm.Rank", "coords", coords).length < dims.length) {
            throw Errors.argument("Cartcomm.Rank: " + coords.length + " coordinates for " + dims.length + " dims");
        }
        int rank = lattice().rank(coords);
        if (rank == Lattice.OUTSIDE) {
            throw Errors.argument("Cartcomm.Rank: " + Arrays.toString(coords) + " is outside of the grid "
                    + Arrays.toString(dims) + " in a dimension that is not periodic");
        }
        return rank;
    }

    /** The place of a rank. */
    public int[] Coords(int rank) throws MPIException {
        if (rank < 0 || rank >= Size()) {
            throw Errors.rank("Cartcomm.Coords: there is no rank " + rank);
        }
        return lattice().coords(rank);
    }

    /** The ranks that this process receives from and sends to when all shift along a dimension. */
    public ShiftParms Shift(int direction, int disp) throws MPIException {
        if (direction < 0 || direction >= dims.length) {
            throw Errors.argument("Cartcomm.Shift: there is no dimension " + direction + " of " + dims.length);
        }
        return new ShiftParms(beside(direction, -disp), beside(direction, disp));
    }

    private int beside(int direction, int disp) {
        int rank = lattice().beside(Rank(), direction, disp);
        return rank == Lattice.OUTSIDE ? MPI.PROC_NULL : rank;
    }

    /** Grids of the dimensions that remain. */
    public Cartcomm Sub(boolean[] remain_dims) throws MPIException {
        if (Errors.present("Cartcomm.Sub", "remain_dims", remain_dims).length < dims.length) {
            throw Errors.argument("Cartcomm.Sub: " + remain_dims.length + " entries for " + dims.length + " dims");
        }
        int colour = 0;
        int key = 0;
        int[] coords = Coords(Rank());
        int kept = 0;
        int[] newDims = new int[dims.length];
        boolean[] newPeriods = new boolean[dims.length];
        for (int i = 0; i < dims.length; i++) {
            if (remain_dims[i]) {
                key = key * dims[i] + coords[i];
                newDims[kept] = dims[i];
                newPeriods[kept++] = periods[i];
            } else {
                colour = colour * dims[i] + coords[i];
            }
        }
        Communicator part = communicator().split(colour, key);
        return new Cartcomm(part, Arrays.copyOf(newDims, kept), Arrays.copyOf(newPeriods, kept));
    }

    /** The rank that this process would have in such a grid; UNDEFINED outside. */
    public int Map(int[] dims, boolean[] periods) throws MPIException {
        int nodes = product("Map", dims);
        if (nodes > Size()) {
            throw Errors.argument("Map: the grid has " + nodes + " processes, but there are only " + Size());
        }
        return Rank() < nodes ? Rank() : MPI.UNDEFINED;
    }
}
