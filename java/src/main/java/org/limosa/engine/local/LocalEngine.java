package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.limosa.engine.Communicator;
import org.limosa.engine.Engine;
import org.limosa.engine.Envelope;
import org.limosa.engine.Members;
import org.limosa.engine.Operation;

/** What a rank that is a thread has: Java carries its messages, and no MPI library is needed. */
public final class LocalEngine implements Engine {
    private static final int SPINS = 1000;

    private final LocalJob job;
    private final Communicator world;
    private final Communicator self;
    private final int me;

    LocalEngine(LocalJob job, Communicator world, Communicator self, int me) {
        this.job = job;
        this.world = world;
        this.self = self;
        this.me = me;
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
        return new LocalMembers(new int[0], me);
    }

    @Override
    public void abort(Communicator communicator, int code) {
        job.abort(code);
    }

    @Override
    public void close() {
        world.barrier();
        job.left();
    }

    @Override
    public String processorName() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "localhost";
        }
    }

    @Override
    public int largestTag() {
        return Integer.MAX_VALUE;
    }

    @Override
    public void attachBuffer(MemorySegment buffer) {}

    @Override
    public void detachBuffer() {}

    @Override
    public int bufferedOverhead() {
        return 0;
    }

    @Override
    public int awaitAny(List<Operation> operations, Envelope[] result) {
        if (operations.isEmpty()) {
            return -1;
        }
        try {
            for (int looks = 0;; looks++) {
                for (int i = 0; i < operations.size(); i++) {
                    result[0] = operations.get(i).test();
                    if (result[0] != null) {
                        return i;
                    }
                }
                if (looks < SPINS) {
                    Thread.onSpinWait();
                } else if (looks == SPINS) {
                    wake(operations, Thread.currentThread());
                } else {
                    LockSupport.park(this);
                }
            }
        } finally {
            wake(operations, null);
        }
    }

    private static void wake(List<Operation> operations, Thread thread) {
        operations.forEach(each -> ((LocalOperation) each).wakes(thread));
    }
}
