import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.IntBuffer;
import mpi.*;

/** The names of Open MPI's bindings for Java, with arrays, direct buffers and parts of both. */
public class OpenMpi {
    static Intracomm world;
    static int rank;
    static int size;
    static int next;
    static int previous;

    static void messages() throws MPIException {
        int[] got = new int[3];
        Status status = world.sendRecv(
                new int[] {rank, 5, 6}, 3, MPI.INT, next, 1, got, 3, MPI.INT, previous, 1);
        Check.same(new int[] {previous, 5, 6}, got, "sendRecv");
        Check.same(previous, status.getSource(), "source");
        Check.same(1, status.getTag(), "tag");
        Check.same(3, status.getCount(MPI.INT), "count");
        world.sendRecvReplace(got, 1, MPI.INT, next, 2, previous, 2);
        Check.same((rank + 2 * size - 2) % size, got[0], "sendRecvReplace");

        DoubleBuffer out = MPI.newDoubleBuffer(4);
        DoubleBuffer in = MPI.newDoubleBuffer(4);
        out.put(2, 1.5 + rank);
        Request[] requests = {
            world.iRecv(MPI.slice(in, 1), 1, MPI.DOUBLE, previous, 3), world.iSend(MPI.slice(out, 2), 1, MPI.DOUBLE, next, 3)
        };
        Request.waitAll(requests);
        Check.same(1.5 + previous, in.get(1), "slices of direct buffers");
        Check.that(requests[0].isNull(), "a request that is complete");
        Check.same(MPI.UNDEFINED, Request.waitAny(requests), "waitAny of nothing");

        int[] array = new int[5];
        Request sent = world.isSend(MPI.slice(new int[] {1, 2, rank}, 2), 1, MPI.INT, next, 4);
        world.recv(MPI.slice(array, 4), 1, MPI.INT, previous, 4);
        sent.waitFor();
        Check.same(new int[] {0, 0, 0, 0, previous}, array, "slices of arrays");
    }

    static void persistentAndMatched() throws MPIException {
        IntBuffer out = MPI.newIntBuffer(1);
        IntBuffer in = MPI.newIntBuffer(1);
        Prequest[] both = {world.recvInit(in, 1, MPI.INT, previous, 5), world.sendInit(out, 1, MPI.INT, next, 5)};
        for (int round = 0; round < 3; round++) {
            out.put(0, rank + round);
            Prequest.startAll(both);
            Check.same(2, Request.waitAllStatus(both).length, "statuses");
            Check.same(previous + round, in.get(0), "persistent");
        }
        both[0].free();
        both[1].free();

        Request sent = world.iSend(new int[] {rank, 7}, 2, MPI.INT, next, 6);
        Message message = new Message();
        Check.that(message.isNull(), "no message yet");
        Check.same(2, message.mProbe(previous, 6, world).getCount(MPI.INT), "mProbe");
        Check.that(new Message().imProbe(previous, 6, world) == null, "a message that was taken is found no more");
        int[] got = new int[2];
        message.mRecv(got, 2, MPI.INT);
        Check.same(new int[] {previous, 7}, got, "mRecv");
        Check.that(message.isNull(), "received");
        message.mProbe(MPI.PROC_NULL, 6, world);
        Check.that(message.isNoProc(), "from no rank");
        Check.same(0, message.imRecv(got, 2, MPI.INT).waitStatus().getCount(MPI.INT), "imRecv from no rank");
        Check.fails(() -> new Message().mRecv(got, 1, MPI.INT), "mRecv: there is no message");
        sent.waitFor();
    }

    static IntBuffer numbers(int length) {
        return MPI.newIntBuffer(length);
    }

    static void inPlace() throws MPIException {
        int root = size - 1;
        // Direct buffers, in which MPI itself has to work in place, and arrays.
        IntBuffer all = numbers(size);
        int[] array = new int[size];
        all.put(rank, rank + 1);
        array[rank] = rank + 1;
        world.allGather(all, 1, MPI.INT);
        world.allGather(array, 1, MPI.INT);
        for (int i = 0; i < size; i++) {
            Check.same(i + 1, all.get(i), "allGather");
            Check.same(i + 1, array[i], "allGather");
        }
        IntBuffer part = numbers(size);
        part.put(rank == root ? root : 0, 10 + rank);
        world.gather(part, 1, MPI.INT, root);
        for (int i = 0; i < size && rank == root; i++) {
            Check.same(10 + i, part.get(i), "gather");
        }
        world.scatter(part, 1, MPI.INT, root);
        Check.same(10 + rank, part.get(rank == root ? root : 0), "scatter");

        int[] counts = new int[size];
        int[] displs = new int[size];
        java.util.Arrays.fill(counts, 1);
        for (int i = 0; i < size; i++) {
            displs[i] = size - 1 - i;
        }
        IntBuffer turned = numbers(size);
        turned.put(displs[rank], rank);
        world.allGatherv(turned, counts, displs, MPI.INT);
        Check.same(0, turned.get(size - 1), "allGatherv");
        if (rank == root) {
            world.gatherv(turned, counts, displs, MPI.INT, root);
            world.scatterv(turned, counts, displs, MPI.INT, root);
        } else {
            world.gatherv(new int[] {rank}, 1, MPI.INT, root);
            int[] mine = new int[1];
            world.scatterv(mine, 1, MPI.INT, root);
            Check.same(rank, mine[0], "scatterv");
        }
        IntBuffer sum = numbers(1).put(0, rank);
        world.allReduce(sum, 1, MPI.INT, MPI.SUM);
        Check.same(size * (size - 1) / 2, sum.get(0), "allReduce");
        int[] scanned = {1};
        world.scan(scanned, 1, MPI.INT, MPI.SUM);
        Check.same(rank + 1, scanned[0], "scan");
        IntBuffer dealt = numbers(size);
        for (int i = 0; i < size; i++) {
            dealt.put(i, i);
        }
        IntBuffer block = MPI.newIntBuffer(size).put(0, all, 0, size);
        world.reduceScatterBlock(block, 1, MPI.INT, MPI.SUM);
        Check.same(size * (rank + 1), block.get(0), "reduceScatterBlock");
        world.reduceScatter(dealt, counts, MPI.INT, MPI.SUM);
        Check.same(size * rank, dealt.get(0), "reduceScatter");
    }

    static void collectives() throws MPIException {
        int[] one = {rank};
        int[] all = new int[size];
        world.allToAll(all.clone(), 1, MPI.INT, all, 1, MPI.INT);
        world.gather(one, 1, MPI.INT, all, 1, MPI.INT, 0);
        Check.same(rank == 0 ? size - 1 : 0, all[size - 1], "gather");
        world.bcast(all, size, MPI.INT, 0);
        int[] mine = new int[1];
        world.scatter(all, 1, MPI.INT, mine, 1, MPI.INT, 0);
        Check.same(rank, mine[0], "bcast and scatter");
        world.barrier();
        Op arrays = new Op(new UserFunction() {
            @Override
            public void call(Object in, Object inOut, int count, Datatype type) {
                ((int[]) inOut)[0] = ((int[]) in)[0];
            }
        }, false);
        Op buffers = new Op(new UserFunction() {
            @Override
            public void call(ByteBuffer in, ByteBuffer inOut, int count, Datatype type) {
                inOut.putInt(0, in.getInt(0));
            }
        }, false);
        // Both keep what the lowest rank has.
        for (Op op : new Op[] {arrays, buffers}) {
            Check.that(!op.isCommutative(), "isCommutative");
            int[] result = new int[1];
            world.reduce(new int[] {5 + rank}, result, 1, MPI.INT, op, 0);
            Check.same(rank == 0 ? 5 : 0, result[0], "reduce");
        }
        int[] local = {3};
        Comm.reduceLocal(new int[] {4}, local, 1, MPI.INT, MPI.SUM);
        Check.same(7, local[0], "reduceLocal");
    }

    static void communicators() throws MPIException {
        Intracomm copy = world.dup();
        Check.same(MPI.CONGRUENT, Comm.compare(world, copy), "compare");
        copy.free();
        Check.that(copy.isNull(), "isNull");
        Intracomm half = world.split(rank % 2, rank);
        Check.same(rank / 2, half.getRank(), "split");
        Group group = world.getGroup();
        int[] ranks = Group.translateRanks(group, new int[] {rank}, half.getGroup());
        Check.same(half.getRank(), ranks[0], "translateRanks");
        Check.same(size, group.getSize(), "group");
        CartComm ring = world.createCart(new int[] {size}, new boolean[] {true}, false);
        ShiftParms beside = ring.shift(0, 1);
        Check.same(next, beside.getRankDest(), "shift");
        Check.same(previous, beside.getRankSource(), "shift");
        Check.same(rank, ring.getTopo().getCoord(0), "getTopo");
        int[] dims = {0, 0};
        CartComm.createDims(6, dims);
        Check.same(new int[] {3, 2}, dims, "createDims");
    }

    static void attributes() throws MPIException {
        int key = Comm.createKeyval();
        Check.that(world.getAttr(key) == null, "no value");
        world.setAttr(key, "value");
        Intracomm copy = world.dup();
        Check.same("value", copy.getAttr(key), "in a copy");
        copy.deleteAttr(key);
        Check.that(copy.getAttr(key) == null && world.getAttr(key) != null, "deleteAttr");
        Check.fails(() -> copy.deleteAttr(key), "has no value");
        Check.fails(() -> copy.setAttr(MPI.TAG_UB, 1), "setAttr", "no key");
        Check.same(world.Attr_get(MPI.TAG_UB), world.getAttr(MPI.TAG_UB), "TAG_UB");
        Comm.freeKeyval(key);
        copy.free();
    }

    static void types() throws MPIException {
        Datatype column = Datatype.createVector(2, 1, 3, MPI.INT);
        column.commit();
        Check.same(2, column.getSize(), "getSize");
        Check.same(4, column.getExtent(), "getExtent");
        Check.same(4, Datatype.createHVector(2, 1, 12, MPI.INT).getExtent(), "createHVector, in bytes");
        Check.same(3, Datatype.createResized(MPI.INT, 0, 12).getExtent(), "createResized, in bytes");
        Check.fails(() -> Datatype.createHVector(2, 1, 5, MPI.INT), "5 bytes are no whole elements");
        int[] packed = {0, 1, 2, 3, 4, 5};
        byte[] bytes = new byte[world.packSize(1, column)];
        Check.same(8, world.pack(packed, 1, column, bytes, 0), "pack");
        int[] unpacked = new int[6];
        world.unpack(bytes, 0, unpacked, 1, column);
        Check.same(new int[] {0, 0, 0, 3, 0, 0}, unpacked, "unpack");
    }

    static void environment() throws MPIException {
        Check.that(MPI.isInitialized() && !MPI.isFinalized() && MPI.isThreadMain(), "state");
        Check.that(MPI.wtime() > 0 && MPI.wtick() > 0, "time");
        Check.that(!MPI.getProcessorName().isEmpty(), "getProcessorName");
        ByteBuffer room = MPI.newByteBuffer(1000);
        MPI.attachBuffer(room);
        world.bSend(new int[] {4}, 1, MPI.INT, rank, 8);
        int[] got = new int[1];
        world.recv(got, 1, MPI.INT, rank, 8);
        Check.that(MPI.detachBuffer() == room, "detachBuffer");
        Info info = new Info();
        info.set("key", "value");
        Check.same("value", info.dup().get("key"), "info");
        Check.that(MPI.INFO_NULL.isNull(), "INFO_NULL");
        try {
            world.send(got, 1, MPI.INT, size, 0);
            Check.that(false, "an error");
        } catch (MPIException e) {
            Check.that(e.getErrorClass() == e.getErrorCode() && e.getMessage().contains("no destination"), "error");
        }
    }

    public static void main(String[] args) throws MPIException {
        MPI.Init(args);
        world = MPI.COMM_WORLD;
        rank = world.getRank();
        size = world.getSize();
        next = (rank + 1) % size;
        previous = (rank + size - 1) % size;
        messages();
        persistentAndMatched();
        collectives();
        inPlace();
        communicators();
        types();
        attributes();
        environment();
        Check.end();
        Check.that(MPI.isFinalized(), "isFinalized");
    }
}
