package org.limosa.engine.library;

import static org.limosa.abi.Abi.MPI_ANY_SOURCE;
import static org.limosa.abi.Abi.MPI_ANY_TAG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.IntSupplier;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Communicator;
import org.limosa.engine.Envelope;
import org.limosa.engine.Reduction;
import org.limosa.engine.Type;

/** What the calls of the MPI library have in common: error codes, results, statuses, and the names of types. */
final class Calls {
    private static final int TEXT_BYTES = Math.max(Abi.MPI_MAX_ERROR_STRING, Abi.MPI_MAX_PROCESSOR_NAME);
    private static final long[] DATATYPES = {
        Abi.MPI_BYTE, Abi.MPI_UINT16_T, Abi.MPI_SHORT, Abi.MPI_C_BOOL, Abi.MPI_INT, Abi.MPI_INT64_T, Abi.MPI_FLOAT,
        Abi.MPI_DOUBLE, Abi.MPI_PACKED
    };
    private static final long[] REDUCTIONS = {
        Abi.MPI_MAX, Abi.MPI_MIN, Abi.MPI_SUM, Abi.MPI_PROD, Abi.MPI_LAND, Abi.MPI_BAND, Abi.MPI_LOR, Abi.MPI_BOR,
        Abi.MPI_LXOR, Abi.MPI_BXOR
    };
    private static final ThreadLocal<MemorySegment> RESULTS =
            ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(128, 16));

    /** Threads for the calls of virtual threads. */
    private static final ExecutorService PLATFORM =
            Executors.newCachedThreadPool(Thread.ofPlatform().daemon().name("limosa-caller-", 0).factory());
    private static final Thread ANOTHER = new Thread(() -> {});

    private Calls() {}

    /**
     * Makes a call that may wait for other processes; its error code. A native call holds the carrier of a virtual
     * thread, and few of these would hold all carriers, so virtual threads wait for a call in a platform thread.
     */
    static int waiting(IntSupplier call) {
        if (!Thread.currentThread().isVirtual()) {
            return call.getAsInt();
        }
        try {
            return CompletableFuture.supplyAsync(call::getAsInt, PLATFORM).join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : e;
        }
    }

    /** Makes a call that may wait for other processes, and checks its error code. */
    static void blocking(IntSupplier call) {
        check(waiting(call));
    }

    /** Memory of one call for {@link #waiting}. */
    static Arena arena() {
        return Thread.currentThread().isVirtual() ? Arena.ofShared() : Arena.ofConfined();
    }

    /**
     * Native memory for {@link #waiting}: that of an arena which only the calling virtual thread can use, and close, by
     * its address.
     */
    static MemorySegment shown(MemorySegment data) {
        Thread thread = Thread.currentThread();
        boolean isOwn = thread.isVirtual() && data.isAccessibleBy(thread) && !data.isAccessibleBy(ANOTHER)
                && data.scope().isAlive();
        return isOwn ? MemorySegment.ofAddress(data.address()).reinterpret(data.byteSize()) : data;
    }

    /** Small memory of the calling thread for results: a status, a flag behind it, and two words. */
    static MemorySegment results() {
        return RESULTS.get();
    }

    static final long FLAG = 64;
    static final long HANDLE = 72;
    static final long COUNT = 80;

    static int flag(MemorySegment results) {
        return results.get(ValueLayout.JAVA_INT, FLAG);
    }

    static long handle(MemorySegment results) {
        return results.get(ValueLayout.JAVA_LONG, HANDLE);
    }

    static MemorySegment flagOf(MemorySegment results) {
        return results.asSlice(FLAG, 4);
    }

    static MemorySegment handleOf(MemorySegment results) {
        return results.asSlice(HANDLE, 8);
    }

    static void check(int code) {
        if (code != Abi.MPI_SUCCESS) {
            throw failure(code);
        }
    }

    private static MPIException failure(int code) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment number = arena.allocate(ValueLayout.JAVA_INT);
            MemorySegment text = arena.allocate(TEXT_BYTES);
            int errorClass =
                    Abi.MPI_Error_class(code, number) == 0 ? number.get(ValueLayout.JAVA_INT, 0) : Abi.MPI_ERR_OTHER;
            boolean known = Abi.MPI_Error_string(code, text, number) == 0;
            return MPIException.of(errorClass, known ? text.getString(0) : "error code " + code);
        }
    }

    static String processorName() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(TEXT_BYTES);
            check(Abi.MPI_Get_processor_name(text, arena.allocate(ValueLayout.JAVA_INT)));
            return text.getString(0);
        }
    }

    static long datatype(Type type) {
        return DATATYPES[type.ordinal()];
    }

    /** The datatype for reductions: Java's bytes are signed numbers. */
    static long number(Type type) {
        return type == Type.BYTE ? Abi.MPI_INT8_T : DATATYPES[type.ordinal()];
    }

    static long operation(Reduction reduction) {
        return REDUCTIONS[reduction.ordinal()];
    }

    static int source(int source) {
        return source == Communicator.ANY ? MPI_ANY_SOURCE : source;
    }

    static int tag(int tag) {
        return tag == Communicator.ANY ? MPI_ANY_TAG : tag;
    }

    /** What a status says. */
    static Envelope envelope(MemorySegment status) {
        MemorySegment results = results();
        MemorySegment count = results.asSlice(COUNT, 8);
        check(Abi.MPI_Get_count_c(status, Abi.MPI_BYTE, count));
        check(Abi.MPI_Test_cancelled(status, flagOf(results)));
        int source = status.get(ValueLayout.JAVA_INT, Abi.MPI_SOURCE_OFFSET);
        int tag = status.get(ValueLayout.JAVA_INT, Abi.MPI_TAG_OFFSET);
        boolean cancelled = flag(results) != 0;
        // The count of a cancelled operation is undefined.
        long bytes = cancelled ? 0 : Math.max(0, count.get(ValueLayout.JAVA_LONG, 0));
        return new Envelope(
                source == MPI_ANY_SOURCE ? Communicator.ANY : source, tag == MPI_ANY_TAG ? Communicator.ANY : tag,
                bytes, cancelled);
    }
}
