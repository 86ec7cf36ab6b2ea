package mpi;

import org.limosa.abi.Abi;

/**
 * Open MPI's collective operations between the neighbours of a topology. A grid's neighbours are, in each dimension,
 * the one before and the one behind; a graph's are those of its edges, and the graph must have each edge in both
 * directions. The block of a neighbour beyond an edge stays as it is.
 */
abstract class OpenMpiNeighbours extends OpenMpiNonBlocking {
    OpenMpiNeighbours() {}

    /** The neighbours of the calling process; null without a topology. */
    Neighbourhood neighbours() {
        return null;
    }

    private Neighbourhood neighbourhood(String function) {
        ((Comm) this).communicator();
        Neighbourhood found = neighbours();
        if (found == null) {
            throw MPIException.of(Abi.MPI_ERR_TOPOLOGY, function
                    + ": the communicator has no topology; make one with createCart or createGraph");
        }
        return found;
    }

    private Request allGather(
            String function, Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype) {
        Neighbourhood beside = neighbourhood(function);
        return beside.start(
                function, sendbuf, beside.same(sendcount), beside.same(0), sendtype, recvbuf, recvcount, displs,
                recvtype);
    }

    /** Collects the part of each neighbour. */
    public final void neighborAllGather(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        Neighbourhood beside = neighbourhood("neighborAllGather");
        allGather(
                "neighborAllGather", sendbuf, sendcount, sendtype, recvbuf, beside.same(recvcount),
                beside.steps(recvcount), recvtype).Wait();
    }

    /** Begins {@link #neighborAllGather}. */
    public final Request iNeighborAllGather(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        Neighbourhood beside = neighbourhood("iNeighborAllGather");
        return allGather(
                "iNeighborAllGather", sendbuf, sendcount, sendtype, recvbuf, beside.same(recvcount),
                beside.steps(recvcount), recvtype);
    }

    /** Collects parts of different lengths of each neighbour. */
    public final void neighborAllGatherv(
            Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype) throws MPIException {
        allGather("neighborAllGatherv", sendbuf, sendcount, sendtype, recvbuf, recvcount, displs, recvtype).Wait();
    }

    /** Begins {@link #neighborAllGatherv}. */
    public final Request iNeighborAllGatherv(
            Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype) throws MPIException {
        return allGather("iNeighborAllGatherv", sendbuf, sendcount, sendtype, recvbuf, recvcount, displs, recvtype);
    }

    private Request allToAll(
            String function, Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int recvcount, Datatype recvtype) {
        Neighbourhood beside = neighbourhood(function);
        return beside.start(
                function, sendbuf, beside.same(sendcount), beside.steps(sendcount), sendtype,
                recvbuf, beside.same(recvcount), beside.steps(recvcount), recvtype);
    }

    /** Sends a part to each neighbour, and receives one from each. */
    public final void neighborAllToAll(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        allToAll("neighborAllToAll", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype).Wait();
    }

    /** Begins {@link #neighborAllToAll}. */
    public final Request iNeighborAllToAll(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        return allToAll("iNeighborAllToAll", sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
    }

    /** Sends parts of different lengths to each neighbour, and receives such from each. */
    public final void neighborAllToAllv(
            Object sendbuf, int[] sendcount, int[] sdispls, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] rdispls, Datatype recvtype) throws MPIException {
        neighbourhood("neighborAllToAllv").start(
                "neighborAllToAllv", sendbuf, sendcount, sdispls, sendtype, recvbuf, recvcount, rdispls, recvtype)
                .Wait();
    }

    /** Begins {@link #neighborAllToAllv}. */
    public final Request iNeighborAllToAllv(
            Object sendbuf, int[] sendcount, int[] sdispls, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] rdispls, Datatype recvtype) throws MPIException {
        return neighbourhood("iNeighborAllToAllv").start(
                "iNeighborAllToAllv", sendbuf, sendcount, sdispls, sendtype, recvbuf, recvcount, rdispls, recvtype);
    }
}
