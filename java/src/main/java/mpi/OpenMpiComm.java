package mpi;

import java.util.Arrays;
import org.limosa.engine.Communicator;

/**
 * The methods of {@link Comm} under the names that they have in Open MPI's bindings for Java. A buffer is an array or a
 * buffer of java.nio there, and begins where it begins: there are no offsets; {@link MPI#slice} gives a part of a
 * buffer.
 */
abstract class OpenMpiComm {
    OpenMpiComm() {}

    private Comm comm() {
        return (Comm) this;
    }

    /** The collective operations of one group, or between two. */
    private Collective group(String function) {
        return this instanceof Intercomm both ? new InterCollective(both, function) : (Intracomm) this;
    }

    /** Where the part of a process begins in a buffer with parts of all. */
    private static int part(int rank, int count, Datatype type) {
        return Math.multiplyExact(Math.multiplyExact(rank, count), type.extent());
    }

    private int rank() {
        return comm().Rank();
    }

    // --- processes ---

    /** The rank of the calling process. */
    public final int getRank() throws MPIException {
        return comm().Rank();
    }

    /** The number of processes. */
    public final int getSize() throws MPIException {
        return comm().Size();
    }

    /** The processes. */
    public final Group getGroup() throws MPIException {
        return comm().Group();
    }

    /** IDENT, CONGRUENT, SIMILAR or UNEQUAL. */
    public static int compare(Comm comm1, Comm comm2) throws MPIException {
        return Comm.Compare(comm1, comm2);
    }

    /** Whether it was freed. */
    public final boolean isNull() throws MPIException {
        return comm().Is_null();
    }

    /** Whether it has two groups. */
    public final boolean isInter() throws MPIException {
        return comm().Test_inter();
    }

    /** CART, GRAPH or UNDEFINED. */
    public final int getTopology() throws MPIException {
        return comm().Topo_test();
    }

    /** Ends all processes of the job with this code. */
    public final void abort(int errorcode) throws MPIException {
        comm().Abort(errorcode);
    }

    /** Waits for its messages, and frees it. */
    public final void disconnect() throws MPIException {
        comm().end(Communicator::disconnect);
    }

    /** An inter-communicator; called on the communicator in which the leaders are. */
    public final Intercomm createIntercomm(Comm localComm, int localLeader, int remoteLeader, int tag)
            throws MPIException {
        return comm().Create_intercomm(localComm, localLeader, remoteLeader, tag);
    }

    /** Errors are thrown, whatever the handler. */
    public final void setErrhandler(Errhandler handler) throws MPIException {
        comm().Errhandler_set(handler);
    }

    /** What {@link #setErrhandler} has set. */
    public final Errhandler getErrhandler() throws MPIException {
        return comm().Errhandler_get();
    }

    // --- messages ---

    /** Sends a message. */
    public final void send(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        comm().Send(buf, 0, count, type, dest, tag);
    }

    /** Receives a message. */
    public final Status recv(Object buf, int count, Datatype type, int source, int tag) throws MPIException {
        return comm().Recv(buf, 0, count, type, source, tag);
    }

    /** Sends a message through the attached buffer. */
    public final void bSend(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        comm().Bsend(buf, 0, count, type, dest, tag);
    }

    /** Sends a message, and waits until its receive has begun. */
    public final void sSend(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        comm().Ssend(buf, 0, count, type, dest, tag);
    }

    /** Sends a message whose receive has been posted. */
    public final void rSend(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        comm().Rsend(buf, 0, count, type, dest, tag);
    }

    /** Begins to send a message. */
    public final Request iSend(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Isend(buf, 0, count, type, dest, tag);
    }

    /** Begins to send a message through the attached buffer. */
    public final Request ibSend(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Ibsend(buf, 0, count, type, dest, tag);
    }

    /** Begins to send a message; complete when its receive has begun. */
    public final Request isSend(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Issend(buf, 0, count, type, dest, tag);
    }

    /** Begins to send a message whose receive has been posted. */
    public final Request irSend(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Irsend(buf, 0, count, type, dest, tag);
    }

    /** Begins to receive a message. */
    public final Request iRecv(Object buf, int count, Datatype type, int source, int tag) throws MPIException {
        return comm().Irecv(buf, 0, count, type, source, tag);
    }

    /** A persistent request to send. */
    public final Prequest sendInit(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Send_init(buf, 0, count, type, dest, tag);
    }

    /** A persistent request to send through the attached buffer. */
    public final Prequest bSendInit(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Bsend_init(buf, 0, count, type, dest, tag);
    }

    /** A persistent request to send in synchronous mode. */
    public final Prequest sSendInit(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Ssend_init(buf, 0, count, type, dest, tag);
    }

    /** A persistent request to send in ready mode. */
    public final Prequest rSendInit(Object buf, int count, Datatype type, int dest, int tag) throws MPIException {
        return comm().Rsend_init(buf, 0, count, type, dest, tag);
    }

    /** A persistent request to receive. */
    public final Prequest recvInit(Object buf, int count, Datatype type, int source, int tag) throws MPIException {
        return comm().Recv_init(buf, 0, count, type, source, tag);
    }

    /** Sends to one process while it receives from another. */
    public final Status sendRecv(
            Object sendbuf, int sendcount, Datatype sendtype, int dest, int sendtag,
            Object recvbuf, int recvcount, Datatype recvtype, int source, int recvtag) throws MPIException {
        return comm().Sendrecv(
                sendbuf, 0, sendcount, sendtype, dest, sendtag, recvbuf, 0, recvcount, recvtype, source, recvtag);
    }

    /** As {@link #sendRecv}, with one buffer. */
    public final Status sendRecvReplace(
            Object buf, int count, Datatype type, int dest, int sendtag, int source, int recvtag)
            throws MPIException {
        return comm().Sendrecv_replace(buf, 0, count, type, dest, sendtag, source, recvtag);
    }

    /** Waits for a message, without receiving it. */
    public final Status probe(int source, int tag) throws MPIException {
        return comm().Probe(source, tag);
    }

    /** What {@link #probe} returns, if a message is there; otherwise null. */
    public final Status iProbe(int source, int tag) throws MPIException {
        return comm().Iprobe(source, tag);
    }

    /** The bytes that so many items take in a packed message. */
    public final int packSize(int incount, Datatype type) throws MPIException {
        return comm().Pack_size(incount, type);
    }

    /** Appends items to a packed message; the position behind them. */
    public final int pack(Object inbuf, int incount, Datatype type, byte[] outbuf, int position) throws MPIException {
        return comm().Pack(inbuf, 0, incount, type, outbuf, position);
    }

    /** Takes items from a packed message; the position behind them. */
    public final int unpack(byte[] inbuf, int position, Object outbuf, int outcount, Datatype type)
            throws MPIException {
        return comm().Unpack(inbuf, position, outbuf, 0, outcount, type);
    }

    // --- collective operations; with one buffer, the caller's part is in its place there ---

    /** Waits for all. */
    public final void barrier() throws MPIException {
        group("barrier").Barrier();
    }

    /** Sends from the root to all. */
    public final void bcast(Object buf, int count, Datatype type, int root) throws MPIException {
        group("bcast").Bcast(buf, 0, count, type, root);
    }

    /** Collects a part of each at the root. */
    public final void gather(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype, int root)
            throws MPIException {
        group("gather").Gather(sendbuf, 0, sendcount, sendtype, recvbuf, 0, recvcount, recvtype, root);
    }

    /** As above: the root has its part in the buffer already, others send from it. */
    public final void gather(Object buf, int count, Datatype type, int root) throws MPIException {
        int own = rank() == root ? part(root, count, type) : 0;
        group("gather").Gather(buf, own, count, type, buf, 0, count, type, root);
    }

    /** Collects parts of different lengths at the root. */
    public final void gatherv(
            Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype, int root) throws MPIException {
        group("gatherv").Gatherv(sendbuf, 0, sendcount, sendtype, recvbuf, 0, recvcount, displs, recvtype, root);
    }

    /** As above, at the root, which has its part in the buffer. */
    public final void gatherv(Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype, int root)
            throws MPIException {
        int own = displs[root] * recvtype.extent();
        group("gatherv").Gatherv(
                recvbuf, own, recvcount[root], recvtype, recvbuf, 0, recvcount, displs, recvtype, root);
    }

    /** As above, at the others. */
    public final void gatherv(Object sendbuf, int sendcount, Datatype sendtype, int root) throws MPIException {
        group("gatherv").Gatherv(sendbuf, 0, sendcount, sendtype, null, 0, null, null, null, root);
    }

    /** Deals parts of the root's buffer to all. */
    public final void scatter(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype, int root)
            throws MPIException {
        group("scatter").Scatter(sendbuf, 0, sendcount, sendtype, recvbuf, 0, recvcount, recvtype, root);
    }

    /** As above: the root's part stays in the buffer, others receive into it. */
    public final void scatter(Object buf, int count, Datatype type, int root) throws MPIException {
        int own = rank() == root ? part(root, count, type) : 0;
        group("scatter").Scatter(buf, 0, count, type, buf, own, count, type, root);
    }

    /** Deals parts of different lengths. */
    public final void scatterv(
            Object sendbuf, int[] sendcount, int[] displs, Datatype sendtype,
            Object recvbuf, int recvcount, Datatype recvtype, int root) throws MPIException {
        group("scatterv").Scatterv(sendbuf, 0, sendcount, displs, sendtype, recvbuf, 0, recvcount, recvtype, root);
    }

    /** As above, at the root, whose part stays in the buffer. */
    public final void scatterv(Object sendbuf, int[] sendcount, int[] displs, Datatype sendtype, int root)
            throws MPIException {
        int own = displs[root] * sendtype.extent();
        group("scatterv").Scatterv(
                sendbuf, 0, sendcount, displs, sendtype, sendbuf, own, sendcount[root], sendtype, root);
    }

    /** As above, at the others. */
    public final void scatterv(Object recvbuf, int recvcount, Datatype recvtype, int root) throws MPIException {
        group("scatterv").Scatterv(null, 0, null, null, null, recvbuf, 0, recvcount, recvtype, root);
    }

    /** Collects a part of each at all. */
    public final void allGather(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        group("allGather").Allgather(sendbuf, 0, sendcount, sendtype, recvbuf, 0, recvcount, recvtype);
    }

    /** As above, with each one's part in its place in the buffer. */
    public final void allGather(Object buf, int count, Datatype type) throws MPIException {
        group("allGather").Allgather(buf, part(rank(), count, type), count, type, buf, 0, count, type);
    }

    /** Collects parts of different lengths at all. */
    public final void allGatherv(
            Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype) throws MPIException {
        group("allGatherv").Allgatherv(sendbuf, 0, sendcount, sendtype, recvbuf, 0, recvcount, displs, recvtype);
    }

    /** As above, with each one's part in its place in the buffer. */
    public final void allGatherv(Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype)
            throws MPIException {
        int rank = rank();
        group("allGatherv").Allgatherv(
                recvbuf, displs[rank] * recvtype.extent(), recvcount[rank], recvtype,
                recvbuf, 0, recvcount, displs, recvtype);
    }

    /** Each sends a part to each. */
    public final void allToAll(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        group("allToAll").Alltoall(sendbuf, 0, sendcount, sendtype, recvbuf, 0, recvcount, recvtype);
    }

    /** Each sends parts of different lengths to each. */
    public final void allToAllv(
            Object sendbuf, int[] sendcount, int[] sdispls, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] rdispls, Datatype recvtype) throws MPIException {
        group("allToAllv").Alltoallv(
                sendbuf, 0, sendcount, sdispls, sendtype, recvbuf, 0, recvcount, rdispls, recvtype);
    }

    /** Combines the buffers of all at the root. */
    public final void reduce(Object sendbuf, Object recvbuf, int count, Datatype type, Op op, int root)
            throws MPIException {
        group("reduce").Reduce(sendbuf, 0, recvbuf, 0, count, type, op, root);
    }

    /** As above, with one buffer. */
    public final void reduce(Object buf, int count, Datatype type, Op op, int root) throws MPIException {
        group("reduce").Reduce(buf, 0, buf, 0, count, type, op, root);
    }

    /** Combines the buffers of all at all. */
    public final void allReduce(Object sendbuf, Object recvbuf, int count, Datatype type, Op op) throws MPIException {
        group("allReduce").Allreduce(sendbuf, 0, recvbuf, 0, count, type, op);
    }

    /** As above, with one buffer. */
    public final void allReduce(Object buf, int count, Datatype type, Op op) throws MPIException {
        group("allReduce").Allreduce(buf, 0, buf, 0, count, type, op);
    }

    /** Combines the buffers of all, and deals parts of the result. */
    public final void reduceScatter(Object sendbuf, Object recvbuf, int[] recvcounts, Datatype type, Op op)
            throws MPIException {
        group("reduceScatter").Reduce_scatter(sendbuf, 0, recvbuf, 0, recvcounts, type, op);
    }

    /** As above, with one buffer: the part is at its beginning. */
    public final void reduceScatter(Object buf, int[] counts, Datatype type, Op op) throws MPIException {
        group("reduceScatter").Reduce_scatter(buf, 0, buf, 0, counts, type, op);
    }

    /** Combines the buffers of all, and deals parts of the same length. */
    public final void reduceScatterBlock(Object sendbuf, Object recvbuf, int recvcount, Datatype type, Op op)
            throws MPIException {
        int[] counts = new int[comm().Size()];
        Arrays.fill(counts, recvcount);
        reduceScatter(sendbuf, recvbuf, counts, type, op);
    }

    /** As above, with one buffer: the part is at its beginning. */
    public final void reduceScatterBlock(Object buf, int count, Datatype type, Op op) throws MPIException {
        reduceScatterBlock(buf, buf, count, type, op);
    }

    /** Combines two buffers of the calling process: the second holds the result. */
    public static void reduceLocal(Object inbuf, Object inoutbuf, int count, Datatype type, Op op)
            throws MPIException {
        MPI.COMM_SELF.Reduce_local(inbuf, inoutbuf, count, type, op);
    }
}
