package mpi;

/** The neighbours along a dimension: PROC_NULL beyond an edge. */
public class ShiftParms {
    public int rank_source;
    public int rank_dest;

    ShiftParms(int source, int dest) {
        rank_source = source;
        rank_dest = dest;
    }

    // --- the names of Open MPI's bindings ---

    /** The rank that this process receives from. */
    public int getRankSource() {
        return rank_source;
    }

    /** The rank that this process sends to. */
    public int getRankDest() {
        return rank_dest;
    }
}
