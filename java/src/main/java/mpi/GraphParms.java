package mpi;

/** The edges of a graph topology, as given to Create_graph. */
public class GraphParms {
    public int[] index;
    public int[] edges;

    GraphParms(int[] index, int[] edges) {
        this.index = index;
        this.edges = edges;
    }

    // --- the names of Open MPI's bindings ---

    /** The number of edges of the ranks up to i. */
    public int getIndex(int i) {
        return index[i];
    }

    /** The i-th edge. */
    public int getEdge(int i) {
        return edges[i];
    }

    /** The number of ranks. */
    public int getIndexCount() {
        return index.length;
    }

    /** The number of edges. */
    public int getEdgeCount() {
        return edges.length;
    }
}
