package mpi;

import java.lang.foreign.MemorySegment;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import org.limosa.abi.Abi;
import org.limosa.engine.Lease;
import org.limosa.engine.Operation;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;
import org.limosa.engine.Window;

/**
 * A window: memory of each process of a communicator that the others read and write (MPI-5, chapter 12), in the form of
 * Open MPI's bindings. The MPI library does it, so there are no windows where ranks are threads. Buffers are direct,
 * and belong to the operation until the call that completes it; items of a datatype are next to each other.
 */
public final class Win {
    private final Comm comm;
    private Window window;
    /** What operations use that are not complete at their target, which must be neither collected nor freed. */
    private final Map<Integer, Queue<MemorySegment>> underWay = new ConcurrentHashMap<>();

    /**
     * Opens elements of a direct buffer to all processes, which call this together.
     *
     * @param base the memory
     * @param size how many elements of the buffer it has
     * @param dispUnit of how many elements others give displacements
     * @param info hints, which are not used
     * @param comm the processes that can access it
     */
    public Win(Buffer base, int size, int dispUnit, Info info, Comm comm) throws MPIException {
        this.comm = Errors.present("Win", "the communicator", comm);
        int each = bytes(base);
        Layout.checkWritable("Win", base);
        MemorySegment memory = direct("Win", base);
        if (size < 0 || size > memory.byteSize() / each) {
            throw Errors.argument("Win: the size is " + size + ", but the buffer has " + memory.byteSize() / each
                    + " elements");
        }
        if (dispUnit < 1) {
            throw Errors.argument("Win: the unit of displacements is " + dispUnit + "; it must be at least 1");
        }
        window = comm.communicator().window(
                memory.asSlice(0, (long) size * each), Math.multiplyExact(dispUnit, each));
    }

    private static int bytes(Buffer buffer) {
        return switch (Errors.present("Win", "the buffer", buffer)) {
            case ByteBuffer b -> Byte.BYTES;
            case CharBuffer b -> Character.BYTES;
            case ShortBuffer b -> Short.BYTES;
            case IntBuffer b -> Integer.BYTES;
            case FloatBuffer b -> Float.BYTES;
            case LongBuffer b -> Long.BYTES;
            case DoubleBuffer b -> Double.BYTES;
            default -> throw new IllegalArgumentException(buffer.getClass().getName());
        };
    }

    private static MemorySegment direct(String function, Buffer buffer) {
        if (buffer == null || !buffer.isDirect()) {
            throw Errors.buffer(function + ": the buffer is " + (buffer == null ? "null" : "a part of an array")
                    + "; windows need direct buffers, as MPI.newIntBuffer makes them");
        }
        return Layout.memory(buffer);
    }

    private Window window() {
        if (window == null) {
            throw MPIException.of(Abi.MPI_ERR_WIN, "the window was freed");
        }
        return window;
    }

    // --- accesses ---

    /** As {@link #items}, of a buffer that the operation writes. */
    private MemorySegment result(String function, Buffer buffer, int count, Datatype type, int target) {
        Layout.checkWritable(function, buffer);
        return items(function, buffer, count, type, target);
    }

    /** The items of a direct buffer, kept until the next call that completes operations. */
    private MemorySegment items(String function, Buffer buffer, int count, Datatype type, int target) {
        Layout.check(function, buffer, 0, count, type);
        MemorySegment memory = direct(function, buffer);
        if (type.base == null || !type.isDense()) {
            throw Errors.type(function + ": " + type + " has gaps, or is no type of elements; windows need items whose "
                    + "elements are next to each other");
        }
        Layout.checkRoom(function, buffer, 0, count, type);
        MemorySegment used = memory.asSlice(0, (long) count * type.size() * type.base.bytes);
        if (target != MPI.PROC_NULL) {
            Lease.begin(used);
            underWay.computeIfAbsent(target, rank -> new ConcurrentLinkedQueue<>()).add(used);
        }
        return used;
    }

    /** The operations at a target are complete. */
    private void completed(int target) {
        Queue<MemorySegment> used = underWay.remove(target);
        if (used != null) {
            used.forEach(Lease::end);
        }
    }

    private Type checkTarget(
            String function, int count, Datatype type, int target, int targetDisp, int targetCount,
            Datatype targetType) {
        window();
        int peers = comm.Size();
        if ((target < 0 || target >= peers) && target != MPI.PROC_NULL) {
            throw Errors.rank(function + ": there is no target " + target + "; ranks are 0 to " + (peers - 1));
        }
        if (targetDisp < 0) {
            throw MPIException.of(Abi.MPI_ERR_DISP, function + ": the displacement is " + targetDisp
                    + "; it cannot be negative");
        }
        Type base = Intracomm.common(function, type, targetType);
        if (!targetType.isDense() || (long) count * type.size() != (long) targetCount * targetType.size()) {
            throw Errors.type(function + ": " + count + " items of " + type + " are not as many elements next to each "
                    + "other as " + targetCount + " of " + targetType);
        }
        return base;
    }

    private static Reduction reduction(String function, Op op, Datatype type) {
        if (op == MPI.REPLACE) {
            return null;
        }
        if (!Intracomm.isKnown(function, op, type)) {
            throw Errors.op(function + ": " + op + " is called in Java; windows have predefined operations only");
        }
        return op.reduction;
    }

    private static Request request(Operation operation) {
        return new Request(new Pending.OfCollective(operation, () -> {}));
    }

    /** Writes items to a target. */
    public void put(
            Buffer origin, int orgCount, Datatype orgType, int targetRank, int targetDisp, int targetCount,
            Datatype targetType) throws MPIException {
        Type base = checkTarget("put", orgCount, orgType, targetRank, targetDisp, targetCount, targetType);
        window.put(items("put", origin, orgCount, orgType, targetRank), base, target(targetRank), targetDisp);
    }

    private static int target(int rank) {
        return rank == MPI.PROC_NULL ? Abi.MPI_PROC_NULL : rank;
    }

    /** Reads items of a target. */
    public void get(
            Buffer origin, int orgCount, Datatype orgType, int targetRank, int targetDisp, int targetCount,
            Datatype targetType) throws MPIException {
        Type base = checkTarget("get", orgCount, orgType, targetRank, targetDisp, targetCount, targetType);
        window.get(result("get", origin, orgCount, orgType, targetRank), base, target(targetRank), targetDisp);
    }

    /** Combines items with those of a target. */
    public void accumulate(
            Buffer origin, int orgCount, Datatype orgType, int targetRank, int targetDisp, int targetCount,
            Datatype targetType, Op op) throws MPIException {
        Type base = checkTarget("accumulate", orgCount, orgType, targetRank, targetDisp, targetCount, targetType);
        Reduction reduction = reduction("accumulate", op, orgType);
        window.accumulate(
                items("accumulate", origin, orgCount, orgType, targetRank), base, target(targetRank), targetDisp,
                reduction);
    }

    /** As {@link #accumulate}, and reads what was there before; {@code MPI.NO_OP} only reads. */
    public void getAccumulate(
            Buffer origin, int orgCount, Datatype orgType, Buffer resultAddr, int resultCount, Datatype resultType,
            int targetRank, int targetDisp, int targetCount, Datatype targetType, Op op) throws MPIException {
        Type base = checkTarget(
                "getAccumulate", resultCount, resultType, targetRank, targetDisp, targetCount, targetType);
        boolean changes = op != MPI.NO_OP;
        Reduction reduction = changes ? reduction("getAccumulate", op, orgType) : null;
        window.getAccumulate(
                changes ? items("getAccumulate", origin, orgCount, orgType, targetRank) : null,
                result("getAccumulate", resultAddr, resultCount, resultType, targetRank), base, target(targetRank),
                targetDisp, reduction);
    }

    /** As {@link #getAccumulate}, for one element. */
    public void fetchAndOp(
            Buffer origin, Buffer resultAddr, Datatype dataType, int targetRank, int targetDisp, Op op)
            throws MPIException {
        getAccumulate(origin, 1, dataType, resultAddr, 1, dataType, targetRank, targetDisp, 1, dataType, op);
    }

    /** Replaces an element of a target if it has the value to compare with, and reads what was there before. */
    public void compareAndSwap(
            Buffer origin, Buffer compareAddr, Buffer resultAddr, Datatype targetType, int targetRank, int targetDisp)
            throws MPIException {
        Type base = checkTarget("compareAndSwap", 1, targetType, targetRank, targetDisp, 1, targetType);
        window.compareAndSwap(
                items("compareAndSwap", origin, 1, targetType, targetRank),
                items("compareAndSwap", compareAddr, 1, targetType, targetRank),
                result("compareAndSwap", resultAddr, 1, targetType, targetRank), base, target(targetRank), targetDisp);
    }

    /** Begins {@link #put}, inside of locks. */
    public Request rPut(
            Buffer origin, int orgCount, Datatype orgType, int targetRank, int targetDisp, int targetCount,
            Datatype targetType) throws MPIException {
        Type base = checkTarget("rPut", orgCount, orgType, targetRank, targetDisp, targetCount, targetType);
        return request(window.startPut(
                items("rPut", origin, orgCount, orgType, targetRank), base, target(targetRank), targetDisp));
    }

    /** Begins {@link #get}, inside of locks. */
    public Request rGet(
            Buffer origin, int orgCount, Datatype orgType, int targetRank, int targetDisp, int targetCount,
            Datatype targetType) throws MPIException {
        Type base = checkTarget("rGet", orgCount, orgType, targetRank, targetDisp, targetCount, targetType);
        return request(window.startGet(
                result("rGet", origin, orgCount, orgType, targetRank), base, target(targetRank), targetDisp));
    }

    /** Begins {@link #accumulate}, inside of locks. */
    public Request rAccumulate(
            Buffer origin, int orgCount, Datatype orgType, int targetRank, int targetDisp, int targetCount,
            Datatype targetType, Op op) throws MPIException {
        Type base = checkTarget("rAccumulate", orgCount, orgType, targetRank, targetDisp, targetCount, targetType);
        Reduction reduction = reduction("rAccumulate", op, orgType);
        return request(window.startAccumulate(
                items("rAccumulate", origin, orgCount, orgType, targetRank), base, target(targetRank), targetDisp,
                reduction));
    }

    /** Begins {@link #getAccumulate}, inside of locks. */
    public Request rGetAccumulate(
            Buffer origin, int orgCount, Datatype orgType, Buffer resultAddr, int resultCount, Datatype resultType,
            int targetRank, int targetDisp, int targetCount, Datatype targetType, Op op) throws MPIException {
        Type base = checkTarget(
                "rGetAccumulate", resultCount, resultType, targetRank, targetDisp, targetCount, targetType);
        boolean changes = op != MPI.NO_OP;
        Reduction reduction = changes ? reduction("rGetAccumulate", op, orgType) : null;
        return request(window.startGetAccumulate(
                changes ? items("rGetAccumulate", origin, orgCount, orgType, targetRank) : null,
                result("rGetAccumulate", resultAddr, resultCount, resultType, targetRank), base, target(targetRank),
                targetDisp, reduction));
    }

    // --- epochs ---

    /** What completes operations. */
    private void complete(Consumer<Window> call) {
        call.accept(window());
        List.copyOf(underWay.keySet()).forEach(this::completed);
    }

    /** Ends an epoch of all processes and begins the next. */
    public void fence(int assertion) throws MPIException {
        complete(open -> open.fence(assertion));
    }

    /** Begins to access the memory of a group, which calls {@link #post}. */
    public void start(Group group, int assertion) throws MPIException {
        window().start(Errors.present("start", "the group", group).members, assertion);
    }

    /** Ends what {@link #start} has begun. */
    public void complete() throws MPIException {
        complete(Window::complete);
    }

    /** Opens the own memory to a group, which calls {@link #start}. */
    public void post(Group group, int assertion) throws MPIException {
        window().post(Errors.present("post", "the group", group).members, assertion);
    }

    /** Waits until the group of {@link #post} has called {@link #complete()}. */
    public void waitFor() throws MPIException {
        window().await();
    }

    /** Whether {@link #waitFor} would not wait. */
    public boolean test() throws MPIException {
        return window().test();
    }

    /** Begins to access the memory of a target: {@code MPI.LOCK_EXCLUSIVE} or {@code MPI.LOCK_SHARED}. */
    public void lock(int lockType, int rank, int assertion) throws MPIException {
        if (lockType != MPI.LOCK_EXCLUSIVE && lockType != MPI.LOCK_SHARED) {
            throw MPIException.of(Abi.MPI_ERR_LOCKTYPE, "lock: " + lockType
                    + " is no kind of locks; it is MPI.LOCK_EXCLUSIVE or MPI.LOCK_SHARED");
        }
        window().lock(lockType == MPI.LOCK_EXCLUSIVE, rank, assertion);
    }

    /** Ends what {@link #lock} has begun. */
    public void unlock(int rank) throws MPIException {
        window().unlock(rank);
        completed(rank);
    }

    /** Begins to access the memory of all, shared with others. */
    public void lockAll(int assertion) throws MPIException {
        window().lockAll(assertion);
    }

    /** Ends what {@link #lockAll} has begun. */
    public void unlockAll() throws MPIException {
        complete(Window::unlockAll);
    }

    /** Completes the operations at a target, there, too. */
    public void flush(int rank) throws MPIException {
        window().flush(rank, false);
        completed(rank);
    }

    /** Completes the operations at all targets, there, too. */
    public void flushAll() throws MPIException {
        complete(open -> open.flush(Window.ALL, false));
    }

    /** Completes the operations at a target for the calling process. */
    public void flushLocal(int rank) throws MPIException {
        window().flush(rank, true);
        completed(rank);
    }

    /** Completes the operations at all targets for the calling process. */
    public void flushLocalAll() throws MPIException {
        complete(open -> open.flush(Window.ALL, true));
    }

    /** Makes what others have written visible, and what this process has written visible to others. */
    public void sync() throws MPIException {
        window().sync();
    }

    // --- the rest ---

    /** The processes that share the window. */
    public Group getGroup() throws MPIException {
        return new Group(window().members());
    }

    /** Errors are thrown, whatever the handler. */
    public void setErrhandler(Errhandler handler) throws MPIException {
        window();
    }

    /** Ends the window. All processes call it. */
    public void free() throws MPIException {
        complete(Window::free);
        window = null;
    }

    /** Whether it was freed. */
    public boolean isNull() {
        return window == null;
    }
}
