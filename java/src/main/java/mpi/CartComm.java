package mpi;

import org.limosa.engine.Communicator;

/** {@link Cartcomm} under the names of Open MPI's bindings. */
public final class CartComm extends Cartcomm {
    CartComm(Cartcomm made) {
        super(made);
    }

    @Override
    Comm with(Communicator other) {
        return new CartComm((Cartcomm) super.with(other));
    }

    @Override
    public CartComm clone() throws MPIException {
        return (CartComm) super.clone();
    }

    /** Sets those dims that are 0 so that the product is {@code nnodes} and the grid is near to a cube. */
    public static void createDims(int nnodes, int[] dims) throws MPIException {
        Dims_create(nnodes, dims);
    }

    /** The grid, and the place of the calling process. */
    public CartParms getTopo() throws MPIException {
        return Get();
    }

    /** The rank of a place. */
    public int getRank(int[] coords) throws MPIException {
        return Rank(coords);
    }

    /** The place of a rank. */
    public int[] getCoords(int rank) throws MPIException {
        return Coords(rank);
    }

    /** The ranks that this process receives from and sends to when all shift along a dimension. */
    public ShiftParms shift(int direction, int disp) throws MPIException {
        return Shift(direction, disp);
    }

    /** Grids of the dimensions that remain. */
    public CartComm sub(boolean[] remainDims) throws MPIException {
        return new CartComm(Sub(remainDims));
    }

    /** The rank that this process would have in such a grid; UNDEFINED outside. */
    public int map(int[] dims, boolean[] periods) throws MPIException {
        return Map(dims, periods);
    }
}
