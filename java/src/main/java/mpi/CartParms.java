package mpi;

/** What a Cartesian topology is like, and where the calling process is in it. */
public class CartParms {
    public int[] dims;
    public boolean[] periods;
    public int[] coords;

    CartParms(int[] dims, boolean[] periods, int[] coords) {
        this.dims = dims;
        this.periods = periods;
        this.coords = coords;
    }

    // --- the names of Open MPI's bindings ---

    /** The number of dimensions. */
    public int getDimCount() {
        return dims.length;
    }

    /** Processes along a dimension. */
    public int getDim(int i) {
        return dims[i];
    }

    /** Whether a dimension is periodic. */
    public boolean getPeriod(int i) {
        return periods[i];
    }

    /** The place of the calling process in a dimension. */
    public int getCoord(int i) {
        return coords[i];
    }
}
