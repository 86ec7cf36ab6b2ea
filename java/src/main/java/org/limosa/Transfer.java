package org.limosa;

import java.util.concurrent.CompletableFuture;
import mpi.MPIException;
import org.limosa.engine.Envelope;
import org.limosa.engine.Operation;

/** A message that is under way. The {@link Waiter} completes it. */
abstract class Transfer<T> extends CompletableFuture<T> {
    private final Waiter waiter;
    private final String where;
    private final boolean canBeWithdrawn;
    /** What is waited for; replaced by what follows it. */
    private Operation operation;
    /** Whether the waiter has withdrawn it. */
    private final CompletableFuture<Boolean> withdrawn = new CompletableFuture<>();

    /** Whether a part has come. */
    private boolean hasBegun;
    private T result;

    Transfer(Waiter waiter, String where, Operation operation, boolean canBeWithdrawn) {
        this.waiter = waiter;
        this.where = where;
        this.operation = operation;
        this.canBeWithdrawn = canBeWithdrawn;
    }

    /** What follows the operation; null if the {@link #result} is there. */
    abstract Operation next(Envelope envelope);

    final void result(T value) {
        result = value;
    }

    final Operation operation() {
        return operation;
    }

    /** Goes on after the operation is complete; whether the transfer is over. */
    final boolean advance(Envelope envelope) {
        if (envelope.cancelled()) {
            over(() -> super.cancel(false), true);
            return true;
        }
        try {
            operation = next(envelope);
            hasBegun = true;
        } catch (RuntimeException e) {
            fail(e);
            return true;
        }
        if (operation == null) {
            over(() -> complete(result), false);
        }
        return operation == null;
    }

    final void fail(RuntimeException thrown) {
        RuntimeException told = thrown instanceof MPIException e ? Messages.told(where, e) : thrown;
        over(() -> completeExceptionally(told), false);
    }

    /**
     * What the program has asked to be done next may wait for other messages, so it cannot be done by the thread that
     * waits for them.
     */
    private void over(Runnable completion, boolean isWithdrawn) {
        operation = null;
        Thread.startVirtualThread(() -> {
            completion.run();
            withdrawn.complete(isWithdrawn);
        });
    }

    /** Completes it now, in the calling thread, if that needs no waiting. */
    final boolean isCompleteNow() {
        Envelope envelope = operation.test();
        if (envelope == null) {
            return false;
        }
        operation = next(envelope);
        hasBegun = true;
        if (operation == null) {
            withdrawn.complete(false);
            complete(result);
        }
        return operation == null;
    }

    /** For the waiter: asks to end a receive that has no message yet. */
    final void withdraw() {
        if (operation != null && canBeWithdrawn && !hasBegun) {
            operation.cancel();
        }
    }

    /**
     * Withdraws a receive that has no message yet. Waits until it is known whether that was in time.
     *
     * @return whether it was withdrawn; a send never is
     */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        if (canBeWithdrawn && !isDone()) {
            waiter.withdraw(this);
            return withdrawn.join();
        }
        return isCancelled();
    }
}
