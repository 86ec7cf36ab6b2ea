package org.limosa;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import mpi.MPIException;
import org.limosa.engine.Communicator;
import org.limosa.engine.Engine;
import org.limosa.engine.Envelope;
import org.limosa.engine.Mode;
import org.limosa.engine.Operation;
import org.limosa.engine.Type;

/**
 * The thread of a process that waits for all its {@link Transfer}s at once. It sleeps in the MPI library as long as
 * none is complete; an empty message of the process to itself tells it that there is something new.
 */
final class Waiter {
    private static final int TAG = 0;

    private final Engine engine;
    /** The process alone. */
    private final Communicator self;
    private final Queue<Transfer<?>> added = new ConcurrentLinkedQueue<>();
    private final Queue<Transfer<?>> unwanted = new ConcurrentLinkedQueue<>();
    /** Whether a message to this process is on its way. */
    private final AtomicBoolean rung = new AtomicBoolean();
    private final List<Transfer<?>> underWay = new ArrayList<>();
    private Thread thread;
    private volatile boolean ends;

    Waiter(Engine engine) {
        this.engine = engine;
        self = engine.self().duplicate();
    }

    /** Waits for a transfer from now on. */
    void add(Transfer<?> transfer) {
        added.add(transfer);
        ring();
    }

    /** Withdraws a transfer, if it is not complete. */
    void withdraw(Transfer<?> transfer) {
        unwanted.add(transfer);
        ring();
    }

    private void ring() {
        synchronized (this) {
            if (thread == null) {
                thread = Thread.ofPlatform().daemon().name("limosa-waiter").start(this::run);
            }
        }
        if (rung.compareAndSet(false, true)) {
            self.send(null, Type.BYTE, 0, TAG, Mode.STANDARD);
        }
    }

    /** Withdraws all receives and waits for all sends. */
    void finish() {
        Thread running;
        synchronized (this) {
            running = thread;
        }
        if (running != null) {
            ends = true;
            ring();
            boolean isInterrupted = false;
            while (running.isAlive()) {
                try {
                    running.join();
                } catch (InterruptedException e) {
                    isInterrupted = true;
                }
            }
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
        self.free();
    }

    private void run() {
        Operation bell = self.startReceive(null, Type.BYTE, 0, TAG);
        Envelope[] found = new Envelope[1];
        while (!ends || !underWay.isEmpty()) {
            List<Operation> operations = new ArrayList<>(1 + underWay.size());
            operations.add(bell);
            underWay.forEach(each -> operations.add(each.operation()));
            try {
                int index = engine.awaitAny(operations, found);
                if (index == 0) {
                    bell = self.startReceive(null, Type.BYTE, 0, TAG);
                    rung.set(false);
                    look();
                } else if (underWay.get(index - 1).advance(found[0])) {
                    remove(index - 1);
                }
            } catch (MPIException e) {
                removeFailed(e);
            }
        }
        bell.cancel();
        bell.await();
    }

    /** What is new. */
    private void look() {
        for (Transfer<?> each = added.poll(); each != null; each = added.poll()) {
            underWay.add(each);
        }
        for (Transfer<?> each = unwanted.poll(); each != null; each = unwanted.poll()) {
            each.withdraw();
        }
        if (ends) {
            underWay.forEach(Transfer::withdraw);
        }
    }

    /** Order does not matter. */
    private void remove(int index) {
        Transfer<?> last = underWay.removeLast();
        if (index < underWay.size()) {
            underWay.set(index, last);
        }
    }

    /** An operation that has ended with an error is active no more. */
    private void removeFailed(MPIException thrown) {
        for (int i = 0; i < underWay.size(); i++) {
            if (!underWay.get(i).operation().isActive()) {
                underWay.get(i).fail(thrown);
                remove(i);
                return;
            }
        }
        throw thrown;
    }
}
