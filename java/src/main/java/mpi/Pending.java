package mpi;

import java.util.Arrays;
import java.util.function.Supplier;
import org.limosa.engine.Envelope;
import org.limosa.engine.Operation;

/** What a request stands for: a communication that is under way, or can be started. */
abstract class Pending {
    abstract boolean isActive();

    /** Waits for the end. Called while it is active only. */
    abstract Status await();

    /** The status if it is complete, otherwise null. Called while it is active only. */
    abstract Status test();

    abstract void cancel();

    abstract void free();

    void start() {
        throw Errors.argument("Start: the request is not persistent");
    }

    /** What the engine can wait for beside others; null if there is nothing to wait for. */
    Operation operation() {
        return null;
    }

    /** The status after the engine has found {@link #operation} complete; null if a further operation follows. */
    Status finish(Envelope envelope) {
        throw new IllegalStateException();
    }

    /** One operation of the engine. */
    private abstract static class OfOne extends Pending {
        final Operation operation;

        OfOne(Operation operation) {
            this.operation = operation;
        }

        @Override
        boolean isActive() {
            return operation.isActive();
        }

        @Override
        Status await() {
            return finish(operation.await());
        }

        @Override
        Status test() {
            Envelope envelope = operation.test();
            return envelope == null ? null : finish(envelope);
        }

        @Override
        Operation operation() {
            return operation;
        }
    }

    /** A send or a receive. */
    static final class OfEngine extends OfOne {
        private final String function;
        private final Landing landing;
        private final Datatype type;

        /** The landing is null for a send. */
        OfEngine(String function, Operation operation, Landing landing, Datatype type) {
            super(operation);
            this.function = function;
            this.landing = landing;
            this.type = type;
        }

        @Override
        Status finish(Envelope envelope) {
            if (landing != null) {
                landing.finish(function, envelope.bytes());
            }
            return new Status(envelope, type);
        }

        @Override
        void cancel() {
            operation.cancel();
        }

        @Override
        void free() {
            operation.free();
        }

        @Override
        void start() {
            operation.start();
        }
    }

    /** A collective operation that goes on; what it has written is put into the program's buffer at the end. */
    static final class OfCollective extends OfOne {
        private final Runnable finish;

        OfCollective(Operation operation, Runnable finish) {
            super(operation);
            this.finish = finish;
        }

        @Override
        Status finish(Envelope envelope) {
            finish.run();
            return new Status();
        }

        @Override
        void cancel() {
            throw Errors.argument("Cancel: a collective operation cannot be cancelled; wait for it");
        }

        @Override
        void free() {
            throw Errors.argument("Free: a collective operation cannot be given up; wait for it");
        }
    }

    /** Several messages as one. */
    static final class OfSeveral extends Pending {
        private final Request[] requests;
        /** The one that the engine waits for. */
        private Request waited;

        OfSeveral(Request[] requests) {
            this.requests = requests;
        }

        private Request next() {
            return Arrays.stream(requests).filter(each -> each.pending.isActive()).findFirst().orElse(null);
        }

        @Override
        boolean isActive() {
            return next() != null;
        }

        @Override
        Status await() {
            Request.Waitall(requests);
            return new Status();
        }

        @Override
        Status test() {
            Request.Testsome(requests);
            return isActive() ? null : new Status();
        }

        @Override
        void cancel() {
            throw Errors.argument("Cancel: a collective operation cannot be cancelled; wait for it");
        }

        @Override
        void free() {
            throw Errors.argument("Free: a collective operation cannot be given up; wait for it");
        }

        @Override
        Operation operation() {
            Request next = next();
            while (next != null && next.pending.operation() == null) {
                // A message to or from MPI.PROC_NULL.
                next.pending.await();
                next = next();
            }
            waited = next;
            return next == null ? null : next.pending.operation();
        }

        @Override
        Status finish(Envelope envelope) {
            waited.pending.finish(envelope);
            return isActive() ? null : new Status();
        }
    }

    /** What was complete when it began. */
    static final class Complete extends Pending {
        private Status status;

        Complete(Status status) {
            this.status = status;
        }

        @Override
        boolean isActive() {
            return status != null;
        }

        @Override
        Status await() {
            Status found = status;
            status = null;
            return found;
        }

        @Override
        Status test() {
            return await();
        }

        @Override
        void cancel() {}

        @Override
        void free() {
            status = null;
        }
    }

    /** A message from or to no process. */
    static final class OfNobody extends Pending {
        private final boolean persistent;
        private boolean active;

        OfNobody(boolean persistent) {
            this.persistent = persistent;
            active = !persistent;
        }

        @Override
        boolean isActive() {
            return active;
        }

        @Override
        Status await() {
            active = false;
            return Status.ofNobody();
        }

        @Override
        Status test() {
            return await();
        }

        @Override
        void cancel() {}

        @Override
        void free() {
            active = false;
        }

        @Override
        void start() {
            if (!persistent) {
                super.start();
            }
            active = true;
        }
    }

    /** A persistent request for elements that are copied: each start is a new operation. */
    static final class Renewed extends Pending {
        private final Supplier<Pending> starter;
        private Pending current;

        Renewed(Supplier<Pending> starter) {
            this.starter = starter;
        }

        @Override
        boolean isActive() {
            return current != null && current.isActive();
        }

        @Override
        Status await() {
            return current.await();
        }

        @Override
        Status test() {
            return current.test();
        }

        @Override
        void cancel() {
            if (current != null) {
                current.cancel();
            }
        }

        @Override
        void free() {
            if (isActive()) {
                current.free();
            }
            current = null;
        }

        @Override
        void start() {
            current = starter.get();
        }

        @Override
        Operation operation() {
            return current.operation();
        }

        @Override
        Status finish(Envelope envelope) {
            return current.finish(envelope);
        }
    }
}
