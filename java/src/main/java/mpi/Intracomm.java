package mpi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BinaryOperator;
import org.limosa.engine.ByteChannel;
import org.limosa.engine.Communicator;
import org.limosa.engine.Trees;
import org.limosa.engine.Type;

/**
 * A communicator of one group, with its collective operations. A buffer that is significant at the root only may be
 * null elsewhere. The same array may be passed for sending and receiving. Arrays of counts may be longer than the
 * group.
 */
public class Intracomm extends OpenMpiProcesses implements Collective {
    Intracomm(Communicator communicator) {
        super(communicator);
    }

    @Override
    Comm with(Communicator other) {
        return new Intracomm(other);
    }

    @Override
    public Intracomm clone() throws MPIException {
        return (Intracomm) super.clone();
    }

    @Override
    public Intracomm dup() throws MPIException {
        return clone();
    }

    private static Intracomm orNull(Communicator made) {
        return made == null ? null : new Intracomm(made);
    }

    /** Processes with the same colour, ordered by key; null if the colour is negative (UNDEFINED). */
    public Intracomm Split(int colour, int key) throws MPIException {
        return orNull(communicator().split(colour, key));
    }

    /** The members of a group; null for others. */
    public Intracomm Create(Group group) throws MPIException {
        return orNull(communicator().create(Errors.present("Create", "the group", group).members));
    }

    /** As {@link #Create}: mpiJava's spelling. */
    public Intracomm Creat(Group group) throws MPIException {
        return Create(group);
    }

    // --- what the collective operations share ---

    private ByteChannel channel() {
        return new ByteChannel(communicator().hidden());
    }

    final boolean isRoot(String function, int root) {
        checkRoot(function, root);
        return communicator().rank() == root;
    }

    /** The elements of both sides must be of one class. */
    static Type common(String function, Datatype sent, Datatype received) {
        Errors.checkType(function, sent);
        Errors.checkType(function, received);
        if (sent.isObject != received.isObject || sent.base != received.base) {
            throw Errors.type(function + ": " + sent + " is sent, but " + received + " is received");
        }
        return sent.base == null ? Type.BYTE : sent.base;
    }

    private static Type base(String function, Datatype type) {
        Errors.checkType(function, type);
        return type.base;
    }

    final int[] forAll(String function, String what, int[] values) {
        int size = communicator().size();
        if (values == null || values.length < size) {
            throw Errors.count(function + ": " + what + " has " + (values == null ? 0 : values.length)
                    + " entries for " + size + " processes");
        }
        return values.length == size ? values : Arrays.copyOf(values, size);
    }

    private List<byte[]> write(String function, Object buf, int offset, int[] counts, int[] displs, Datatype type) {
        List<byte[]> all = new ArrayList<>();
        for (int i = 0; i < communicator().size(); i++) {
            all.add(Objects.write(function, buf, offset + displs[i] * type.extent(), counts[i], type));
        }
        return all;
    }

    private void read(
            String function, List<byte[]> all, Object buf, int offset, int[] counts, int[] displs, Datatype type) {
        for (int i = 0; i < all.size(); i++) {
            Objects.read(function, all.get(i), buf, offset + displs[i] * type.extent(), counts[i], type);
        }
    }

    final int[] same(int count) {
        int[] counts = new int[communicator().size()];
        Arrays.fill(counts, count);
        return counts;
    }

    /** Consecutive places. */
    final int[] steps(int count) {
        int[] places = new int[communicator().size()];
        for (int i = 0; i < places.length; i++) {
            places[i] = Math.multiplyExact(i, count);
        }
        return places;
    }

    // --- collective operations ---

    @Override
    public void Barrier() throws MPIException {
        communicator().barrier();
    }

    @Override
    public void Bcast(Object buf, int offset, int count, Datatype type, int root) throws MPIException {
        boolean isRoot = isRoot("Bcast", root);
        if (type != null && type.isObject) {
            byte[] message = isRoot ? Objects.write("Bcast", buf, offset, count, type) : null;
            message = Trees.broadcast(channel(), message, root);
            if (!isRoot) {
                Objects.read("Bcast", message, buf, offset, count, type);
            }
            return;
        }
        Type base = type == null || type.base == null ? Type.BYTE : type.base;
        if (isRoot) {
            communicator().broadcast(Layout.outgoing("Bcast", buf, offset, count, type), base, root);
            return;
        }
        Landing landing = Landing.of("Bcast", buf, offset, count, type);
        communicator().broadcast(landing.memory, base, root);
        landing.finishAll("Bcast");
    }

    @Override
    public void Gather(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) throws MPIException {
        boolean isRoot = isRoot("Gather", root);
        Type base = isRoot ? common("Gather", sendtype, recvtype) : base("Gather", sendtype);
        if (sendtype.isObject) {
            Gatherv(
                    sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, same(recvcount), steps(recvcount),
                    recvtype, root);
            return;
        }
        MemorySegment sent = Layout.outgoing("Gather", sendbuf, sendoffset, sendcount, sendtype);
        if (!isRoot) {
            communicator().gather(sent, null, base, root);
            return;
        }
        Landing landing = all("Gather", recvbuf, recvoffset, recvcount, recvtype);
        communicator().gather(sent, landing.memory, base, root);
        landing.finishAll("Gather");
    }

    /** Where the blocks of all processes arrive. */
    private Landing all(String function, Object buf, int offset, int count, Datatype type) {
        int items = Math.multiplyExact(count, communicator().size());
        return result(function, buf, offset, items, type);
    }

    @Override
    public void Gatherv(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] displs, Datatype recvtype, int root)
            throws MPIException {
        boolean isRoot = isRoot("Gatherv", root);
        Type base = isRoot ? common("Gatherv", sendtype, recvtype) : base("Gatherv", sendtype);
        int[] counts = isRoot ? forAll("Gatherv", "recvcounts", recvcounts) : null;
        int[] places = isRoot ? forAll("Gatherv", "displs", displs) : null;
        if (sendtype.isObject) {
            byte[] message = Objects.write("Gatherv", sendbuf, sendoffset, sendcount, sendtype);
            List<byte[]> all = Trees.gather(channel(), message, root);
            if (isRoot) {
                read("Gatherv", all, recvbuf, recvoffset, counts, places, recvtype);
            }
            return;
        }
        MemorySegment sent = Layout.outgoing("Gatherv", sendbuf, sendoffset, sendcount, sendtype);
        if (!isRoot) {
            communicator().gather(sent, null, null, null, base, root);
            return;
        }
        Blocks blocks = new Blocks("Gatherv", recvbuf, recvoffset, counts, places, recvtype, false);
        communicator().gather(sent, blocks.memory, blocks.counts, blocks.displacements, base, root);
        blocks.finish();
    }

    @Override
    public void Scatter(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) throws MPIException {
        boolean isRoot = isRoot("Scatter", root);
        Type base = isRoot ? common("Scatter", sendtype, recvtype) : base("Scatter", recvtype);
        if (recvtype.isObject) {
            Scatterv(
                    sendbuf, sendoffset, same(sendcount), steps(sendcount), sendtype, recvbuf, recvoffset, recvcount,
                    recvtype, root);
            return;
        }
        MemorySegment sent = isRoot
                ? Layout.outgoing(
                        "Scatter", sendbuf, sendoffset, Math.multiplyExact(sendcount, Size()), sendtype)
                : null;
        Landing landing = Landing.of("Scatter", recvbuf, recvoffset, recvcount, recvtype);
        communicator().scatter(sent, landing.memory, base, root);
        landing.finishAll("Scatter");
    }

    @Override
    public void Scatterv(
            Object sendbuf, int sendoffset, int[] sendcounts, int[] displs, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype, int root) throws MPIException {
        boolean isRoot = isRoot("Scatterv", root);
        Type base = isRoot ? common("Scatterv", sendtype, recvtype) : base("Scatterv", recvtype);
        int[] counts = isRoot ? forAll("Scatterv", "sendcounts", sendcounts) : null;
        int[] places = isRoot ? forAll("Scatterv", "displs", displs) : null;
        if (recvtype.isObject) {
            List<byte[]> all = isRoot ? write("Scatterv", sendbuf, sendoffset, counts, places, sendtype) : null;
            byte[] message = Trees.scatter(channel(), all, root);
            Objects.read("Scatterv", message, recvbuf, recvoffset, recvcount, recvtype);
            return;
        }
        Blocks blocks = isRoot
                ? new Blocks("Scatterv", sendbuf, sendoffset, counts, places, sendtype, true)
                : null;
        Landing landing = Landing.of("Scatterv", recvbuf, recvoffset, recvcount, recvtype);
        communicator().scatter(
                isRoot ? blocks.memory : null, isRoot ? blocks.counts : null, isRoot ? blocks.displacements : null,
                landing.memory, base, root);
        landing.finishAll("Scatterv");
    }

    @Override
    public void Allgather(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) throws MPIException {
        Type base = common("Allgather", sendtype, recvtype);
        if (sendtype.isObject) {
            Allgatherv(
                    sendbuf, sendoffset, sendcount, sendtype, recvbuf, recvoffset, same(recvcount), steps(recvcount),
                    recvtype);
            return;
        }
        MemorySegment sent = Layout.outgoing("Allgather", sendbuf, sendoffset, sendcount, sendtype);
        Landing landing = all("Allgather", recvbuf, recvoffset, recvcount, recvtype);
        communicator().allGather(sent, landing.memory, base);
        landing.finishAll("Allgather");
    }

    @Override
    public void Allgatherv(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] displs, Datatype recvtype) throws MPIException {
        Type base = common("Allgatherv", sendtype, recvtype);
        int[] counts = forAll("Allgatherv", "recvcounts", recvcounts);
        int[] places = forAll("Allgatherv", "displs", displs);
        if (sendtype.isObject) {
            byte[] message = Objects.write("Allgatherv", sendbuf, sendoffset, sendcount, sendtype);
            List<byte[]> all = Trees.allGather(channel(), message);
            read("Allgatherv", all, recvbuf, recvoffset, counts, places, recvtype);
            return;
        }
        MemorySegment sent = Layout.outgoing("Allgatherv", sendbuf, sendoffset, sendcount, sendtype);
        Blocks blocks = new Blocks("Allgatherv", recvbuf, recvoffset, counts, places, recvtype, false);
        communicator().allGather(sent, blocks.memory, blocks.counts, blocks.displacements, base);
        blocks.finish();
    }

    @Override
    public void Alltoall(
            Object sendbuf, int sendoffset, int sendcount, Datatype sendtype,
            Object recvbuf, int recvoffset, int recvcount, Datatype recvtype) throws MPIException {
        Type base = common("Alltoall", sendtype, recvtype);
        if (sendtype.isObject) {
            Alltoallv(
                    sendbuf, sendoffset, same(sendcount), steps(sendcount), sendtype, recvbuf, recvoffset,
                    same(recvcount), steps(recvcount), recvtype);
            return;
        }
        int items = Math.multiplyExact(sendcount, Size());
        MemorySegment sent = Layout.outgoing("Alltoall", sendbuf, sendoffset, items, sendtype);
        Landing landing = all("Alltoall", recvbuf, recvoffset, recvcount, recvtype);
        communicator().allToAll(sent, landing.memory, base);
        landing.finishAll("Alltoall");
    }

    @Override
    public void Alltoallv(
            Object sendbuf, int sendoffset, int[] sendcounts, int[] sdispls, Datatype sendtype,
            Object recvbuf, int recvoffset, int[] recvcounts, int[] rdispls, Datatype recvtype) throws MPIException {
        Type base = common("Alltoallv", sendtype, recvtype);
        int[] outCounts = forAll("Alltoallv", "sendcounts", sendcounts);
        int[] outPlaces = forAll("Alltoallv", "sdispls", sdispls);
        int[] inCounts = forAll("Alltoallv", "recvcounts", recvcounts);
        int[] inPlaces = forAll("Alltoallv", "rdispls", rdispls);
        if (sendtype.isObject) {
            List<byte[]> sent = write("Alltoallv", sendbuf, sendoffset, outCounts, outPlaces, sendtype);
            List<byte[]> all = Trees.allToAll(channel(), sent);
            read("Alltoallv", all, recvbuf, recvoffset, inCounts, inPlaces, recvtype);
            return;
        }
        Blocks out = new Blocks("Alltoallv", sendbuf, sendoffset, outCounts, outPlaces, sendtype, true);
        Blocks in = new Blocks("Alltoallv", recvbuf, recvoffset, inCounts, inPlaces, recvtype, false);
        communicator().allToAll(
                out.memory, out.counts, out.displacements, in.memory, in.counts, in.displacements, base);
        in.finish();
    }

    // --- reductions ---

    static boolean isKnown(String function, Op op, Datatype type) {
        if (op == null) {
            throw Errors.op(function + ": the operation is null");
        }
        Errors.checkType(function, type);
        op.check(function, type);
        return op.reduction != null;
    }

    static byte[] bytes(String function, Object buf, int offset, int count, Datatype type) {
        if (type.isObject) {
            return Objects.write(function, buf, offset, count, type);
        }
        MemorySegment data = Layout.outgoing(function, buf, offset, count, type);
        return data == null ? new byte[0] : data.toArray(ValueLayout.JAVA_BYTE);
    }

    static void accept(String function, byte[] bytes, Object buf, int offset, int count, Datatype type) {
        if (type.isObject) {
            Objects.read(function, bytes, buf, offset, count, type);
        } else if (bytes.length > 0) {
            Landing landing = Landing.of(function, buf, offset, count, type);
            if (landing.memory.byteSize() < bytes.length) {
                throw Errors.buffer(function + ": the result has " + count + " items of " + type
                        + ", for which the buffer has no room from offset " + offset + " on");
            }
            MemorySegment.copy(MemorySegment.ofArray(bytes), 0, landing.memory, 0, bytes.length);
            landing.finish(function, bytes.length);
        }
    }

    /** The program's operation on items as bytes. */
    static BinaryOperator<byte[]> operation(
            String function, Op op, int count, Datatype type) {
        return (lower, higher) -> {
            Object in = items(function, lower, count, type);
            Object inout = items(function, higher, count, type);
            int offset = Math.max(0, -type.Lb());
            op.function.Call(in, offset, inout, offset, count, type);
            return bytes(function, inout, offset, count, type);
        };
    }

    /** A new array that holds the items. */
    static Object items(String function, byte[] bytes, int count, Datatype type) {
        int offset = Math.max(0, -type.Lb());
        int length = count == 0 ? 0 : offset + (count - 1) * type.extent() + Math.max(type.Ub(), type.size());
        Object array = type.isObject ? new Object[length]
                : Array.newInstance(type.base.array.getComponentType(), length);
        accept(function, bytes, array, offset, count, type);
        return array;
    }

    @Override
    public void Reduce(
            Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op,
            int root) throws MPIException {
        boolean isRoot = isRoot("Reduce", root);
        if (!isKnown("Reduce", op, datatype)) {
            if (isRoot) {
                Layout.checkWritable("Reduce", recvbuf);
            }
            byte[] mine = bytes("Reduce", sendbuf, sendoffset, count, datatype);
            byte[] all = Trees.reduce(channel(), mine, operation("Reduce", op, count, datatype), root);
            if (isRoot) {
                accept("Reduce", all, recvbuf, recvoffset, count, datatype);
            }
            return;
        }
        MemorySegment sent = Layout.outgoing("Reduce", sendbuf, sendoffset, count, datatype);
        if (!isRoot) {
            communicator().reduce(sent, null, datatype.base, op.reduction, root);
            return;
        }
        Landing landing = result("Reduce", recvbuf, recvoffset, count, datatype);
        communicator().reduce(sent, landing.memory, datatype.base, op.reduction, root);
        landing.finishAll("Reduce");
    }

    /** Room for exactly so many items. */
    static Landing result(String function, Object buf, int offset, int count, Datatype type) {
        Layout.checkWritable(function, buf);
        Layout.check(function, buf, offset, count, type);
        if (buf != null) {
            Layout.checkRoom(function, buf, offset, count, type);
        }
        return Landing.of(function, buf, offset, count, type);
    }

    @Override
    public void Allreduce(
            Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op)
            throws MPIException {
        if (!isKnown("Allreduce", op, datatype)) {
            Layout.checkWritable("Allreduce", recvbuf);
            ByteChannel channel = channel();
            byte[] mine = bytes("Allreduce", sendbuf, sendoffset, count, datatype);
            byte[] all = Trees.reduce(channel, mine, operation("Allreduce", op, count, datatype), 0);
            accept("Allreduce", Trees.broadcast(channel, all, 0), recvbuf, recvoffset, count, datatype);
            return;
        }
        MemorySegment sent = Layout.outgoing("Allreduce", sendbuf, sendoffset, count, datatype);
        Landing landing = result("Allreduce", recvbuf, recvoffset, count, datatype);
        communicator().allReduce(sent, landing.memory, datatype.base, op.reduction);
        landing.finishAll("Allreduce");
    }

    @Override
    public void Reduce_scatter(
            Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int[] recvcounts, Datatype datatype,
            Op op) throws MPIException {
        int[] counts = forAll("Reduce_scatter", "recvcounts", recvcounts);
        int total = Arrays.stream(counts).sum();
        int mine = counts[Rank()];
        if (!isKnown("Reduce_scatter", op, datatype)) {
            Layout.checkWritable("Reduce_scatter", recvbuf);
            ByteChannel channel = channel();
            byte[] sent = bytes("Reduce_scatter", sendbuf, sendoffset, total, datatype);
            byte[] all = Trees.reduce(channel, sent, operation("Reduce_scatter", op, total, datatype), 0);
            List<byte[]> parts = null;
            if (all != null) {
                Object items = items("Reduce_scatter", all, total, datatype);
                int origin = Math.max(0, -datatype.Lb());
                parts = new ArrayList<>();
                for (int count : counts) {
                    parts.add(bytes("Reduce_scatter", items, origin, count, datatype));
                    origin += count * datatype.extent();
                }
            }
            accept("Reduce_scatter", Trees.scatter(channel, parts, 0), recvbuf, recvoffset, mine, datatype);
            return;
        }
        MemorySegment sent = Layout.outgoing("Reduce_scatter", sendbuf, sendoffset, total, datatype);
        Landing landing = result("Reduce_scatter", recvbuf, recvoffset, mine, datatype);
        int[] elements = Arrays.stream(counts).map(count -> count * datatype.size()).toArray();
        communicator().reduceScatter(sent, landing.memory, elements, datatype.base, op.reduction);
        landing.finishAll("Reduce_scatter");
    }

    public void Scan(
            Object sendbuf, int sendoffset, Object recvbuf, int recvoffset, int count, Datatype datatype, Op op)
            throws MPIException {
        if (!isKnown("Scan", op, datatype)) {
            Layout.checkWritable("Scan", recvbuf);
            byte[] mine = bytes("Scan", sendbuf, sendoffset, count, datatype);
            byte[] result = Trees.scan(channel(), mine, operation("Scan", op, count, datatype));
            accept("Scan", result, recvbuf, recvoffset, count, datatype);
            return;
        }
        MemorySegment sent = Layout.outgoing("Scan", sendbuf, sendoffset, count, datatype);
        Landing landing = result("Scan", recvbuf, recvoffset, count, datatype);
        communicator().scan(sent, landing.memory, datatype.base, op.reduction);
        landing.finishAll("Scan");
    }

    /** Combines the buffers of the ranks below this one; the first one's stays as it is. */
    private void scanBelow(Object sendbuf, Object recvbuf, int count, Datatype type, Op op) {
        boolean isKnown = isKnown("exScan", op, type);
        if (Rank() > 0) {
            Layout.checkWritable("exScan", recvbuf);
        }
        ByteChannel channel = channel();
        byte[] result;
        if (isKnown) {
            MemorySegment sent = Layout.outgoing("exScan", sendbuf, 0, count, type);
            MemorySegment all = type.base.allocate(Math.multiplyExact(count, type.size()));
            communicator().scan(sent, sent == null ? null : all, type.base, op.reduction);
            result = all.toArray(ValueLayout.JAVA_BYTE);
        } else {
            byte[] mine = bytes("exScan", sendbuf, 0, count, type);
            result = Trees.scan(channel, mine, operation("exScan", op, count, type));
        }
        if (Rank() + 1 < Size()) {
            channel.send(result, Rank() + 1);
        }
        if (Rank() > 0) {
            accept("exScan", channel.receive(Rank() - 1), recvbuf, 0, count, type);
        }
    }

    /** Combines two arrays of the calling process: the second holds the result. */
    public void Reduce_local(Object inbuf, Object inoutbuf, int count, Datatype datatype, Op op)
            throws MPIException {
        Layout.checkWritable("Reduce_local", inoutbuf);
        if (isKnown("Reduce_local", op, datatype)) {
            MemorySegment in = Layout.outgoing("Reduce_local", inbuf, 0, count, datatype);
            Landing landing = result("Reduce_local", inoutbuf, 0, count, datatype);
            MemorySegment inout = Layout.outgoing("Reduce_local", inoutbuf, 0, count, datatype);
            communicator().reduceLocal(in, inout, datatype.base, op.reduction);
            if (inout != null && landing.memory.heapBase() != inout.heapBase()) {
                MemorySegment.copy(inout, 0, landing.memory, 0, inout.byteSize());
            }
            landing.finishAll("Reduce_local");
        } else {
            op.function.Call(inbuf, 0, inoutbuf, 0, count, datatype);
        }
    }

    // --- topologies ---

    /** A grid of processes; null for those that are not in it. */
    public Cartcomm Create_cart(int[] dims, boolean[] periods, boolean reorder) throws MPIException {
        Errors.present("Create_cart", "dims", dims);
        Errors.present("Create_cart", "periods", periods);
        if (dims.length != periods.length) {
            throw Errors.argument("Create_cart: there are " + dims.length + " dims and " + periods.length
                    + " periods; there must be as many");
        }
        int nodes = Cartcomm.product("Create_cart", dims);
        Communicator part = first("Create_cart", nodes);
        return part == null ? null : new Cartcomm(part, dims.clone(), periods.clone());
    }

    /** A graph of processes: {@code index[i]} is the number of edges of the ranks up to i; null outside the graph. */
    public Graphcomm Create_graph(int[] index, int[] edges, boolean reorder) throws MPIException {
        Graphcomm.check(index, edges);
        Communicator part = first("Create_graph", index.length);
        return part == null ? null : new Graphcomm(part, index.clone(), edges.clone());
    }

    private Communicator first(String function, int nodes) {
        if (nodes > Size()) {
            throw Errors.argument(function + ": the topology has " + nodes + " processes, but there are only " + Size());
        }
        return communicator().split(Rank() < nodes ? 0 : -1, Rank());
    }

    // --- the names of Open MPI's bindings ---

    /** Processes with the same colour, ordered by key; null if the colour is negative (UNDEFINED). */
    public Intracomm split(int colour, int key) throws MPIException {
        return Split(colour, key);
    }

    /** The members of a group; null for others. */
    public Intracomm create(Group group) throws MPIException {
        return Create(group);
    }

    /** Combines the buffers of the ranks up to this one. */
    public void scan(Object sendbuf, Object recvbuf, int count, Datatype type, Op op) throws MPIException {
        Scan(sendbuf, 0, recvbuf, 0, count, type, op);
    }

    /** As above, with one buffer. */
    public void scan(Object buf, int count, Datatype type, Op op) throws MPIException {
        Scan(buf, 0, buf, 0, count, type, op);
    }

    /** Combines the buffers of the ranks below this one; the first one's stays as it is. */
    public void exScan(Object sendbuf, Object recvbuf, int count, Datatype type, Op op) throws MPIException {
        scanBelow(sendbuf, recvbuf, count, type, op);
    }

    /** As above, with one buffer. */
    public void exScan(Object buf, int count, Datatype type, Op op) throws MPIException {
        scanBelow(buf, buf, count, type, op);
    }

    /** A grid of processes; null for those that are not in it. */
    public CartComm createCart(int[] dims, boolean[] periods, boolean reorder) throws MPIException {
        Cartcomm made = Create_cart(dims, periods, reorder);
        return made == null ? null : new CartComm(made);
    }

    /** A graph of processes; null for those that are not in it. */
    public GraphComm createGraph(int[] index, int[] edges, boolean reorder) throws MPIException {
        Graphcomm made = Create_graph(index, edges, reorder);
        return made == null ? null : new GraphComm(made);
    }
}
