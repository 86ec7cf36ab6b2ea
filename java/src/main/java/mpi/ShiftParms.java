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

    /** Who sends to this process. */
    public int getRankSource() {
        return rank_source;
    }

    /** To whom this process sends. */
    public int getRankDest() {
        return rank_dest;
    }
}
