package mpi;

import java.util.Arrays;
import org.limosa.engine.Communicator;

/** A graph of processes (MPI-5, section 8.5.3). */
public class Graphcomm extends Intracomm {
    private final int[] index;
    private final int[] edges;
    private final Neighbourhood neighbours;

    Graphcomm(Communicator communicator, int[] index, int[] edges) {
        super(communicator);
        this.index = index;
        this.edges = edges;
        neighbours = Neighbourhood.of(this, new Intracomm(communicator.duplicate()));
    }

    /** The same one as an object of a subclass. */
    Graphcomm(Graphcomm made) {
        super(made.communicator());
        index = made.index;
        edges = made.edges;
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

    static void check(int[] index, int[] edges) {
        Errors.present("a graph", "index", index);
        Errors.present("a graph", "edges", edges);
        int before = 0;
        for (int end : index) {
            if (end < before || end > edges.length) {
                throw Errors.argument("a graph's index " + Arrays.toString(index)
                        + " must not fall, nor exceed the number of edges, " + edges.length);
            }
            before = end;
        }
        for (int i = 0; i < before; i++) {
            if (edges[i] < 0 || edges[i] >= index.length) {
                throw Errors.argument("a graph's edge leads to " + edges[i] + "; its processes are 0 to "
                        + (index.length - 1));
            }
        }
    }

    @Override
    Comm with(Communicator other) {
        return new Graphcomm(other, index, edges);
    }

    @Override
    public int Topo_test() throws MPIException {
        return MPI.GRAPH;
    }

    public GraphParms Get() throws MPIException {
        return new GraphParms(index.clone(), edges.clone());
    }

    /** The processes to which edges of a rank lead. */
    public int[] Neighbours(int rank) throws MPIException {
        if (rank < 0 || rank >= index.length) {
            throw Errors.rank("Graphcomm.Neighbours: there is no rank " + rank);
        }
        return Arrays.copyOfRange(edges, rank == 0 ? 0 : index[rank - 1], index[rank]);
    }

    /** The rank that this process would have in such a graph; UNDEFINED outside. */
    public int Map(int[] index, int[] edges) throws MPIException {
        check(index, edges);
        return Rank() < index.length ? Rank() : MPI.UNDEFINED;
    }
}
