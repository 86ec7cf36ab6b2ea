package org.limosa.engine.library;

import static org.limosa.engine.library.Calls.check;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.limosa.abi.Abi;
import org.limosa.engine.Envelope;
import org.limosa.engine.Lease;
import org.limosa.engine.Operation;

/** A request of the MPI library, with the data of arrays beside it. */
final class LibraryOperation implements Operation {
    /** What the request stands for. */
    long request = Abi.MPI_REQUEST_NULL;

    private final boolean persistent;
    private final boolean receives;
    /** The program's data. */
    private final MemorySegment data;
    /** What MPI uses: the same, or staged. */
    private MemorySegment staged;

    /** The buffers of a collective operation; null for others. */
    private Held held;

    private boolean active;
    /** Whether the arena of the data is kept open. */
    private boolean holds;
    /** Operations on the program's own native memory, which must not be collected while they are under way. */
    private static final Set<LibraryOperation> UNDER_WAY = ConcurrentHashMap.newKeySet();
    /** Persistent operations, which must be freed before MPI ends. */
    private static final Set<LibraryOperation> PERSISTENT = ConcurrentHashMap.newKeySet();

    LibraryOperation(MemorySegment data, boolean receives, boolean persistent) {
        this.data = data;
        this.receives = receives;
        this.persistent = persistent;
        this.staged = data == null || isUsable(data) ? null : Staging.take(data.byteSize());
        if (!persistent) {
            hold();
        }
    }

    /** Whether an operation can use memory as it is. */
    static boolean isUsable(MemorySegment data) {
        return data.isNative() && Lease.canHold(data);
    }

    private void hold() {
        if (data != null && staged == null) {
            Lease.begin(data);
            holds = true;
        }
    }

    /** A collective operation that goes on. */
    LibraryOperation(Held held) {
        this(null, false, false);
        this.held = held;
    }

    private boolean isOnNativeMemory() {
        return held != null || data != null && staged == null;
    }

    /** The address for the call that starts the operation. */
    MemorySegment address() {
        if (staged == null) {
            return data == null ? MemorySegment.NULL : data;
        }
        return staged;
    }

    /** Copies what is to be sent to where MPI reads it. */
    void fill() {
        if (staged != null && !receives) {
            MemorySegment.copy(data, 0, staged, 0, data.byteSize());
        }
    }

    /** After the call: the request that it has made. */
    void started(MemorySegment results) {
        request = Calls.handle(results);
        if (persistent) {
            PERSISTENT.add(this);
        } else {
            begun();
        }
    }

    /** Frees persistent operations that the program has forgotten. */
    static void freeForgotten() {
        PERSISTENT.forEach(LibraryOperation::free);
    }

    private void begun() {
        active = true;
        if (isOnNativeMemory()) {
            UNDER_WAY.add(this);
        }
    }

    private void ended() {
        active = false;
        if (isOnNativeMemory()) {
            UNDER_WAY.remove(this);
        }
        if (holds) {
            holds = false;
            Lease.end(data);
        }
        if (!persistent) {
            release();
        }
    }

    /** After the operation was found complete. */
    Envelope complete(MemorySegment status) {
        Envelope envelope = Calls.envelope(status);
        try {
            if (staged != null && receives) {
                MemorySegment.copy(staged, 0, data, 0, Math.min(envelope.bytes(), data.byteSize()));
            }
            if (held != null) {
                held.arrived();
            }
        } finally {
            ended();
        }
        return envelope;
    }

    private void release() {
        request = Abi.MPI_REQUEST_NULL;
        if (staged != null) {
            Staging.give(staged);
            staged = null;
        }
        if (held != null) {
            held.give();
            held = null;
        }
    }

    @Override
    public Envelope await() {
        MemorySegment results = Calls.results();
        results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, request);
        int code = Calls.waiting(() -> Abi.MPI_Wait(Calls.handleOf(results), results));
        if (code != Abi.MPI_SUCCESS) {
            failed();
        }
        check(code);
        return complete(results);
    }

    @Override
    public Envelope test() {
        MemorySegment results = Calls.results();
        results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, request);
        int code = Abi.MPI_Test(Calls.handleOf(results), Calls.flagOf(results), results);
        if (code != Abi.MPI_SUCCESS) {
            failed();
        }
        check(code);
        return Calls.flag(results) != 0 ? complete(results) : null;
    }

    /** An operation that has ended with an error is over. */
    void failed() {
        ended();
    }

    @Override
    public void cancel() {
        MemorySegment results = Calls.results();
        results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, request);
        check(Abi.MPI_Cancel(Calls.handleOf(results)));
    }

    @Override
    public void free() {
        if (request != Abi.MPI_REQUEST_NULL) {
            MemorySegment results = Calls.results();
            results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, request);
            check(Abi.MPI_Request_free(Calls.handleOf(results)));
            PERSISTENT.remove(this);
            // MPI may still use the memory: it is not given back to the pool, and its arena stays open.
            request = Abi.MPI_REQUEST_NULL;
            staged = null;
            active = false;
        }
    }

    @Override
    public void start() {
        fill();
        hold();
        MemorySegment results = Calls.results();
        results.set(ValueLayout.JAVA_LONG, Calls.HANDLE, request);
        int code = Abi.MPI_Start(Calls.handleOf(results));
        if (code != Abi.MPI_SUCCESS) {
            failed();
        }
        check(code);
        begun();
    }

    @Override
    public boolean isActive() {
        return active;
    }
}
