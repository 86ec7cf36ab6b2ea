package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import mpi.MPIException;
import org.limosa.abi.Abi;
import org.limosa.engine.Envelope;
import org.limosa.engine.Lease;
import org.limosa.engine.Operation;

/**
 * A send or receive of a rank that is a thread. Another thread may complete it, and wakes the waiting thread.
 */
final class LocalOperation implements Operation, Wait {
    private final JavaCommunicator on;
    private final int peer;
    /** The communicator, by its number, and what is looked for in it. */
    final long context;
    final int source;
    final int tag;
    /** Where the message goes, or comes from. */
    final MemorySegment data;
    /** What is sent instead of data. */
    final Object[] objects;

    private final Runnable starter;
    private final Runnable canceller;
    private volatile RuntimeException failure;
    private volatile Envelope envelope;
    private volatile Thread waiter;
    private Object[] handed;
    private boolean active;
    /** Whether the arena of the data is kept open. */
    private volatile boolean holds;

    /** A send to a rank of the communicator, or a receive from it. */
    LocalOperation(
            JavaCommunicator on, boolean isSend, int peer, int tag, MemorySegment data, Object[] objects,
            Runnable starter, Runnable canceller) {
        this.on = on;
        this.peer = peer;
        context = on.context();
        source = isSend ? SENDS : peer;
        this.tag = tag;
        this.data = data;
        this.objects = objects;
        this.starter = starter;
        this.canceller = canceller;
    }

    long bytes() {
        return data == null ? 0 : data.byteSize();
    }

    void begin() {
        if (data != null) {
            Lease.begin(data);
            holds = true;
        }
        envelope = null;
        active = true;
    }

    @Override
    public Object[] handed() {
        return handed;
    }

    private void release() {
        if (holds) {
            holds = false;
            Lease.end(data);
        }
    }

    /** Called once by the thread that has found the partner. */
    void complete(Envelope found, Object[] objects) {
        release();
        handed = objects;
        envelope = found;
        Thread thread = waiter;
        if (thread != null) {
            LockSupport.unpark(thread);
        }
    }

    /** As {@link #complete}, if it can never be. */
    void fail(RuntimeException reason) {
        failure = reason;
        complete(new Envelope(source, tag, 0, false), null);
    }

    /** Wakes a thread when it is complete, or none. That thread looks again after this call, before it sleeps. */
    void wakes(Thread thread) {
        waiter = thread;
    }

    boolean isComplete() {
        return envelope != null;
    }

    @Override
    public Envelope await() {
        if (!Waiting.looks(this::isComplete)) {
            waiter = Thread.currentThread();
            on.waits().sleep(this);
            waiter = null;
        }
        return end();
    }

    private Envelope end() {
        active = false;
        if (failure != null) {
            throw failure;
        }
        Envelope found = envelope;
        if (source != SENDS && found.bytes() > bytes()) {
            throw MPIException.of(Abi.MPI_ERR_TRUNCATE, "a message of " + found.bytes() + " bytes from rank "
                    + found.source() + " has come, but there is room for " + bytes());
        }
        return found;
    }

    @Override
    public boolean isOver() {
        return isComplete();
    }

    @Override
    public int owner() {
        return on.owner();
    }

    @Override
    public List<Awaited> awaited() {
        return List.of(on.awaited(source == SENDS ? Awaited.Kind.SEND : Awaited.Kind.RECEIVE, peer, tag));
    }

    /** The source of an operation that sends. */
    static final int SENDS = Integer.MIN_VALUE;

    @Override
    public Envelope test() {
        return envelope == null ? null : end();
    }

    @Override
    public void cancel() {
        canceller.run();
    }

    @Override
    public void free() {
        active = false;
    }

    @Override
    public void start() {
        begin();
        try {
            starter.run();
        } catch (RuntimeException e) {
            active = false;
            release();
            throw e;
        }
    }

    @Override
    public boolean isActive() {
        return active;
    }
}
