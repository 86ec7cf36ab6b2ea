package mpi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.BinaryOperator;
import java.util.stream.IntStream;
import org.limosa.abi.Abi;
import org.limosa.engine.ByteChannel;
import org.limosa.engine.Communicator;
import org.limosa.engine.Mode;
import org.limosa.engine.Operation;
import org.limosa.engine.Type;

/**
 * Collective operations between two groups (MPI-5, section 6.2.3): data of each group go to the other group. They are
 * made of messages, so they carry objects and take operations of the program, too. The root gives {@code MPI.ROOT} as
 * the root, the other processes of its group {@code MPI.PROC_NULL}, those of the other group its rank.
 */
final class InterCollective implements Collective {
    private static final int TAG = 0;

    private final Communicator comm;
    private final Communicator hidden;
    private final ByteChannel channel;
    private final String function;
    private final int remote;

    InterCollective(Intercomm both, String function) {
        comm = both.communicator();
        hidden = both.hidden();
        channel = new ByteChannel(hidden);
        this.function = function;
        remote = comm.remoteSize();
    }

    // --- messages to and from the other group ---

    /** Whether the calling process is in the group that does not have the root; it has a part then. */
    private boolean isOpposite(int root) {
        if (root != MPI.ROOT && root != MPI.PROC_NULL && (root < 0 || root >= remote)) {
            throw MPIException.of(Abi.MPI_ERR_ROOT, function + ": there is no root " + root + "; ranks of the other "
                    + "group are 0 to " + (remote - 1)
                    + ", and in the root's own group it is MPI.ROOT or MPI.PROC_NULL");
        }
        return root >= 0;
    }

    private List<Operation> startAll(List<byte[]> values) {
        List<Operation> sent = new ArrayList<>();
        for (int dest = 0; dest < remote; dest++) {
            sent.add(hidden.startSend(MemorySegment.ofArray(values.get(dest)), Type.BYTE, dest, TAG, Mode.STANDARD));
        }
        return sent;
    }

    private void sendAll(List<byte[]> values) {
        startAll(values).forEach(Operation::await);
    }

    private List<byte[]> receiveAll() {
        return IntStream.range(0, remote).mapToObj(channel::receive).toList();
    }

    /** A value for each process of the other group, and what each of them has for this one. */
    private List<byte[]> exchange(List<byte[]> values) {
        List<Operation> sent = startAll(values);
        List<byte[]> received = receiveAll();
        sent.forEach(Operation::await);
        return received;
    }

    private List<byte[]> toEach(byte[] value) {
        return Collections.nCopies(remote, value);
    }

    // --- parts of buffers ---

    private byte[] part(Object buf, int offset, int count, Datatype type) {
        Layout.check(function, buf, offset, count, type);
        return Intracomm.bytes(function, buf, offset, count, type);
    }

    private List<byte[]> parts(Object buf, int offset, int[] counts, int[] displs, Datatype type) {
        check("counts", counts);
        check("displs", displs);
        return IntStream.range(0, remote)
                .mapToObj(i -> part(buf, offset + displs[i] * type.extent(), counts[i], type)).toList();
    }

    private void put(byte[] bytes, Object buf, int offset, int count, Datatype type) {
        Layout.check(function, buf, offset, count, type);
        Intracomm.accept(function, bytes, buf, offset, count, type);
    }

    private void putAll(List<byte[]> all, Object buf, int offset, int[] counts, int[] displs, Datatype type) {
        check("counts", counts);
        check("displs", displs);
        for (int i = 0; i < remote; i++) {
            put(all.get(i), buf, offset + displs[i] * type.extent(), counts[i], type);
        }
    }

    private void check(String what, int[] values) {
        if (values == null || values.length < remote) {
            throw Errors.count(function + ": " + what + " has " + (values == null ? 0 : values.length) + " entries for "
                    + remote + " processes of the other group");
        }
    }

    private int[] same(int count) {
        int[] counts = new int[remote];
        Arrays.fill(counts, count);
        return counts;
    }

    private int[] steps(int count) {
        return IntStream.range(0, remote).map(i -> Math.multiplyExact(i, count)).toArray();
    }

    // --- movements ---

    @Override
    public void Barrier() {
        exchange(toEach(new byte[0]));
    }

    @Override
    public void Bcast(Object buf, int offset, int count, Datatype type, int root) {
        if (isOpposite(root)) {
            Layout.checkWritable(function, buf);
            put(channel.receive(root), buf, offset, count, type);
        } else if (root == MPI.ROOT) {
            sendAll(toEach(part(buf, offset, count, type)));
        }
    }

    @Override
    public void Gather(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
        Gatherv(
                sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, same(recvcount), steps(recvcount),
                recvtype, root);
    }

    @Override
    public void Gatherv(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] displs, Datatype recvtype, int root) {
        if (isOpposite(root)) {
            channel.send(part(sendbuf, sendoffset, sendcount, sendtype), root);
        } else if (root == MPI.ROOT) {
            Layout.checkWritable(function, recvbuf);
            putAll(receiveAll(), recvbuf, recvoffset, recvcounts, displs, recvtype);
        }
    }

    @Override
    public void Scatter(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
        Scatterv(
                sendbuf, sendoffset, same(sendcount), steps(sendcount), sendtype, recvbuf, recvoffset, recvcount,
                recvtype, root);
    }

    @Override
    public void Scatterv(
            Object sendbuf, int sendoffset, int[] sendcounts, int[] displs, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) {
        if (isOpposite(root)) {
            Layout.checkWritable(function, recvbuf);
            put(channel.receive(root), recvbuf, recvoffset, recvcount, recvtype);
        } else if (root == MPI.ROOT) {
            sendAll(parts(sendbuf, sendoffset, sendcounts, displs, sendtype));
        }
    }

    @Override
    public void Allgather(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
        Allgatherv(
                sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, same(recvcount), steps(recvcount),
                recvtype);
    }

    @Override
    public void Allgatherv(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] displs, Datatype recvtype) {
        Layout.checkWritable(function, recvbuf);
        List<byte[]> all = exchange(toEach(part(sendbuf, sendoffset, sendcount, sendtype)));
        putAll(all, recvbuf, recvoffset, recvcounts, displs, recvtype);
    }

    @Override
    public void Alltoall(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) {
        Alltoallv(
                sendbuf, sendoffset, same(sendcount), steps(sendcount), sendtype, recvbuf, recvoffset, same(recvcount),
                steps(recvcount), recvtype);
    }

    @Override
    public void Alltoallv(
            Object sendbuf, int sendoffset, int[] sendcounts, int[] sdispls, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] rdispls, Datatype recvtype) {
        Layout.checkWritable(function, recvbuf);
        List<byte[]> all = exchange(parts(sendbuf, sendoffset, sendcounts, sdispls, sendtype));
        putAll(all, recvbuf, recvoffset, recvcounts, rdispls, recvtype);
    }

    // --- reductions: of what the other group has, in the order of its ranks ---

    private byte[] combined(List<byte[]> all, int count, Datatype type, Op op) {
        BinaryOperator<byte[]> operation = Intracomm.isKnown(function, op, type)
                ? (lower, higher) -> known(lower, higher, type.base, op)
                : Intracomm.operation(function, op, count, type);
        return all.stream().reduce(operation).orElseThrow();
    }

    private byte[] known(byte[] lower, byte[] higher, Type type, Op op) {
        MemorySegment in = type.allocate(lower.length / type.bytes).copyFrom(MemorySegment.ofArray(lower));
        MemorySegment inout = type.allocate(higher.length / type.bytes).copyFrom(MemorySegment.ofArray(higher));
        comm.reduceLocal(in, inout, type, op.reduction);
        return inout.toArray(ValueLayout.JAVA_BYTE);
    }

    @Override
    public void Reduce(
            Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op, int root) {
        Intracomm.isKnown(function, op, type);
        if (isOpposite(root)) {
            channel.send(part(sendbuf, sendoffset, count, type), root);
        } else if (root == MPI.ROOT) {
            Layout.checkWritable(function, recvbuf);
            put(combined(receiveAll(), count, type, op), recvbuf, recvoffset, count, type);
        }
    }

    @Override
    public void Allreduce(
            Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype type, Op op) {
        Intracomm.isKnown(function, op, type);
        Layout.checkWritable(function, recvbuf);
        List<byte[]> all = exchange(toEach(part(sendbuf, sendoffset, count, type)));
        put(combined(all, count, type, op), recvbuf, recvoffset, count, type);
    }

    @Override
    public void Reduce_scatter(
            Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int[] recvcounts, Datatype type, Op op) {
        Intracomm.isKnown(function, op, type);
        if (recvcounts == null || recvcounts.length < comm.size()) {
            throw Errors.count(function + ": recvcounts has " + (recvcounts == null ? 0 : recvcounts.length)
                    + " entries for " + comm.size() + " processes");
        }
        Layout.checkWritable(function, recvbuf);
        int total = Arrays.stream(recvcounts, 0, comm.size()).sum();
        int before = Arrays.stream(recvcounts, 0, comm.rank()).sum();
        List<byte[]> all = exchange(toEach(part(sendbuf, sendoffset, total, type)));
        Object items = Intracomm.items(function, combined(all, total, type, op), total, type);
        int origin = Math.max(0, -type.Lb()) + before * type.extent();
        int mine = recvcounts[comm.rank()];
        put(Intracomm.bytes(function, items, origin, mine, type), recvbuf, recvoffset, mine, type);
    }
}
