package mpi;

import java.lang.foreign.MemorySegment;
import org.limosa.abi.Abi;
import org.limosa.engine.NonBlocking;
import org.limosa.engine.Operation;
import org.limosa.engine.Type;

/**
 * The collective operations of Open MPI's bindings that go on after their call: wait for the request before the buffers
 * are used. Counts, displacements and datatypes are those of the blocking operations. They are done by the MPI library,
 * so there are none where ranks are threads, of objects, and with operations of the program.
 */
abstract class OpenMpiNonBlocking extends OpenMpiComm {
    OpenMpiNonBlocking() {}

    private Intracomm group(String function) {
        if (this instanceof Intracomm one) {
            return one;
        }
        throw MPIException.of(
                Abi.MPI_ERR_COMM, function + ": between two groups there are blocking operations only");
    }

    private static NonBlocking on(Intracomm comm, String function) {
        return comm.communicator().nonBlocking(function);
    }

    private static Request request(Operation operation, Runnable finish) {
        return new Request(new Pending.OfCollective(operation, finish));
    }

    private static Type base(String function, Datatype type) {
        if (type == null) {
            throw Errors.type(function + ": the datatype is null");
        }
        if (type.isObject) {
            throw Errors.type(function + ": objects go by the blocking operations only");
        }
        return type.base == null ? Type.BYTE : type.base;
    }

    private static Type base(String function, Datatype sent, Datatype received) {
        base(function, sent);
        base(function, received);
        return Intracomm.common(function, sent, received);
    }

    private static Type base(String function, Datatype type, Op op) {
        Type base = base(function, type);
        if (!Intracomm.isKnown(function, op, type)) {
            throw Errors.op(function + ": " + op + " is called in Java, so it is for the blocking operations only");
        }
        return base;
    }

    /** Where the part of a process begins in a buffer with parts of all. */
    private static int part(int rank, int count, Datatype type) {
        return Math.multiplyExact(Math.multiplyExact(rank, count), type.extent());
    }

    /** Waits for all. */
    public final Request iBarrier() throws MPIException {
        return request(on(group("iBarrier"), "iBarrier").barrier(), () -> {});
    }

    /** Sends from the root to all. */
    public final Request iBcast(Object buf, int count, Datatype type, int root) throws MPIException {
        Intracomm comm = group("iBcast");
        NonBlocking library = on(comm, "iBcast");
        Type base = base("iBcast", type);
        if (comm.isRoot("iBcast", root)) {
            return request(library.broadcast(Layout.outgoing("iBcast", buf, 0, count, type), base, root), () -> {});
        }
        Landing landing = Landing.of("iBcast", buf, 0, count, type);
        return request(library.broadcast(landing.memory, base, root), () -> landing.finishAll("iBcast"));
    }

    // --- parts of all ---

    private Request gather(
            String function, Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int[] counts, int[] displs, Datatype recvtype, int root) {
        Intracomm comm = group(function);
        NonBlocking library = on(comm, function);
        if (!comm.isRoot(function, root)) {
            Type base = base(function, sendtype);
            MemorySegment sent = Layout.outgoing(function, sendbuf, sendoffset, sendcount, sendtype);
            return request(library.gather(sent, null, null, null, base, root), () -> {});
        }
        Type base = base(function, sendtype, recvtype);
        MemorySegment sent = Layout.outgoing(function, sendbuf, sendoffset, sendcount, sendtype);
        Blocks blocks = new Blocks(
                function, recvbuf, 0, comm.forAll(function, "recvcount", counts),
                comm.forAll(function, "displs", displs), recvtype, false);
        return request(
                library.gather(sent, blocks.memory, blocks.counts, blocks.displacements, base, root), blocks::finish);
    }

    /** Collects a part of each at the root. */
    public final Request iGather(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype,
            int root)
            throws MPIException {
        Intracomm comm = group("iGather");
        return gather(
                "iGather", sendbuf, 0, sendcount, sendtype, recvbuf, comm.same(recvcount), comm.steps(recvcount),
                recvtype, root);
    }

    /** As above: the root has its part in the buffer already, others send from it. */
    public final Request iGather(Object buf, int count, Datatype type, int root) throws MPIException {
        Intracomm comm = group("iGather");
        int own = comm.Rank() == root ? part(root, count, type) : 0;
        return gather("iGather", buf, own, count, type, buf, comm.same(count), comm.steps(count), type, root);
    }

    /** Collects parts of different lengths at the root. */
    public final Request iGatherv(
            Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype, int root) throws MPIException {
        return gather("iGatherv", sendbuf, 0, sendcount, sendtype, recvbuf, recvcount, displs, recvtype, root);
    }

    /** As above, at the root, which has its part in the buffer. */
    public final Request iGatherv(Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype, int root)
            throws MPIException {
        int own = displs[root] * recvtype.extent();
        return gather(
                "iGatherv", recvbuf, own, recvcount[root], recvtype, recvbuf, recvcount, displs, recvtype, root);
    }

    /** As above, at the others. */
    public final Request iGatherv(Object sendbuf, int sendcount, Datatype sendtype, int root) throws MPIException {
        return gather("iGatherv", sendbuf, 0, sendcount, sendtype, null, null, null, null, root);
    }

    private Request scatter(
            String function, Object sendbuf, int[] counts, int[] displs, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
        Intracomm comm = group(function);
        NonBlocking library = on(comm, function);
        boolean isRoot = comm.isRoot(function, root);
        Type base = isRoot ? base(function, sendtype, recvtype) : base(function, recvtype);
        Landing landing = Landing.of(function, recvbuf, recvoffset, recvcount, recvtype);
        Blocks blocks = !isRoot ? null : new Blocks(
                function, sendbuf, 0, comm.forAll(function, "sendcount", counts),
                comm.forAll(function, "displs", displs), sendtype, true);
        return request(library.scatter(
                isRoot ? blocks.memory : null, isRoot ? blocks.counts : null, isRoot ? blocks.displacements : null,
                landing.memory, base, root), () -> landing.finishAll(function));
    }

    /** Deals parts of the root's buffer to all. */
    public final Request iScatter(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype,
            int root)
            throws MPIException {
        Intracomm comm = group("iScatter");
        return scatter(
                "iScatter", sendbuf, comm.same(sendcount), comm.steps(sendcount), sendtype, recvbuf, 0, recvcount,
                recvtype, root);
    }

    /** As above: the root's part stays in the buffer, others receive into it. */
    public final Request iScatter(Object buf, int count, Datatype type, int root) throws MPIException {
        Intracomm comm = group("iScatter");
        int own = comm.Rank() == root ? part(root, count, type) : 0;
        return scatter("iScatter", buf, comm.same(count), comm.steps(count), type, buf, own, count, type, root);
    }

    /** Deals parts of different lengths. */
    public final Request iScatterv(
            Object sendbuf, int[] sendcount, int[] displs, Datatype sendtype,
            Object recvbuf, int recvcount, Datatype recvtype, int root) throws MPIException {
        return scatter("iScatterv", sendbuf, sendcount, displs, sendtype, recvbuf, 0, recvcount, recvtype, root);
    }

    /** As above, at the root, whose part stays in the buffer. */
    public final Request iScatterv(Object sendbuf, int[] sendcount, int[] displs, Datatype sendtype, int root)
            throws MPIException {
        int own = displs[root] * sendtype.extent();
        return scatter(
                "iScatterv", sendbuf, sendcount, displs, sendtype, sendbuf, own, sendcount[root], sendtype, root);
    }

    /** As above, at the others. */
    public final Request iScatterv(Object recvbuf, int recvcount, Datatype recvtype, int root) throws MPIException {
        return scatter("iScatterv", null, null, null, null, recvbuf, 0, recvcount, recvtype, root);
    }

    private Request allGather(
            String function, Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int[] counts, int[] displs, Datatype recvtype) {
        Intracomm comm = group(function);
        NonBlocking library = on(comm, function);
        Type base = base(function, sendtype, recvtype);
        MemorySegment sent = Layout.outgoing(function, sendbuf, sendoffset, sendcount, sendtype);
        Blocks blocks = new Blocks(
                function, recvbuf, 0, comm.forAll(function, "recvcount", counts),
                comm.forAll(function, "displs", displs), recvtype, false);
        return request(
                library.allGather(sent, blocks.memory, blocks.counts, blocks.displacements, base), blocks::finish);
    }

    /** Collects a part of each at all. */
    public final Request iAllGather(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        Intracomm comm = group("iAllGather");
        return allGather(
                "iAllGather", sendbuf, 0, sendcount, sendtype, recvbuf, comm.same(recvcount), comm.steps(recvcount),
                recvtype);
    }

    /** As above, with each one's part in its place in the buffer. */
    public final Request iAllGather(Object buf, int count, Datatype type) throws MPIException {
        Intracomm comm = group("iAllGather");
        return allGather(
                "iAllGather", buf, part(comm.Rank(), count, type), count, type, buf, comm.same(count),
                comm.steps(count), type);
    }

    /** Collects parts of different lengths at all. */
    public final Request iAllGatherv(
            Object sendbuf, int sendcount, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype) throws MPIException {
        return allGather("iAllGatherv", sendbuf, 0, sendcount, sendtype, recvbuf, recvcount, displs, recvtype);
    }

    /** As above, with each one's part in its place in the buffer. */
    public final Request iAllGatherv(Object recvbuf, int[] recvcount, int[] displs, Datatype recvtype)
            throws MPIException {
        int rank = group("iAllGatherv").Rank();
        return allGather(
                "iAllGatherv", recvbuf, displs[rank] * recvtype.extent(), recvcount[rank], recvtype, recvbuf, recvcount,
                displs, recvtype);
    }

    /** Each sends a part to each. */
    public final Request iAllToAll(
            Object sendbuf, int sendcount, Datatype sendtype, Object recvbuf, int recvcount, Datatype recvtype)
            throws MPIException {
        Intracomm comm = group("iAllToAll");
        return allToAll(
                "iAllToAll", sendbuf, comm.same(sendcount), comm.steps(sendcount), sendtype, recvbuf,
                comm.same(recvcount), comm.steps(recvcount), recvtype);
    }

    /** Each sends parts of different lengths to each. */
    public final Request iAllToAllv(
            Object sendbuf, int[] sendcount, int[] sdispls, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] rdispls, Datatype recvtype) throws MPIException {
        return allToAll("iAllToAllv", sendbuf, sendcount, sdispls, sendtype, recvbuf, recvcount, rdispls, recvtype);
    }

    private Request allToAll(
            String function, Object sendbuf, int[] sendcount, int[] sdispls, Datatype sendtype,
            Object recvbuf, int[] recvcount, int[] rdispls, Datatype recvtype) {
        Intracomm comm = group(function);
        NonBlocking library = on(comm, function);
        Type base = base(function, sendtype, recvtype);
        Blocks out = new Blocks(
                function, sendbuf, 0, comm.forAll(function, "sendcount", sendcount),
                comm.forAll(function, "sdispls", sdispls), sendtype, true);
        Blocks in = new Blocks(
                function, recvbuf, 0, comm.forAll(function, "recvcount", recvcount),
                comm.forAll(function, "rdispls", rdispls), recvtype, false);
        return request(
                library.allToAll(
                        out.memory, out.counts, out.displacements, in.memory, in.counts, in.displacements, base),
                in::finish);
    }

    // --- reductions ---

    /** Combines the buffers of all at the root. */
    public final Request iReduce(Object sendbuf, Object recvbuf, int count, Datatype type, Op op, int root)
            throws MPIException {
        Intracomm comm = group("iReduce");
        NonBlocking library = on(comm, "iReduce");
        Type base = base("iReduce", type, op);
        MemorySegment sent = Layout.outgoing("iReduce", sendbuf, 0, count, type);
        if (!comm.isRoot("iReduce", root)) {
            return request(library.reduce(sent, null, base, op.reduction, root), () -> {});
        }
        Landing landing = Intracomm.result("iReduce", recvbuf, 0, count, type);
        return request(
                library.reduce(sent, landing.memory, base, op.reduction, root), () -> landing.finishAll("iReduce"));
    }

    /** As above, with one buffer. */
    public final Request iReduce(Object buf, int count, Datatype type, Op op, int root) throws MPIException {
        return iReduce(buf, buf, count, type, op, root);
    }

    /** Combines the buffers of all at all. */
    public final Request iAllReduce(Object sendbuf, Object recvbuf, int count, Datatype type, Op op)
            throws MPIException {
        NonBlocking library = on(group("iAllReduce"), "iAllReduce");
        Type base = base("iAllReduce", type, op);
        MemorySegment sent = Layout.outgoing("iAllReduce", sendbuf, 0, count, type);
        Landing landing = Intracomm.result("iAllReduce", recvbuf, 0, count, type);
        return request(
                library.allReduce(sent, landing.memory, base, op.reduction), () -> landing.finishAll("iAllReduce"));
    }

    /** As above, with one buffer. */
    public final Request iAllReduce(Object buf, int count, Datatype type, Op op) throws MPIException {
        return iAllReduce(buf, buf, count, type, op);
    }

    /** Combines the buffers of all, and deals parts of the result. */
    public final Request iReduceScatter(Object sendbuf, Object recvbuf, int[] recvcounts, Datatype type, Op op)
            throws MPIException {
        return reduceScatter("iReduceScatter", sendbuf, recvbuf, recvcounts, type, op);
    }

    /** As above, with one buffer: the part is at its beginning. */
    public final Request iReduceScatter(Object buf, int[] counts, Datatype type, Op op) throws MPIException {
        return reduceScatter("iReduceScatter", buf, buf, counts, type, op);
    }

    /** Combines the buffers of all, and deals parts of the same length. */
    public final Request iReduceScatterBlock(Object sendbuf, Object recvbuf, int recvcount, Datatype type, Op op)
            throws MPIException {
        int[] counts = group("iReduceScatterBlock").same(recvcount);
        return reduceScatter("iReduceScatterBlock", sendbuf, recvbuf, counts, type, op);
    }

    /** As above, with one buffer: the part is at its beginning. */
    public final Request iReduceScatterBlock(Object buf, int count, Datatype type, Op op) throws MPIException {
        return iReduceScatterBlock(buf, buf, count, type, op);
    }

    private Request reduceScatter(
            String function, Object sendbuf, Object recvbuf, int[] recvcounts, Datatype type, Op op) {
        Intracomm comm = group(function);
        NonBlocking library = on(comm, function);
        Type base = base(function, type, op);
        int[] counts = comm.forAll(function, "recvcounts", recvcounts);
        int total = 0;
        int[] elements = new int[counts.length];
        for (int i = 0; i < counts.length; i++) {
            total = Math.addExact(total, counts[i]);
            elements[i] = Math.multiplyExact(counts[i], type.size());
        }
        MemorySegment sent = Layout.outgoing(function, sendbuf, 0, total, type);
        Landing landing = Intracomm.result(function, recvbuf, 0, counts[comm.Rank()], type);
        return request(
                library.reduceScatter(sent, landing.memory, elements, base, op.reduction),
                () -> landing.finishAll(function));
    }

    /** Combines the buffers of the ranks up to this one. */
    public final Request iScan(Object sendbuf, Object recvbuf, int count, Datatype type, Op op) throws MPIException {
        return scan("iScan", sendbuf, recvbuf, count, type, op, true);
    }

    /** As above, with one buffer. */
    public final Request iScan(Object buf, int count, Datatype type, Op op) throws MPIException {
        return scan("iScan", buf, buf, count, type, op, true);
    }

    /** Combines the buffers of the ranks below this one; the first one's stays as it is. */
    public final Request iExScan(Object sendbuf, Object recvbuf, int count, Datatype type, Op op)
            throws MPIException {
        return scan("iExScan", sendbuf, recvbuf, count, type, op, false);
    }

    /** As above, with one buffer. */
    public final Request iExScan(Object buf, int count, Datatype type, Op op) throws MPIException {
        return scan("iExScan", buf, buf, count, type, op, false);
    }

    private Request scan(
            String function, Object sendbuf, Object recvbuf, int count, Datatype type, Op op, boolean withOwn) {
        Intracomm comm = group(function);
        NonBlocking library = on(comm, function);
        Type base = base(function, type, op);
        MemorySegment sent = Layout.outgoing(function, sendbuf, 0, count, type);
        Landing landing = Intracomm.result(function, recvbuf, 0, count, type);
        if (withOwn || comm.Rank() > 0) {
            return request(
                    library.scan(sent, landing.memory, base, op.reduction, withOwn), () -> landing.finishAll(function));
        }
        // What the first rank gets is undefined: its buffer stays as it is.
        MemorySegment lost = base.allocate(Math.multiplyExact(count, type.size()));
        return request(library.scan(sent, lost, base, op.reduction, withOwn), () -> {});
    }
}
