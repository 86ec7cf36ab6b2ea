package mpi;

import org.limosa.engine.Communicator;

/** {@link Graphcomm} under the names of Open MPI's bindings. */
public final class GraphComm extends Graphcomm {
    GraphComm(Graphcomm made) {
        super(made);
    }

    @Override
    Comm with(Communicator other) {
        return new GraphComm((Graphcomm) super.with(other));
    }

    @Override
    public GraphComm clone() throws MPIException {
        return (GraphComm) super.clone();
    }

    /** The edges, as given to createGraph. */
    public GraphParms getDims() throws MPIException {
        return Get();
    }

    /** The processes to which edges of a rank lead. */
    public int[] getNeighbors(int rank) throws MPIException {
        return Neighbours(rank);
    }

    /** The rank that this process would have in such a graph; UNDEFINED outside. */
    public int map(int[] index, int[] edges) throws MPIException {
        return Map(index, edges);
    }
}
