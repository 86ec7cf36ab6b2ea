package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.check;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.limosa.abi.Abi;

/**
 * Message passing that is started again: MPI_Init can be called once only, sessions any number of times (MPI-5, section
 * 11.3).
 */
final class Session {
    private final long handle;

    /** Starts one. All processes do. */
    Session() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG);
            check(Abi.MPI_Info_create(made));
            long info = made.get(ValueLayout.JAVA_LONG, 0);
            check(Abi.MPI_Info_set(info, arena.allocateFrom("thread_level"), arena.allocateFrom("MPI_THREAD_MULTIPLE")));
            MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG);
            check(Abi.MPI_Session_init(info, Abi.MPI_ERRORS_RETURN, result));
            handle = result.get(ValueLayout.JAVA_LONG, 0);
            check(Abi.MPI_Info_free(made));
        }
    }

    /** A communicator of the processes that a name stands for. */
    LibraryCommunicator communicator(String processes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment group = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG);
            check(Abi.MPI_Group_from_session_pset(handle, arena.allocateFrom(processes), group));
            check(Abi.MPI_Comm_create_from_group(
                    group.get(ValueLayout.JAVA_LONG, 0), arena.allocateFrom("org.limosa"), Abi.MPI_INFO_NULL,
                    Abi.MPI_ERRORS_RETURN, made));
            check(Abi.MPI_Group_free(group));
            return new LibraryCommunicator(made.get(ValueLayout.JAVA_LONG, 0), false);
        }
    }

    /** Ends it. All processes do. */
    void end() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment ended = arena.allocateFrom(ValueLayout.JAVA_LONG, handle);
            check(Abi.MPI_Session_finalize(ended));
        }
    }
}
