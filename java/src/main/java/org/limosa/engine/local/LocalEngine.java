package org.limosa.engine.local;

import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import org.limosa.engine.Communicator;
import org.limosa.engine.Engine;
import org.limosa.engine.Envelope;
import org.limosa.engine.Members;
import org.limosa.engine.Operation;

/** What a rank that is a thread has: Java carries its messages, and no MPI library is needed. */
public final class LocalEngine implements Engine {
    private final LocalJob job;
    private final JavaCommunicator world;
    private final Communicator self;
    private final int me;

    LocalEngine(LocalJob job, JavaCommunicator world, Communicator self, int me) {
        this.job = job;
        this.world = world;
        this.self = self;
        this.me = me;
    }

    /** A front end begins to use it. */
    public void enter() {
        job.enter(me);
    }

    /** A front end uses it no more. */
    public void leave() {
        job.leave(me);
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
        world.barrierOfTheEnd();
        job.left(me);
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
        Any any = new Any(operations, me);
        if (!Waiting.looks(any::isOver)) {
            any.wake(Thread.currentThread());
            job.waits().sleep(any);
            any.wake(null);
        }
        for (int i = 0;; i++) {
            result[0] = operations.get(i).test();
            if (result[0] != null) {
                return i;
            }
        }
    }

    /** A wait for one of several operations. */
    private record Any(List<Operation> operations, int owner) implements Wait {
        void wake(Thread thread) {
            operations.forEach(each -> ((LocalOperation) each).wakes(thread));
        }

        @Override
        public boolean isOver() {
            for (int i = 0; i < operations.size(); i++) {
                if (((LocalOperation) operations.get(i)).isComplete()) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public List<Awaited> awaited() {
            return operations.stream().flatMap(each -> ((LocalOperation) each).awaited().stream()).toList();
        }
    }
}
