package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Arithmetic;
import org.limosa.engine.ByteChannel;
import org.limosa.engine.Communicator;
import org.limosa.engine.Envelope;
import org.limosa.engine.Members;
import org.limosa.engine.Mode;
import org.limosa.engine.Operation;
import org.limosa.engine.Reduction;
import org.limosa.engine.Trees;
import org.limosa.engine.Type;

/** A communicator whose messages Java carries: its messages between two ranks, and how others are made of it. */
abstract class JavaCommunicator implements Communicator {
    private static final Thread ANOTHER = new Thread(() -> {});

    private final LocalJob job;
    private final Shared shared;
    private final int side;
    final int rank;
    private final int me;
    private JavaCommunicator hidden;
    /** The thread that called last. */
    private Thread caller;

    JavaCommunicator(LocalJob job, Shared shared, int side, int me) {
        this.job = job;
        this.shared = shared;
        this.side = side;
        this.me = me;
        rank = new LocalMembers(shared.groups[side], me).rank();
    }

    /**
     * Remembers which threads call: one that has done so may do it again. Mostly it is always the same; a value that
     * another thread has written does no harm.
     */
    final void called() {
        Thread now = Thread.currentThread();
        if (caller != now) {
            caller = now;
            waits().calledBy(now);
        }
    }

    final Waits waits() {
        return job.waits();
    }

    final long context() {
        return shared.context;
    }

    /** The rank of the caller in the job. */
    final int owner() {
        return me;
    }

    /** A message that a thread of this rank sleeps for. */
    final Awaited awaited(Awaited.Kind kind, int peer, int tag) {
        int[] peers = peers();
        List<Integer> needed = peer == ANY ? List.of() : List.of(peers[peer]);
        return new Awaited(kind, peer, needed, tag, shared.context, shared.name(), peers.length);
    }

    @Override
    public final void setName(String name) {
        shared.setName(name);
    }

    private int[] peers() {
        return shared.groups[isInter() ? 1 - side : side];
    }

    @Override
    public final int rank() {
        return rank;
    }

    @Override
    public final int size() {
        return shared.groups[side].length;
    }

    @Override
    public final int remoteSize() {
        return isInter() ? shared.groups[1 - side].length : 0;
    }

    @Override
    public final Members members() {
        return new LocalMembers(shared.groups[side], me);
    }

    @Override
    public final Members remoteMembers() {
        return new LocalMembers(shared.groups[1 - side], me);
    }

    @Override
    public final boolean isInter() {
        return shared.groups.length > 1;
    }

    @Override
    public final synchronized Communicator hidden() {
        if (hidden == null) {
            hidden = new SpreadCommunicator(job, shared.hidden(), side, me);
        }
        return hidden;
    }

    @Override
    public final boolean isSame(Communicator other) {
        return shared.isSame(((JavaCommunicator) other).shared);
    }

    @Override
    public final void free() {
        job.leave(shared);
    }

    // --- messages ---

    /** Checks that other threads can use memory. */
    static void checkShared(MemorySegment data) {
        if (data != null && !data.isAccessibleBy(ANOTHER)) {
            throw MPIException.of(Abi.MPI_ERR_BUFFER, "the memory is of an arena of one thread, but ranks are threads "
                    + "here; take it from Arena.ofShared() or Arena.ofAuto()");
        }
    }

    private LocalOperation sender(MemorySegment data, Object[] objects, int dest, int tag, Mode mode) {
        called();
        checkShared(data);
        LocalOperation[] self = new LocalOperation[1];
        Post post = job.post(peers()[dest]);
        Runnable starter = () -> post.deliver(self[0], rank, mode == Mode.SYNCHRONOUS);
        self[0] = new LocalOperation(this, true, dest, tag, data, objects, starter, () -> {});
        return self[0];
    }

    private LocalOperation receiver(MemorySegment data, int source, int tag) {
        called();
        checkShared(data);
        LocalOperation[] self = new LocalOperation[1];
        Mailbox mine = job.mailbox(me);
        self[0] = new LocalOperation(
                this, false, source, tag, data, null, () -> mine.receive(self[0]), () -> mine.cancel(self[0]));
        return self[0];
    }

    static MemorySegment copyOf(MemorySegment data) {
        return Parcel.copyOf(data);
    }

    @Override
    public final void send(MemorySegment data, Type type, int dest, int tag, Mode mode) {
        Operation operation = startSend(data, type, dest, tag, mode);
        if (mode != Mode.BUFFERED) {
            operation.await();
        }
    }

    @Override
    public final Envelope receive(MemorySegment data, Type type, int source, int tag) {
        Operation operation = startReceive(data, type, source, tag);
        Envelope envelope = operation.await();
        if (operation.handed() != null) {
            throw MPIException.of(Abi.MPI_ERR_TYPE,
                    "a message from rank " + envelope.source() + " has come that holds objects; receive them as objects");
        }
        return envelope;
    }

    @Override
    public final Operation startSend(MemorySegment data, Type type, int dest, int tag, Mode mode) {
        // Room that a program has promised for buffered messages is not used: the copy is on the heap.
        LocalOperation operation = sender(mode == Mode.BUFFERED ? copyOf(data) : data, null, dest, tag, mode);
        operation.start();
        if (mode == Mode.BUFFERED && !operation.isComplete()) {
            // The copy is its own: the sender need not wait.
            LocalOperation done = new LocalOperation(this, true, dest, tag, data, null, () -> {}, () -> {});
            done.begin();
            done.complete(new Envelope(rank, tag, done.bytes(), false), null);
            return done;
        }
        return operation;
    }

    @Override
    public final boolean handsObjects(int dest) {
        return job.isHere(peers()[dest]);
    }

    @Override
    public final Operation startHandover(Object[] objects, int dest, int tag, Mode mode) {
        LocalOperation operation = sender(null, objects, dest, tag, mode);
        operation.start();
        return operation;
    }

    @Override
    public final Operation startReceive(MemorySegment data, Type type, int source, int tag) {
        LocalOperation operation = receiver(data, source, tag);
        operation.start();
        return operation;
    }

    @Override
    public final Operation persistentSend(MemorySegment data, Type type, int dest, int tag, Mode mode) {
        return sender(data, null, dest, tag, mode == Mode.BUFFERED ? Mode.STANDARD : mode);
    }

    @Override
    public final Operation persistentReceive(MemorySegment data, Type type, int source, int tag) {
        return receiver(data, source, tag);
    }

    @Override
    public final Envelope exchange(
            MemorySegment sent, Type sentType, int dest, int sendTag,
            MemorySegment received, Type receivedType, int source, int receiveTag) {
        boolean same = sent != null && received != null && sent.asOverlappingSlice(received).isPresent();
        MemorySegment data = same ? copyOf(sent) : sent;
        Operation receive = startReceive(received, receivedType, source, receiveTag);
        send(data, sentType, dest, sendTag, Mode.STANDARD);
        return receive.await();
    }

    @Override
    public final Envelope probe(int source, int tag) {
        return look(source, tag, true, false).envelope;
    }

    @Override
    public final Envelope probeNow(int source, int tag) {
        Parcel found = look(source, tag, false, false);
        return found == null ? null : found.envelope;
    }

    @Override
    public final Taken take(int source, int tag, boolean waits) {
        Parcel found = look(source, tag, waits, true);
        return found == null ? null : new TakenParcel(this, found);
    }

    /** The first message that matches; null if there is none and the caller does not wait. */
    private Parcel look(int source, int tag, boolean waits, boolean takes) {
        called();
        Mailbox mine = job.mailbox(me);
        Parcel found = mine.look(shared.context, source, tag, takes);
        return found != null || !waits ? found : mine.await(new Look(this, source, tag), takes);
    }

    /** A wait for a message that may be received then. */
    record Look(JavaCommunicator on, int source, int tag) implements Wait {
        @Override
        public boolean isOver() {
            return on.job.mailbox(on.me).has(this);
        }

        @Override
        public int owner() {
            return on.me;
        }

        @Override
        public List<Awaited> awaited() {
            return List.of(on.awaited(Awaited.Kind.RECEIVE, source, tag));
        }
    }

    private record TakenParcel(JavaCommunicator on, Parcel parcel) implements Taken {
        @Override
        public Envelope envelope() {
            return parcel.envelope;
        }

        @Override
        public void receive(MemorySegment data) {
            LocalOperation receive = new LocalOperation(
                    on, false, envelope().source(), envelope().tag(), data, null, () -> {}, () -> {});
            receive.begin();
            parcel.hand(receive);
            receive.await();
        }
    }

    /** A barrier that only the end of message passing meets. */
    abstract void barrierOfTheEnd();

    // --- other communicators ---

    /** Messages between the ranks of the own side that no other messages use. */
    final ByteChannel within() {
        return new ByteChannel(new SpreadCommunicator(job, shared.within(side), 0, me));
    }

    /** What one rank of the side has made, for all of them. */
    private ByteBuffer agreed(int maker, Supplier<byte[]> made) {
        return ByteBuffer.wrap(Trees.broadcast(within(), rank == maker ? made.get() : null, maker));
    }

    private byte[] newContext() {
        return ByteBuffer.allocate(Long.BYTES).putLong(job.newContext()).array();
    }

    /** What the leader of the other side gives, for what the caller, the leader of this one, gives. */
    private static ByteBuffer trade(JavaCommunicator bridge, byte[] mine, int remoteLeader) {
        ByteChannel channel = new ByteChannel(
                new SpreadCommunicator(bridge.job, bridge.shared.leaders(), bridge.side, bridge.me));
        return ByteBuffer.wrap(channel.exchange(mine, remoteLeader, remoteLeader));
    }

    @Override
    public final Communicator duplicate() {
        long context = agreed(0, () -> {
            byte[] mine = newContext();
            byte[] theirs = isInter() ? trade(this, mine, 0).array() : mine;
            return side == 0 ? mine : theirs;
        }).getLong();
        return job.communicator(context, shared.groups, side, me);
    }

    @Override
    public final Communicator split(int colour, int key) {
        List<byte[]> all = Trees.allGather(
                within(), ByteBuffer.allocate(2 * Integer.BYTES).putInt(colour).putInt(key).array());
        int[] ranks = IntStream.range(0, size())
                .filter(each -> colour >= 0 && ByteBuffer.wrap(all.get(each)).getInt() == colour).boxed()
                .sorted(Comparator.comparingInt(each -> ByteBuffer.wrap(all.get(each)).getInt(Integer.BYTES)))
                .mapToInt(each -> each).toArray();
        return part(ranks);
    }

    @Override
    public final Communicator create(Members members) {
        int[] numbers = ((LocalMembers) members).numbers();
        return part(new LocalMembers(numbers, me).translate(
                IntStream.range(0, numbers.length).toArray(), members()));
    }

    /** A communicator of these ranks; null for those that are not among them. Parts that are made at the same time have
     * the same number, but no rank in common. */
    private Communicator part(int[] ranks) {
        long context = agreed(0, this::newContext).getLong();
        int[] numbers = IntStream.of(ranks).map(each -> shared.groups[side][each]).toArray();
        boolean isMember = IntStream.of(ranks).anyMatch(each -> each == rank);
        return isMember ? job.communicator(context, new int[][] {numbers}, 0, me) : null;
    }

    @Override
    public final Communicator connect(int localLeader, Communicator peer, int remoteLeader, int tag) {
        int[] mine = shared.groups[side];
        ByteBuffer found = agreed(localLeader, () -> {
            ByteBuffer own = ByteBuffer.allocate(Long.BYTES + mine.length * Integer.BYTES).putLong(job.newContext());
            IntStream.of(mine).forEach(own::putInt);
            ByteBuffer other = trade((JavaCommunicator) peer, own.array(), remoteLeader);
            // The number is that of the side with the smaller first rank.
            return mine[0] < other.getInt(Long.BYTES) ? other.putLong(0, own.getLong(0)).array() : other.array();
        });
        long context = found.getLong();
        int[] theirs = new int[found.remaining() / Integer.BYTES];
        found.asIntBuffer().get(theirs);
        boolean first = mine[0] < theirs[0];
        return job.communicator(
                context, first ? new int[][] {mine, theirs} : new int[][] {theirs, mine}, first ? 0 : 1, me);
    }

    @Override
    public final Communicator merge(boolean high) {
        ByteBuffer found = agreed(0, () -> {
            ByteBuffer own = ByteBuffer.allocate(Long.BYTES + 1).putLong(job.newContext()).put((byte) (high ? 1 : 0));
            ByteBuffer other = trade(this, own.array(), 0);
            return side == 0 ? other.putLong(0, own.getLong(0)).array() : other.array();
        });
        long context = found.getLong();
        boolean theirs = found.get() != 0;
        boolean first = theirs == high ? side == 0 : !high;
        IntStream own = IntStream.of(shared.groups[side]);
        IntStream others = IntStream.of(shared.groups[1 - side]);
        int[] all = (first ? IntStream.concat(own, others) : IntStream.concat(others, own)).toArray();
        return job.communicator(context, new int[][] {all}, 0, me);
    }

    // --- what collective operations need ---

    @Override
    public final void reduceLocal(MemorySegment in, MemorySegment inout, Type type, Reduction reduction) {
        Arithmetic.combine(in, inout, type, reduction);
    }

    static void copy(MemorySegment from, long at, MemorySegment to, long index, long bytes) {
        if (bytes > 0) {
            MemorySegment.copy(from, at, to, index, bytes);
        }
    }

    static long bytes(MemorySegment data) {
        return data == null ? 0 : data.byteSize();
    }
}
