package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.blocking;
import static org.limosa.engine.library.Calls.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.limosa.abi.Abi;
import org.limosa.abi.Link;
import org.limosa.engine.Communicator;
import org.limosa.engine.Engine;
import org.limosa.engine.Envelope;
import org.limosa.engine.Members;
import org.limosa.engine.Operation;
import org.limosa.engine.Ports;

/** The MPI library behind the standard ABI. */
public final class LibraryEngine implements Engine {
    private static final List<Runnable> BEFORE_CLOSE = new CopyOnWriteArrayList<>();

    private final LibraryCommunicator world;
    private final LibraryCommunicator self;

    /** Null the first time, when MPI_Init starts the library. */
    private final Session session;

    private LibraryEngine() {
        if (hasEnded()) {
            session = new Session();
            world = session.communicator("mpi://WORLD");
            self = session.communicator("mpi://SELF");
            return;
        }
        session = null;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment provided = arena.allocate(ValueLayout.JAVA_INT);
            check(Abi.MPI_Initialized(provided));
            if (provided.get(ValueLayout.JAVA_INT, 0) == 0) {
                check(Abi.MPI_Init_thread(
                        MemorySegment.NULL, MemorySegment.NULL, Abi.MPI_THREAD_MULTIPLE, provided));
            }
        }
        check(Abi.MPI_Comm_set_errhandler(Abi.MPI_COMM_WORLD, Abi.MPI_ERRORS_RETURN));
        check(Abi.MPI_Comm_set_errhandler(Abi.MPI_COMM_SELF, Abi.MPI_ERRORS_RETURN));
        world = new LibraryCommunicator(Abi.MPI_COMM_WORLD, false);
        self = new LibraryCommunicator(Abi.MPI_COMM_SELF, false);
    }

    private static boolean hasEnded() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment flag = arena.allocate(ValueLayout.JAVA_INT);
            check(Abi.MPI_Finalized(flag));
            return flag.get(ValueLayout.JAVA_INT, 0) != 0;
        }
    }

    /** Starts the MPI library, also after it has ended. */
    public static LibraryEngine start() {
        return new LibraryEngine();
    }

    /** Why there is no MPI library; null if there is one. */
    public static String problem() {
        return Link.problem();
    }

    /** The library that the user has named; null if any will do. */
    public static String chosen() {
        return Link.chosen();
    }

    @Override
    public Communicator world() {
        return world;
    }

    @Override
    public Communicator self() {
        return self;
    }

    @Override
    public Members nobody() {
        return new LibraryMembers(Abi.MPI_GROUP_EMPTY);
    }

    @Override
    public Communicator parent() {
        MemorySegment results = Calls.results();
        check(Abi.MPI_Comm_get_parent(Calls.handleOf(results)));
        long handle = Calls.handle(results);
        return handle == Abi.MPI_COMM_NULL ? null : LibraryCommunicator.between(handle);
    }

    @Override
    public Ports ports(String function) {
        return new LibraryPorts();
    }

    @Override
    public void abort(Communicator communicator, int code) {
        Abi.MPI_Abort(((LibraryCommunicator) communicator).handle, code);
    }

    @Override
    public void beforeClose(Runnable action) {
        BEFORE_CLOSE.add(action);
    }

    @Override
    public void close() {
        BEFORE_CLOSE.forEach(Runnable::run);
        LibraryOperation.freeForgotten();
        if (session != null) {
            self.free();
            world.free();
            session.end();
        } else if (!hasEnded()) {
            self.freeHidden();
            world.freeHidden();
            check(Abi.MPI_Finalize());
        }
    }

    @Override
    public String processorName() {
        return Calls.processorName();
    }

    @Override
    public int largestTag() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment address = arena.allocate(ValueLayout.ADDRESS);
            MemorySegment flag = arena.allocate(ValueLayout.JAVA_INT);
            check(Abi.MPI_Comm_get_attr(world.handle, Abi.MPI_TAG_UB, address, flag));
            return address.get(ValueLayout.ADDRESS, 0).reinterpret(4).get(ValueLayout.JAVA_INT, 0);
        }
    }

    @Override
    public void attachBuffer(MemorySegment buffer) {
        check(Abi.MPI_Buffer_attach_c(buffer, buffer.byteSize()));
    }

    @Override
    public void detachBuffer() {
        try (Arena arena = Calls.arena()) {
            blocking(() -> Abi.MPI_Buffer_detach_c(
                    arena.allocate(ValueLayout.ADDRESS), arena.allocate(ValueLayout.JAVA_LONG)));
        }
    }

    @Override
    public int bufferedOverhead() {
        return Abi.MPI_BSEND_OVERHEAD;
    }

    @Override
    public int awaitAny(List<Operation> operations, Envelope[] result) {
        try (Arena arena = Calls.arena()) {
            int n = operations.size();
            MemorySegment requests = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, n));
            for (int i = 0; i < n; i++) {
                LibraryOperation each = (LibraryOperation) operations.get(i);
                long request = each.isActive() ? each.request : Abi.MPI_REQUEST_NULL;
                requests.setAtIndex(ValueLayout.JAVA_LONG, i, request);
            }
            MemorySegment index = arena.allocate(ValueLayout.JAVA_INT);
            MemorySegment status = arena.allocate(Abi.STATUS_BYTES, 8);
            int code = Calls.waiting(() -> Abi.MPI_Waitany(n, requests, index, status));
            int found = index.get(ValueLayout.JAVA_INT, 0);
            if (code != Abi.MPI_SUCCESS && found >= 0 && found < n) {
                ((LibraryOperation) operations.get(found)).failed();
            }
            check(code);
            if (found == Abi.MPI_UNDEFINED) {
                return -1;
            }
            result[0] = ((LibraryOperation) operations.get(found)).complete(status);
            return found;
        }
    }
}
