package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.blocking;
import static org.limosa.engine.library.Calls.check;
import static org.limosa.engine.library.Calls.datatype;
import static org.limosa.engine.library.Calls.number;
import static org.limosa.engine.library.Calls.operation;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator;
import org.limosa.engine.Envelope;
import org.limosa.engine.Members;
import org.limosa.engine.Mode;
import org.limosa.engine.NonBlocking;
import org.limosa.engine.Operation;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;
import org.limosa.engine.Window;

/** A communicator of the MPI library. */
final class LibraryCommunicator implements Communicator {
    final long handle;
    private final boolean inter;
    private final int rank;
    private final int size;
    private Communicator hidden;

    LibraryCommunicator(long handle, boolean inter) {
        this.handle = handle;
        this.inter = inter;
        MemorySegment results = Calls.results();
        check(Abi.MPI_Comm_rank(handle, Calls.flagOf(results)));
        rank = Calls.flag(results);
        check(Abi.MPI_Comm_size(handle, Calls.flagOf(results)));
        size = Calls.flag(results);
    }

    private static Communicator made(MemorySegment results, boolean inter) {
        long handle = Calls.handle(results);
        return handle == Abi.MPI_COMM_NULL ? null : new LibraryCommunicator(handle, inter);
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public int remoteSize() {
        if (!inter) {
            return 0;
        }
        MemorySegment results = Calls.results();
        check(Abi.MPI_Comm_remote_size(handle, Calls.flagOf(results)));
        return Calls.flag(results);
    }

    @Override
    public Members members() {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Comm_group(handle, Calls.handleOf(results)));
        return new LibraryMembers(Calls.handle(results));
    }

    @Override
    public Members remoteMembers() {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Comm_remote_group(handle, Calls.handleOf(results)));
        return new LibraryMembers(Calls.handle(results));
    }

    @Override
    public boolean isInter() {
        return inter;
    }

    // --- messages ---

    private static long count(MemorySegment data, Type type) {
        return data == null ? 0 : data.byteSize() / type.bytes;
    }

    @Override
    public void send(MemorySegment data, Type type, int dest, int tag, Mode mode) {
        MemorySegment address = data == null ? MemorySegment.NULL : data.isNative() ? Calls.shown(data) : copy(data);
        long count = count(data, type);
        blocking(() -> switch (mode) {
            case STANDARD -> Abi.MPI_Send_c(address, count, datatype(type), dest, tag, handle);
            case BUFFERED -> Abi.MPI_Bsend_c(address, count, datatype(type), dest, tag, handle);
            case SYNCHRONOUS -> Abi.MPI_Ssend_c(address, count, datatype(type), dest, tag, handle);
            case READY -> Abi.MPI_Rsend_c(address, count, datatype(type), dest, tag, handle);
        });
    }

    @Override
    public Envelope receive(MemorySegment data, Type type, int source, int tag) {
        MemorySegment results = Calls.results();
        boolean heap = data != null && !data.isNative();
        MemorySegment address = data == null ? MemorySegment.NULL : heap ? Staging.ofThread(data.byteSize())
                : Calls.shown(data);
        long count = count(data, type);
        blocking(() -> Abi.MPI_Recv_c(
                address, count, datatype(type), Calls.source(source), Calls.tag(tag), handle, results));
        Envelope envelope = Calls.envelope(results);
        if (heap) {
            MemorySegment.copy(address, 0, data, 0, envelope.bytes());
        }
        return envelope;
    }

    private interface Starter {
        int start(MemorySegment address, long count, MemorySegment request);
    }

    private static Operation begin(LibraryOperation operation, MemorySegment data, Type type, Starter starter) {
        MemorySegment results = Calls.results();
        int code = starter.start(operation.address(), count(data, type), Calls.handleOf(results));
        if (code != Abi.MPI_SUCCESS) {
            operation.failed();
        }
        check(code);
        operation.started(results);
        return operation;
    }

    @Override
    public Operation startSend(MemorySegment data, Type type, int dest, int tag, Mode mode) {
        LibraryOperation operation = new LibraryOperation(data, false, false);
        operation.fill();
        long name = datatype(type);
        return begin(operation, data, type, switch (mode) {
            case STANDARD -> (a, n, r) -> Abi.MPI_Isend_c(a, n, name, dest, tag, handle, r);
            case BUFFERED -> (a, n, r) -> Abi.MPI_Ibsend_c(a, n, name, dest, tag, handle, r);
            case SYNCHRONOUS -> (a, n, r) -> Abi.MPI_Issend_c(a, n, name, dest, tag, handle, r);
            case READY -> (a, n, r) -> Abi.MPI_Irsend_c(a, n, name, dest, tag, handle, r);
        });
    }

    @Override
    public Operation startReceive(MemorySegment data, Type type, int source, int tag) {
        LibraryOperation operation = new LibraryOperation(data, true, false);
        return begin(operation, data, type, (a, n, r) -> Abi.MPI_Irecv_c(
                a, n, datatype(type), Calls.source(source), Calls.tag(tag), handle, r));
    }

    @Override
    public Operation persistentSend(MemorySegment data, Type type, int dest, int tag, Mode mode) {
        long name = datatype(type);
        return begin(new LibraryOperation(data, false, true), data, type, switch (mode) {
            case STANDARD -> (a, n, r) -> Abi.MPI_Send_init_c(a, n, name, dest, tag, handle, r);
            case BUFFERED -> (a, n, r) -> Abi.MPI_Bsend_init_c(a, n, name, dest, tag, handle, r);
            case SYNCHRONOUS -> (a, n, r) -> Abi.MPI_Ssend_init_c(a, n, name, dest, tag, handle, r);
            case READY -> (a, n, r) -> Abi.MPI_Rsend_init_c(a, n, name, dest, tag, handle, r);
        });
    }

    @Override
    public Operation persistentReceive(MemorySegment data, Type type, int source, int tag) {
        return begin(new LibraryOperation(data, true, true), data, type, (a, n, r) -> Abi.MPI_Recv_init_c(
                a, n, datatype(type), Calls.source(source), Calls.tag(tag), handle, r));
    }

    @Override
    public Envelope exchange(
            MemorySegment sent, Type sentType, int dest, int sendTag,
            MemorySegment received, Type receivedType, int source, int receiveTag) {
        MemorySegment results = Calls.results();
        Staged staged = new Staged(sent, received);
        MemorySegment own = staged.input(sent);
        MemorySegment out = staged.output(received);
        // MPI does not take one native buffer for both.
        MemorySegment in = own.address() != 0 && own.address() == out.address() ? copy(own) : own;
        blocking(() -> Abi.MPI_Sendrecv_c(
                in, count(sent, sentType), datatype(sentType), dest, sendTag,
                out, count(received, receivedType), datatype(receivedType),
                Calls.source(source), Calls.tag(receiveTag), handle, results));
        Envelope envelope = Calls.envelope(results);
        if (received != null && !received.isNative()) {
            MemorySegment.copy(out, 0, received, 0, envelope.bytes());
        }
        return envelope;
    }

    @Override
    public Envelope probe(int source, int tag) {
        MemorySegment results = Calls.results();
        blocking(() -> Abi.MPI_Probe(Calls.source(source), Calls.tag(tag), handle, results));
        return Calls.envelope(results);
    }

    @Override
    public Envelope probeNow(int source, int tag) {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Iprobe(Calls.source(source), Calls.tag(tag), handle, Calls.flagOf(results), results));
        return Calls.flag(results) != 0 ? Calls.envelope(results) : null;
    }

    @Override
    public Taken take(int source, int tag, boolean waits) {
        MemorySegment results = Calls.results();
        int from = Calls.source(source);
        int with = Calls.tag(tag);
        if (waits) {
            blocking(() -> Abi.MPI_Mprobe(from, with, handle, Calls.handleOf(results), results));
        } else {
            check(Abi.MPI_Improbe(from, with, handle, Calls.flagOf(results), Calls.handleOf(results), results));
            if (Calls.flag(results) == 0) {
                return null;
            }
        }
        return new TakenMessage(Calls.handle(results), Calls.envelope(results));
    }

    private record TakenMessage(long message, Envelope envelope) implements Taken {
        @Override
        public void receive(MemorySegment data) {
            receive(data, Type.BYTE);
        }

        @Override
        public void receive(MemorySegment data, Type type) {
            MemorySegment results = Calls.results();
            Staged staged = new Staged(data, null);
            MemorySegment out = staged.output(data);
            results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, message);
            blocking(() -> Abi.MPI_Mrecv_c(out, count(data, type), datatype(type), Calls.handleOf(results), results));
            Staged.finish(out, data);
        }
    }

    // --- other communicators ---

    @Override
    public Communicator duplicate() {
        MemorySegment results = Calls.results();
        blocking(() -> Abi.MPI_Comm_dup(handle, Calls.handleOf(results)));
        return made(results, inter);
    }

    @Override
    public Communicator split(int colour, int key) {
        MemorySegment results = Calls.results();
        int passed = colour < 0 ? Abi.MPI_UNDEFINED : colour;
        blocking(() -> Abi.MPI_Comm_split(handle, passed, key, Calls.handleOf(results)));
        return made(results, inter);
    }

    @Override
    public Communicator create(Members members) {
        MemorySegment results = Calls.results();
        blocking(() -> Abi.MPI_Comm_create(handle, ((LibraryMembers) members).handle, Calls.handleOf(results)));
        return made(results, inter);
    }

    @Override
    public Communicator connect(int localLeader, Communicator peer, int remoteLeader, int tag) {
        MemorySegment results = Calls.results();
        long bridge = ((LibraryCommunicator) peer).handle;
        blocking(() -> Abi.MPI_Intercomm_create(
                handle, localLeader, bridge, remoteLeader, tag, Calls.handleOf(results)));
        return made(results, true);
    }

    @Override
    public Communicator merge(boolean high) {
        MemorySegment results = Calls.results();
        blocking(() -> Abi.MPI_Intercomm_merge(handle, high ? 1 : 0, Calls.handleOf(results)));
        return made(results, false);
    }

    @Override
    public void free() {
        freeHidden();
        MemorySegment results = Calls.results();
        results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, handle);
        blocking(() -> Abi.MPI_Comm_free(Calls.handleOf(results)));
    }

    /** Frees the hidden communicator if there is one: one of a predefined communicator has no other end. */
    synchronized void freeHidden() {
        if (hidden != null) {
            hidden.free();
            hidden = null;
        }
    }

    @Override
    public boolean isSame(Communicator other) {
        return handle == ((LibraryCommunicator) other).handle;
    }

    @Override
    public synchronized Communicator hidden() {
        if (hidden == null) {
            hidden = duplicate();
        }
        return hidden;
    }

    @Override
    public NonBlocking nonBlocking(String function) {
        return new LibraryNonBlocking(this);
    }

    /** A communicator with processes that were started apart from these. */
    static LibraryCommunicator between(long handle) {
        check(Abi.MPI_Comm_set_errhandler(handle, Abi.MPI_ERRORS_RETURN));
        return new LibraryCommunicator(handle, true);
    }

    @Override
    public Communicator spawn(List<Started> programs, int root, int[] errors) {
        return between(LibrarySpawn.start(handle, programs, root, errors));
    }

    @Override
    public Communicator meet(String port, boolean accepts, int root) {
        MemorySegment results = Calls.results();
        try (Arena arena = Calls.arena()) {
            MemorySegment name = port == null ? MemorySegment.NULL : arena.allocateFrom(port);
            MemorySegment made = Calls.handleOf(results);
            blocking(() -> accepts ? Abi.MPI_Comm_accept(name, Abi.MPI_INFO_NULL, root, handle, made)
                    : Abi.MPI_Comm_connect(name, Abi.MPI_INFO_NULL, root, handle, made));
        }
        return between(Calls.handle(results));
    }

    @Override
    public void disconnect() {
        if (hidden != null) {
            hidden.disconnect();
        }
        MemorySegment results = Calls.results();
        results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, handle);
        blocking(() -> Abi.MPI_Comm_disconnect(Calls.handleOf(results)));
    }

    @Override
    public Window window(MemorySegment memory, int unit) {
        return new LibraryWindow(handle, memory, unit);
    }

    // --- collective operations ---

    @Override
    public void barrier() {
        blocking(() -> Abi.MPI_Barrier(handle));
    }

    @Override
    public void broadcast(MemorySegment data, Type type, int root) {
        Staged staged = new Staged(data, null);
        MemorySegment address = rank == root ? staged.input(data) : staged.output(data);
        blocking(() -> Abi.MPI_Bcast_c(address, count(data, type), datatype(type), root, handle));
        if (rank != root) {
            Staged.finish(address, data);
        }
    }

    /** What is received from, or sent to, each process. */
    private long each(MemorySegment data, Type type) {
        return count(data, type) / size;
    }

    /** Where the caller's part begins among equal parts of all, in bytes. */
    private long ownPart(MemorySegment all) {
        return all == null ? 0 : all.byteSize() / size * rank;
    }

    /** As above, for parts in different places. */
    private long own(int[] displacements, Type type) {
        return displacements == null ? 0 : (long) displacements[rank] * type.bytes;
    }

    /**
     * What a call reads. If that is native memory which the call writes, it is MPI_IN_PLACE for the caller's own part,
     * which begins so many bytes from the start, and a copy for any other.
     */
    private static MemorySegment input(Staged staged, MemorySegment sent, MemorySegment received, long own) {
        MemorySegment in = staged.input(sent);
        if (!overlap(sent, received)) {
            return in;
        }
        return in.address() == received.address() + own ? Abi.MPI_IN_PLACE : copy(in);
    }

    static boolean overlap(MemorySegment sent, MemorySegment received) {
        return sent != null && received != null && sent.isNative() && received.isNative()
                && sent.asOverlappingSlice(received).isPresent();
    }

    private static MemorySegment copy(MemorySegment data) {
        return Staging.ofThread(data.byteSize()).copyFrom(data);
    }

    @Override
    public void gather(MemorySegment sent, MemorySegment received, Type type, int root) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, ownPart(received));
        blocking(() -> Abi.MPI_Gather_c(
                in, count(sent, type), datatype(type), out, each(received, type), datatype(type), root, handle));
        Staged.finish(out, received);
    }

    /** The counts or displacements of a call with large counts. */
    static MemorySegment numbers(Arena arena, int[] values) {
        if (values == null) {
            return MemorySegment.NULL;
        }
        MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, values.length));
        for (int i = 0; i < values.length; i++) {
            result.setAtIndex(ValueLayout.JAVA_LONG, i, values[i]);
        }
        return result;
    }

    @Override
    public void gather(
            MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type, int root) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, own(displacements, type));
        try (Arena arena = Calls.arena()) {
            blocking(() -> Abi.MPI_Gatherv_c(
                    in, count(sent, type), datatype(type), out, numbers(arena, counts),
                    numbers(arena, displacements), datatype(type), root, handle));
        }
        if (received != null) {
            Staged.finish(out, received, counts, displacements, type.bytes);
        }
    }

    @Override
    public void scatter(MemorySegment sent, MemorySegment received, Type type, int root) {
        Staged staged = new Staged(sent, received);
        MemorySegment part = staged.output(received);
        MemorySegment all = staged.input(sent);
        boolean overlap = overlap(sent, received);
        boolean stays = overlap && part.address() == all.address() + ownPart(sent);
        MemorySegment in = overlap && !stays ? copy(all) : all;
        MemorySegment out = stays ? Abi.MPI_IN_PLACE : part;
        blocking(() -> Abi.MPI_Scatter_c(
                in, each(sent, type), datatype(type), out, count(received, type), datatype(type), root, handle));
        Staged.finish(out, received);
    }

    @Override
    public void scatter(
            MemorySegment sent, int[] counts, int[] displacements, MemorySegment received, Type type, int root) {
        Staged staged = new Staged(sent, received);
        MemorySegment part = staged.output(received);
        MemorySegment all = staged.input(sent);
        boolean overlap = overlap(sent, received);
        boolean stays = overlap && part.address() == all.address() + own(displacements, type);
        MemorySegment in = overlap && !stays ? copy(all) : all;
        MemorySegment out = stays ? Abi.MPI_IN_PLACE : part;
        try (Arena arena = Calls.arena()) {
            blocking(() -> Abi.MPI_Scatterv_c(
                    in, numbers(arena, counts), numbers(arena, displacements), datatype(type), out,
                    count(received, type), datatype(type), root, handle));
        }
        Staged.finish(out, received);
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, Type type) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, ownPart(received));
        blocking(() -> Abi.MPI_Allgather_c(
                in, count(sent, type), datatype(type), out, each(received, type), datatype(type), handle));
        Staged.finish(out, received);
    }

    @Override
    public void allGather(MemorySegment sent, MemorySegment received, int[] counts, int[] displacements, Type type) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, own(displacements, type));
        try (Arena arena = Calls.arena()) {
            blocking(() -> Abi.MPI_Allgatherv_c(
                    in, count(sent, type), datatype(type), out, numbers(arena, counts),
                    numbers(arena, displacements), datatype(type), handle));
        }
        Staged.finish(out, received, counts, displacements, type.bytes);
    }

    @Override
    public void allToAll(MemorySegment sent, MemorySegment received, Type type) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, 0);
        blocking(() -> Abi.MPI_Alltoall_c(
                in, each(sent, type), datatype(type), out, each(received, type), datatype(type), handle));
        Staged.finish(out, received);
    }

    @Override
    public void allToAll(
            MemorySegment sent, int[] sendCounts, int[] sendDisplacements,
            MemorySegment received, int[] receiveCounts, int[] receiveDisplacements, Type type) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = staged.input(sent);
        try (Arena arena = Calls.arena()) {
            blocking(() -> Abi.MPI_Alltoallv_c(
                    in, numbers(arena, sendCounts), numbers(arena, sendDisplacements), datatype(type),
                    out, numbers(arena, receiveCounts), numbers(arena, receiveDisplacements), datatype(type), handle));
        }
        Staged.finish(out, received, receiveCounts, receiveDisplacements, type.bytes);
    }

    @Override
    public void reduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction, int root) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, 0);
        blocking(() -> Abi.MPI_Reduce_c(in, out, count(sent, type), number(type), operation(reduction), root, handle));
        Staged.finish(out, received);
    }

    @Override
    public void allReduce(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, 0);
        blocking(() -> Abi.MPI_Allreduce_c(in, out, count(sent, type), number(type), operation(reduction), handle));
        Staged.finish(out, received);
    }

    @Override
    public void reduceScatter(
            MemorySegment sent, MemorySegment received, int[] counts, Type type, Reduction reduction) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, 0);
        try (Arena arena = Calls.arena()) {
            blocking(() -> Abi.MPI_Reduce_scatter_c(
                    in, out, numbers(arena, counts), number(type), operation(reduction), handle));
        }
        Staged.finish(out, received);
    }

    @Override
    public void reduceLocal(MemorySegment in, MemorySegment inout, Type type, Reduction reduction) {
        Staged staged = new Staged(in, inout);
        MemorySegment from = staged.input(in);
        MemorySegment to = staged.input(inout);
        check(Abi.MPI_Reduce_local_c(from, to, count(in, type), number(type), operation(reduction)));
        Staged.finish(to, inout);
    }

    @Override
    public void scan(MemorySegment sent, MemorySegment received, Type type, Reduction reduction) {
        Staged staged = new Staged(sent, received);
        MemorySegment out = staged.output(received);
        MemorySegment in = input(staged, sent, received, 0);
        blocking(() -> Abi.MPI_Scan_c(in, out, count(sent, type), number(type), operation(reduction), handle));
        Staged.finish(out, received);
    }
}
